//! Parses ConfigMaps and Secrets into named values.

use octoflow_engine::engine::Keyed;
use octoflow_model::{
    base64,
    meta::{DEFAULT_NAMESPACE, KeyedData},
};
use serde_json::Value;

use crate::Error;

/// ConfigMap or Secret ready for the engine.
#[derive(Clone, Debug)]
pub struct KeyedObject {
    pub kind: Keyed,
    pub namespace: String,
    pub name: String,
    pub data: KeyedData,
}

pub fn parse(object: &Value) -> Result<KeyedObject, Error> {
    let word = object["kind"].as_str().unwrap_or_default();
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let wrong = |why: &str| Error::Object { what: format!("{word} `{name}`"), why: why.to_owned() };
    let kind = match word {
        "ConfigMap" => Keyed::ConfigMap,
        "Secret" => Keyed::Secret,
        _ => return Err(wrong("only ConfigMaps and Secrets hold values")),
    };
    if name.is_empty() {
        return Err(wrong("it has no metadata.name"));
    }
    let mut data = KeyedData::default();
    for (label, value) in object["metadata"]["labels"].as_object().into_iter().flatten() {
        data.labels.insert(label.clone(), value.as_str().unwrap_or_default().to_owned());
    }
    for (name, value) in object["metadata"]["annotations"].as_object().into_iter().flatten() {
        data.annotations.insert(name.clone(), value.as_str().unwrap_or_default().to_owned());
    }
    let texts = |field: &str| {
        object[field]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
            .collect::<Vec<_>>()
    };
    for (key, text) in texts("data") {
        let bytes = match kind {
            Keyed::ConfigMap => text.into_bytes(),
            Keyed::Secret => base64::decode_lenient(&text)
                .ok_or_else(|| wrong(&format!("data.{key} is not base64; use stringData for plain text")))?,
        };
        data.entries.insert(key, bytes);
    }
    for (key, text) in texts("binaryData") {
        let bytes = base64::decode_lenient(&text).ok_or_else(|| wrong(&format!("binaryData.{key} is not base64")))?;
        data.entries.insert(key, bytes);
    }
    for (key, text) in texts("stringData") {
        data.entries.insert(key, text.into_bytes());
    }
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or(DEFAULT_NAMESPACE).to_owned();
    Ok(KeyedObject { kind, namespace, name, data })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_decoded_and_plain_text_wins() {
        let secret = json!({"kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "aGk=", "b": "aGVsbG8"}, "stringData": {"a": "plain"}});
        let parsed = parse(&secret).unwrap();
        assert_eq!(parsed.data.entries["a"], b"plain");
        assert_eq!(parsed.data.entries["b"], b"hello");
        assert_eq!(parsed.namespace, "default");
    }

    #[test]
    fn a_secret_that_is_not_base64_is_refused() {
        assert!(parse(&json!({"kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "no!"}})).is_err());
    }
}
