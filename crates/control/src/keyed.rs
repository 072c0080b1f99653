//! ConfigMaps and Secrets as people write them, made into named values.

use octoflow_engine::engine::Keyed;
use octoflow_model::meta::{DEFAULT_NAMESPACE, KeyedData};
use serde_json::Value;

use crate::Error;

/// A ConfigMap or Secret ready for the engine.
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
            Keyed::Secret => decode(&text)
                .ok_or_else(|| wrong(&format!("data.{key} is not base64; use stringData for plain text")))?,
        };
        data.entries.insert(key, bytes);
    }
    for (key, text) in texts("binaryData") {
        let bytes = decode(&text).ok_or_else(|| wrong(&format!("binaryData.{key} is not base64")))?;
        data.entries.insert(key, bytes);
    }
    for (key, text) in texts("stringData") {
        data.entries.insert(key, text.into_bytes());
    }
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or(DEFAULT_NAMESPACE).to_owned();
    Ok(KeyedObject { kind, namespace, name, data })
}

/// Base64 in its standard alphabet; white space is ignored, padding may be missing.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut count) = (0u32, 0);
    for letter in text.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
        let six = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' => continue,
            _ => return None,
        };
        bits = bits << 6 | u32::from(six);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    Some(bytes)
}

/// Base64 in its standard alphabet, padded.
pub fn encode(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= group.len() { char::from(letter) } else { '=' });
        }
    }
    text
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
    fn what_is_encoded_is_decoded_again() {
        for text in ["", "a", "ab", "abc", "abcd", "\u{0}\u{7f}ü"] {
            assert_eq!(decode(&encode(text.as_bytes())).unwrap(), text.as_bytes());
        }
        assert_eq!((encode(b"hi"), encode(b"hello!")), ("aGk=".to_owned(), "aGVsbG8h".to_owned()));
    }

    #[test]
    fn a_secret_that_is_not_base64_is_refused() {
        assert!(parse(&json!({"kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "no!"}})).is_err());
    }
}
