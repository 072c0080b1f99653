//! Encodes the OpenAPI document of version 2 as protobuf, the only form older kubectl reads. For this one message only.

use serde_json::{Map, Value};

/// Encodes the whole document.
pub(super) fn document(document: &Value) -> Vec<u8> {
    let mut message = Message::default();
    message.text(1, &document["swagger"]);
    let mut info = Message::default();
    info.text(1, &document["info"]["title"]);
    info.text(2, &document["info"]["version"]);
    message.inner(2, &info);
    let mut paths = Message::default();
    for (name, item) in entries(&document["paths"]) {
        paths.named(2, name, &path(item));
    }
    message.inner(8, &paths);
    let mut definitions = Message::default();
    for (name, definition) in entries(&document["definitions"]) {
        definitions.named(1, name, &schema(definition));
    }
    message.inner(9, &definitions);
    message.0
}

fn path(item: &Value) -> Message {
    let mut message = Message::default();
    for (number, verb) in [(2, "get"), (3, "put"), (4, "post"), (5, "delete"), (8, "patch")] {
        if item[verb].is_object() {
            message.inner(number, &operation(&item[verb]));
        }
    }
    message
}

fn operation(operation: &Value) -> Message {
    let mut message = Message::default();
    message.text(3, &operation["description"]);
    message.text(5, &operation["operationId"]);
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        // Field numbers of its location among non-body parameters, and of its type within that.
        let (sort, kind) = match parameter["in"].as_str() {
            Some("query") => (3, 6),
            Some("path") => (4, 5),
            // Readers of this form never look at bodies.
            _ => continue,
        };
        let mut inner = Message::default();
        if parameter["required"] == true {
            inner.flag(1);
        }
        inner.text(2, &parameter["in"]);
        inner.text(4, &parameter["name"]);
        inner.text(kind, &parameter["type"]);
        message.inner(8, &wrapped(1, wrapped(2, wrapped(sort, inner))));
    }
    message.extensions(13, operation);
    message
}

/// Recursion is bounded by our own tables.
fn schema(schema: &Value) -> Message {
    let mut message = Message::default();
    message.text(1, &schema["$ref"]);
    message.text(2, &schema["format"]);
    message.text(4, &schema["description"]);
    for required in schema["required"].as_array().into_iter().flatten() {
        message.text(19, required);
    }
    for word in schema["enum"].as_array().into_iter().flatten() {
        message.inner(20, &any(word));
    }
    if schema["additionalProperties"].is_object() {
        message.inner(21, &wrapped(1, self::schema(&schema["additionalProperties"])));
    }
    if schema["type"].is_string() {
        let mut kind = Message::default();
        kind.text(1, &schema["type"]);
        message.inner(22, &kind);
    }
    if schema["items"].is_object() {
        message.inner(23, &wrapped(1, self::schema(&schema["items"])));
    }
    if schema["properties"].is_object() {
        let mut properties = Message::default();
        for (name, property) in entries(&schema["properties"]) {
            properties.named(1, name, &self::schema(property));
        }
        message.inner(25, &properties);
    }
    message.extensions(31, schema);
    message
}

/// Encodes any value as YAML, of which JSON is a subset.
fn any(value: &Value) -> Message {
    let mut message = Message::default();
    message.bytes(2, value.to_string().as_bytes());
    message
}

fn wrapped(number: u32, inner: Message) -> Message {
    let mut message = Message::default();
    message.inner(number, &inner);
    message
}

fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

/// Sequence of fields, each with number and length.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn bytes(&mut self, number: u32, bytes: &[u8]) {
        const DELIMITED: u64 = 2;
        self.varint(u64::from(number) << 3 | DELIMITED);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 & 0x7f | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// Writes `true`.
    fn flag(&mut self, number: u32) {
        self.varint(u64::from(number) << 3);
        self.varint(1);
    }

    fn inner(&mut self, number: u32, message: &Self) {
        self.bytes(number, &message.0);
    }

    fn text(&mut self, number: u32, value: &Value) {
        if let Some(text) = value.as_str() {
            self.bytes(number, text.as_bytes());
        }
    }

    fn named(&mut self, number: u32, name: &str, value: &Self) {
        let mut pair = Self::default();
        pair.bytes(1, name.as_bytes());
        pair.inner(2, value);
        self.inner(number, &pair);
    }

    fn extensions(&mut self, number: u32, of: &Value) {
        for (name, value) in entries(of).filter(|(name, _)| name.starts_with("x-")) {
            self.named(number, name, &any(value));
        }
    }
}
