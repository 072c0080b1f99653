//! Scalars that manifests spell in more than one way. Normalised to text on reading and never reinterpreted later.

pub mod base64;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// A text that may have been written as a number or a boolean; kept in its JSON spelling.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Text(pub String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(spelled(Value::deserialize(deserializer)?)))
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// A number or a text that stands for one, possibly with variables in it.
pub type IntOrText = Text;

/// Returns strings as they are, everything else as compact JSON.
pub fn spelled(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_keep_their_json_spelling() {
        let read = |json: &str| serde_json::from_str::<Text>(json).unwrap().0;
        assert_eq!(read("\"a\""), "a");
        assert_eq!(read("12"), "12");
        assert_eq!(read("true"), "true");
        assert_eq!(read("1.5"), "1.5");
        assert_eq!(read("[1, \"b\"]"), "[1,\"b\"]");
    }
}
