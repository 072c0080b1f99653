//! Ctrl-C, the time limit, kill -9 and going on, and other processes that want something of a TaskSet.

use std::{fs, process::Child};

use serde_json::{Value, json};

use crate::stage::{Said, Stage, eventually, left_behind, replica, role, shows, signal};

/// Each replica leaves a line outside its own view, waits for a file to be there, and leaves another.
fn patient(stage: &Stage, replicas: u32) -> Value {
    let command = "echo began $TASKROLE_REPLICA_INDEX >> /out/marks; until test -e /out/go; do sleep 0.05; done; \
                   echo ended $TASKROLE_REPLICA_INDEX >> /out/marks";
    let mut one = role("w", replicas, command);
    let spec = &mut one["template"]["spec"];
    spec["volumes"] = json!([{"name": "out", "hostPath": {"path": stage.path("").display().to_string()}}]);
    spec["containers"][0]["volumeMounts"] = json!([{"name": "out", "mountPath": "/out"}]);
    one
}

fn marks(stage: &Stage, word: &str) -> usize {
    fs::read_to_string(stage.path("marks")).unwrap_or_default().lines().filter(|line| line.starts_with(word)).count()
}

fn under_way(stage: &Stage, name: &str, replicas: u32) -> Child {
    let child = stage.start(&["run", &stage.set(name, json!([patient(stage, replicas)]))]);
    // Seen from outside too: what a replica does may be a moment ahead of what is written down of it.
    eventually("all replicas are under way", || {
        let shown = stage.octoflow(&["get", name, "-o", "jsonpath={.status.roleStatus[0].replicaStatus[*].phase}"]);
        marks(stage, "began") == replicas as usize && shown.out.matches("AttemptRunning").count() == replicas as usize
    });
    child
}

fn ended(child: Child) -> Said {
    child.wait_with_output().unwrap().into()
}

#[test]
fn a_killed_run_is_restored_where_it_was() {
    let stage = Stage::new();
    let child = under_way(&stage, "killed", 3);
    signal(&child, "KILL");
    ended(child);
    shows(&stage.ends(0, &["get", "killed"]).out, &["Running", "w-0", "w-1", "w-2"]);
    shows(&stage.ends(7, &["stop", "killed"]).err, &["was interrupted", "octoflow run --resume killed"]);
    let again = stage.start(&["run", "--resume", "killed", "-o", "json"]);
    fs::write(stage.path("go"), "").unwrap();
    let said = ended(again);
    assert_eq!(said.code, 0, "{said}");
    assert_eq!((marks(&stage, "began"), marks(&stage, "ended")), (3, 3), "no replica ran twice");
    let object: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(object["status"]["state"], "Succeeded");
    assert_eq!(replica(&object, 0, 2)["totalRetriedCount"], 0);
    assert_eq!(left_behind(&stage.data_dir()), Vec::<String>::new());
}

#[test]
fn one_ctrl_c_stops_it_and_nothing_is_tried_again() {
    let stage = Stage::new();
    let child = under_way(&stage, "stopped", 2);
    signal(&child, "INT");
    let said = ended(child);
    assert_eq!(said.code, 130, "{said}");
    shows(&said.err, &["TaskSet stopped is being stopped", "TaskSet stopped failed"]);
    let status = stage.object("stopped")["status"].clone();
    assert_eq!((&status["state"], &status["phase"]), (&json!("Failed"), &json!("TaskSetCompleted")));
    shows(status["stateMessage"].as_str().unwrap(), &["Stop"]);
}

#[test]
fn the_time_limit_ends_it() {
    let stage = Stage::new();
    let file = stage.set("slow", json!([role("w", 1, "sleep 60")]));
    shows(&stage.ends(124, &["run", &file, "--timeout", "1s"]).err, &["the time limit is reached"]);
}

#[test]
fn other_processes_steer_it() {
    let stage = Stage::new();
    let child = under_way(&stage, "steered", 1);
    assert_eq!(stage.ends(0, &["suspend", "steered"]).out, "TaskSet steered suspended\n");
    shows(&stage.ends(0, &["explain", "ts/steered"]).out, &["steered", "suspended"]);
    assert_eq!(stage.ends(0, &["resume", "taskset/steered"]).out, "TaskSet steered resumed\n");
    shows(
        &stage.ends(7, &["resume", "steered", "--node-field-selector", "displayName=w"]).err,
        &["no nodes to choose"],
    );
    assert_eq!(stage.ends(0, &["terminate", "@latest"]).out, "TaskSet steered is being terminated\n");
    assert_eq!(ended(child).code, 1);
    shows(&stage.ends(1, &["wait", "steered"]).out, &["steered Failed", "Terminate"]);
}
