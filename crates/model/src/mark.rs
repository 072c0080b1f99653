//! What people and tools may write on a run beside what it does: labels, annotations, and what ties it to others.
//! It never changes what the run does.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{task::Labels, time::Time};

/// The labels that tell how a run stands; they are the engine's.
pub const PHASE_LABEL: &str = "workflows.argoproj.io/phase";
pub const COMPLETED_LABEL: &str = "workflows.argoproj.io/completed";

/// Everything of a run's metadata that can change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Marks {
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub annotations: Labels,
    #[serde(default, skip_serializing_if = "Ties::is_empty")]
    pub ties: Ties,
}

/// What ties an object to others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ties {
    /// Who must agree before it goes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// The references to those it belongs to, as they were written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<Value>,
    /// Who wrote which field.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub managers: Vec<Value>,
    /// Since when it is to go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted: Option<Time>,
}

impl Ties {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// As metadata says it.
    pub fn of(metadata: &Value) -> Self {
        let list = |field: &str| metadata[field].as_array().cloned().unwrap_or_default();
        Self {
            finalizers: list("finalizers").iter().filter_map(|name| name.as_str().map(str::to_owned)).collect(),
            owners: list("ownerReferences"),
            managers: list("managedFields"),
            deleted: metadata["deletionTimestamp"].as_str().and_then(Time::parse),
        }
    }

    /// Writes them into metadata; what is empty is not there.
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

    /// The uids of those it belongs to.
    pub fn owner_uids(&self) -> Vec<String> {
        self.owners.iter().filter_map(|owner| owner["uid"].as_str().map(str::to_owned)).collect()
    }
}

impl Marks {
    /// As the metadata of a run's object says it, without the labels that are the engine's.
    pub fn of(metadata: &Value) -> Self {
        let texts = |field: &str| -> Labels {
            let pairs = metadata[field].as_object().into_iter().flatten();
            pairs.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
        };
        let mut labels = texts("labels");
        labels.remove(PHASE_LABEL);
        labels.remove(COMPLETED_LABEL);
        Self { labels, annotations: texts("annotations"), ties: Ties::of(metadata) }
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
        let marks = Marks::of(&metadata);
        assert_eq!(marks.labels.keys().collect::<Vec<_>>(), ["a"]);
        assert_eq!(marks.ties.owner_uids(), ["u"]);
        let mut written = Map::new();
        marks.ties.write(&mut written);
        assert_eq!(Ties::of(&Value::Object(written.clone())), marks.ties);
        Ties::default().write(&mut written);
        assert!(written.is_empty(), "{written:?}");
    }
}
