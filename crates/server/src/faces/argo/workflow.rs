//! One workflow: creating, linting, reading and deleting it.

use octoflow_control::registry::{
    DeleteOptions, Deleted, Fault as RegistryFault, Propagation, SharedText, WriteOptions,
};
use octoflow_model::meta::DEFAULT_NAMESPACE;
use serde_json::{Value, json};

use super::{body::Message, kind, mask::Mask, namespace};
use crate::{
    answer::{self, Answer, fault::Fault, warning::warn},
    call::Call,
    faces::openapi::operation::{Parameter, text, word},
};

pub(super) const DELETE: &[Parameter] = &[
    word(
        "deleteOptions.propagationPolicy",
        &["Background", "Foreground", "Orphan"],
        "What becomes of what belongs to it",
    ),
    text("deleteOptions.dryRun", "Only judge; delete nothing"),
    text("deleteOptions.preconditions.uid", "Only if it has this uid"),
];

pub(super) async fn create(mut call: Call) -> Result<Answer, Fault> {
    let namespace = namespace(&call)?;
    let mut message = Message::of(&mut call).await?;
    let mut workflow = message.object("workflow")?;
    let dry_run = message.flag("serverDryRun")? || !message.part("createOptions")?.texts("dryRun")?.is_empty();
    let namespace = namespace.unwrap_or_else(|| space_of(&workflow));
    sign(&mut workflow, &call.caller.name);
    let options = WriteOptions { dry_run, claim: call.claim()?, ..writer() };
    let made = call.create(kind("Workflow"), namespace, workflow, options).await?;
    Ok(warn(answer::json(&made.object), &made.warnings))
}

pub(super) async fn lint(mut call: Call) -> Result<Answer, Fault> {
    let namespace = namespace(&call)?;
    let workflow = Message::of(&mut call).await?.object("workflow")?;
    let namespace = namespace.unwrap_or_else(|| space_of(&workflow));
    let read = call.work(move |registry| registry.lint(kind("Workflow"), &namespace, workflow)).await?;
    Ok(answer::json(&read))
}

pub(super) async fn get(call: Call) -> Result<Answer, Fault> {
    let namespace = namespace(&call)?.unwrap_or_default();
    let name = name(&call);
    let uid = call.query.get("uid").map(str::to_owned);
    let mask = Mask::of(&call.query);
    let nodes = mask.wants("status.nodes");
    let form = format!("argo {}", call.query.get("fields").unwrap_or_default());
    let text = call
        .work(move |registry| {
            let found = match registry.find_run(kind("Workflow"), &namespace, &name) {
                // Another run may have the name by now; the uid decides.
                Ok(named) if uid.as_ref().is_none_or(|uid| *uid == named.row.uid) => Ok(named),
                Ok(_) | Err(RegistryFault::NotFound { .. }) if uid.is_some() => {
                    let uid = uid.unwrap_or_default();
                    // The path says in which namespace it must be.
                    registry.find_run_by_uid(kind("Workflow"), &uid).and_then(|found| {
                        let missing = || RegistryFault::NotFound { kind: kind("Workflow"), name: uid };
                        if found.row.namespace == namespace { Ok(found) } else { Err(missing()) }
                    })
                }
                other => other,
            }?;
            let encode = |mut object: Value| {
                mask.apply(&mut object);
                answer::encode(&object)
            };
            if nodes {
                return registry.run_text(&found.row, &form, encode);
            }
            Ok(SharedText::from(encode(registry.trimmed_run(&found.row)?)))
        })
        .await?;
    Ok(answer::shared(text))
}

pub(super) async fn delete(call: Call) -> Result<Answer, Fault> {
    let namespace = namespace(&call)?.unwrap_or_default();
    let name = name(&call);
    let options = delete_options(&call)?;
    call.work(move |registry| -> Result<Deleted, RegistryFault> {
        let found = registry.find_run(kind("Workflow"), &namespace, &name)?;
        registry.delete(kind("Workflow"), &namespace, &found.row.name, &options)
    })
    .await?;
    Ok(answer::json(&json!({})))
}

/// Returns the name in the path, also if it equals a reserved word of other methods.
pub(super) fn name(call: &Call) -> String {
    match call.optional_param("name") {
        Some(name) => name.to_owned(),
        None => call.uri.path().rsplit('/').next().unwrap_or_default().to_owned(),
    }
}

pub(super) fn delete_options(call: &Call) -> Result<DeleteOptions, Fault> {
    let propagation = match call.query.get("deleteOptions.propagationPolicy") {
        None | Some("Background") => Propagation::Background,
        Some("Foreground") => Propagation::Foreground,
        Some("Orphan") => Propagation::Orphan,
        Some(other) => {
            return Err(Fault::bad_request(format!(
                "deleteOptions.propagationPolicy must be Background, Foreground or Orphan, not `{other}`"
            )));
        }
    };
    Ok(DeleteOptions {
        dry_run: call.query.get("deleteOptions.dryRun").is_some(),
        propagation,
        uid: call.query.get("deleteOptions.preconditions.uid").map(str::to_owned),
        ..DeleteOptions::default()
    })
}

/// Write options of this face.
pub(super) fn writer() -> WriteOptions {
    WriteOptions { manager: "argo".to_owned(), ..WriteOptions::default() }
}

/// Sets the label with the creator. A value in the manifest is not trusted.
pub(super) fn sign(object: &mut Value, caller: &str) {
    const CREATOR: &str = "workflows.argoproj.io/creator";
    let Some(fields) = object.as_object_mut() else { return };
    let metadata = fields.entry("metadata").or_insert(Value::Null);
    if metadata.is_null() {
        *metadata = json!({});
    }
    // A wrong type is reported by admission.
    let Some(metadata) = metadata.as_object_mut() else { return };
    let labels = metadata.entry("labels").or_insert(Value::Null);
    if labels.is_null() {
        *labels = json!({});
    }
    if let Some(labels) = labels.as_object_mut() {
        labels.retain(|key, _| !key.starts_with(CREATOR));
        labels.insert(CREATOR.to_owned(), json!(label_value(caller)));
    }
}

/// Turns a text into a valid label value.
fn label_value(text: &str) -> String {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let plain: String = text.chars().map(|letter| if allowed(letter) { letter } else { '-' }).take(63).collect();
    plain.trim_matches(|letter: char| !letter.is_ascii_alphanumeric()).to_owned()
}

pub(super) fn space_of(object: &Value) -> String {
    object["metadata"]["namespace"].as_str().filter(|name| !name.is_empty()).unwrap_or(DEFAULT_NAMESPACE).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_creator_is_whoever_asked_whatever_the_manifest_says() {
        let mut object = json!({"metadata": {"labels": {"workflows.argoproj.io/creator": "root",
            "workflows.argoproj.io/creator-email": "a.b", "mine": "x"}}});
        sign(&mut object, "me@example.org");
        assert_eq!(
            object["metadata"]["labels"],
            json!({"mine": "x", "workflows.argoproj.io/creator": "me-example.org"})
        );
        let mut bare = json!({});
        sign(&mut bare, "-a-");
        assert_eq!(bare["metadata"]["labels"]["workflows.argoproj.io/creator"], "a");
        let mut wrong = json!({"metadata": 1});
        sign(&mut wrong, "a");
        assert_eq!(wrong, json!({"metadata": 1}));
    }
}
