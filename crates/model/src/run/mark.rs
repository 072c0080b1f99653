//! Mutable metadata of a run: labels, annotations, owners and finalizers. It never affects execution.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{task::Labels, time::Time};

/// Labels that show the phase of a run; only the engine sets them.
pub const PHASE_LABEL: &str = "workflows.argoproj.io/phase";
pub const COMPLETED_LABEL: &str = "workflows.argoproj.io/completed";

/// All mutable metadata of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MutableMetadata {
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub annotations: Labels,
    #[serde(rename = "ties", default, skip_serializing_if = "Ownership::is_empty")]
    pub ownership: Ownership,
}

/// Finalizers, owner references, field managers and deletion time of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ownership {
    /// Finalizers that must be removed before the object is deleted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// Owner references, as written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<Value>,
    /// `managedFields`, as written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub managers: Vec<Value>,
    /// Deletion timestamp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted: Option<Time>,
}

impl Ownership {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Reads them from an object's metadata.
    pub fn of(metadata: &Value) -> Self {
        let list = |field: &str| metadata[field].as_array().cloned().unwrap_or_default();
        Self {
            finalizers: list("finalizers").iter().filter_map(|name| name.as_str().map(str::to_owned)).collect(),
            owners: list("ownerReferences"),
            managers: list("managedFields"),
            deleted: metadata["deletionTimestamp"].as_str().and_then(Time::parse),
        }
    }

    /// Writes them into metadata; empty fields are removed.
    pub fn write(&self, metadata: &mut Map<String, Value>) {
        let mut set = |field: &str, value: Option<Value>| match value {
            Some(value) => drop(metadata.insert(field.to_owned(), value)),
            None => drop(metadata.remove(field)),
        };
        set("finalizers", (!self.finalizers.is_empty()).then(|| json!(self.finalizers)));
        set("ownerReferences", (!self.owners.is_empty()).then(|| json!(self.owners)));
        set("managedFields", (!self.managers.is_empty()).then(|| json!(self.managers)));
        set("deletionTimestamp", self.deleted.map(|at| json!(at.to_string())));
        set("deletionGracePeriodSeconds", self.deleted.map(|_| json!(0)));
    }

    /// Uids of the owners.
    pub fn owner_uids(&self) -> Vec<String> {
        self.owners.iter().filter_map(|owner| owner["uid"].as_str().map(str::to_owned)).collect()
    }
}

impl MutableMetadata {
    /// Reads them from the metadata of a run's object, without the labels that only the engine sets.
    pub fn of(metadata: &Value) -> Self {
        let texts = |field: &str| -> Labels {
            let pairs = metadata[field].as_object().into_iter().flatten();
            pairs.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
        };
        let mut labels = texts("labels");
        labels.remove(PHASE_LABEL);
        labels.remove(COMPLETED_LABEL);
        Self { labels, annotations: texts("annotations"), ownership: Ownership::of(metadata) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_back() {
        let metadata = json!({
            "name": "w", "labels": {"a": "b", PHASE_LABEL: "Running"}, "annotations": {"c": "d"},
            "finalizers": ["x/y"], "ownerReferences": [{"uid": "u"}], "deletionTimestamp": "2026-01-02T03:04:05Z",
        });
        let marks = MutableMetadata::of(&metadata);
        assert_eq!(marks.labels.keys().collect::<Vec<_>>(), ["a"]);
        assert_eq!(marks.ownership.owner_uids(), ["u"]);
        let mut written = Map::new();
        marks.ownership.write(&mut written);
        assert_eq!(Ownership::of(&Value::Object(written.clone())), marks.ownership);
        Ownership::default().write(&mut written);
        assert!(written.is_empty(), "{written:?}");
    }
}
