//! Memoization caches as objects: the ConfigMap is written in the same commit as the facts that filled it. The engine
//! decides what enters and leaves a cache.

use octoflow_engine::{argo::memo::CACHE_LABEL, engine::Keyed};
use octoflow_model::meta::KeyedData;
use octoflow_store::{Change, Reader, Store};
use serde_json::{Map, Value, json};

use crate::{Error, new_uid, objects::keyed};

/// The change that makes a cache on disk what it is in the engine. Whatever else its object says stays.
pub(crate) fn put(reader: &Reader, namespace: &str, name: &str, data: &KeyedData) -> Result<Change, Error> {
    let stored = reader.object(KIND, namespace, name)?;
    let (uid, known) = match stored {
        Some(object) => (object.uid, serde_json::from_slice(&object.body).unwrap_or(Value::Null)),
        None => (new_uid()?, Value::Null),
    };
    let body = body(known, namespace, name, data).to_string().into_bytes();
    Ok(Change::PutObject { kind: KIND.to_owned(), namespace: namespace.to_owned(), name: name.to_owned(), uid, body })
}

const KIND: &str = "ConfigMap";

fn body(known: Value, namespace: &str, name: &str, data: &KeyedData) -> Value {
    let mut object = if known.is_object() {
        known
    } else {
        json!({"apiVersion": "v1", "kind": KIND, "metadata": {"name": name, "namespace": namespace}})
    };
    object["metadata"]["labels"] = json!(data.labels);
    let binary = object["binaryData"].as_object().cloned().unwrap_or_default();
    let texts = data.entries.iter().filter(|(key, _)| !binary.contains_key(*key));
    let texts = texts.filter_map(|(key, bytes)| Some((key.clone(), Value::from(str::from_utf8(bytes).ok()?))));
    object["data"] = Value::Object(texts.collect::<Map<_, _>>());
    object
}

/// Merges stored entries into a replaced cache object: entries that the new object lacks are kept.
pub(crate) fn keep_entries(store: &Store, object: &mut Value) -> Result<(), Error> {
    let parsed = keyed::parse(object)?;
    if parsed.kind != Keyed::ConfigMap || !is_cache(object) {
        return Ok(());
    }
    let Some(stored) = store.reader()?.object(KIND, &parsed.namespace, &parsed.name)? else { return Ok(()) };
    let stored: Value = serde_json::from_slice(&stored.body).unwrap_or(Value::Null);
    if !is_cache(&stored) {
        return Ok(());
    }
    let mut entries = stored["data"].as_object().cloned().unwrap_or_default();
    entries.extend(object["data"].as_object().cloned().unwrap_or_default());
    object["data"] = Value::Object(entries);
    Ok(())
}

fn is_cache(object: &Value) -> bool {
    object["metadata"]["labels"][CACHE_LABEL.0] == CACHE_LABEL.1
}
