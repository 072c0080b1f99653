//! Reading of objects: one by name, or lists in pages.

use axum::http::{HeaderValue, StatusCode, header};
use octoflow_control::registry::{Fault as RegistryFault, Kind};
use octoflow_model::Revision;
use serde_json::{Value, json};

use super::{accept, form, kept::Kept, options, table::Include, target::Target, watch, whole::Runs};
use crate::{
    answer::{self, Answer, fault::Fault, pieces},
    call::Call,
};

pub(super) async fn one(call: Call, kind: &'static Kind) -> Result<Answer, Fault> {
    let target = Target::of(&call, kind)?;
    if call.query.flag("watch") {
        return watch::one(call, target).await;
    }
    let (form, include) = (accept::form(&call)?, Include::of(&call.query));
    let (space, name) = (target.space(), target.name());
    let text = call.work(move |registry| {
        let encode = |object| answer::encode(&form::one(form, include, kind, object, true));
        registry.shown_text(kind, &space, &name, &format!("{form:?} {include:?} {}", kind.group), encode)
    });
    Ok(answer::shared(text.await?))
}

pub(super) async fn collection(call: Call, kind: &'static Kind) -> Result<Answer, Fault> {
    let target = Target::of(&call, kind)?;
    if call.query.flag("watch") {
        return watch::watch(call, target).await;
    }
    let (form, include) = (accept::form(&call)?, Include::of(&call.query));
    let mut options = options::list(&call, &target)?;
    options.limit = options::number::<usize>(&call.query, "limit")?.filter(|limit| *limit > 0);
    let begun = match call.query.get("continue") {
        Some(token) => {
            let (begun, after) = Token::parse(token)?;
            options.after = Some(after);
            Some(begun)
        }
        None => None,
    };
    let wanted = Freshness::of(&call, begun.is_some())?;
    let begun_with = move |revision, next| metadata(begun.unwrap_or(revision), next);
    if kind.runs() {
        let list = pieces::begin(&call, move |registry| {
            wanted.check(registry.revision()?)?;
            Runs::new(registry, kind, form, include, options, begun_with)
        });
        return Ok(uncached(list.await?));
    }
    // Some are kept and some are only there: they are listed from both.
    if kind.is_kept() && !kind.exists_unstored() {
        let list = pieces::begin(&call, move |registry| {
            wanted.check(registry.revision()?)?;
            Kept::new(registry, kind, form, include, &options, begun_with)
        });
        return Ok(uncached(list.await?));
    }
    let body = call.work(move |registry| {
        wanted.check(registry.revision()?)?;
        let listing = registry.list(kind, &options)?;
        let value = form::list(form, include, kind, begun_with(listing.revision, listing.next), listing.items);
        serde_json::to_vec(&value)
            .map_err(|error| RegistryFault::BadRequest(format!("the list cannot be told: {error}")))
    });
    Ok(uncached(answer::bytes_as(StatusCode::OK, "application/json", body.await?)))
}

fn uncached(mut answer: Answer) -> Answer {
    answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    answer
}

fn metadata(revision: Revision, next: Option<String>) -> Value {
    let mut metadata = json!({"resourceVersion": revision.to_string()});
    if let Some(next) = next {
        metadata["continue"] = json!(Token(revision, next).to_string());
    }
    metadata
}

/// Continuation token. It carries the revision of the first page, so that a watch from there misses nothing that
/// changed while the pages were read.
struct Token(Revision, String);

impl Token {
    fn parse(text: &str) -> Result<(Revision, String), Fault> {
        let parts = text.split_once(':').and_then(|(revision, after)| Some((revision.parse().ok()?, after)));
        let (revision, after) = parts.ok_or_else(|| {
            Fault::bad_request("continue key is not valid: send the `continue` of the page before as it was")
        })?;
        Ok((Revision(revision), after.to_owned()))
    }
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.0, self.1)
    }
}

/// Required freshness of a list. Ours are always the newest.
#[derive(Clone, Copy)]
enum Freshness {
    Any,
    NotOlderThan(Revision),
    Exact(Revision),
}

impl Freshness {
    fn of(call: &Call, continued: bool) -> Result<Self, Fault> {
        let revision = options::revision(&call.query)?;
        match (call.query.get("resourceVersionMatch"), revision) {
            (Some(_), _) if continued => Err(Fault::bad_request("resourceVersionMatch is forbidden with continue")),
            (None, _) if continued => Ok(Self::Any),
            (None | Some("NotOlderThan"), Some(revision)) => Ok(Self::NotOlderThan(revision)),
            (Some("Exact"), Some(Revision(0))) => {
                Err(Fault::bad_request("resourceVersionMatch=Exact needs a resourceVersion other than 0"))
            }
            (Some("Exact"), Some(revision)) => Ok(Self::Exact(revision)),
            (None, None) => Ok(Self::Any),
            (Some(_), None) => Err(Fault::bad_request("resourceVersionMatch needs a resourceVersion")),
            (Some(other), Some(_)) => Err(Fault::bad_request(format!(
                "resourceVersionMatch={other} is not known; write Exact or NotOlderThan"
            ))),
        }
    }

    fn check(self, latest: Revision) -> Result<(), RegistryFault> {
        match self {
            Self::NotOlderThan(wanted) if wanted > latest => Err(RegistryFault::BadRequest(format!(
                "Too large resource version: {wanted}, current: {latest}; it did not come from this server"
            ))),
            // Old states are not kept.
            Self::Exact(wanted) if wanted != latest => Err(RegistryFault::Expired),
            Self::Any | Self::NotOlderThan(_) | Self::Exact(_) => Ok(()),
        }
    }
}
