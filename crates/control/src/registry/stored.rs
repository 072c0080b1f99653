//! Stored objects: reading with their identity, validation before writing.

use std::collections::HashSet;

use octoflow_engine::Problems;
use octoflow_model::{Revision, base64, plugin::FEATURE_KIND};
use octoflow_store::{Batch, Change, Object};
use serde_json::{Value, json};

use super::{Cause, Fault, Kind, Registry, meta};
use crate::{
    Error,
    controller::owned_namespace,
    objects::{features, keyed},
};

/// Stored object with its identity in the store.
pub(super) struct StoredObject {
    pub object: Value,
    pub uid: String,
    pub revision: Revision,
}

impl Registry {
    pub(super) fn stored_object(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<StoredObject>, Fault> {
        let found = self.read(|reader| Ok(reader.object(kind.key, namespace, name)?))?;
        found.map(|object| with_identity(kind, &object)).transpose()
    }

    /// Returns the object as clients see it.
    pub(super) fn shown_object(&self, kind: &Kind, namespace: &str, name: &str) -> Result<Option<Value>, Fault> {
        let found = self.stored_object(kind, namespace, name)?;
        found.map(|kept| self.with_status(kind, kept.object)).transpose()
    }

    /// Stores a validated object, unless it changed since the expected revision.
    pub(super) fn store_object(
        &self,
        kind: &'static Kind,
        object: &Value,
        uid: &str,
        expected: Option<Revision>,
    ) -> Result<Value, Fault> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let namespace = owned_namespace(kind.namespaced, object);
        let (kind_name, namespace, name) = (kind.key.to_owned(), namespace.to_owned(), name.to_owned());
        let expect =
            Change::Expect { kind: kind_name, namespace: namespace.clone(), name: name.clone(), revision: expected };
        match self.handle().put_object_with(object, uid.to_owned(), Batch::from(expect)) {
            // Not read back: it may be deleted a moment later, and was stored all the same.
            Ok(revision) => {
                Ok(add_identity(kind, without_credentials(kind, object.clone()), &namespace, uid, revision))
            }
            Err(Error::Store(octoflow_store::Error::Stale { .. })) if expected.is_none() => {
                Err(Fault::Exists { kind, name })
            }
            Err(Error::Store(octoflow_store::Error::Stale { .. })) => Err(Fault::stale(kind, &name)),
            Err(error) => Err(error.into()),
        }
    }
}

/// Decodes a stored object and adds the identity that the store assigned.
pub(super) fn with_identity(kind: &Kind, kept: &Object) -> Result<StoredObject, Fault> {
    let object: Value = serde_json::from_slice(&kept.body).map_err(|error| {
        Fault::Controller(Error::Object { what: format!("{} `{}`", kind.name, kept.name), why: error.to_string() })
    })?;
    let object = add_identity(kind, object, &kept.namespace, &kept.uid, kept.revision);
    Ok(StoredObject { object, uid: kept.uid.clone(), revision: kept.revision })
}

fn add_identity(kind: &Kind, mut object: Value, namespace: &str, uid: &str, revision: Revision) -> Value {
    object["apiVersion"] = json!(kind.api_version());
    object["kind"] = json!(kind.name);
    object["metadata"]["uid"] = json!(uid);
    object["metadata"]["resourceVersion"] = json!(revision.to_string());
    if kind.namespaced {
        object["metadata"]["namespace"] = json!(namespace);
    }
    object
}

/// Removes what is written and never read.
pub(super) fn without_credentials(kind: &Kind, mut object: Value) -> Value {
    if kind.key == FEATURE_KIND {
        // One that is wrong is taken out as well.
        let _ = features::split(&mut object);
    }
    object
}

/// Normalizes fields that have several notations: `stringData` of a Secret becomes `data`.
pub(crate) fn prepare(kind: &Kind, object: &mut Value) {
    if kind.has_computed_status {
        object.as_object_mut().map(|fields| fields.remove("status"));
    }
    if kind.name != "Secret" {
        return;
    }
    if let Some(Value::Object(texts)) = object.as_object_mut().and_then(|fields| fields.remove("stringData")) {
        if !object["data"].is_object() {
            object["data"] = json!({});
        }
        for (key, text) in texts {
            object["data"][key] = match text.as_str() {
                Some(text) => json!(base64::encode(text.as_bytes())),
                None => text,
            };
        }
    }
    if object["type"].as_str().is_none_or(str::is_empty) {
        object["type"] = json!("Opaque");
    }
}

/// Rejects changes to immutable fields.
pub(super) fn check_change(kind: &'static Kind, before: &Value, after: &Value) -> Result<(), Fault> {
    let mut causes = Vec::new();
    if matches!(kind.name, "ConfigMap" | "Secret") && before["immutable"] == true {
        for field in ["data", "binaryData", "immutable"] {
            let empty = |value: &Value| value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
            if before[field] != after[field] && !(empty(&before[field]) && empty(&after[field])) {
                causes.push(Cause::invalid(field, "field is immutable when `immutable` is set"));
            }
        }
    }
    if kind.name == "Secret" && before["type"] != after["type"] {
        causes.push(Cause::invalid("type", "field is immutable"));
    }
    if kind.name == "PriorityClass" {
        // Whoever waits or runs under it would change places.
        let policy = |object: &Value| object["preemptionPolicy"].as_str().unwrap_or("PreemptLowerPriority").to_owned();
        if before["value"] != after["value"] {
            causes.push(Cause::invalid("value", "may not be changed; create another class"));
        }
        if policy(before) != policy(after) {
            causes.push(Cause::invalid("preemptionPolicy", "may not be changed; create another class"));
        }
    }
    if causes.is_empty() {
        return Ok(());
    }
    let name = before["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    Err(Fault::Invalid { kind, name, causes })
}

/// Returns every problem of an object to be stored.
pub(crate) fn check(kind: &'static Kind, object: &Value) -> Result<(), Fault> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let mut causes = Vec::new();
    if object["kind"] != kind.name {
        causes.push(Cause::invalid("kind", format!("must be {}", kind.name)));
    }
    if object["apiVersion"] != kind.api_version().as_str() {
        causes.push(Cause::invalid("apiVersion", format!("must be {}", kind.api_version())));
    }
    causes.extend(meta::wrong(kind, object));
    // The kind may have a say about its name too; one fault is told once.
    let told: HashSet<String> = causes.iter().map(|cause| cause.field.clone()).collect();
    let own = if kind.key == FEATURE_KIND {
        // Credentials are judged here and left to nobody else.
        let mut public = object.clone();
        causes.extend(features::split(&mut public).err().map(|why| Cause::invalid("spec", why)));
        kind.check(&public).0
    } else {
        kind.check(object).0
    };
    causes.extend(Problems(own).iter().map(Cause::of).filter(|cause| !told.contains(&cause.field)));
    if causes.is_empty()
        && matches!(kind.name, "ConfigMap" | "Secret")
        && let Err(Error::Object { why, .. }) = keyed::parse(object)
    {
        causes.push(Cause::invalid("data", why));
    }
    if causes.is_empty() { Ok(()) } else { Err(Fault::Invalid { kind, name: name.to_owned(), causes }) }
}
