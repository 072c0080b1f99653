//! Verdicts on roles and on the whole: completion policies, event policies, and verdicts that never change.

use octoflow_model::order::Exit;

use super::stage::Stage;

const SEED_ONE: &str = "
retryPolicy: {retry: false, maxRetryCount: 1}
roles:
- name: ps
  replicas: 1
  completionPolicy: {maxFailed: 1, minSucceeded: 1}
  retryPolicy: {retry: false, delay: 60, maxRetryCount: 1}
- name: worker
  replicas: 3
  eventPolicy: [{event: RoleSucceeded, action: TaskSetSucceeded}]
  completionPolicy: {maxFailed: 2, minSucceeded: 2}
  retryPolicy: {retry: true, delay: 10, maxRetryCount: 2}";

#[test]
fn ts01_a_role_that_succeeds_can_end_the_whole() {
    let mut stage = Stage::new(SEED_ONE);
    assert_eq!(stage.names(), ["t-ps-0-0-0", "t-worker-0-0-0", "t-worker-0-0-1", "t-worker-0-0-2"]);
    assert_eq!(stage.word(), "Waiting");
    stage.up_all();
    assert_eq!(stage.word(), "Running");
    stage.exit("t-worker-0-0-0", 0);
    assert!(stage.told_all().is_empty());
    stage.exit("t-worker-0-0-2", 0);
    assert_eq!(stage.told_all(), ["t-worker-0-0-1"], "the role is decided, the whole is not before its pods are gone");
    stage.exit("t-worker-0-0-1", 0);
    assert_eq!(stage.told_all(), ["t-ps-0-0-0"]);
    assert_eq!(stage.status()["phase"], "TaskSetAttemptDeletionRequested");
    assert!(stage.status()["finishAt"].is_null());
    stage.leave();
    stage.ends("Succeeded");
    assert_eq!(stage.status()["phase"], "TaskSetCompleted");
    assert_eq!(stage.role("worker")["state"], "Succeeded");
    assert_eq!(stage.replica("ps", 0)["stopped"], true);
}

#[test]
fn ts06_success_is_asked_for_first() {
    let mut stage = Stage::new("roles: [{name: a, replicas: 3, completionPolicy: {maxFailed: 2, minSucceeded: 2}}]");
    stage.exit("t-a-0-0-0", 1);
    stage.exit("t-a-0-0-1", 0);
    assert!(!stage.over());
    stage.exit("t-a-0-0-2", 0);
    stage.ends("Succeeded");
}

#[test]
fn ts06_two_failures_are_too_many() {
    let mut stage = Stage::new("roles: [{name: a, replicas: 3, completionPolicy: {maxFailed: 2, minSucceeded: 2}}]");
    stage.exit("t-a-0-0-0", 1);
    stage.exit("t-a-0-0-1", 1);
    assert_eq!(stage.told_all(), ["t-a-0-0-2"]);
    stage.leave();
    stage.ends("Failed");
    assert!(stage.status()["stateMessage"].as_str().unwrap().contains("role 'a' failed: 2 of 3 replicas failed"));
}

#[test]
fn ts07_where_both_thresholds_are_met_it_has_succeeded() {
    // Nothing is decided while suspended pods end; both counts are there when the last one does.
    let mut stage = Stage::new("roles: [{name: a, replicas: 1, completionPolicy: {maxFailed: 1, minSucceeded: 1}}]");
    stage.exit("t-a-0-0-0", 0);
    stage.ends("Succeeded");
    let mut stage = Stage::new("roles: [{name: a, replicas: 2, completionPolicy: {maxFailed: 2, minSucceeded: 1}}]");
    stage.exit("t-a-0-0-0", 1);
    stage.exit("t-a-0-0-1", 0);
    stage.ends("Succeeded");
}

#[test]
fn ts08_a_failed_role_fails_the_whole_as_soon_as_it_is_over() {
    let mut stage = Stage::new("roles: [{name: a, replicas: 2}, {name: b, replicas: 2}, {name: c}]");
    stage.up_all();
    stage.exit("t-c-0-0-0", 0);
    stage.exit("t-b-0-0-1", 3);
    assert_eq!(stage.told_all(), ["t-b-0-0-0"], "only its own pods end before it is over");
    stage.leave();
    assert_eq!(stage.told_all(), ["t-a-0-0-0", "t-a-0-0-1"]);
    stage.leave();
    stage.ends("Failed");
    assert_eq!(stage.role("c")["state"], "Succeeded");
    assert_eq!(stage.role("b")["state"], "Failed");
}

#[test]
fn ts09_all_roles_must_succeed_and_the_last_one_ends_the_whole() {
    let mut stage = Stage::new("roles: [{name: a}, {name: b}]");
    stage.exit("t-b-0-0-0", 0);
    assert!(!stage.over());
    assert_eq!(stage.live(), ["t-a-0-0-0"]);
    stage.exit("t-a-0-0-0", 0);
    stage.ends("Succeeded");
    assert_eq!(stage.status()["stateMessage"], "all roles succeeded");
}

#[test]
fn ts10_a_failure_without_an_action_lets_the_others_go_on() {
    let mut stage = Stage::new(
        "
roles:
- {name: one, eventPolicy: [{event: RoleSucceeded, action: TaskSetSucceeded}]}
- {name: two, eventPolicy: [{event: RoleFailed, action: NoAction}]}",
    );
    stage.exit("t-two-0-0-0", 1);
    assert!(!stage.over());
    assert!(stage.told_all().is_empty());
    stage.exit("t-one-0-0-0", 0);
    stage.ends("Succeeded");
    assert_eq!(stage.role("two")["state"], "Failed");
}

#[test]
fn ts11_all_over_and_not_all_succeeded_is_a_failure() {
    let mut stage = Stage::new("roles: [{name: a, eventPolicy: [{event: RoleFailed, action: NoAction}]}]");
    stage.exit("t-a-0-0-0", 1);
    stage.ends("Failed");
    assert!(stage.status()["stateMessage"].as_str().unwrap().starts_with("all roles are over and role 'a' failed"));
}

#[test]
fn ts12_where_nobody_speaks_of_failure_it_fails_the_whole() {
    let mut stage =
        Stage::new("roles: [{name: a, eventPolicy: [{event: RoleSucceeded, action: TaskSetSucceeded}]}, {name: b}]");
    stage.exit("t-a-0-0-0", 1);
    stage.leave();
    stage.ends("Failed");
}

#[test]
fn ts13_a_role_without_an_action_is_cleaned_up_and_the_rest_goes_on() {
    let mut stage = Stage::new(
        "roles: [{name: a, replicas: 3, eventPolicy: [{event: RoleCompleted, action: NoAction}]}, {name: b}]",
    );
    stage.up_all();
    stage.exit("t-a-0-0-1", 1);
    assert_eq!(stage.told_all(), ["t-a-0-0-0", "t-a-0-0-2"]);
    assert_eq!(stage.role("a")["phase"], "TaskRoleCleaningPending");
    stage.leave();
    assert_eq!(stage.role("a")["phase"], "TaskRoleCompleted");
    assert_eq!(stage.live(), ["t-b-0-0-0"]);
    stage.exit("t-b-0-0-0", 0);
    stage.ends("Failed");
}

#[test]
fn ts15_a_whole_that_ends_with_a_role_ends_as_the_role_did() {
    for (code, word) in [(0, "Succeeded"), (1, "Failed")] {
        let mut stage = Stage::new(
            "roles: [{name: a, eventPolicy: [{event: RoleCompleted, action: TaskSetCompleted}]}, {name: b}]",
        );
        stage.exit("t-a-0-0-0", code);
        assert_eq!(stage.told_all(), ["t-b-0-0-0"]);
        stage.leave();
        stage.ends(word);
    }
}

#[test]
fn an_event_without_an_action_does_not_keep_later_rules_from_speaking() {
    let rules = "[{event: RoleFailed, action: NoAction}, {event: RoleCompleted, action: TaskSetSucceeded}]";
    let mut stage = Stage::new(&format!("roles: [{{name: a, eventPolicy: {rules}}}, {{name: b}}]"));
    stage.exit("t-a-0-0-0", 1);
    stage.leave();
    stage.ends("Succeeded");
}

#[test]
fn a_failure_can_be_called_a_success_and_the_other_way_round() {
    let mut stage = Stage::new("roles: [{name: a, eventPolicy: [{event: RoleFailed, action: TaskSetSucceeded}]}]");
    stage.exit("t-a-0-0-0", 1);
    stage.ends("Succeeded");
    let mut stage = Stage::new("roles: [{name: a, eventPolicy: [{event: RoleSucceeded, action: TaskSetFailed}]}]");
    stage.exit("t-a-0-0-0", 0);
    stage.ends("Failed");
}

#[test]
fn the_first_role_as_they_are_written_decides_when_two_end_at_once() {
    // The second fails by what the first one's end means for it, in the same moment.
    let mut stage = Stage::new(
        "
roles:
- {name: late, dependsOn: [{role: early, condition: Succeeded}], eventPolicy: [{event: RoleFailed, action: TaskSetSucceeded}]}
- {name: early, eventPolicy: [{event: RoleFailed, action: NoAction}]}
- {name: other}",
    );
    stage.exit("t-early-0-0-0", 1);
    stage.leave();
    stage.ends("Succeeded");
}

#[test]
fn what_a_role_says_of_its_end_comes_before_those_who_waited_for_it() {
    let mut stage = Stage::new(
        "
roles:
- {name: late, dependsOn: [{role: early, condition: Succeeded}]}
- {name: early, eventPolicy: [{event: RoleFailed, action: TaskSetSucceeded}]}",
    );
    stage.exit("t-early-0-0-0", 1);
    stage.ends("Succeeded");
}

#[test]
fn survivors_that_end_well_when_they_are_told_to_do_not_turn_a_verdict() {
    let mut stage = Stage::new("roles: [{name: a, replicas: 3, completionPolicy: {maxFailed: 1, minSucceeded: 2}}]");
    stage.up_all();
    stage.exit("t-a-0-0-0", 1);
    for pod in ["t-a-0-0-1", "t-a-0-0-2"] {
        stage.exit(pod, 0);
    }
    stage.ends("Failed");
    assert_eq!((stage.state().roles[0].succeeded, stage.state().roles[0].failed), (0, 1));
    // Nor do survivors that fail on the signal turn a success.
    let mut stage = Stage::new("roles: [{name: a, replicas: 3, completionPolicy: {maxFailed: 1, minSucceeded: 1}}]");
    stage.exit("t-a-0-0-1", 0);
    stage.exit("t-a-0-0-0", 1);
    stage.end("t-a-0-0-2", Exit::Signal(9), None);
    stage.ends("Succeeded");
}

#[test]
fn a_whole_whose_verdict_is_reached_ends_so_though_its_last_pods_say_otherwise() {
    let mut stage =
        Stage::new("roles: [{name: a, eventPolicy: [{event: RoleSucceeded, action: TaskSetSucceeded}]}, {name: b}]");
    stage.exit("t-a-0-0-0", 0);
    stage.exit("t-b-0-0-0", 1);
    stage.ends("Succeeded");
    let mut stage = Stage::new("roles: [{name: a}, {name: b}]");
    stage.exit("t-a-0-0-0", 1);
    stage.exit("t-b-0-0-0", 0);
    stage.ends("Failed");
}

#[test]
fn a_role_nothing_can_decide_any_more_has_failed() {
    let mut stage = Stage::new("roles: [{name: a, replicas: 3, completionPolicy: {maxFailed: 3, minSucceeded: 2}}]");
    for (pod, code) in [("t-a-0-0-0", 1), ("t-a-0-0-1", 0), ("t-a-0-0-2", 1)] {
        stage.exit(pod, code);
    }
    stage.ends("Failed");
    assert!(stage.status()["stateMessage"].as_str().unwrap().contains("neither minSucceeded 2 nor maxFailed decides"));
}

#[test]
fn a_criterion_that_is_off_never_decides() {
    let mut stage = Stage::new("roles: [{name: a, replicas: 2, completionPolicy: {maxFailed: 2, minSucceeded: -1}}]");
    stage.exit("t-a-0-0-0", 0);
    stage.exit("t-a-0-0-1", 1);
    stage.ends("Succeeded");
    let mut stage = Stage::new("roles: [{name: a, replicas: 2, completionPolicy: {maxFailed: -1, minSucceeded: 1}}]");
    stage.exit("t-a-0-0-0", 1);
    assert!(!stage.over());
    stage.exit("t-a-0-0-1", 1);
    stage.ends("Failed");
    let mut stage = Stage::new("roles: [{name: a, replicas: 2, completionPolicy: {maxFailed: -1, minSucceeded: -1}}]");
    stage.exit("t-a-0-0-0", 1);
    stage.exit("t-a-0-0-1", 1);
    stage.ends("Succeeded");
}

#[test]
fn ts04_no_tolerance_means_that_the_first_failure_decides() {
    let mut stage = Stage::new("roles: [{name: a, replicas: 2, completionPolicy: {maxFailed: 0, minSucceeded: 2}}]");
    assert_eq!(stage.live().len(), 2, "it does not fail before a pod has");
    stage.exit("t-a-0-0-0", 0);
    assert!(!stage.over());
    stage.exit("t-a-0-0-1", 1);
    stage.ends("Failed");
}
