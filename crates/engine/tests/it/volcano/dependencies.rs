//! Tasks that wait for others: pods are created when enough pods of those run or have succeeded.

use octoflow_engine::volcano::{DIALECT, explain::explain, status::object};
use octoflow_model::Time;
use serde_json::json;

use super::stage::Stage;
use crate::play::RUN;

#[test]
fn vj16_pods_are_created_once_those_they_wait_for_run() {
    let mut stage = Stage::new("tasks: [{name: a, replicas: 2}, {name: b, dependsOn: {name: [a]}}]");
    assert_eq!(stage.live(), ["j-a-0", "j-a-1"]);
    let told = explain(stage.run(RUN), None);
    assert!(
        told.iter().any(|one| one.node == "b" && one.reason == "waits for task 'a' (0 of 2 pods ready or done)"),
        "{told:?}"
    );
    stage.up("j-a-0");
    assert_eq!(stage.live().len(), 2);
    stage.up("j-a-1");
    assert_eq!(stage.live(), ["j-a-0", "j-a-1", "j-b-0"]);
    stage.up("j-b-0");
    assert_eq!(stage.phase(), "Running");
    (0..2).for_each(|index| stage.exit(&format!("j-a-{index}"), 0));
    stage.exit("j-b-0", 0);
    stage.ends("Completed");
}

#[test]
fn vj16_any_of_several_is_enough_and_one_is_all() {
    let spec = "tasks: [{name: a}, {name: c}, {name: b, dependsOn: {name: [a, c], iteration: any}}]";
    let mut stage = Stage::new(spec);
    stage.up("j-c-0");
    assert!(stage.live().contains(&"j-b-0".to_owned()));
    let spec = "tasks: [{name: a}, {name: c}, {name: b, dependsOn: {name: [a, c]}}]";
    let mut stage = Stage::new(spec);
    stage.up("j-c-0");
    assert!(!stage.live().contains(&"j-b-0".to_owned()));
    stage.up("j-a-0");
    assert!(stage.live().contains(&"j-b-0".to_owned()));
}

#[test]
fn a_task_that_can_never_start_does_not_hold_the_job_for_ever() {
    let mut stage =
        Stage::new("tasks: [{name: a}, {name: b, dependsOn: {name: [a]}}, {name: c, dependsOn: {name: [b]}}]");
    stage.exit("j-a-0", 1);
    stage.ends("Failed");
    assert_eq!(
        stage.status()["state"]["message"],
        "0 of 3 pods succeeded, 2 could not start because a task they wait for failed; too few of task a"
    );
}

#[test]
fn one_that_waits_for_any_goes_on_while_one_is_left() {
    let spec = "{minAvailable: 2, tasks: [{name: a}, {name: c}, {name: b, dependsOn: {name: [a, c], iteration: any}}]}";
    let mut stage = Stage::new(spec);
    stage.exit("j-a-0", 1);
    assert!(!stage.over());
    stage.exit("j-c-0", 0);
    stage.exit("j-b-0", 0);
    stage.ends("Completed");
}

#[test]
fn after_a_restart_of_the_whole_they_wait_again() {
    let spec =
        "{policies: [{event: PodFailed, action: RestartJob}], tasks: [{name: a}, {name: b, dependsOn: {name: [a]}}]}";
    let mut stage = Stage::new(spec);
    stage.up("j-a-0");
    stage.exit("j-b-0", 1);
    stage.leave();
    assert_eq!(stage.live(), ["j-a-0"]);
    stage.up("j-a-0");
    assert_eq!(stage.live(), ["j-a-0", "j-b-0"]);
    // Restarted alone, it does not wait for what has ended since.
    let spec = "{policies: [{event: PodFailed, action: RestartPod}], minAvailable: 1, tasks: [{name: a, policies: [{exitCode: 9, action: RestartPod}]}, {name: b, dependsOn: {name: [a]}}]}";
    let mut stage = Stage::new(spec);
    stage.up("j-a-0");
    stage.exit("j-b-0", 1);
    assert_eq!(stage.live(), ["j-a-0", "j-b-0"]);
}

#[test]
fn vj16_a_pod_with_a_readiness_probe_counts_once_it_is_ready() {
    let probed = "{spec: {containers: [{name: m, image: i, command: [c], readinessProbe: {tcpSocket: {port: 80}}}]}}";
    let mut stage = Stage::new(&format!(
        "{{minAvailable: 1, tasks: [{{name: a, template: {probed}}}, {{name: b, dependsOn: {{name: [a]}}}}]}}"
    ));
    stage.up("j-a-0");
    assert_eq!(stage.phase(), "Running");
    assert_eq!(stage.live(), ["j-a-0"], "it runs and is not ready");
    stage.restart();
    stage.ready("j-a-0", true);
    assert_eq!(stage.live(), ["j-a-0", "j-b-0"]);
    // What has begun does not go back.
    stage.ready("j-a-0", false);
    assert_eq!(stage.live(), ["j-a-0", "j-b-0"]);
    stage.exit("j-b-0", 0);
    stage.exit("j-a-0", 0);
    stage.ends("Completed");
}

#[test]
fn vj16_a_pod_that_is_not_ready_is_not_shown_as_ready() {
    let probe = "readinessProbe: {tcpSocket: {port: 80}}";
    let spec = format!(
        "tasks: [{{name: a, template: {{spec: {{containers: [{{name: main, image: i, command: [c], {probe}}}]}}}}}}]"
    );
    let mut stage = Stage::new(&spec);
    stage.up("j-a-0");
    let seen = |stage: &Stage| {
        let pods = DIALECT.view.pods(&object(stage.run(RUN)), Time(0), None).items;
        let status = &pods[0].1["status"];
        let of = |kind: &str| {
            let all = status["conditions"].as_array().expect("there are conditions");
            all.iter().find(|one| one["type"] == kind).map(|one| one["status"].clone()).unwrap_or_default()
        };
        (status["containerStatuses"][0]["ready"].clone(), of("ContainersReady"), of("Ready"))
    };
    assert_eq!(seen(&stage), (json!(false), json!("False"), json!("False")));
    stage.ready("j-a-0", true);
    assert_eq!(seen(&stage), (json!(true), json!("True"), json!("True")));
}
