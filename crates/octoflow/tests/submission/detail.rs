//! The detail document in every state.

use serde_json::{Value, json};

use crate::stage::{DONE, Stage, task_set};

/// Every field of the seed's document.
const FIELDS: [&str; 27] = [
    "/version",
    "/job/id",
    "/job/name",
    "/job/type",
    "/job/state",
    "/job/userID",
    "/job/startAt",
    "/job/finishedAt",
    "/job/totalRetriedCount",
    "/job/exitCode",
    "/job/exitDiagnostics",
    "/cluster/identity",
    "/tasks/0/name",
    "/tasks/0/image",
    "/tasks/0/state",
    "/tasks/0/command",
    "/tasks/0/replicaAmount",
    "/tasks/0/maxFailedTaskCount",
    "/tasks/0/minSucceededTaskCount",
    "/tasks/0/resource",
    "/tasks/0/replicas/0/index",
    "/tasks/0/replicas/0/state",
    "/platformSpecificInfo/platform",
    "/platformSpecificInfo/configMapName",
    "/platformSpecificInfo/instanceUID",
    "/platformSpecificInfo/taskRuntimeInfo/0/nodeSelector",
    "/platformSpecificInfo/taskRuntimeInfo/0/volumeMounts",
];

fn is_complete(detail: &Value) {
    for field in FIELDS {
        assert!(detail.pointer(field).is_some(), "{field} is missing in {detail:#}");
    }
}

#[test]
fn pl_42_a_failed_job_has_its_exit_code_and_everything_filled() {
    let stage = Stage::new();
    let id = stage.submit(&task_set("echo no >&2; exit 3"));
    let detail = stage.until(&id, "failed");
    is_complete(&detail);
    assert_eq!((&detail["job"]["exitCode"], &detail["job"]["id"]), (&json!(3), &json!(id)));
    let task = &detail["tasks"][0];
    assert_eq!((&task["state"], &task["replicas"][0]["exitCode"]), (&json!("failed"), &json!(3)));
    assert_eq!(task["command"], json!(["sh", "-c", "echo no >&2; exit 3"]));
    assert_eq!(task["resource"], "{\"cpu\":\"100m\"}");
    let platform = &detail["platformSpecificInfo"];
    for field in ["configMapUID", "configMapName", "instanceUID", "apiVersion"] {
        assert!(!platform[field].as_str().unwrap().is_empty(), "{field}: {platform:#}");
    }
    assert!(!platform["taskRuntimeInfo"][0]["replicas"][0]["podName"].as_str().unwrap().is_empty(), "{platform:#}");
    assert!(!detail["job"]["exitDiagnostics"].as_str().unwrap().is_empty());
}

#[test]
fn a_job_that_is_held_runs_and_succeeds_is_told_whole_all_the_time() {
    let stage = Stage::new();
    let address = stage.plugins.says("g", json!({"decision": "suspend", "reason": "wait"}));
    stage.plugin("AccessGate", "g", &address);
    let gate = stage.path("gate");
    let id = stage.submit(&task_set(&format!("until [ -e {gate} ]; do sleep 0.05; done")));
    let held = stage.until(&id, "suspended");
    is_complete(&held);
    assert_eq!(held["tasks"][0]["replicas"][0]["state"], "pending");
    assert_eq!(stage.ask("PUT", &format!("/job/resume/{id}"), &json!({"reason": "now"})).code, DONE);
    let running = stage.until(&id, "running");
    is_complete(&running);
    assert!(!running["job"]["startAt"].as_str().unwrap().is_empty());
    stage.file("gate", "");
    let done = stage.until(&id, "succeeded");
    is_complete(&done);
    assert_eq!((&done["job"]["exitCode"], &done["tasks"][0]["state"]), (&json!(0), &json!("succeeded")));
    assert_eq!(done["tasks"][0]["replicas"][0]["state"], "succeeded");
}
