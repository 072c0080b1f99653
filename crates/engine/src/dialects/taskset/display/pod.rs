//! Pods of TaskSets: one for each replica that a runtime has or that waits for room. Those of earlier tries are gone, as in the original;
//! their logs stay with the TaskSet.

use octoflow_model::taskset::ReplicaPhase;
use serde_json::{Map, Value, json};

use super::replica::{self, OF_SET, ShownReplica};
use crate::run::view::{MAIN, Pods};

/// Default termination grace period in seconds, as in Kubernetes.
const GRACE_S: u64 = 30;

/// Returns the existing pods of a TaskSet. `host` is this machine.
pub(super) fn all(set: &Value, host: Option<&str>) -> Pods {
    let live = replica::live(set).map(|one| (one.pod().to_owned(), render(set, one, host)));
    let waiting = replica::waiting(set).map(|(role, status)| {
        let replica = ShownReplica { role, status: &status };
        let mut pod = render(set, replica, None);
        let conditions = pod["status"]["conditions"].as_array_mut().into_iter().flatten();
        for condition in conditions.filter(|condition| condition["type"] == "PodScheduled") {
            condition["status"] = json!("False");
        }
        (replica.pod().to_owned(), pod)
    });
    Pods { items: live.chain(waiting).collect(), until: None }
}

fn render(set: &Value, replica: ShownReplica<'_>, host: Option<&str>) -> Value {
    let (metadata, of_set, template) = (&set["metadata"], &set["status"], &replica.role["template"]);
    let started = !replica.status["startAt"].is_null();
    let running = replica.text("phase") == ReplicaPhase::AttemptRunning.word();
    let since = &replica.status[if started { "startAt" } else { "transitionTime" }];
    let mut own = json!({
        "name": replica.pod(),
        "namespace": metadata["namespace"],
        "uid": replica.status["podUID"],
        "resourceVersion": metadata["resourceVersion"],
        "creationTimestamp": since,
        "labels": replica::labels(set, replica.role),
        "annotations": annotations(set, replica),
        "ownerReferences": [{
            "apiVersion": "v1", "kind": "ConfigMap", "name": of_set["controlUnitName"],
            "uid": of_set["controlUnitUID"], "controller": true, "blockOwnerDeletion": true,
        }],
    });
    if replica.text("phase") == ReplicaPhase::AttemptDeletionRequested.word() {
        own["deletionTimestamp"] = replica.status["transitionTime"].clone();
        own["deletionGracePeriodSeconds"] = json!(grace(template));
    }
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": own,
        "spec": spec(set, replica, host),
        "status": {
            "phase": if started || running { "Running" } else { "Pending" },
            "hostIP": replica.status["podHostIP"],
            "podIP": replica.status["podIP"],
            "podIPs": [{"ip": replica.status["podIP"]}],
            "startTime": since,
            "conditions": conditions(running || started, since),
            "containerStatuses": statuses(replica, "containers", |name, given| of_container(replica, name, given)),
            "initContainerStatuses": statuses(replica, "initContainers", |name, given| before(replica, name, given)),
            "qosClass": "BestEffort",
        },
    })
}

fn annotations(set: &Value, replica: ShownReplica<'_>) -> Map<String, Value> {
    let metadata = &set["metadata"];
    let mut texts = replica.role["template"]["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
    let own = [
        ("RoleReplicaIndex", json!(replica.status["index"].to_string())),
        (OF_SET, metadata["name"].clone()),
        ("Namespace", metadata["namespace"].clone()),
        ("TSUID", metadata["uid"].clone()),
        ("CID", set["status"]["controlUnitUID"].clone()),
    ];
    texts.extend(own.map(|(key, value)| (key.to_owned(), value)));
    texts
}

/// Returns the pod spec of the template with the controller's additions.
fn spec(set: &Value, replica: ShownReplica<'_>, host: Option<&str>) -> Value {
    let mut spec = replica.role["template"]["spec"].clone();
    for list in ["initContainers", "containers"] {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            let mut all = replica::variables(set, replica);
            all.extend(container["env"].as_array().cloned().unwrap_or_default());
            container["env"] = json!(all);
            if container["name"].is_null() {
                container["name"] = json!(MAIN);
            }
            if container["terminationMessagePolicy"].is_null() {
                container["terminationMessagePolicy"] = json!("FallbackToLogsOnError");
            }
        }
    }
    spec["restartPolicy"] = json!("Never");
    spec["terminationGracePeriodSeconds"] = json!(grace(&replica.role["template"]));
    if let Some(node) = replica.status["nodeName"].as_str().or(host) {
        spec["nodeName"] = json!(node);
    }
    if let Some(fields) = spec.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    spec
}

fn grace(template: &Value) -> u64 {
    template["spec"]["terminationGracePeriodSeconds"].as_u64().unwrap_or(GRACE_S)
}

fn statuses(replica: ShownReplica<'_>, list: &str, of: impl Fn(&str, &Value) -> Value) -> Vec<Value> {
    let given = replica.role["template"]["spec"][list].as_array().into_iter().flatten();
    given.map(|one| of(one["name"].as_str().unwrap_or(MAIN), one)).collect()
}

/// Renders a container status. All containers start together, so the start of the main one is taken for all.
fn of_container(replica: ShownReplica<'_>, name: &str, given: &Value) -> Value {
    let started = &replica.status["startAt"];
    let up = !started.is_null();
    let state = match up {
        true => json!({"running": {"startedAt": started}}),
        false => json!({"waiting": {"reason": "ContainerCreating"}}),
    };
    let id = if replica.text("containerName") == name { replica.text("containerID") } else { "" };
    status(name, given, id, up, state)
}

/// Renders an init container status. Init containers are over once the others have started.
fn before(replica: ShownReplica<'_>, name: &str, given: &Value) -> Value {
    let started = &replica.status["startAt"];
    if started.is_null() {
        return status(name, given, "", false, json!({"waiting": {"reason": "PodInitializing"}}));
    }
    let over = json!({"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": started}});
    status(name, given, "", true, over)
}

fn status(name: &str, given: &Value, id: &str, ready: bool, state: Value) -> Value {
    json!({
        "name": name, "image": given["image"].as_str().unwrap_or_default(), "imageID": "", "containerID": id,
        "ready": ready, "started": ready, "restartCount": 0, "state": state,
    })
}

fn conditions(up: bool, since: &Value) -> Value {
    let said = |holds: bool| if holds { "True" } else { "False" };
    let one = |kind: &str, holds: bool| json!({"type": kind, "status": said(holds), "lastTransitionTime": since});
    json!([one("PodScheduled", true), one("Initialized", up), one("ContainersReady", up), one("Ready", up)])
}
