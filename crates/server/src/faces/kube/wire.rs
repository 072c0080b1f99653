//! Decodes Kubernetes protobuf, for the few kinds that kubectl itself sends so: `kubectl create configmap`, `secret`,
//! `namespace`, `job`, `cronjob`. It produces the JSON that everything else here reads, and refuses unknown fields.

mod batch;

use octoflow_model::base64;
use serde_json::{Map, Value, json};

/// Type of a field.
#[derive(Clone, Copy)]
enum Shape {
    Text,
    Number,
    /// A number that may be missing, so that zero is a value.
    Given,
    Numbers,
    Bool,
    /// A switch that is always sent, so that false says nothing.
    Flag,
    /// Base64 in JSON.
    Bytes,
    Object(&'static [Field]),
    /// An object whose fields belong to the one around it.
    Inline(&'static [Field]),
    /// A text as the first field of an object, as quantities are sent.
    Wrapped,
    Texts,
    Objects(&'static [Field]),
    TextMap,
    /// A map to texts that are the first field of an object.
    WrappedMap,
    BytesMap,
    /// Ignored: the server sets it anyway.
    Skip,
}

type Field = (u64, &'static str, Shape);

const OWNER: &[Field] = &[
    (1, "kind", Shape::Text),
    (3, "name", Shape::Text),
    (4, "uid", Shape::Text),
    (5, "apiVersion", Shape::Text),
    (6, "controller", Shape::Bool),
    (7, "blockOwnerDeletion", Shape::Bool),
];

const META: &[Field] = &[
    (1, "name", Shape::Text),
    (2, "generateName", Shape::Text),
    (3, "namespace", Shape::Text),
    (4, "selfLink", Shape::Skip),
    (5, "uid", Shape::Text),
    (6, "resourceVersion", Shape::Text),
    (7, "generation", Shape::Number),
    (8, "creationTimestamp", Shape::Skip),
    (9, "deletionTimestamp", Shape::Skip),
    (10, "deletionGracePeriodSeconds", Shape::Skip),
    (11, "labels", Shape::TextMap),
    (12, "annotations", Shape::TextMap),
    (13, "ownerReferences", Shape::Objects(OWNER)),
    (14, "finalizers", Shape::Texts),
    (15, "clusterName", Shape::Skip),
    (17, "managedFields", Shape::Skip),
];

const CONFIG_MAP: &[Field] = &[
    (1, "metadata", Shape::Object(META)),
    (2, "data", Shape::TextMap),
    (3, "binaryData", Shape::BytesMap),
    (4, "immutable", Shape::Bool),
];

const SECRET: &[Field] = &[
    (1, "metadata", Shape::Object(META)),
    (2, "data", Shape::BytesMap),
    (3, "type", Shape::Text),
    (4, "stringData", Shape::TextMap),
    (5, "immutable", Shape::Bool),
];

const NAMESPACE: &[Field] = &[
    (1, "metadata", Shape::Object(META)),
    (2, "spec", Shape::Object(&[(1, "finalizers", Shape::Texts)])),
    (3, "status", Shape::Skip),
];

/// Envelope: kind and version, and the object itself.
const ENVELOPE: &[Field] = &[
    (1, "type", Shape::Object(&[(1, "apiVersion", Shape::Text), (2, "kind", Shape::Text)])),
    (2, "raw", Shape::Bytes),
    (3, "contentEncoding", Shape::Skip),
    (4, "contentType", Shape::Skip),
];

const MAGIC: &[u8] = b"k8s\0";

/// Why a protobuf body cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum WireError {
    #[error("the body does not begin as Kubernetes protobuf does")]
    NoMagic,
    #[error("the protobuf body ends in the middle or is no protobuf")]
    Malformed,
    #[error("a {kind} of {version} is only read as JSON or YAML")]
    UnsupportedKind { version: Value, kind: Value },
    #[error("field {0} of the protobuf body is not known")]
    UnknownField(u64),
    #[error("`{0}` of the protobuf body has the wrong type")]
    WrongType(&'static str),
    #[error("an entry of the protobuf body has more than a key and a value")]
    BadEntry,
    #[error("a text of the protobuf body is not UTF-8")]
    NotUtf8,
}

/// Decodes an object into JSON.
pub(super) fn object(bytes: &[u8]) -> Result<Value, WireError> {
    let envelope = bytes.strip_prefix(MAGIC).ok_or(WireError::NoMagic)?;
    let mut raw = &[][..];
    for part in Parts(envelope) {
        if let (2, Part::Bytes(bytes)) = part? {
            raw = bytes;
        }
    }
    let head = message(envelope, ENVELOPE)?;
    let (version, kind) = (&head["type"]["apiVersion"], &head["type"]["kind"]);
    let fields = match (version.as_str(), kind.as_str()) {
        (Some("v1"), Some("ConfigMap")) => CONFIG_MAP,
        (Some("v1"), Some("Secret")) => SECRET,
        (Some("v1"), Some("Namespace")) => NAMESPACE,
        (Some("batch/v1"), Some(kind)) if let Some(fields) = batch::fields(kind) => fields,
        _ => return Err(WireError::UnsupportedKind { version: version.clone(), kind: kind.clone() }),
    };
    let mut object = message(raw, fields)?;
    object["apiVersion"] = version.clone();
    object["kind"] = kind.clone();
    Ok(object)
}

/// Recursion is bounded by the tables.
fn message(bytes: &[u8], fields: &[Field]) -> Result<Value, WireError> {
    let mut object = Map::new();
    for part in Parts(bytes) {
        let (number, part) = part?;
        let known = fields.iter().find(|(known, ..)| *known == number);
        let (_, name, shape) = known.ok_or(WireError::UnknownField(number))?;
        let add = |object: &mut Map<String, Value>, value| match object.get_mut(*name) {
            Some(Value::Array(items)) => items.push(value),
            _ => drop(object.insert((*name).to_owned(), json!([value]))),
        };
        match (*shape, part) {
            (Shape::Skip, _) => {}
            // An empty value means that the field was not set.
            (Shape::Text, Part::Bytes([])) => {}
            (Shape::Text, Part::Bytes(bytes)) => drop(object.insert((*name).to_owned(), text(bytes)?)),
            (Shape::Bytes, Part::Bytes(bytes)) => drop(object.insert((*name).to_owned(), json!(base64::encode(bytes)))),
            (Shape::Number, Part::Number(0)) => {}
            (Shape::Number, Part::Number(number)) => drop(object.insert((*name).to_owned(), json!(number))),
            (Shape::Given, Part::Number(number)) => drop(object.insert((*name).to_owned(), json!(number as i64))),
            (Shape::Numbers, Part::Number(number)) => add(&mut object, json!(number as i64)),
            (Shape::Flag, Part::Number(0)) => {}
            (Shape::Flag, Part::Number(_)) => drop(object.insert((*name).to_owned(), json!(true))),
            (Shape::Bool, Part::Number(number)) => drop(object.insert((*name).to_owned(), json!(number != 0))),
            (Shape::Object(inner), Part::Bytes(bytes)) => {
                let value = message(bytes, inner)?;
                object.insert((*name).to_owned(), value);
            }
            (Shape::Inline(inner), Part::Bytes(bytes)) => {
                if let Value::Object(fields) = message(bytes, inner)? {
                    object.extend(fields);
                }
            }
            (Shape::Wrapped, Part::Bytes(bytes)) => drop(object.insert((*name).to_owned(), wrapped(bytes)?)),
            (Shape::WrappedMap, Part::Bytes(bytes)) => {
                let (key, value) = entry(bytes)?;
                let value = wrapped(value)?;
                object.entry(*name).or_insert_with(|| json!({}))[key] = value;
            }
            (Shape::Texts, Part::Bytes(bytes)) => add(&mut object, text(bytes)?),
            (Shape::Objects(inner), Part::Bytes(bytes)) => add(&mut object, message(bytes, inner)?),
            (Shape::TextMap, Part::Bytes(bytes)) => {
                let (key, value) = entry(bytes)?;
                let value = text(value)?;
                object.entry(*name).or_insert_with(|| json!({}))[key] = value;
            }
            (Shape::BytesMap, Part::Bytes(bytes)) => {
                let (key, value) = entry(bytes)?;
                object.entry(*name).or_insert_with(|| json!({}))[key] = json!(base64::encode(value));
            }
            _ => return Err(WireError::WrongType(name)),
        }
    }
    Ok(Value::Object(object))
}

fn entry(bytes: &[u8]) -> Result<(String, &[u8]), WireError> {
    let (mut key, mut value) = (String::new(), &[][..]);
    for part in Parts(bytes) {
        match part? {
            (1, Part::Bytes(bytes)) => key = utf8(bytes)?.to_owned(),
            (2, Part::Bytes(bytes)) => value = bytes,
            _ => return Err(WireError::BadEntry),
        }
    }
    Ok((key, value))
}

/// Returns the text that is the first field of an object.
fn wrapped(bytes: &[u8]) -> Result<Value, WireError> {
    let inner = message(bytes, &[(1, "string", Shape::Text)])?;
    Ok(inner["string"].as_str().map_or_else(|| json!("0"), |text| json!(text)))
}

fn text(bytes: &[u8]) -> Result<Value, WireError> {
    utf8(bytes).map(|text| json!(text))
}

fn utf8(bytes: &[u8]) -> Result<&str, WireError> {
    str::from_utf8(bytes).map_err(|_| WireError::NotUtf8)
}

/// Iterator over the fields of a message.
struct Parts<'a>(&'a [u8]);

enum Part<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Iterator for Parts<'a> {
    type Item = Result<(u64, Part<'a>), WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let part = self.part();
        if part.is_none() {
            self.0 = &[];
        }
        Some(part.ok_or(WireError::Malformed))
    }
}

impl<'a> Parts<'a> {
    fn part(&mut self) -> Option<(u64, Part<'a>)> {
        let tag = self.varint()?;
        let part = match tag & 7 {
            0 => Part::Number(self.varint()?),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                let (bytes, rest) = self.0.split_at_checked(length)?;
                self.0 = rest;
                Part::Bytes(bytes)
            }
            _ => return None,
        };
        Some((tag >> 3, part))
    }

    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, bytes.len() as u8], bytes].concat()
    }

    fn envelope(kind: &str, raw: &[u8]) -> Vec<u8> {
        let head = [field(1, b"v1"), field(2, kind.as_bytes())].concat();
        [MAGIC, &field(1, &head), &field(2, raw)].concat()
    }

    #[test]
    fn what_kubectl_writes_becomes_what_people_write() {
        let meta = [field(1, b"s"), field(11, &[field(1, b"app"), field(2, b"x")].concat())].concat();
        let data = [field(1, b"key"), field(2, b"va")].concat();
        let raw = [field(1, &meta), field(2, &data), field(3, b"Opaque"), vec![5 << 3, 1]].concat();
        let secret = object(&envelope("Secret", &raw)).unwrap();
        let expected = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "labels": {"app": "x"}},
            "data": {"key": "dmE="}, "type": "Opaque", "immutable": true,
        });
        assert_eq!(secret, expected);
    }

    #[test]
    fn a_job_of_kubectl_becomes_the_one_people_write() {
        let limits = field(1, &[field(1, b"cpu"), field(2, &field(1, b"100m"))].concat());
        let container = [
            field(1, b"main"),
            field(2, b"busybox"),
            field(3, b"echo"),
            field(8, &limits),
            // The key of field 16 takes two bytes; its value is false.
            vec![0x80, 1, 0],
        ];
        let volume = [field(1, b"v"), field(2, &field(2, b""))].concat();
        let pod = [field(1, &volume), field(2, &container.concat()), field(3, b"Never")].concat();
        let policy = field(
            1,
            &[field(1, b"FailJob"), field(2, &[field(2, b"In"), vec![3 << 3, 1, 3 << 3, 2]].concat())].concat(),
        );
        let spec = [field(6, &field(2, &pod)), vec![7 << 3, 0], field(11, &policy)].concat();
        let raw = [field(1, &field(1, b"j")), field(2, &spec), field(3, b"")].concat();
        let head = [field(1, b"batch/v1"), field(2, b"Job")].concat();
        let job = object(&[MAGIC, &field(1, &head), &field(2, &raw)].concat()).unwrap();
        let expected = json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {
                "backoffLimit": 0,
                "podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1, 2]}}]},
                "template": {"spec": {
                    "restartPolicy": "Never", "volumes": [{"name": "v", "emptyDir": {}}],
                    "containers": [{"name": "main", "image": "busybox", "command": ["echo"], "resources": {"limits": {"cpu": "100m"}}}],
                }},
            },
        });
        assert_eq!(job, expected);
    }

    #[test]
    fn bytes_that_are_something_else_are_refused() {
        let good = envelope("ConfigMap", &field(2, &field(1, b"key")));
        for length in 0..good.len() {
            // A message cut at the end of a field is complete; nothing may panic.
            let _ = object(&good[..length]);
        }
        assert!(object(b"{}").is_err());
        assert!(object(&envelope("Pod", b"")).unwrap_err().to_string().contains("only read as JSON"));
        assert_eq!(object(&envelope("Secret", &field(9, b"x"))), Err(WireError::UnknownField(9)));
        assert!(object(&envelope("Secret", &[0xff; 12])).is_err());
    }
}
