//! Patches: JSON patch, merge patch, strategic merge patch, and server-side apply.

use axum::http::StatusCode;
use octoflow_control::registry::{ApplyOptions, Cause, Fault as RegistryFault, Kind, patch, schema_name};
use serde_json::{Value, json};

use super::{
    accept, body, form,
    options::{self, Validation},
    strategic, strict,
    target::Target,
};
use crate::{
    answer::{Answer, fault::Fault, warning::warn},
    call::Call,
    faces::openapi::operation::{Content, Parameter, flag, refer},
};

pub(super) const OPTIONS: &[Parameter] = &[flag("force", "Apply: take over fields that others wrote")];

/// Accepted bodies of a patch.
pub(super) fn bodies(kind: &Kind) -> Content {
    let operations = json!({"type": "array", "items": {
        "type": "object", "required": ["op", "path"],
        "properties": {
            "op": {"type": "string", "enum": ["add", "remove", "replace", "move", "copy", "test"]},
            "path": {"type": "string"}, "from": {"type": "string"}, "value": {},
        },
    }});
    let object = json!({"type": "object"});
    let content = Content::default()
        .or("application/merge-patch+json", Some(object.clone()))
        .or("application/json-patch+json", Some(operations))
        .or("application/apply-patch+yaml", Some(refer(&schema_name(kind))));
    if kind.is_builtin() { content.or("application/strategic-merge-patch+json", Some(object)) } else { content }
}

/// Type of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PatchType {
    Operations,
    Merge,
    Strategic,
    Apply,
}

impl PatchType {
    fn of(kind: &Kind, media_type: &str) -> Result<Self, Fault> {
        match media_type {
            "application/json-patch+json" => Ok(Self::Operations),
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/strategic-merge-patch+json" if kind.is_builtin() => Ok(Self::Strategic),
            "application/apply-patch+yaml" => Ok(Self::Apply),
            other => {
                let strategic = if kind.is_builtin() { ", application/strategic-merge-patch+json" } else { "" };
                Err(Fault::unsupported(format!(
                    "the body of the request was in an unknown format ({other}) - accepted media types include: \
                     application/json-patch+json, application/merge-patch+json{strategic}, application/apply-patch+yaml"
                )))
            }
        }
    }
}

pub(super) async fn patch(mut call: Call, kind: &'static Kind) -> Result<Answer, Fault> {
    let target = Target::of(&call, kind)?;
    let patch_type = PatchType::of(kind, &body::media_type(&call))?;
    let (form, options, validation) = (accept::form(&call)?, options::write(&call)?, options::validation(&call.query)?);
    if patch_type == PatchType::Apply {
        return apply(call, target, validation).await;
    }
    if call.query.get("force").is_some() {
        return Err(Fault::bad_request("force is only for application/apply-patch+yaml"));
    }
    let patch = call.json().await?;
    let (space, name) = (target.space(), target.name());
    let changed = call.work(move |registry| {
        let mut warnings = Vec::new();
        let object = registry.update(kind, &space, &name, &options, |before| {
            let (after, told) = change(kind, &name, patch_type, before, &patch, validation)?;
            warnings = told;
            Ok(after)
        })?;
        Ok::<_, RegistryFault>((object, warnings))
    });
    let (object, warnings) = changed.await?;
    Ok(warn(form::answer(StatusCode::OK, form, kind, object, &call.query), &warnings))
}

/// Declares the capacity of a node: a patch of its status.
pub(super) async fn node_capacity(mut call: Call, kind: &'static Kind) -> Result<Answer, Fault> {
    let target = Target::of(&call, kind)?;
    let patch_type = PatchType::of(kind, &body::media_type(&call))?;
    let (form, options, validation) = (accept::form(&call)?, options::write(&call)?, options::validation(&call.query)?);
    if patch_type == PatchType::Apply {
        return Err(Fault::bad_request("the status of a node is patched, not applied"));
    }
    let (patch, name) = (call.json().await?, target.name());
    let changed = call.work(move |registry| {
        registry.update_node_status(&name, &options, |before| {
            change(kind, &name, patch_type, before, &patch, validation).map(|(after, _)| after)
        })
    });
    Ok(form::answer(StatusCode::OK, form, kind, changed.await?, &call.query))
}

fn change(
    kind: &'static Kind,
    name: &str,
    patch_type: PatchType,
    before: &Value,
    patch: &Value,
    validation: Validation,
) -> Result<(Value, Vec<String>), RegistryFault> {
    let invalid = |error: patch::PatchError| RegistryFault::Invalid {
        kind,
        name: name.to_owned(),
        causes: vec![Cause::invalid("", error.to_string())],
    };
    let mut after = before.clone();
    match patch_type {
        PatchType::Operations => patch::apply_operations(&mut after, patch).map_err(invalid)?,
        PatchType::Merge if patch.is_object() => patch::merge(&mut after, patch),
        PatchType::Merge => return Err(RegistryFault::BadRequest("a merge patch is an object".to_owned())),
        PatchType::Strategic => strategic::merge(&mut after, patch).map_err(RegistryFault::BadRequest)?,
        PatchType::Apply => unreachable!("what is applied is not merged here"),
    }
    for (field, why) in [
        (
            "resourceVersion",
            "the object has been modified; please apply your changes to the latest version and try again",
        ),
        ("uid", "the object is not the one that was meant: its uid is another"),
    ] {
        let (was, is) = (&before["metadata"][field], &after["metadata"][field]);
        if is.as_str().is_some_and(|is| !is.is_empty() && was != is) {
            return Err(RegistryFault::Conflict { kind, name: name.to_owned(), why: why.to_owned() });
        }
        let lost = was != is;
        if let Some(metadata) = after["metadata"].as_object_mut().filter(|_| lost) {
            metadata.insert(field.to_owned(), was.clone());
        }
    }
    let warnings = strict::check_unknown_fields(kind, &mut after, validation)?;
    Ok((after, warnings))
}

/// Server-side apply.
async fn apply(mut call: Call, target: Target, validation: Validation) -> Result<Answer, Fault> {
    let kind = target.kind;
    let form = accept::form(&call)?;
    let write = options::write(&call)?;
    if call.query.get("fieldManager").is_none() {
        return Err(Fault::bad_request("fieldManager is required for apply patch"));
    }
    let options = ApplyOptions {
        manager: write.manager,
        force: call.query.flag("force"),
        dry_run: write.dry_run,
        submitted_by: call.caller.submitter(),
        written_by: call.caller.name.clone(),
    };
    let mut wanted = body::yaml(&mut call).await?;
    let unknown = strict::check_unknown_fields(kind, &mut wanted, validation)?;
    let known = strict::known_warnings(kind, &wanted, &unknown, validation);
    let (space, name) = (target.space(), target.name());
    let applied = call.work(move |registry| registry.apply(kind, &space, &name, wanted, &options)).await?;
    let status = if applied.created { StatusCode::CREATED } else { StatusCode::OK };
    let warnings = strict::merge(unknown, applied.warnings, &known);
    Ok(warn(form::answer(status, form, kind, applied.object, &call.query), &warnings))
}
