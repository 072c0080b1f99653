//! Blocking and early ends of roles: dependencies, suspension, deadlines.

use octoflow_engine::Command;

use super::stage::Stage;

#[test]
fn a_role_waits_until_every_replica_of_another_is_up() {
    let mut stage = Stage::new("roles: [{name: b, dependsOn: [a]}, {name: a, replicas: 2}]");
    assert_eq!(stage.live(), ["t-a-0-0-0", "t-a-0-0-1"]);
    stage.up("t-a-0-0-1");
    assert_eq!(stage.live().len(), 2);
    stage.up("t-a-0-0-0");
    assert!(stage.live().contains(&"t-b-0-0-0".to_owned()));
}

#[test]
fn a_role_that_was_never_seen_to_run_and_succeeded_lets_others_start() {
    let mut stage = Stage::new("roles: [{name: b, dependsOn: [a]}, {name: a}]");
    stage.exit("t-a-0-0-0", 0);
    assert_eq!(stage.live(), ["t-b-0-0-0"]);
    stage.exit("t-b-0-0-0", 0);
    stage.ends("Succeeded");
}

#[test]
fn a_role_waits_for_success_or_for_any_end() {
    for (condition, code, starts) in
        [("Succeeded", 0, true), ("Succeeded", 1, false), ("Completed", 0, true), ("Completed", 1, true)]
    {
        let quiet = "eventPolicy: [{event: RoleCompleted, action: NoAction}]";
        let mut stage = Stage::new(&format!(
            "roles: [{{name: a, {quiet}}}, {{name: b, {quiet}, dependsOn: [{{role: a, condition: {condition}}}]}}]"
        ));
        stage.up_all();
        assert_eq!(stage.live(), ["t-a-0-0-0"]);
        stage.exit("t-a-0-0-0", code);
        if starts {
            assert_eq!(stage.live(), ["t-b-0-0-0"]);
            stage.exit("t-b-0-0-0", 0);
        }
        assert_eq!(stage.role("b")["state"] == "Succeeded", starts);
        stage.ends(if code == 0 { "Succeeded" } else { "Failed" });
    }
}

#[test]
fn a_role_that_waits_for_what_will_not_come_has_failed() {
    for condition in ["Running", "Succeeded"] {
        let mut stage = Stage::new(&format!(
            "
roles:
- {{name: a, replicas: 2, eventPolicy: [{{event: RoleFailed, action: NoAction}}]}}
- {{name: b, dependsOn: [{{role: a, condition: {condition}}}], eventPolicy: [{{event: RoleFailed, action: NoAction}}]}}
- {{name: c, dependsOn: [{{role: b, condition: Succeeded}}]}}
- {{name: d}}"
        ));
        stage.exit("t-a-0-0-0", 1);
        assert_eq!(stage.role("b")["phase"], "TaskRoleWaiting", "not before the other is over");
        stage.exit("t-a-0-0-1", 1);
        assert_eq!(stage.role("b")["state"], "Failed");
        assert!(stage.role("b")["stateMessage"].as_str().unwrap().contains("waits for role 'a'"));
        assert_eq!(stage.role("c")["state"], "Failed", "and so on down the line");
        stage.leave();
        stage.ends("Failed");
    }
}

#[test]
fn a_role_that_has_started_no_longer_asks_for_what_it_waited_for() {
    let mut stage = Stage::new(
        "
roles:
- {name: a, eventPolicy: [{event: RoleFailed, action: NoAction}]}
- {name: b, replicas: 2, dependsOn: [a], retryPolicy: {retry: true, delay: 5, maxRetryCount: 1},
   eventPolicy: [{event: RoleSucceeded, action: TaskSetSucceeded}]}",
    );
    stage.up("t-a-0-0-0");
    stage.up_all();
    stage.exit("t-a-0-0-0", 1);
    assert!(stage.told_all().is_empty(), "what runs goes on");
    stage.exit("t-b-0-0-0", 1);
    stage.tick(5);
    assert_eq!(stage.live(), ["t-b-0-1-0", "t-b-0-0-1"], "and is tried again");
    stage.suspend();
    stage.resume();
    stage.exit("t-b-0-1-0", 0);
    stage.exit("t-b-0-0-1", 0);
    stage.ends("Succeeded");
}

#[test]
fn a_role_still_queued_when_what_it_waited_for_is_gone_keeps_its_place() {
    let mut stage = Stage::with_slots(
        1,
        "roles: [{name: a, eventPolicy: [{event: RoleFailed, action: NoAction}]}, {name: b, dependsOn: [a]}]",
    );
    stage.up("t-a-0-0-0");
    assert_eq!(stage.replica("b", 0)["phase"], "TaskRoleReplicaAttemptPreparing");
    stage.exit("t-a-0-0-0", 1);
    assert_eq!(stage.live(), ["t-b-0-0-0"]);
    stage.exit("t-b-0-0-0", 0);
    stage.ends("Failed");
}

#[test]
fn a_retry_of_the_whole_asks_again_for_everything() {
    let mut stage = Stage::new(
        "retryPolicy: {retry: true, delay: 0, maxRetryCount: 1}\nroles: [{name: a}, {name: b, dependsOn: [a]}]",
    );
    stage.up("t-a-0-0-0");
    stage.exit("t-b-0-0-0", 1);
    stage.leave();
    assert_eq!(stage.live(), ["t-a-1-0-0"], "the second waits again");
    stage.up("t-a-1-0-0");
    assert_eq!(stage.live(), ["t-a-1-0-0", "t-b-1-0-0"]);
}

const STORY: &str = "
retryPolicy: {retry: true, delay: 7, maxRetryCount: 1}
roles:
- {name: a, replicas: 2, retryPolicy: {retry: true, delay: 5, maxRetryCount: 1}}
- {name: b, dependsOn: [{role: a, condition: Succeeded}]}";

/// One step of a story that tries everything again: a replica, then the whole.
fn step(stage: &mut Stage) {
    let codes = [("t-a-0-0-0", 1), ("t-a-0-0-1", 0), ("t-a-0-1-0", 0), ("t-b-0-0-0", 1)];
    match stage.live().first().cloned() {
        Some(pod) => {
            let code = codes.iter().find(|(name, _)| *name == pod).map_or(0, |(_, code)| *code);
            stage.exit(&pod, code);
        }
        None => {
            let wake = stage.engine.wake_at().expect("something is going to happen");
            stage.tick(wake.since(stage.now).as_secs());
        }
    }
}

#[test]
fn suspending_at_any_moment_only_delays() {
    for moment in 0..12 {
        let mut stage = Stage::new(STORY);
        for _ in 0..moment {
            if !stage.over() {
                step(&mut stage);
            }
        }
        if !stage.over() {
            stage.suspend();
            stage.suspend();
            let started = stage.starts.len();
            for pod in stage.live() {
                stage.exit(&pod, i32::from(pod == "t-a-0-0-0" || pod == "t-b-0-0-0"));
            }
            stage.tick(1000);
            assert_eq!(stage.starts.len(), started, "nothing new is started");
            assert!(stage.over() || stage.live().is_empty());
            if !stage.over() {
                stage.restart();
                stage.resume();
                stage.resume();
            }
        }
        while !stage.over() {
            step(&mut stage);
        }
        stage.ends("Succeeded");
        assert_eq!(stage.starts.len(), 7, "suspended at {moment}: {:?}", stage.names());
    }
}

#[test]
fn what_is_submitted_suspended_waits_and_can_be_ended() {
    let mut stage = Stage::new("suspend: true\nroles: [{name: a}]");
    assert_eq!((stage.word(), stage.status()["phase"].clone()), ("Waiting".into(), "TaskSetAttemptPending".into()));
    stage.restart();
    stage.resume();
    stage.exit("t-a-0-0-0", 0);
    stage.ends("Succeeded");
    let mut stage = Stage::new("suspend: true\nroles: [{name: a}]");
    stage.command(Command::Stop).unwrap();
    stage.ends("Failed");
    assert!(stage.status()["controlUnitName"].is_null());
}

#[test]
fn what_is_queued_gives_its_place_up_while_suspended() {
    let mut stage = Stage::with_slots(1, "roles: [{name: a, replicas: 3}]");
    stage.suspend();
    assert_eq!(stage.replica("a", 1)["phase"], "TaskRoleReplicaAttemptPending");
    stage.exit("t-a-0-0-0", 0);
    assert_eq!(stage.live(), [] as [&str; 0]);
    stage.resume();
    assert_eq!(stage.live(), ["t-a-0-0-1"]);
    stage.suspend();
    stage.resume();
    stage.exit("t-a-0-0-1", 0);
    stage.exit("t-a-0-0-2", 0);
    stage.ends("Succeeded");
    assert_eq!(stage.starts.len(), 3);
}

#[test]
fn a_manifest_that_says_it_is_to_be_ended_is_never_begun() {
    let mut stage = Stage::new("shutdown: Terminate\nroles: [{name: a}]");
    stage.ends("Failed");
    assert_eq!(stage.names(), [] as [&str; 0]);
    stage.tick(10);
}

#[test]
fn the_deadline_of_the_whole_ends_it_wherever_it_is() {
    let spec = |more: &str| format!("activeDeadlineSeconds: 30\n{more}\nroles: [{{name: a, replicas: 2}}]");
    // While it runs.
    let mut stage = Stage::new(&spec("retryPolicy: {retry: true, delay: 0, maxRetryCount: 9}"));
    stage.up_all();
    stage.tick(30);
    assert_eq!(stage.told_all().len(), 2);
    stage.leave();
    stage.ends("Failed");
    assert!(stage.status()["stateMessage"].as_str().unwrap().starts_with("DeadlineExceeded"));
    // While it waits for its next attempt.
    let mut stage = Stage::new(&spec("retryPolicy: {retry: true, delay: 100, maxRetryCount: 9}"));
    stage.exit("t-a-0-0-0", 1);
    stage.leave();
    stage.tick(30);
    stage.ends("Failed");
    // While it is suspended.
    let mut stage = Stage::new(&spec(""));
    stage.suspend();
    stage.tick(30);
    stage.leave();
    stage.ends("Failed");
    // While its verdict is being carried out, which it does not change.
    let mut stage = Stage::new(
        "activeDeadlineSeconds: 30\n\
         roles: [{name: a, eventPolicy: [{event: RoleSucceeded, action: TaskSetSucceeded}]}, {name: b}]",
    );
    stage.exit("t-a-0-0-0", 0);
    stage.tick(40);
    stage.leave();
    stage.ends("Succeeded");
}

#[test]
fn the_deadline_of_a_pod_is_a_failure_of_its_own() {
    let mut stage = Stage::new(
        "
roles:
- name: a
  replicas: 2
  retryPolicy: {retry: true, delay: 1, maxRetryCount: 1}
  template: {spec: {activeDeadlineSeconds: 10, containers: [{name: m, image: i, command: [c]}]}}",
    );
    stage.up("t-a-0-0-0");
    stage.tick(4);
    stage.exit("t-a-0-0-1", 0);
    stage.tick(6);
    assert_eq!(stage.told_all(), ["t-a-0-0-0"]);
    stage.exit("t-a-0-0-0", 0);
    assert_eq!(stage.replica("a", 0)["podReason"], "DeadlineExceeded");
    stage.tick(1);
    assert_eq!(stage.live(), ["t-a-0-1-0"], "it has a new deadline");
    stage.tick(9);
    assert!(stage.told_all().is_empty());
    stage.exit("t-a-0-1-0", 0);
    stage.ends("Succeeded");
}
