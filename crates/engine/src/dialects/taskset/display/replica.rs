//! Replicas of a TaskSet as its object shows them: which have a pod, its name, and its contents. Reads only.

use octoflow_model::taskset::ReplicaPhase;
use serde_json::{Map, Value, json};

use crate::run::view::MAIN;

/// Label that names a pod's TaskSet.
pub(super) const OF_SET: &str = "TaskSet";

/// A replica with its role.
#[derive(Clone, Copy)]
pub(super) struct Replica<'a> {
    pub role: &'a Value,
    pub status: &'a Value,
}

/// Iterates over every replica, in manifest order.
pub(super) fn all(set: &Value) -> impl Iterator<Item = Replica<'_>> {
    let roles = set["spec"]["roles"].as_array().into_iter().flatten();
    let told = set["status"]["roleStatus"].as_array().into_iter().flatten();
    roles.zip(told).flat_map(|(role, told)| {
        told["replicaStatus"].as_array().into_iter().flatten().map(move |status| Replica { role, status })
    })
}

/// Iterates over the replicas whose pods a runtime has.
pub(super) fn live(set: &Value) -> impl Iterator<Item = Replica<'_>> {
    use ReplicaPhase::{AttemptAssigned, AttemptDeletionRequested, AttemptRunning};
    let placed = [AttemptAssigned, AttemptRunning, AttemptDeletionRequested].map(ReplicaPhase::word);
    all(set).filter(move |replica| placed.contains(&replica.text("phase")))
}

impl<'a> Replica<'a> {
    pub(super) fn text(self, field: &str) -> &'a str {
        self.status[field].as_str().unwrap_or_default()
    }

    pub(super) fn pod(self) -> &'a str {
        self.text("podName")
    }

    /// Returns its host name among its peers, such as `worker-1`.
    pub(super) fn called(self) -> String {
        format!("{}-{}", self.role["name"].as_str().unwrap_or_default(), self.status["index"])
    }
}

/// Returns the role of a pod by its name: `{taskset}-{role}-{attempt}-{try}-{index}`. Neither name contains a dash.
pub(super) fn role_of<'a>(set: &'a Value, pod: &str) -> Option<&'a Value> {
    let mut parts = pod.split('-');
    if parts.next() != set["metadata"]["name"].as_str() {
        return None;
    }
    let name = parts.next()?;
    set["spec"]["roles"].as_array()?.iter().find(|role| role["name"] == name)
}

/// Returns the labels of a role's pods.
pub(super) fn labels(set: &Value, role: &Value) -> Map<String, Value> {
    let mut labels = role["template"]["metadata"]["labels"].as_object().cloned().unwrap_or_default();
    labels.insert(OF_SET.to_owned(), set["metadata"]["name"].clone());
    labels.insert("PodTaskRole".to_owned(), role["name"].clone());
    labels
}

/// Returns the name of the container whose end is the replica's.
pub(super) fn main_container(role: &Value) -> &str {
    role["template"]["spec"]["containers"][0]["name"].as_str().unwrap_or(MAIN)
}

/// Returns the environment variables that every container of a replica gets before those of its template.
pub(super) fn variables(set: &Value, replica: Replica<'_>) -> Vec<Value> {
    let metadata = &set["metadata"];
    let number = |value: &Value| json!(value.to_string());
    [
        ("TASKSET_NAMESPACE", metadata["namespace"].clone()),
        ("TASKSET_NAME", metadata["name"].clone()),
        ("TASKSET_ATTEMPT", number(&set["status"]["totalRetriedCount"])),
        ("TASKROLE_NAME", replica.role["name"].clone()),
        ("TASKROLE_REPLICA_INDEX", number(&replica.status["index"])),
        ("TASKROLE_REPLICA_ATTEMPT", number(&replica.status["totalRetriedCount"])),
        ("TASKROLE_REPLICA_ADDRESS", replica.status["podIP"].clone()),
    ]
    .map(|(name, value)| json!({"name": name, "value": value}))
    .to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_of_the_role_in_its_name() {
        let set = json!({
            "metadata": {"name": "demo"},
            "spec": {"roles": [{"name": "ps"}, {"name": "worker", "template": {"spec": {"containers": [{"name": "w"}]}}}]},
        });
        assert_eq!(role_of(&set, "demo-worker-0-1-2").unwrap()["name"], "worker");
        assert!(role_of(&set, "demo-master-0-0-0").is_none() && role_of(&set, "other-ps-0-0-0").is_none());
        assert_eq!(main_container(role_of(&set, "demo-worker-0-0-0").unwrap()), "w");
        assert_eq!(main_container(role_of(&set, "demo-ps-0-0-0").unwrap()), MAIN);
    }
}
