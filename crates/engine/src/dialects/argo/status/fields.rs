//! Where the fields of a rendered object go: into a map for whoever looks at the object, or straight into JSON text for
//! records, where building a map for each of many nodes would cost more than everything else. Knows no field.

use serde_json::{Map, Value};

/// Takes the fields of one object. Each name comes once, in ascending order.
pub(super) trait Fields {
    fn text(&mut self, name: &'static str, value: &str);
    fn texts(&mut self, name: &'static str, values: impl Iterator<Item = String>);
    fn value(&mut self, name: &'static str, value: Value);
}

impl Fields for Map<String, Value> {
    fn text(&mut self, name: &'static str, value: &str) {
        self.insert(name.to_owned(), Value::String(value.to_owned()));
    }

    fn texts(&mut self, name: &'static str, values: impl Iterator<Item = String>) {
        self.insert(name.to_owned(), values.map(Value::String).collect());
    }

    fn value(&mut self, name: &'static str, value: Value) {
        self.insert(name.to_owned(), value);
    }
}

/// Writes the fields of one object as JSON text.
pub(super) struct FieldWriter<'t> {
    to: &'t mut Vec<u8>,
    empty: bool,
}

impl<'t> FieldWriter<'t> {
    /// Begins an object that is a field itself.
    pub(super) fn new(to: &'t mut Vec<u8>, name: &str) -> Self {
        write_json(to, name);
        to.extend_from_slice(b":{");
        Self { to, empty: true }
    }

    pub(super) fn close(self) {
        self.to.push(b'}');
    }

    fn name(&mut self, name: &'static str) {
        if !std::mem::replace(&mut self.empty, false) {
            self.to.push(b',');
        }
        self.to.push(b'"');
        self.to.extend_from_slice(name.as_bytes());
        self.to.extend_from_slice(b"\":");
    }
}

impl Fields for FieldWriter<'_> {
    fn text(&mut self, name: &'static str, value: &str) {
        self.name(name);
        write_json(self.to, value);
    }

    fn texts(&mut self, name: &'static str, values: impl Iterator<Item = String>) {
        self.name(name);
        self.to.push(b'[');
        for (count, value) in values.enumerate() {
            if count > 0 {
                self.to.push(b',');
            }
            write_json(self.to, value.as_str());
        }
        self.to.push(b']');
    }

    fn value(&mut self, name: &'static str, value: Value) {
        self.name(name);
        write_json(self.to, &value);
    }
}

fn write_json<T: serde::Serialize + ?Sized>(to: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(to, value).expect("texts and values can be written to memory");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fill(fields: &mut impl Fields) {
        fields.text("a", "one \"quoted\"");
        fields.texts("b", ["x".to_owned(), "y".to_owned()].into_iter());
        fields.texts("c", std::iter::empty());
        fields.value("d", json!({"deep": [1, null]}));
    }

    #[test]
    fn text_and_map_hold_the_same_fields() {
        let mut map = Map::new();
        fill(&mut map);
        let mut text = Vec::new();
        let mut writer = FieldWriter::new(&mut text, "node");
        fill(&mut writer);
        writer.close();
        let text = format!("{{{}}}", String::from_utf8(text).unwrap());
        assert_eq!(text, json!({"node": map}).to_string());
    }
}
