//! Gangs: members start together or not at all, in one TaskSet or across several.

use octoflow_engine::{Capacity, Command, taskset::explain::explain};
use octoflow_model::RunId;

use super::stage::{Groups, Stage};
use crate::play::{ROOMY, RUN};

fn role(name: &str, replicas: u32, more: &str) -> String {
    format!(
        "{{name: {name}, replicas: {replicas}, template: {{metadata: {{annotations: \
         {{scheduling.k8s.io/group-name: g}}}}}}, {more}}}"
    )
}

fn stage(slots: usize) -> Stage {
    Stage::empty(Capacity { slots, ..ROOMY })
}

#[test]
fn all_of_a_gang_go_or_none() {
    let mut stage = stage(4);
    stage.submit(2, "roles: [{name: x}]", &Groups::default());
    let roles = format!("roles: [{}, {}]", role("ps", 1, ""), role("worker", 3, ""));
    stage.submit(1, &roles, &Groups::default());
    assert_eq!(stage.live(), ["t2-x-0-0-0"], "three places are free and four are wanted");
    stage.exit("t2-x-0-0-0", 0);
    assert_eq!(stage.live().len(), 4);
}

#[test]
fn a_gang_larger_than_the_machine_gets_the_whole_of_it() {
    let mut stage = stage(2);
    stage.submit(1, &format!("roles: [{}]", role("a", 5, "")), &Groups::default());
    assert_eq!(stage.live().len(), 5);
    stage.submit(2, "roles: [{name: x}]", &Groups::default());
    for index in 0..5 {
        stage.exit(&format!("t-a-0-0-{index}"), 0);
    }
    assert_eq!(stage.live(), ["t2-x-0-0-0"]);
}

#[test]
fn a_group_that_wants_fewer_starts_with_fewer() {
    let mut stage = stage(9);
    let spec = format!("roles: [{{name: x}}, {}, {}]", role("a", 2, ""), role("b", 2, "dependsOn: [x]"));
    stage.submit(1, &spec, &Groups(vec![("g", 2)]));
    assert_eq!(stage.live(), ["t-x-0-0-0", "t-a-0-0-0", "t-a-0-0-1"]);
    stage.up("t-x-0-0-0");
    assert_eq!(stage.live().len(), 5, "the others follow when they may");
}

#[test]
fn a_gang_gathers_across_two_task_sets() {
    let mut stage = stage(9);
    let groups = || Groups(vec![("g", 3)]);
    stage.submit(1, &format!("roles: [{}]", role("a", 1, "")), &groups());
    assert_eq!(stage.live(), [] as [&str; 0]);
    let told = explain(stage.run(RUN), Some(stage.engine.scheduler()));
    assert!(told.iter().any(|one| one.reason == "waits for its gang 'g': 1 of 3 members are there"), "{told:?}");
    stage.restart();
    stage.submit(2, &format!("roles: [{}]", role("b", 2, "")), &groups());
    assert_eq!(stage.live(), ["t-a-0-0-0", "t2-b-0-0-0", "t2-b-0-0-1"]);
}

#[test]
fn a_gang_across_two_task_sets_does_not_start_without_the_one_that_was_held() {
    let mut stage = stage(2);
    stage.submit(3, "roles: [{name: x, replicas: 2}]", &Groups::default());
    let groups = || Groups(vec![("g", 2)]);
    stage.submit(1, &format!("roles: [{}]", role("a", 1, "")), &groups());
    stage.submit(2, &format!("roles: [{}]", role("b", 1, "")), &groups());
    // They are complete and wait for room when one of them is held.
    stage.suspend();
    stage.exit("t3-x-0-0-0", 0);
    stage.exit("t3-x-0-0-1", 0);
    assert_eq!(stage.live(), [] as [&str; 0], "one of two is not all");
    stage.resume();
    assert_eq!(stage.live(), ["t-a-0-0-0", "t2-b-0-0-0"]);
}

#[test]
fn a_gang_loses_those_whose_task_set_is_ended_while_it_waits_for_room() {
    let mut stage = stage(2);
    stage.submit(3, "roles: [{name: x, replicas: 2}]", &Groups::default());
    let groups = || Groups(vec![("g", 2)]);
    stage.submit(1, &format!("roles: [{}]", role("a", 1, "")), &groups());
    stage.submit(2, &format!("roles: [{}]", role("b", 1, "")), &groups());
    stage.command(Command::Terminate).unwrap();
    stage.exit("t3-x-0-0-0", 0);
    stage.exit("t3-x-0-0-1", 0);
    assert_eq!(stage.live(), [] as [&str; 0]);
    stage.submit(4, &format!("roles: [{}]", role("c", 1, "")), &groups());
    assert_eq!(stage.live(), ["t2-b-0-0-0", "t4-c-0-0-0"]);
}

#[test]
fn a_replica_that_is_tried_again_joins_those_that_run() {
    let mut stage = stage(3);
    let retry = "retryPolicy: {retry: true, delay: 0, maxRetryCount: 1}";
    stage.submit(1, &format!("roles: [{}]", role("a", 3, retry)), &Groups::default());
    stage.exit("t-a-0-0-1", 1);
    assert_eq!(stage.live(), ["t-a-0-0-0", "t-a-0-1-1", "t-a-0-0-2"]);
}

#[test]
fn a_retry_of_the_whole_gathers_the_gang_anew() {
    let mut stage = stage(9);
    let spec = format!(
        "retryPolicy: {{retry: true, delay: 5, maxRetryCount: 2}}\nroles: [{{name: x}}, {{name: z}}, {}, {}, {}]",
        role("a", 1, "dependsOn: [x]"),
        role("b", 1, "dependsOn: [x]"),
        role("c", 1, "dependsOn: [{role: z, condition: Succeeded}]")
    );
    stage.submit(1, &spec, &Groups(vec![("g", 2)]));
    stage.up("t-x-0-0-0");
    assert_eq!(stage.live().len(), 4, "two of three are enough");
    stage.exit("t-a-0-0-0", 1);
    stage.leave();
    for restarted in [false, true] {
        if restarted {
            stage.restart();
        }
        stage.tick(5);
        let attempt = if restarted { 2 } else { 1 };
        // The third comes first this time, and must wait for one of the others.
        stage.exit(&format!("t-z-{attempt}-0-0"), 0);
        assert_eq!(stage.live(), [format!("t-x-{attempt}-0-0")]);
        stage.up(&format!("t-x-{attempt}-0-0"));
        assert_eq!(stage.live().len(), 4);
        stage.exit(&format!("t-a-{attempt}-0-0"), 1);
        stage.leave();
    }
    stage.ends("Failed");
}

#[test]
fn held_while_it_waits_for_room_and_let_go_it_starts_once() {
    let mut stage = stage(3);
    stage.submit(2, "roles: [{name: x}]", &Groups::default());
    stage.submit(1, &format!("roles: [{}]", role("a", 3, "")), &Groups::default());
    stage.suspend();
    stage.resume();
    stage.suspend();
    stage.exit("t2-x-0-0-0", 0);
    assert_eq!(stage.live(), [] as [&str; 0]);
    stage.resume();
    assert_eq!(stage.live().len(), 3);
    for index in 0..3 {
        stage.exit(&format!("t-a-0-0-{index}"), 0);
    }
    stage.ends("Succeeded");
}

#[test]
fn members_that_cannot_be_described_do_not_take_room_nor_raise_the_dead() {
    let mut stage = stage(9);
    let spec = "roles: [{name: a, replicas: 3, template: {metadata: {annotations: {scheduling.k8s.io/group-name: g}}, \
                spec: {containers: [{name: m, image: i, command: [c], env: [{name: X, valueFrom: {configMapKeyRef: \
                {name: gone, key: k}}}]}]}}}]";
    stage.submit(1, spec, &Groups::default());
    // The first one fails the role; the others were chosen with it and are over by then.
    stage.ends("Failed");
    assert_eq!(stage.names(), [] as [&str; 0]);
    assert_eq!(stage.engine.scheduler().running(), 0);
}

#[test]
fn a_gang_whose_other_role_will_never_come_is_hopeless() {
    let quiet = "eventPolicy: [{event: RoleFailed, action: NoAction}]";
    let mut stage = stage(9);
    let spec = format!(
        "roles: [{{name: x, {quiet}}}, {}, {}]",
        role("a", 1, &format!("{quiet}, dependsOn: [{{role: x, condition: Succeeded}}]")),
        role("b", 2, quiet)
    );
    stage.submit(1, &spec, &Groups::default());
    assert_eq!(stage.live(), ["t-x-0-0-0"]);
    stage.exit("t-x-0-0-0", 1);
    stage.ends("Failed");
    assert!(stage.role("b")["stateMessage"].as_str().unwrap().contains("gang 'g'"), "{:#}", stage.role("b"));
}

#[test]
fn a_gang_goes_on_without_a_role_it_does_not_need() {
    let quiet = "eventPolicy: [{event: RoleFailed, action: NoAction}]";
    let mut stage = stage(9);
    let spec = format!(
        "roles: [{{name: x, {quiet}}}, {}, {}]",
        role("a", 1, &format!("{quiet}, dependsOn: [{{role: x, condition: Succeeded}}]")),
        role("b", 2, "dependsOn: [{role: x, condition: Completed}]")
    );
    stage.submit(1, &spec, &Groups(vec![("g", 2)]));
    stage.exit("t-x-0-0-0", 1);
    assert_eq!(stage.live(), ["t-b-0-0-0", "t-b-0-0-1"]);
}

#[test]
fn other_work_is_not_held_up_by_a_gang_that_still_gathers() {
    let mut stage = stage(2);
    stage.submit(1, &format!("roles: [{}]", role("a", 1, "")), &Groups(vec![("g", 2)]));
    stage.submit(2, "roles: [{name: x, replicas: 2}]", &Groups::default());
    assert_eq!(stage.live(), ["t2-x-0-0-0", "t2-x-0-0-1"]);
    stage.command_to(RunId(2), Command::Terminate).unwrap();
    stage.leave();
    stage.command(Command::Terminate).unwrap();
    stage.ends("Failed");
}

#[test]
fn gangs_of_one_name_without_a_group_are_each_task_sets_own() {
    let mut stage = stage(9);
    let waits = role("b", 1, "dependsOn: [{role: x, condition: Succeeded}]");
    stage.submit(1, &format!("roles: [{{name: x}}, {}, {waits}]", role("a", 2, "")), &Groups::default());
    stage.submit(2, &format!("roles: [{}]", role("a", 2, "")), &Groups::default());
    assert_eq!(stage.live(), ["t-x-0-0-0", "t2-a-0-0-0", "t2-a-0-0-1"], "the first one still lacks a member");
}
