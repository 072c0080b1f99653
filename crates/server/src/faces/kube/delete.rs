//! Deletion of objects, one by name or all that are selected.

use axum::http::StatusCode;
use octoflow_control::registry::{DeleteOptions, Deleted, Fault as RegistryFault, Kind, Propagation};
use octoflow_model::Revision;
use serde_json::{Value, json};

use super::{accept, body, form, options, table::Include, target::Target};
use crate::{
    answer::{self, Answer, fault::Fault, query::Query},
    call::Call,
};

pub(super) async fn one(mut call: Call, kind: &'static Kind) -> Result<Answer, Fault> {
    let target = Target::of(&call, kind)?;
    let form = accept::form(&call)?;
    let options = read(&mut call).await?;
    let (space, name) = (target.space(), target.name());
    let deleted = call.work(move |registry| registry.delete(kind, &space, &name, &options)).await?;
    match deleted {
        Deleted::Gone(object) => Ok(answer::json(&success(kind, &object))),
        Deleted::Going(object) => Ok(form::answer(StatusCode::OK, form, kind, object, &call.query)),
    }
}

/// Evicts a pod.
pub(super) async fn evict(mut call: Call, kind: &'static Kind) -> Result<Answer, Fault> {
    let target = Target::of(&call, kind)?;
    let body = body::optional(&mut call).await?;
    if !body.is_null() && !body.is_object() || body["kind"].as_str().is_some_and(|kind| kind != "Eviction") {
        return Err(Fault::bad_request("the body of an eviction is an object of kind Eviction"));
    }
    let (space, name) = (target.space(), target.name());
    if body["metadata"]["name"].as_str().is_some_and(|given| given != name) {
        return Err(Fault::bad_request(format!(
            "the eviction is of {}, and the path says {name}",
            body["metadata"]["name"]
        )));
    }
    let options = options_of(&body["deleteOptions"], &call.query)?;
    call.work(move |registry| registry.evict(&space, &name, &options)).await?;
    let done = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    Ok(answer::with_status(StatusCode::CREATED, &done))
}

pub(super) async fn collection(mut call: Call, kind: &'static Kind) -> Result<Answer, Fault> {
    let target = Target::of(&call, kind)?;
    let form = accept::form(&call)?;
    let selected = options::list(&call, &target)?;
    let options = read(&mut call).await?;
    let deleted = call.work(move |registry| {
        let deleted = registry.delete_many(kind, &selected, &options)?;
        Ok::<_, RegistryFault>((deleted, registry.revision()?))
    });
    let (deleted, revision) = deleted.await?;
    let was = |deleted| match deleted {
        Deleted::Gone(object) | Deleted::Going(object) => object,
    };
    let deleted = deleted.into_iter().map(was).collect();
    let metadata = json!({"resourceVersion": revision.to_string()});
    Ok(answer::json(&form::list(form, Include::of(&call.query), kind, metadata, deleted)))
}

fn success(kind: &Kind, object: &Value) -> Value {
    let metadata = &object["metadata"];
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 200,
        "details": {"name": metadata["name"], "group": kind.group, "kind": kind.plural, "uid": metadata["uid"]},
    })
}

/// Reads the options from the body, the query, or both.
async fn read(call: &mut Call) -> Result<DeleteOptions, Fault> {
    let body = body::optional(call).await?;
    if !body.is_null() && !body.is_object() {
        return Err(Fault::bad_request("the body of a deletion are its options, an object of kind DeleteOptions"));
    }
    if body["kind"].as_str().is_some_and(|kind| kind != "DeleteOptions") {
        return Err(Fault::bad_request(format!("the body of a deletion is a DeleteOptions, not a {}", body["kind"])));
    }
    options_of(&body, &call.query)
}

fn options_of(body: &Value, query: &Query) -> Result<DeleteOptions, Fault> {
    let dry = body["dryRun"].as_array().into_iter().flatten().map(|word| word.as_str().unwrap_or("?"));
    let dry_run = options::dry_run(query.all("dryRun").chain(dry))?;
    let word = body["propagationPolicy"].as_str().or_else(|| query.get("propagationPolicy"));
    let orphan =
        body["orphanDependents"].as_bool().or_else(|| query.get("orphanDependents").map(|word| word == "true"));
    let propagation = match (word, orphan) {
        (Some(_), Some(_)) => {
            return Err(Fault::bad_request("say propagationPolicy or orphanDependents, not both"));
        }
        (Some("Background"), None) | (None, Some(false)) => Propagation::Background,
        (Some("Foreground"), None) => Propagation::Foreground,
        (Some("Orphan"), None) | (None, Some(true)) => Propagation::Orphan,
        (Some(other), None) => {
            return Err(Fault::bad_request(format!(
                "propagationPolicy={other} is not known; write Background, Foreground or Orphan"
            )));
        }
        (None, None) => Propagation::default(),
    };
    // Runs end in their own time, so the value is ignored; but it must be a number.
    let grace = match &body["gracePeriodSeconds"] {
        Value::Null => options::number::<i64>(query, "gracePeriodSeconds")?,
        number => Some(number.as_i64().ok_or_else(|| Fault::bad_request("gracePeriodSeconds must be a number"))?),
    };
    if grace.is_some_and(|seconds| seconds < -1) {
        return Err(Fault::bad_request("gracePeriodSeconds must not be negative"));
    }
    let wanted = &body["preconditions"];
    let uid = wanted["uid"].as_str().map(str::to_owned);
    let revision = match wanted["resourceVersion"].as_str() {
        Some(text) => {
            let number =
                text.parse().map_err(|_| Fault::bad_request("preconditions.resourceVersion must be a number"))?;
            Some(Revision(number))
        }
        None => None,
    };
    Ok(DeleteOptions { dry_run, propagation, uid, revision })
}
