//! TaskSets of a server through the client: submitted, looked at, steered, and done again.

use crate::place::{Place, eventually, one_step, shows};

/// One role whose replicas each run a shell command.
fn set(name: &str, replicas: u32, command: &str) -> String {
    format!(
        "apiVersion: octopus.openi.pcl.cn/v1alpha1
kind: TaskSet
metadata: {{name: {name}}}
spec:
  roles:
  - name: worker
    replicas: {replicas}
    completionPolicy: {{maxFailed: 1, minSucceeded: {replicas}}}
    template:
      spec:
        containers:
        - name: main
          image: busybox
          command: [sh, -c, {}]
",
        serde_json::to_string(command).unwrap()
    )
}

#[test]
fn a_task_set_is_submitted_watched_and_looked_at() {
    let place = Place::start();
    let file = place.file("good.yaml", &set("good", 2, "echo replica $TASKROLE_REPLICA_INDEX"));
    let said = place.ends(0, &["submit", &file, "--watch"]);
    shows(&said.err, &["TaskSet good submitted", "role worker succeeded", "TaskSet good succeeded"]);
    shows(&place.good(&["get", "good"]), &["Kind:", "TaskSet", "worker-0", "Succeeded", "worker-1", "Succeeded"]);
    shows(&place.good(&["logs", "good", "worker-1"]), &["replica 1"]);
    shows(&place.good(&["logs", "good", "good-worker-0-0-0"]), &["replica 0"]);
    place.ends(7, &["submit", &file]);
    let object = place.json(&["get", "taskset/good"]);
    assert_eq!(object["status"]["state"], "Succeeded");
    // A workflow may have the same name; then the kind must be said.
    let other = place.file("wf.yaml", &one_step("good", "true"));
    place.good(&["submit", &other, "--wait"]);
    let said = place.ends(2, &["get", "good"]);
    shows(&said.err, &["good"]);
    assert_eq!(place.json(&["get", "workflow/good"])["kind"], "Workflow");
    shows(&place.good(&["list"]), &["KIND"]);
    place.good(&["delete", "ts/good"]);
    assert_eq!(place.json(&["get", "good"])["kind"], "Workflow");
}

#[test]
fn a_task_set_that_failed_is_explained_and_done_again_in_its_place() {
    let place = Place::start();
    let flag = place.path("flag");
    let command = format!("test -e {} || {{ echo no flag >&2; exit 3; }}", flag.display());
    let file = place.file("fragile.yaml", &set("fragile", 1, &command));
    place.ends(1, &["submit", &file, "--wait"]);
    shows(&place.good(&["explain", "fragile"]), &["worker-0", "exit code 3", "no flag"]);
    std::fs::write(&flag, "").unwrap();
    let uid = place.json(&["get", "fragile"])["metadata"]["uid"].clone();
    place.good(&["retry", "fragile"]);
    place.good(&["wait", "fragile"]);
    let object = place.json(&["get", "fragile"]);
    assert_eq!((&object["status"]["state"], &object["metadata"]["uid"]), (&"Succeeded".into(), &uid));
    place.good(&["resubmit", "fragile"]);
    eventually("the new one is over", || place.good(&["list", "-o", "name"]).lines().count() == 2);
}

#[test]
fn a_task_set_is_held_let_go_and_ended() {
    let place = Place::start();
    let text = set("slow", 1, "sleep 600").replace("spec:\n  roles", "spec:\n  suspend: true\n  roles");
    let file = place.file("slow.yaml", &text);
    place.good(&["submit", &file]);
    shows(&place.good(&["explain", "slow"]), &["suspended"]);
    place.good(&["resume", "slow"]);
    let state = || place.json(&["get", "slow"])["status"]["state"].clone();
    eventually("it runs", || state() == "Running");
    place.good(&["stop", "slow"]);
    place.ends(1, &["wait", "slow"]);
    let object = place.json(&["get", "slow"]);
    assert_eq!(object["status"]["state"], "Failed");
    shows(object["status"]["stateMessage"].as_str().unwrap(), &["Stop"]);
    let said = place.octoflow(&["stop", "slow"]);
    assert_ne!(said.code, 0, "{said}");
    shows(&said.err, &["slow", "it is over (Failed)"]);
}

#[test]
fn a_wrong_task_set_is_refused_with_every_place_and_nothing_is_kept() {
    let place = Place::start();
    let text =
        set("wrong", 2, "true").replace("maxFailed: 1", "maxFailed: 7").replace("name: worker", "name: My-Worker");
    let file = place.file("wrong.yaml", &text);
    let said = place.ends(6, &["submit", &file]);
    shows(&said.err, &["spec.roles[0].name"]);
    shows(&said.err, &["spec.roles[0].completionPolicy.maxFailed"]);
    assert_eq!(place.good(&["list", "-o", "name"]), "");
}
