//! JSON as the standard has it, and no name twice in an object: of two values, one would be overlooked.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};

/// Reads a document; on error returns the reason and the place, and nothing that stands there.
pub(super) fn read(text: &str) -> Result<Value, String> {
    serde_json::from_str::<Strict>(text).map(|strict| strict.0).map_err(|error| {
        let place = format!("line {} column {}", error.line(), error.column());
        match error.classify() {
            serde_json::error::Category::Eof => "it ends too early".to_owned(),
            serde_json::error::Category::Data => format!("a name is there twice in one object at {place}"),
            serde_json::error::Category::Syntax | serde_json::error::Category::Io => format!("a mistake at {place}"),
        }
    })
}

struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON document")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("no number"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let Strict(value) = fields.next_value()?;
            if all.insert(name, value).is_some() {
                return Err(A::Error::custom("a name is there twice"));
            }
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_there_once_and_nothing_follows_the_document() {
        assert_eq!(read(r#"{"a": [1, -1.5, "\"", null, {}]}"#), Ok(json!({"a": [1, -1.5, "\"", null, {}]})));
        let twice = read(r#"{"a": 1, "b": {"x": 1, "x": 2}}"#).unwrap_err();
        assert!(twice.contains("twice in one object at line 1"), "{twice}");
        for wrong in ["", "{", "{} {}", "{a: 1}", "NaN", "// x\n{}", "[1,]", "1e999", "'a'"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert!(read(&"[".repeat(200)).is_err(), "what nests too deeply is refused and not followed");
    }
}
