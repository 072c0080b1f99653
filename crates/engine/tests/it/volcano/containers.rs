//! Containers that are started again in their place.

use octoflow_engine::{Command, Input};
use octoflow_model::order::Exit;

use super::stage::Stage;

const ON_FAILURE: &str = "template: {spec: {restartPolicy: OnFailure}}";

#[test]
fn a_container_that_fails_is_started_again_and_counted() {
    let mut stage = Stage::with_slots(1, &format!("tasks: [{{name: a, {ON_FAILURE}}}]"));
    stage.submit(2, "tasks: [{name: x}]");
    stage.up("j-a-0");
    stage.exit("j-a-0", 1);
    assert_eq!(stage.live(), ["j-a-0"], "the first time it is started again at once, and keeps its room");
    stage.up("j-a-0");
    stage.exit("j-a-0", 1);
    assert_eq!(stage.live(), [] as [&str; 0]);
    let pod = stage.pod("j-a-0");
    assert_eq!((&pod["phase"], &pod["restarts"]), (&"BackOff".into(), &2.into()));
    assert_eq!(stage.phase(), "Running");
    stage.restart();
    stage.tick(9);
    assert_eq!(stage.live(), [] as [&str; 0]);
    stage.tick(1);
    assert_eq!(stage.live(), ["j-a-0"]);
    let uid = stage.pod("j-a-0")["uid"].clone();
    assert_eq!(uid, pod["uid"], "it is the same pod");
    assert_eq!(stage.history(), ["Pending", "Running"], "its pod has been running all the time");
    stage.exit("j-a-0", 0);
    assert_eq!(stage.phase(), "Completed");
    assert_eq!(stage.live(), ["j2-x-0"], "it kept its room until then");
}

#[test]
fn always_means_also_after_success() {
    let mut stage = Stage::new("tasks: [{name: a, template: {spec: {restartPolicy: Always}}}]");
    stage.exit("j-a-0", 0);
    assert_eq!(stage.live(), ["j-a-0"]);
    stage.command(Command::Stop).unwrap();
    stage.leave();
    stage.ends("Terminated");
}

#[test]
fn too_many_restarts_of_a_task_make_it_fail() {
    let spec = format!(
        "tasks: [{{name: a, replicas: 2, maxRetry: 2, policies: [{{event: TaskFailed, action: TerminateJob}}], {ON_FAILURE}}}]"
    );
    let mut stage = Stage::new(&spec);
    stage.exit("j-a-0", 1);
    assert_eq!(stage.phase(), "Pending");
    stage.exit("j-a-1", 1);
    assert_eq!(stage.phase(), "Terminating");
    stage.leave();
    stage.ends("Terminated");
    let spec = format!(
        "tasks: [{{name: a, maxRetry: -1, policies: [{{event: TaskFailed, action: TerminateJob}}], {ON_FAILURE}}}]"
    );
    let mut stage = Stage::new(&spec);
    for _ in 0..6 {
        stage.exit("j-a-0", 1);
        stage.tick(300);
    }
    assert_eq!(stage.live(), ["j-a-0"]);
}

#[test]
fn a_pod_that_is_lost_is_not_started_in_its_place() {
    let mut stage = Stage::new(&format!("tasks: [{{name: a, {ON_FAILURE}}}]"));
    stage.lose("j-a-0");
    stage.ends("Failed");
}

#[test]
fn whoever_waits_to_be_started_again_can_be_ended_and_evicted() {
    let spec = format!("tasks: [{{name: a, {ON_FAILURE}}}]");
    let waiting = || {
        let mut stage = Stage::new(&spec);
        stage.exit("j-a-0", 1);
        stage.exit("j-a-0", 1);
        assert_eq!(stage.live(), [] as [&str; 0]);
        stage
    };
    let mut stage = waiting();
    stage.command(Command::Stop).unwrap();
    stage.ends("Terminated");
    let mut stage = waiting();
    stage.input(Input::Drain { node: "local".to_owned() });
    assert_eq!(stage.live(), ["j-a-0"], "it was created again");
    assert_eq!((&stage.pod("j-a-0")["restarts"], &stage.status()["preemptCount"]), (&0.into(), &1.into()));
    stage.exit("j-a-0", 0);
    stage.ends("Completed");
    let mut stage = waiting();
    stage.evict("j-a-0", octoflow_model::taskset::StopReason::Deleted);
    stage.end("j-a-0", Exit::Code(0), None);
    stage.ends("Completed");
}

#[test]
fn the_deadline_of_a_pod_counts_from_its_first_start() {
    let mut stage =
        Stage::new("tasks: [{name: a, template: {spec: {restartPolicy: OnFailure, activeDeadlineSeconds: 8}}}]");
    stage.up_all();
    stage.tick(5);
    stage.exit("j-a-0", 1);
    stage.up_all();
    stage.exit("j-a-0", 1);
    stage.tick(10);
    stage.ends("Failed");
    assert_eq!(stage.pod("j-a-0")["reason"], "DeadlineExceeded");
}
