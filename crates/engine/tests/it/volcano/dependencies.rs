//! Tasks that wait for others: pods are created when enough pods of those run or have succeeded.

use octoflow_engine::volcano::explain::explain;

use super::stage::Stage;
use crate::play::RUN;

#[test]
fn vj16_pods_are_created_once_those_they_wait_for_run() {
    let mut stage = Stage::new("tasks: [{name: a, replicas: 2}, {name: b, dependsOn: {name: [a]}}]");
    assert_eq!(stage.live(), ["j-a-0", "j-a-1"]);
    let told = explain(stage.run(RUN), None);
    assert!(
        told.iter().any(|one| one.node == "b" && one.reason == "waits for task 'a' (0 of 2 pods up or done)"),
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
