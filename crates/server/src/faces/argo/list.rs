//! Lists of workflows, open and archived alike, newest first; and the query options of lists.

use std::{collections::VecDeque, io};

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, Response, header},
};
use futures_util::stream;
use octoflow_control::registry::{
    Fault as RegistryFault, FieldSelector, HistoryFilter, LabelSelector, NameTest, Registry, RunRow, Selection,
};
use octoflow_model::{Revision, Time};
use serde_json::{Value, json};

use super::{kind, mask::Mask, namespace};
use crate::{
    answer::{
        self, Answer,
        fault::Fault,
        query::Query,
        stream::{LOOKUPS, Piece},
    },
    call::Call,
    faces::openapi::operation::{self, Parameter, count, text, word},
};

/// Options of every list of this face.
pub(super) const OPTIONS: &[Parameter] = &[
    text("listOptions.labelSelector", "Only objects with these labels"),
    text("listOptions.fieldSelector", "Only objects with these fields"),
    count("listOptions.limit", "At most so many in one page"),
    text("listOptions.continue", "Where the page before ended"),
    word("nameFilter", &["Exact", "Contains", "Prefix"], "How the name in the field selector is meant"),
    FIELDS,
];

/// Additional options of lists of runs.
pub(super) const OF_RUNS: &[Parameter] = &[
    text("namePrefix", "Only workflows whose name has this prefix"),
    operation::time("createdAfter", "Only workflows created after that"),
    operation::time("finishedBefore", "Only workflows finished before that"),
];

pub(super) const FIELDS: Parameter =
    text("fields", "Only these parts of the answer, or with a leading `-` all but these");

pub(super) async fn list(call: Call) -> Result<Answer, Fault> {
    let wanted = history_filter(&call.query, namespace(&call)?)?;
    answer(&call, wanted).await
}

/// Answers with the whole list. A long one is encoded while the client reads it.
pub(super) async fn answer(call: &Call, wanted: HistoryFilter) -> Result<Answer, Fault> {
    let mask = Mask::of(&call.query);
    let nodes = mask.wants("items.status.nodes");
    let skip = wanted.skip;
    let history = call.work(move |registry| registry.history(kind("Workflow"), &wanted)).await?;
    let next = history.more.then(|| (skip + history.rows.len()).to_string());
    let head = written("WorkflowList", Vec::new(), history.revision, next);
    if history.rows.len() <= MAX_INLINE_ITEMS {
        let items = call.work(move |registry| objects(registry, &history.rows, nodes)).await?;
        let mut list = head;
        if !items.is_empty() {
            list["items"] = Value::Array(items);
        }
        mask.apply(&mut list);
        return Ok(answer::json(&list));
    }
    let long = LongList {
        registry: call.app.registry.clone(),
        rows: history.rows.into(),
        mask,
        nodes,
        at: ListState::Head(head),
    };
    let mut answer = Response::new(Body::from_stream(stream::try_unfold(long, LongList::next)));
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(answer)
}

/// Lists up to this length are encoded at once.
const MAX_INLINE_ITEMS: usize = 50;

/// Renders runs, with nodes only if the mask wants them.
fn objects(registry: &Registry, rows: &[RunRow], nodes: bool) -> Result<Vec<Value>, RegistryFault> {
    let mut items = Vec::with_capacity(rows.len());
    for row in rows {
        let object = if nodes { registry.listed_run(row) } else { registry.trimmed_run(row) };
        match object {
            Ok(object) => items.push(object),
            // It was deleted meanwhile.
            Err(RegistryFault::NotFound { .. }) => {}
            Err(fault) => return Err(fault),
        }
    }
    Ok(items)
}

/// List that is encoded piece by piece.
struct LongList {
    registry: Registry,
    rows: VecDeque<RunRow>,
    mask: Mask,
    nodes: bool,
    at: ListState,
}

enum ListState {
    Head(Value),
    /// True once an item was sent.
    Items(bool),
    Over,
}

impl LongList {
    /// Encodes the next items, at most a piece. Blocks on the disk and the engine.
    fn items(&mut self, told: &mut bool) -> Result<Vec<u8>, RegistryFault> {
        let mut piece = Piece::new();
        while !piece.is_full()
            && let Some(row) = self.rows.pop_front()
        {
            for item in objects(&self.registry, &[row], self.nodes)? {
                let mut list = json!({"items": [item]});
                self.mask.apply(&mut list);
                if std::mem::replace(told, true) {
                    piece.bytes.push(b',');
                }
                serde_json::to_writer(&mut piece.bytes, &list["items"][0]).expect("a value can always be written");
            }
        }
        Ok(piece.bytes)
    }

    async fn next(mut self) -> io::Result<Option<(Bytes, Self)>> {
        match std::mem::replace(&mut self.at, ListState::Over) {
            ListState::Head(mut head) => {
                // The mask may remove the items altogether; then there is nothing more to send.
                head["items"] = json!([]);
                self.mask.apply(&mut head);
                let more = head.as_object_mut().and_then(|fields| fields.remove("items")).is_some();
                let mut text = head.to_string();
                if more {
                    text.pop();
                    text.push_str(if text.len() > 1 { ",\"items\":[" } else { "\"items\":[" });
                    self.at = ListState::Items(false);
                }
                Ok(Some((text.into(), self)))
            }
            ListState::Items(_) if self.rows.is_empty() => Ok(Some((Bytes::from_static(b"]}"), self))),
            ListState::Items(mut told) => {
                let turn = LOOKUPS.acquire().await.map_err(io::Error::other)?;
                let look = tokio::task::spawn_blocking(move || {
                    let piece = self.items(&mut told);
                    self.at = ListState::Items(told);
                    drop(turn);
                    (piece, self)
                });
                let (piece, long) = look.await.map_err(io::Error::other)?;
                let bytes = piece.map_err(|fault| io::Error::other(fault.to_string()))?;
                Ok(Some((bytes.into(), long)))
            }
            ListState::Over => Ok(None),
        }
    }
}

/// Encodes a list. Clients expect `null` for an empty one.
pub(super) fn written(kind: &str, items: Vec<Value>, revision: Revision, next: Option<String>) -> Value {
    let items = if items.is_empty() { Value::Null } else { Value::Array(items) };
    let mut metadata = json!({"resourceVersion": revision.to_string()});
    if let Some(next) = next {
        metadata["continue"] = json!(next);
    }
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": kind, "metadata": metadata, "items": items})
}

/// Parses the query of a list of runs.
pub(super) fn history_filter(query: &Query, namespace: Option<String>) -> Result<HistoryFilter, Fault> {
    let mut wanted = HistoryFilter { namespace, ..HistoryFilter::default() };
    wanted.selection.labels = labels(query)?;
    let mut named = None;
    let mut rest = Vec::new();
    // Besides equality, two times can be compared.
    for part in query.get("listOptions.fieldSelector").unwrap_or_default().split(',').map(str::trim) {
        if let Some(text) = part.strip_prefix("spec.startedAt>") {
            wanted.started_after = Some(time("spec.startedAt", text)?);
        } else if let Some(text) = part.strip_prefix("spec.finishedAt<") {
            wanted.finished_before = Some(time("spec.finishedAt", text)?);
        } else if !part.is_empty() {
            rest.push(part);
        }
    }
    let mut fields = FieldSelector::parse(&rest.join(",")).map_err(Fault::bad_request)?;
    fields.0.retain(|test| match (test.field.as_str(), test.equal) {
        ("metadata.name", equal) => {
            named = Some((test.value.clone(), equal));
            false
        }
        ("metadata.namespace", true) if wanted.namespace.is_none() => {
            wanted.namespace = Some(test.value.clone()).filter(|name| !name.is_empty());
            false
        }
        _ => true,
    });
    wanted.selection.fields = fields;
    wanted.name = match (named, query.get("nameFilter"), query.get("namePrefix")) {
        (None, _, None) => None,
        (None, _, Some(prefix)) => Some(NameTest::Begins(prefix.to_owned())),
        (Some((name, false)), ..) => Some(NameTest::IsNot(name)),
        (Some((name, true)), None | Some("Exact"), _) => Some(NameTest::Is(name)),
        (Some((name, true)), Some("Contains"), _) => Some(NameTest::Contains(name)),
        (Some((name, true)), Some("Prefix"), _) => Some(NameTest::Begins(name)),
        (Some((name, true)), Some("NotEquals"), _) => Some(NameTest::IsNot(name)),
        (Some(_), Some(other), _) => {
            return Err(Fault::bad_request(format!("nameFilter must be Exact, Contains or Prefix, not `{other}`")));
        }
    };
    if let Some(text) = query.get("createdAfter") {
        wanted.created_after = Some(time("createdAfter", text)?);
    }
    if let Some(text) = query.get("finishedBefore") {
        wanted.finished_before = Some(time("finishedBefore", text)?);
    }
    wanted.limit = limit(query)?;
    wanted.skip = match query.get("listOptions.continue") {
        None => 0,
        Some(text) => text.parse().map_err(|_| {
            Fault::bad_request(format!("listOptions.continue must be what an earlier list gave, not `{text}`"))
        })?,
    };
    Ok(wanted)
}

/// Zero means no limit, as in the Kubernetes API.
pub(super) fn limit(query: &Query) -> Result<Option<usize>, Fault> {
    let Some(text) = query.get("listOptions.limit") else { return Ok(None) };
    let limit: usize =
        text.parse().map_err(|_| Fault::bad_request(format!("listOptions.limit must be a number, not `{text}`")))?;
    Ok(Some(limit).filter(|limit| *limit > 0))
}

pub(super) fn selection(query: &Query) -> Result<Selection, Fault> {
    let text = query.get("listOptions.fieldSelector").unwrap_or_default();
    Ok(Selection { labels: labels(query)?, fields: FieldSelector::parse(text).map_err(Fault::bad_request)? })
}

fn labels(query: &Query) -> Result<LabelSelector, Fault> {
    LabelSelector::parse(query.get("listOptions.labelSelector").unwrap_or_default()).map_err(Fault::bad_request)
}

fn time(field: &str, text: &str) -> Result<Time, Fault> {
    Time::parse(text)
        .ok_or_else(|| Fault::bad_request(format!("{field} must be a time such as 2026-01-31T12:00:00Z, not `{text}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(query: &str) -> HistoryFilter {
        history_filter(&Query::parse(query), None).unwrap()
    }

    #[test]
    fn names_are_filtered_as_asked() {
        let query = "listOptions.fieldSelector=metadata.name%3Da";
        assert_eq!(asked(query).name, Some(NameTest::Is("a".into())));
        assert_eq!(asked(&format!("{query}&nameFilter=Contains")).name, Some(NameTest::Contains("a".into())));
        assert_eq!(asked(&format!("{query}&nameFilter=Prefix")).name, Some(NameTest::Begins("a".into())));
        assert_eq!(asked("namePrefix=b").name, Some(NameTest::Begins("b".into())));
        assert!(history_filter(&Query::parse(&format!("{query}&nameFilter=Like")), None).is_err());
    }

    #[test]
    fn times_limits_and_places_are_read_or_refused() {
        let found = asked(
            "listOptions.fieldSelector=spec.startedAt>2026-01-01T00:00:00Z,spec.finishedAt<2026-02-01T00:00:00Z,\
             metadata.namespace=x&listOptions.limit=5&listOptions.continue=10&createdAfter=2026-01-01T00:00:00Z",
        );
        assert!(found.started_after < found.finished_before);
        assert_eq!((found.limit, found.skip, found.namespace.as_deref()), (Some(5), 10, Some("x")));
        assert!(found.created_after.is_some() && found.selection.fields.0.is_empty());
        assert_eq!(asked("listOptions.limit=0").limit, None);
        for wrong in
            ["listOptions.limit=x", "listOptions.continue=x", "createdAfter=today", "listOptions.labelSelector=a b"]
        {
            assert!(history_filter(&Query::parse(wrong), None).is_err(), "{wrong}");
        }
    }
}
