//! Parses ConfigMaps and Secrets into named values, and claims into none: that they exist is all that counts.

use octoflow_engine::{engine::Keyed, kinds};
use octoflow_model::{
    base64,
    meta::{DEFAULT_NAMESPACE, KeyedData},
};
use serde_json::{Map, Value, json};

use crate::Error;

/// ConfigMap, Secret or claim ready for the engine.
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
        "PersistentVolumeClaim" => Keyed::Claim,
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
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or(DEFAULT_NAMESPACE).to_owned();
    if kind == Keyed::Claim {
        return Ok(KeyedObject { kind, namespace, name, data: KeyedData::default() });
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
            Keyed::ConfigMap | Keyed::Claim => text.into_bytes(),
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
    Ok(KeyedObject { kind, namespace, name, data })
}

/// The name of the kind, on the wire and in the store.
pub(crate) fn kind_name(keyed: Keyed) -> &'static str {
    match keyed {
        Keyed::ConfigMap => kinds::core::CONFIG_MAP.key,
        Keyed::Secret => kinds::core::SECRET.key,
        Keyed::Claim => kinds::core::VOLUME_CLAIM.key,
    }
}

/// The object with these values, as somebody would have written it.
pub(crate) fn object(keyed: &KeyedObject) -> Value {
    let KeyedObject { kind, namespace, name, data } = keyed;
    let (mut texts, mut binary) = (Map::new(), Map::new());
    for (key, bytes) in &data.entries {
        match (kind, str::from_utf8(bytes)) {
            (Keyed::Secret, _) => texts.insert(key.clone(), base64::encode(bytes).into()),
            (Keyed::ConfigMap | Keyed::Claim, Ok(text)) => texts.insert(key.clone(), text.into()),
            (Keyed::ConfigMap | Keyed::Claim, Err(_)) => binary.insert(key.clone(), base64::encode(bytes).into()),
        };
    }
    let (labels, annotations) = (&data.labels, &data.annotations);
    let metadata = json!({"name": name, "namespace": namespace, "labels": labels, "annotations": annotations});
    if *kind == Keyed::Claim {
        return json!({"apiVersion": "v1", "kind": kind_name(*kind), "metadata": metadata, "spec": {}});
    }
    json!({"apiVersion": "v1", "kind": kind_name(*kind), "metadata": metadata, "data": texts, "binaryData": binary})
}

#[cfg(test)]
mod tests {
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
    fn an_object_made_of_values_has_the_same_values() {
        for kind in ["ConfigMap", "Secret"] {
            let metadata = json!({"name": "o", "labels": {"a": "b"}, "annotations": {"c": "d"}});
            let written = json!({"kind": kind, "metadata": metadata, "binaryData": {"raw": "/w=="}, "stringData": {"text": "hi"}});
            let parsed = parse(&written).unwrap();
            let again = parse(&object(&parsed)).unwrap();
            assert_eq!(format!("{parsed:?}"), format!("{again:?}"));
        }
    }

    #[test]
    fn a_secret_that_is_not_base64_is_refused() {
        assert!(parse(&json!({"kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "no!"}})).is_err());
    }
}
