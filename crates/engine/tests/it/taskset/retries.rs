//! Trying again: replicas by their role's policy, the whole by its own, and what is worth another try.

use octoflow_engine::Command;
use octoflow_model::{
    order::Exit,
    taskset::{RolePhase, StopReason},
};

use super::stage::Stage;

#[test]
fn ts16_a_replica_is_tried_again_after_its_delay_and_nobody_else_is_touched() {
    let mut stage = Stage::new(
        "roles: [{name: a, replicas: 3, completionPolicy: {maxFailed: 1, minSucceeded: 3}, \
         retryPolicy: {retry: true, delay: 10, maxRetryCount: 2}}]",
    );
    stage.up_all();
    stage.exit("t-a-0-0-1", 1);
    assert_eq!(stage.replica("a", 1)["phase"], "TaskRoleReplicaAttemptRetryPending");
    stage.tick(9);
    assert_eq!(stage.live(), ["t-a-0-0-0", "t-a-0-0-2"], "too early");
    stage.tick(1);
    assert_eq!(stage.live(), ["t-a-0-0-0", "t-a-0-1-1", "t-a-0-0-2"]);
    stage.exit("t-a-0-1-1", 1);
    stage.tick(10);
    assert_eq!(stage.replica("a", 1)["totalRetriedCount"], 2);
    assert!(stage.told_all().is_empty());
    stage.exit("t-a-0-2-1", 1);
    assert_eq!(stage.told_all(), ["t-a-0-0-0", "t-a-0-0-2"], "it counts as failed once");
    stage.leave();
    stage.ends("Failed");
    assert_eq!(stage.state().roles[0].failed, 1);
    let waits: Vec<u64> = stage.starts.iter().skip(2).map(|(at, _)| at.since(crate::play::DAWN).as_secs()).collect();
    assert_eq!(waits, [0, 10, 20]);
}

#[test]
fn ts17_what_ends_well_is_never_tried_again() {
    let mut stage = Stage::new(
        "roles: [{name: a, replicas: 2, retryPolicy: {retry: true, delay: 0, maxRetryCount: 5}, \
         completionPolicy: {maxFailed: -1, minSucceeded: 2}}]",
    );
    stage.exit("t-a-0-0-0", 0);
    stage.tick(100);
    assert_eq!(stage.live(), ["t-a-0-0-1"]);
    stage.exit("t-a-0-0-1", 0);
    stage.ends("Succeeded");
}

#[test]
fn a_policy_that_is_off_or_counts_to_nothing_retries_nothing() {
    for policy in ["{retry: false, delay: 0, maxRetryCount: 5}", "{retry: true, delay: 0, maxRetryCount: 0}"] {
        let mut stage = Stage::new(&format!("retryPolicy: {policy}\nroles: [{{name: a, retryPolicy: {policy}}}]"));
        stage.exit("t-a-0-0-0", 1);
        stage.ends("Failed");
        assert_eq!(stage.starts.len(), 1);
    }
}

#[test]
fn ts19_a_verdict_ends_those_who_wait_to_be_tried_again_and_those_being_started() {
    let mut stage = Stage::new(
        "roles: [{name: a, replicas: 4, completionPolicy: {maxFailed: 4, minSucceeded: 1}, \
         retryPolicy: {retry: true, delay: 3600, maxRetryCount: 1}}]",
    );
    stage.up("t-a-0-0-3");
    stage.exit("t-a-0-0-0", 1);
    assert_eq!(stage.replica("a", 1)["phase"], "TaskRoleReplicaAttemptAssigned");
    stage.exit("t-a-0-0-2", 0);
    assert_eq!(stage.told_all(), ["t-a-0-0-1", "t-a-0-0-3"]);
    assert_eq!(stage.replica("a", 0)["phase"], "TaskRoleReplicaCompleted");
    assert_eq!(stage.replica("a", 0)["stopped"], true);
    stage.leave();
    stage.ends("Succeeded");
    assert_eq!(stage.engine.wake_at(), None, "nothing is left to wait for");
}

#[test]
fn one_final_replica_beside_others_that_all_wait_to_be_tried_again_is_no_dead_end() {
    // The original never comes back from this: seed example one, a success and two delays.
    let mut stage = Stage::new(
        "roles: [{name: a, replicas: 3, completionPolicy: {maxFailed: 2, minSucceeded: 2}, \
         retryPolicy: {retry: true, delay: 10, maxRetryCount: 2}}]",
    );
    stage.exit("t-a-0-0-0", 0);
    stage.exit("t-a-0-0-1", 1);
    stage.exit("t-a-0-0-2", 1);
    assert_eq!(stage.live(), [] as [&str; 0]);
    assert_eq!(stage.state().roles[0].phase, RolePhase::Running);
    stage.tick(10);
    assert_eq!(stage.live(), ["t-a-0-1-1", "t-a-0-1-2"]);
    stage.exit("t-a-0-1-2", 0);
    stage.leave();
    stage.ends("Succeeded");
}

#[test]
fn ts21_the_whole_is_tried_again_under_a_new_control_unit() {
    let mut stage =
        Stage::new("retryPolicy: {retry: true, delay: 5, maxRetryCount: 2}\nroles: [{name: a, replicas: 2}]");
    let first = stage.now;
    let mut units = Vec::new();
    for attempt in 0..3 {
        stage.up_all();
        let status = stage.status();
        assert_eq!((&status["totalRetriedCount"], &status["state"]), (&attempt.into(), &"Running".into()));
        assert_eq!(stage.replica("a", 1)["totalRetriedCount"], 0, "replicas start afresh");
        units.push((status["controlUnitName"].clone(), status["controlUnitUID"].clone()));
        stage.exit(&format!("t-a-{attempt}-0-0"), 1);
        stage.leave();
        if attempt < 2 {
            assert_eq!(stage.status()["phase"], "TaskSetAttemptRetryPending");
            stage.tick(4);
            assert_eq!(stage.live(), [] as [&str; 0]);
            stage.tick(1);
        }
    }
    stage.ends("Failed");
    let names: Vec<&str> = units.iter().filter_map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["c-t-0", "c-t-1", "c-t-2"]);
    assert!(units[0].1 != units[1].1 && units[1].1 != units[2].1);
    assert_eq!(stage.status()["totalRetriedCount"], 2);
    assert_eq!(stage.status()["startAt"], first.to_string());
    assert_eq!(stage.names(), ["t-a-0-0-0", "t-a-0-0-1", "t-a-1-0-0", "t-a-1-0-1", "t-a-2-0-0", "t-a-2-0-1"]);
}

#[test]
fn ts22_a_success_is_not_tried_again() {
    let mut stage = Stage::new(
        "retryPolicy: {retry: true, delay: 0, maxRetryCount: 3}\n\
         roles: [{name: a, eventPolicy: [{event: RoleSucceeded, action: TaskSetSucceeded}]}, {name: b}]",
    );
    stage.exit("t-a-0-0-0", 0);
    stage.leave();
    stage.ends("Succeeded");
    assert_eq!(stage.status()["totalRetriedCount"], 0);
}

#[test]
fn a_failure_by_policy_is_tried_again_too() {
    let mut stage = Stage::new(
        "retryPolicy: {retry: true, delay: 0, maxRetryCount: 1}\n\
         roles: [{name: a, eventPolicy: [{event: RoleSucceeded, action: TaskSetFailed}]}]",
    );
    stage.exit("t-a-0-0-0", 0);
    assert_eq!(stage.live(), ["t-a-1-0-0"]);
    stage.exit("t-a-1-0-0", 0);
    stage.ends("Failed");
}

#[test]
fn ts23_a_pod_that_is_deleted_evicted_or_lost_counts_as_failed_and_says_why() {
    let spec = "roles: [{name: a, replicas: 2, retryPolicy: {retry: true, delay: 1, maxRetryCount: 1}}]";
    for (why, word) in [(Some(StopReason::Deleted), "Deleted"), (Some(StopReason::Evicted), "Evicted"), (None, "Lost")]
    {
        let mut stage = Stage::new(spec);
        stage.up_all();
        for retried in 0..2 {
            let pod = format!("t-a-0-{retried}-0");
            match why {
                Some(why) => {
                    stage.evict(&pod, why);
                    assert_eq!(stage.told_all(), [pod.as_str()]);
                    // It succeeds, and still counts as failed: it was evicted.
                    stage.exit(&pod, 0);
                }
                None => stage.lose(&pod),
            }
            let reason = stage.replica("a", 0)["podReason"].clone();
            assert!(reason.as_str().unwrap().starts_with(word), "{reason}");
            stage.tick(1);
        }
        assert_eq!(stage.told_all(), ["t-a-0-0-1"]);
        stage.leave();
        stage.ends("Failed");
    }
}

#[test]
fn a_pod_that_could_not_be_started_has_failed() {
    let mut stage = Stage::new("roles: [{name: a, retryPolicy: {retry: true, delay: 1, maxRetryCount: 1}}]");
    stage.end("t-a-0-0-0", Exit::Environment("no such volume".into()), None);
    assert_eq!(stage.replica("a", 0)["podReason"], "CreateContainerError: no such volume");
    assert!(stage.replica("a", 0)["terminatedInfo"].is_null());
    stage.tick(1);
    stage.end("t-a-0-1-0", Exit::NotStarted("not found".into()), None);
    stage.ends("Failed");
    assert_eq!(stage.replica("a", 0)["terminatedInfo"]["reason"], "StartError");
}

#[test]
fn a_pod_that_cannot_be_described_has_failed_without_a_runtime() {
    let pod = "template: {spec: {containers: [{name: m, image: i, command: [c], env: [{name: X, valueFrom: \
               {configMapKeyRef: {name: gone, key: k}}}]}]}}";
    let mut stage = Stage::new(&format!(
        "roles: [{{name: a, retryPolicy: {{retry: true, delay: 5, maxRetryCount: 1}}, {pod}}}, {{name: b}}]"
    ));
    assert_eq!(stage.names(), ["t-b-0-0-0"]);
    assert_eq!(stage.replica("a", 0)["phase"], "TaskRoleReplicaAttemptRetryPending");
    stage.tick(5);
    stage.leave();
    stage.ends("Failed");
    assert!(stage.replica("a", 0)["podReason"].as_str().unwrap().starts_with("CreateContainerConfigError: "));
}

#[test]
fn exit_codes_say_what_is_worth_another_try() {
    let spec = |codes: &str| {
        format!("roles: [{{name: a, retryPolicy: {{retry: true, delay: 0, maxRetryCount: 3, {codes}}}}}]")
    };
    let mut stage = Stage::new(&spec("retryableExitCodes: [75, '137-143']"));
    stage.exit("t-a-0-0-0", 75);
    stage.end("t-a-0-1-0", Exit::Signal(9), None);
    stage.lose("t-a-0-2-0");
    stage.exit("t-a-0-3-0", 75);
    stage.ends("Failed");
    let mut stage = Stage::new(&spec("retryableExitCodes: [75]"));
    stage.exit("t-a-0-0-0", 1);
    stage.ends("Failed");
    let mut stage = Stage::new(&spec("permanentExitCodes: ['2-9']"));
    stage.exit("t-a-0-0-0", 1);
    // Who was wanted gone did not end by its code.
    stage.evict("t-a-0-1-0", StopReason::Evicted);
    stage.exit("t-a-0-1-0", 3);
    stage.exit("t-a-0-2-0", 3);
    stage.ends("Failed");
}

#[test]
fn the_attempt_fails_with_its_control_unit_and_is_tried_again() {
    let mut stage =
        Stage::new("retryPolicy: {retry: true, delay: 0, maxRetryCount: 1}\nroles: [{name: a, replicas: 2}]");
    stage.exit("t-a-0-0-0", 0);
    stage.command(Command::Disband { unit: "c-other-0".into() }).unwrap();
    assert!(stage.told_all().is_empty(), "that is somebody else's");
    stage.command(Command::Disband { unit: "c-t-0".into() }).unwrap();
    assert_eq!(stage.told_all(), ["t-a-0-0-1"]);
    stage.command(Command::Disband { unit: "c-t-0".into() }).unwrap();
    stage.exit("t-a-0-0-1", 0);
    assert_eq!(stage.live(), ["t-a-1-0-0", "t-a-1-0-1"]);
    stage.command(Command::Disband { unit: "c-t-0".into() }).unwrap();
    assert!(stage.told_all().is_empty(), "the old unit is gone already");
    stage.exit("t-a-1-0-0", 0);
    stage.exit("t-a-1-0-1", 0);
    stage.ends("Succeeded");
}

#[test]
fn a_pod_that_cannot_be_described_is_not_tried_again_without_a_pause() {
    let mut stage = Stage::new(
        "roles: [{name: a, retryPolicy: {retry: true, delay: 0, maxRetryCount: 1000000}, template: {spec: {containers: \
         [{name: main, image: busybox, envFrom: [{configMapRef: {name: missing}}]}]}}}]",
    );
    stage.tick(3);
    let retried = stage.replica("a", 0)["totalRetriedCount"].as_u64().unwrap();
    assert!((1..=3).contains(&retried), "{retried} tries in three seconds");
    let mut stage = Stage::new(
        "retryPolicy: {retry: true, delay: 0, maxRetryCount: 1000000}\nroles: [{name: a, template: {spec: {containers: \
         [{name: main, image: busybox, envFrom: [{configMapRef: {name: missing}}]}]}}}]",
    );
    stage.tick(3);
    assert!((1..=3).contains(&stage.state().attempt), "{} attempts in three seconds", stage.state().attempt);
}
