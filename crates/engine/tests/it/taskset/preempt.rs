//! Preempted replicas: their pods are ended for others, and they are tried again, which costs no retry.

use octoflow_engine::{Capacity, Command, Input, schedule::spec::NodeSpec, taskset::DIALECT};
use octoflow_model::{order::Exit, taskset::StopReason};

use super::stage::{Groups, Stage, Told};
use crate::play::{ROOMY, RUN};

/// Everything on the only node is ended.
fn drain(stage: &mut Stage) {
    stage.input(Input::Drain { node: "local".to_owned() });
}

/// As many pods fit from now on.
fn slots(stage: &mut Stage, slots: usize) {
    let spec = NodeSpec::from(Capacity { slots, ..ROOMY });
    stage.input(Input::Node { name: "local".to_owned(), spec: Some(Box::new(spec)) });
}

#[test]
fn a_preempted_replica_is_tried_again_and_pays_no_retry() {
    let mut stage = Stage::new("roles: [{name: a}, {name: b, dependsOn: [a]}]");
    stage.up("t-a-0-0-0");
    stage.up("t-b-0-0-0");
    drain(&mut stage);
    assert_eq!(stage.told_all(), ["t-a-0-0-0", "t-b-0-0-0"]);
    assert_eq!(stage.replica("a", 0)["phaseMessage"], "Node local is drained");
    stage.end("t-a-0-0-0", Exit::Code(0), None);
    stage.lose("t-b-0-0-0");
    assert_eq!(stage.live(), ["t-a-0-1-0", "t-b-0-1-0"]);
    let replica = stage.replica("a", 0);
    assert_eq!((&replica["totalRetriedCount"], &replica["preempted"]["count"]), (&0.into(), &1.into()));
    assert_eq!(stage.status()["preemptCount"], 2);
    let mut object = serde_json::json!({"metadata": {"name": "t"}, "spec": {"roles": [{"name": "a"}, {"name": "b"}]}});
    object["status"] = stage.status();
    let events = DIALECT.view.events(&object);
    assert_eq!(events.iter().filter(|(_, event)| event["reason"] == "Preempted").count(), 2);
    stage.exit("t-a-0-1-0", 0);
    stage.exit("t-b-0-1-0", 0);
    stage.ends("Succeeded");
}

#[test]
fn a_retry_that_is_left_is_still_left_and_no_name_is_used_twice() {
    let mut stage = Stage::new("roles: [{name: a, retryPolicy: {retry: true, delay: 0, maxRetryCount: 1}}]");
    drain(&mut stage);
    stage.leave();
    stage.exit("t-a-0-1-0", 1);
    assert_eq!(stage.replica("a", 0)["totalRetriedCount"], 1);
    drain(&mut stage);
    stage.leave();
    assert_eq!(stage.replica("a", 0)["totalRetriedCount"], 1);
    stage.exit("t-a-0-3-0", 1);
    stage.ends("Failed");
    assert_eq!(stage.names(), ["t-a-0-0-0", "t-a-0-1-0", "t-a-0-2-0", "t-a-0-3-0"]);
    assert_eq!(stage.run(RUN).pods().len(), 4, "the logs of all are found");
}

#[test]
fn whoever_is_stopped_while_it_is_preempted_is_stopped() {
    for (command, told) in [(Command::Stop, Told::Stop), (Command::Terminate, Told::Kill)] {
        let mut stage = Stage::new("roles: [{name: a}]");
        drain(&mut stage);
        stage.command(command).unwrap();
        assert_eq!(stage.pods.values().next().unwrap().told, Some(told));
        stage.leave();
        stage.ends("Failed");
        assert_eq!(stage.names(), ["t-a-0-0-0"]);
        assert_eq!(stage.replica("a", 0)["stopped"], true);
    }
}

#[test]
fn a_role_that_is_decided_meanwhile_does_not_try_it_again() {
    let mut stage = Stage::new("roles: [{name: a, replicas: 2, completionPolicy: {maxFailed: 2, minSucceeded: 1}}]");
    slots(&mut stage, 1);
    drain(&mut stage);
    stage.end("t-a-0-0-0", Exit::Signal(15), None);
    assert_eq!(stage.live(), ["t-a-0-0-1"], "there is room for one, and it is being ended");
    stage.end("t-a-0-0-1", Exit::Signal(15), None);
    assert_eq!(stage.live().len(), 1);
    let pod = stage.live().remove(0);
    stage.exit(&pod, 0);
    stage.ends("Succeeded");
}

#[test]
fn a_suspended_task_set_starts_the_preempted_ones_again_when_it_is_resumed() {
    let mut stage = Stage::new("roles: [{name: a}]");
    let since = stage.state().replicas[0].queued;
    stage.tick(10);
    drain(&mut stage);
    stage.suspend();
    stage.leave();
    assert_eq!(stage.live(), [] as [&str; 0]);
    stage.restart();
    stage.tick(10);
    stage.resume();
    assert_eq!(stage.live(), ["t-a-0-1-0"]);
    assert_eq!(stage.state().replicas[0].queued, since, "it kept its place");
    stage.exit("t-a-0-1-0", 0);
    stage.ends("Succeeded");
}

#[test]
fn a_pod_that_is_preempted_is_not_evicted_on_top() {
    let mut stage = Stage::new("roles: [{name: a}]");
    drain(&mut stage);
    stage.evict("t-a-0-0-0", StopReason::Deleted);
    stage.leave();
    stage.exit("t-a-0-1-0", 0);
    stage.ends("Succeeded");
}

#[test]
fn a_member_of_a_gang_joins_those_that_run() {
    let mut stage = Stage::empty(Capacity { slots: 9, ..ROOMY });
    let gang = "template: {metadata: {annotations: {scheduling.k8s.io/group-name: g}}}";
    stage.submit(1, &format!("roles: [{{name: a, replicas: 3, {gang}}}]"), &Groups(vec![("g", 2)]));
    assert_eq!(stage.live().len(), 3);
    drain(&mut stage);
    stage.end("t-a-0-0-1", Exit::Signal(15), None);
    stage.leave();
    assert_eq!(stage.live(), ["t-a-0-1-0", "t-a-0-1-1", "t-a-0-1-2"]);
    stage.restart();
    for index in 0..3 {
        stage.exit(&format!("t-a-0-1-{index}"), 0);
    }
    stage.ends("Succeeded");
}

#[test]
fn those_that_were_preempted_have_left_their_gang() {
    let mut stage = Stage::empty(Capacity { slots: 9, ..ROOMY });
    let gang = "template: {metadata: {annotations: {scheduling.k8s.io/group-name: g}}}";
    stage.submit(1, &format!("roles: [{{name: a, replicas: 3, {gang}}}]"), &Groups(vec![("g", 2)]));
    let joined = |stage: &Stage| stage.engine.run(RUN).unwrap().joined().len();
    assert_eq!(joined(&stage), 3);
    slots(&mut stage, 0);
    drain(&mut stage);
    assert_eq!(joined(&stage), 0);
    stage.leave();
    assert_eq!((joined(&stage), stage.live().len()), (0, 0));
    slots(&mut stage, 9);
    assert_eq!((joined(&stage), stage.live().len()), (3, 3));
}

#[test]
fn a_gang_that_was_preempted_as_a_whole_starts_together_again() {
    for restarted in [false, true] {
        let mut stage = Stage::empty(Capacity { slots: 2, ..ROOMY });
        let gang = "template: {metadata: {annotations: {scheduling.k8s.io/group-name: g}}}";
        // Two start together, the third one waits for room of its own.
        stage.submit(1, &format!("roles: [{{name: a, replicas: 3, {gang}}}]"), &Groups(vec![("g", 2)]));
        assert_eq!(stage.live(), ["t-a-0-0-0", "t-a-0-0-1"]);
        stage.submit(2, "priority: 1\nroles: [{name: x}]", &Groups::default());
        drain(&mut stage);
        if restarted {
            stage.restart();
        }
        stage.leave();
        assert_eq!(stage.live(), ["t2-x-0-0-0"], "one place is left, and that is not enough for two");
        stage.exit("t2-x-0-0-0", 0);
        assert_eq!(stage.live().len(), 2);
        while let Some(pod) = stage.live().pop() {
            stage.exit(&pod, 0);
        }
        stage.ends("Succeeded");
    }
}
