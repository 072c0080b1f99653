//! Replicas of a TaskSet as its object shows them: which have a pod, its name, and its contents. Reads only.

use octoflow_model::taskset::ReplicaPhase;
use serde_json::{Map, Value, json};

use crate::{dialects::taskset::ident, run::view::MAIN};

/// Label that names a pod's TaskSet.
pub(super) const OF_SET: &str = "TaskSet";

/// A replica with its role.
#[derive(Clone, Copy)]
pub(super) struct ShownReplica<'a> {
    pub role: &'a Value,
    pub status: &'a Value,
}

/// Iterates over every replica, in manifest order.
pub(super) fn all(set: &Value) -> impl Iterator<Item = ShownReplica<'_>> {
    let roles = set["spec"]["roles"].as_array().into_iter().flatten();
    let told = set["status"]["roleStatus"].as_array().into_iter().flatten();
    roles.zip(told).flat_map(|(role, told)| {
        told["replicaStatus"].as_array().into_iter().flatten().map(move |status| ShownReplica { role, status })
    })
}

/// Iterates over the replicas whose pods a runtime has.
pub(super) fn live(set: &Value) -> impl Iterator<Item = ShownReplica<'_>> {
    use ReplicaPhase::{AttemptAssigned, AttemptDeletionRequested, AttemptRunning};
    let placed = [AttemptAssigned, AttemptRunning, AttemptDeletionRequested].map(ReplicaPhase::word);
    all(set).filter(move |replica| placed.contains(&replica.text("phase")))
}

/// Iterates over the replicas that wait for room: each role and what is told about the replica, with the name and uid that its
/// pod will have.
pub(super) fn waiting(set: &Value) -> impl Iterator<Item = (&Value, Value)> {
    let count = |value: &Value| u32::try_from(value.as_u64().unwrap_or_default()).unwrap_or(u32::MAX);
    let metadata = &set["metadata"];
    let attempt = count(&set["status"]["totalRetriedCount"]);
    let waits = |replica: &ShownReplica<'_>| replica.text("phase") == ReplicaPhase::AttemptPreparing.word();
    all(set).filter(waits).map(move |replica| {
        let tries = count(&replica.status["totalRetriedCount"]) + count(&replica.status["preempted"]["count"]);
        let (name, role) = (metadata["name"].as_str().unwrap_or_default(), replica.role["name"].as_str());
        let pod = ident::pod_name(name, role.unwrap_or_default(), attempt, tries, count(&replica.status["index"]));
        let mut status = replica.status.clone();
        status["podUID"] = json!(ident::uid(metadata["uid"].as_str().unwrap_or_default(), &["pod", &pod]));
        status["podName"] = json!(pod);
        (replica.role, status)
    })
}

impl<'a> ShownReplica<'a> {
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
pub(super) fn variables(set: &Value, replica: ShownReplica<'_>) -> Vec<Value> {
    let metadata = &set["metadata"];
    let number = |value: &Value| json!(value.to_string());
    [
        ("TASKSET_NAMESPACE", metadata["namespace"].clone()),
        ("TASKSET_NAME", metadata["name"].clone()),
        ("TASKSET_ATTEMPT", number(&set["status"]["totalRetriedCount"])),
        ("TASKROLE_NAME", replica.role["name"].clone()),
        ("TASKROLE_REPLICA_INDEX", number(&replica.status["index"])),
        ("TASKROLE_REPLICA_ATTEMPT", number(&replica.status["totalRetriedCount"])),
        ("TASKSET_REPLICA_RANK", number(&json!(rank(set, replica)))),
        ("TASKROLE_REPLICA_ADDRESS", replica.status["podIP"].clone()),
    ]
    .map(|(name, value)| json!({"name": name, "value": value}))
    .to_vec()
}

/// Returns the number of a replica among all of its TaskSet.
fn rank(set: &Value, replica: ShownReplica<'_>) -> u64 {
    let roles = set["spec"]["roles"].as_array().into_iter().flatten();
    let before = roles.take_while(|role| role["name"] != replica.role["name"]);
    let before: u64 = before.filter_map(|role| role["replicas"].as_u64()).sum();
    before + replica.status["index"].as_u64().unwrap_or_default()
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
