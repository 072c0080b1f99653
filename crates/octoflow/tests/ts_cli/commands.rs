//! Looking at TaskSets beside workflows: lists, trees, logs, and what is given away.

use serde_json::json;

use crate::stage::{Stage, role, shows};

fn workflow(name: &str) -> String {
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": name}, "spec": {
        "entrypoint": "main", "templates": [{"name": "main", "container": {"image": "busybox", "command": ["echo", "wf"]}}]}})
    .to_string()
}

#[test]
fn a_workflow_and_a_task_set_may_share_a_name() {
    let stage = Stage::new();
    let set = stage.set("twin", json!([role("w", 2, "echo from $TASKROLE_REPLICA_INDEX")]));
    let said = stage.ends(0, &["run", &set, &stage.file("wf.yaml", workflow("twin")), "-o", "name"]);
    assert_eq!(said.out, "twin\ntwin\n", "both run in one call");
    shows(&stage.ends(0, &["list"]).out, &["NAME", "KIND", "STATUS", "twin", "twin"]);
    let listed = stage.ends(0, &["list", "--kind", "taskset", "--no-headers"]).out;
    assert_eq!(listed.lines().count(), 1, "{listed}");
    shows(&stage.ends(2, &["get", "twin"]).err, &["a workflow and a TaskSet are called `twin`", "taskset/twin"]);
    assert_eq!(stage.ends(0, &["logs", "wf/twin"]).out, "twin: wf\n");
    assert_eq!(stage.ends(0, &["logs", "ts/twin", "w-1"]).out, "w-1 | from 1\n");
    shows(&stage.ends(0, &["delete", "workflow/twin"]).out, &["Workflow 'twin' deleted"]);
    shows(&stage.ends(0, &["get", "twin"]).out, &["Kind:", "TaskSet"]);
    // A name that is taken, and one of the other kind that is not.
    stage.ends(7, &["run", &set]);
    stage.ends(0, &["run", &stage.file("wf.yaml", workflow("twin"))]);
}

#[test]
fn the_tree_and_the_logs_name_replicas() {
    let stage = Stage::new();
    let file = stage.set("tree", json!([role("ps", 1, "echo up"), role("worker", 2, "echo at work")]));
    stage.ends(0, &["run", &file, "--log"]);
    let shown = stage.ends(0, &["get", "@latest"]).out;
    let words =
        ["NAME", "RETRIES", "EXIT", "✔ tree", "├─✔ ps", "│ └─✔ ps-0", "└─✔ worker", "├─✔ worker-0", "└─✔ worker-1"];
    shows(&shown, &words);
    let mut lines: Vec<String> = stage.ends(0, &["logs", "tree"]).out.lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["ps-0 | up", "worker-0 | at work", "worker-1 | at work"]);
    assert_eq!(stage.ends(0, &["logs", "tree", "tree-ps-0-0-0", "--no-prefix"]).out, "up\n");
    shows(&stage.ends(2, &["logs", "tree", "worker", "-o", "raw"]).err, &["there are 2", "worker-0, worker-1"]);
}

#[test]
fn logs_know_what_they_are_asked_for() {
    let stage = Stage::new();
    stage.ends(0, &["run", &stage.set("said", json!([role("worker", 1, "echo x")])), "--quiet"]);
    assert_eq!(stage.ends(0, &["logs", "said", "worker-0", "-o", "raw"]).out, "x\n");
    shows(
        &stage.ends(3, &["logs", "said", "wrker"]).err,
        &["has no role, replica or pod `wrker`", "did you mean `worker`"],
    );
    stage.ends(3, &["logs", "said", "worker-1"]);
    shows(&stage.ends(0, &["describe", "said"]).out, &["TaskRoleReplicaCompleted", "said-worker-0-0-0"]);
    let file = stage.path("said.octoflow").display().to_string();
    stage.ends(0, &["export", "said", "-o", &file]);
    assert_eq!(stage.ends(0, &["open", &file, "logs", "worker-0"]).out, "worker-0 | x\n");
    shows(&stage.ends(0, &["open", &file]).out, &["Kind:", "TaskSet", "worker-0"]);
    assert_eq!(stage.ends(0, &["diff", "said", &file]).out, "the runs do not differ\n");
    shows(&stage.ends(0, &["schema", "TaskSet"]).out, &["completionPolicy"]);
    shows(&stage.ends(0, &["schema", "podgroup"]).out, &["minMember"]);
    shows(&stage.ends(0, &["explain", "OF1080"]).out, &["OF1080"]);
}
