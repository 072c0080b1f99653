//! Partial reading of a finished run's object: a run of a million nodes is read as a stream, never as one tree of
//! values.

use std::{collections::BTreeMap, fmt};

use octoflow_model::RunId;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

/// Reads the object of an archived record; of its nodes only failed ones and retries, which say whose attempts they
/// were.
pub(crate) fn object(record: &[u8]) -> Result<Value, serde_json::Error> {
    object_where(record, &|_, node| {
        matches!(node["phase"].as_str(), Some("Failed" | "Error")) || node["type"] == "Retry"
    })
}

/// Reads the object of an archived record with only the nodes that match, by id and content.
pub(crate) fn object_where(record: &[u8], keep: NodeFilter<'_>) -> Result<Value, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(record);
    let mut record = PartialReader { level: Level::Record, keep }.deserialize(&mut reader)?;
    reader.end()?;
    Ok(record["object"].take())
}

type NodeFilter<'a> = &'a dyn Fn(&str, &Value) -> bool;

/// Position of the reader, and the node filter.
#[derive(Clone, Copy)]
struct PartialReader<'a> {
    level: Level,
    keep: NodeFilter<'a>,
}

/// Attempts of a run as its record lists them.
#[derive(serde::Deserialize)]
pub(crate) struct Attempts {
    /// Task number by node id.
    #[serde(default)]
    pub tasks: BTreeMap<String, u32>,
    /// By node id: the attempt of another run whose result it has. By pod: its own attempt.
    #[serde(default)]
    pub elsewhere: BTreeMap<String, String>,
    /// Log size by attempt, if it wrote something.
    #[serde(default)]
    pub logs: BTreeMap<String, u64>,
    /// Runs that this run replaced.
    #[serde(default)]
    pub runs: Vec<RunId>,
}

pub(crate) fn attempts(record: &[u8]) -> Result<Attempts, serde_json::Error> {
    serde_json::from_slice(record)
}

/// Position of the reader in the record.
#[derive(Clone, Copy)]
enum Level {
    Record,
    Object,
    Status,
    Nodes,
}

impl Level {
    /// Returns the level of a field that is streamed too.
    fn below(self, key: &str) -> Option<Self> {
        match (self, key) {
            (Self::Record, "object") => Some(Self::Object),
            (Self::Object, "status") => Some(Self::Status),
            (Self::Status, "nodes") => Some(Self::Nodes),
            (Self::Record | Self::Object | Self::Status | Self::Nodes, _) => None,
        }
    }
}

impl<'de> DeserializeSeed<'de> for PartialReader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for PartialReader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of a run")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut from: M) -> Result<Value, M::Error> {
        let mut fields = Map::new();
        while let Some(key) = from.next_key::<String>()? {
            let value = match self.level.below(&key) {
                Some(level) => from.next_value_seed(PartialReader { level, ..self })?,
                None if matches!(self.level, Level::Record) => {
                    from.next_value::<IgnoredAny>()?;
                    continue;
                }
                None => from.next_value_seed(AnyValue)?,
            };
            if !matches!(self.level, Level::Nodes) || (self.keep)(&key, &value) {
                fields.insert(key, value);
            }
        }
        Ok(Value::Object(fields))
    }
}

/// Reads any value as it is.
struct AnyValue;

impl<'de> DeserializeSeed<'de> for AnyValue {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        Value::deserialize(from)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_nodes_that_a_summary_speaks_of_are_kept() {
        let object = json!({"metadata": {"name": "w"}, "status": {"phase": "Failed", "progress": "1/2", "nodes": {
            "good": {"phase": "Succeeded", "type": "Pod"}, "bad": {"phase": "Failed", "type": "Pod"},
            "wrong": {"phase": "Error", "type": "Skipped"}, "again": {"phase": "Succeeded", "type": "Retry"}}}});
        let record = json!({"tasks": {"good": 7}, "object": object}).to_string();
        let brief = super::object(record.as_bytes()).unwrap();
        let kept: Vec<&String> = brief["status"]["nodes"].as_object().unwrap().keys().collect();
        assert_eq!(kept, ["again", "bad", "wrong"]);
        assert_eq!((&brief["status"]["progress"], &brief["metadata"]["name"]), (&json!("1/2"), &json!("w")));
        assert_eq!(attempts(record.as_bytes()).unwrap().tasks, [("good".to_owned(), 7)].into());
        assert!(super::object(b"[]").is_err() && super::object(b"{} x").is_err());
    }
}
