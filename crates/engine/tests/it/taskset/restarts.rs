//! The engine dies and comes back at every point of several stories: nothing is lost, nothing happens twice.

use octoflow_engine::Input;
use octoflow_model::taskset::StopReason;

use super::stage::Stage;

/// One thing after the other. After each the engine may die.
enum Act {
    Up(&'static str),
    Exit(&'static str, i32),
    Lose(&'static str),
    Evict(&'static str),
    /// Everything is ended for others.
    Drain,
    Tick(u64),
    Suspend,
    Resume,
}

fn act(stage: &mut Stage, act: &Act) {
    match act {
        Act::Up(pod) => stage.up(pod),
        Act::Exit(pod, code) => stage.exit(pod, *code),
        Act::Lose(pod) => stage.lose(pod),
        Act::Evict(pod) => stage.evict(pod, StopReason::Evicted),
        Act::Drain => {
            stage.input(Input::Drain { node: "local".to_owned() });
        }
        Act::Tick(seconds) => stage.tick(*seconds),
        Act::Suspend => stage.suspend(),
        Act::Resume => stage.resume(),
    }
}

/// Plays the acts once for every point and both sides of it, and compares what came of it.
fn attack(slots: usize, spec: &str, acts: &[Act], word: &str) {
    let mut calm = Stage::with_slots(slots, spec);
    acts.iter().for_each(|one| act(&mut calm, one));
    calm.ends(word);
    for point in 0..acts.len() {
        for lost in [false, true] {
            let mut stage = Stage::with_slots(slots, spec);
            for (at, one) in acts.iter().enumerate() {
                act(&mut stage, one);
                if at == point && lost {
                    stage.crash_before();
                    // The runtime tells again what it was not thanked for; a person asks again.
                    act(&mut stage, one);
                } else if at == point && !stage.over() {
                    stage.restart();
                }
            }
            stage.ends(word);
            assert_eq!(stage.names(), calm.names(), "died at {point}, {lost}");
            assert_eq!(stage.status()["stateMessage"], calm.status()["stateMessage"]);
        }
    }
}

#[test]
fn in_the_story_of_a_replica_that_is_tried_again() {
    let spec = "roles: [{name: a, replicas: 2, retryPolicy: {retry: true, delay: 5, maxRetryCount: 2}}]";
    let acts = [
        Act::Up("t-a-0-0-0"),
        Act::Exit("t-a-0-0-0", 1),
        Act::Tick(5),
        Act::Lose("t-a-0-1-0"),
        Act::Exit("t-a-0-0-1", 0),
        Act::Tick(5),
        Act::Up("t-a-0-2-0"),
        Act::Exit("t-a-0-2-0", 0),
    ];
    attack(10, spec, &acts, "Succeeded");
}

#[test]
fn in_the_story_of_a_whole_that_is_tried_again() {
    let spec = "retryPolicy: {retry: true, delay: 5, maxRetryCount: 1}\n\
                roles: [{name: a, replicas: 2}, {name: b, dependsOn: [a]}]";
    let acts = [
        Act::Up("t-a-0-0-0"),
        Act::Up("t-a-0-0-1"),
        Act::Exit("t-b-0-0-0", 1),
        Act::Exit("t-a-0-0-0", 0),
        Act::Exit("t-a-0-0-1", 0),
        Act::Tick(3),
        Act::Tick(2),
        Act::Up("t-a-1-0-0"),
        Act::Exit("t-a-1-0-1", 0),
        Act::Exit("t-a-1-0-0", 0),
        Act::Exit("t-b-1-0-0", 0),
    ];
    attack(10, spec, &acts, "Succeeded");
}

#[test]
fn in_the_story_of_a_frozen_verdict() {
    let spec = "roles: [{name: a, replicas: 3, completionPolicy: {maxFailed: 1, minSucceeded: 2}}, {name: b}]";
    let acts = [
        Act::Up("t-a-0-0-0"),
        Act::Exit("t-a-0-0-0", 1),
        Act::Exit("t-a-0-0-1", 0),
        Act::Exit("t-a-0-0-2", 0),
        Act::Exit("t-b-0-0-0", 0),
    ];
    attack(10, spec, &acts, "Failed");
}

#[test]
fn in_the_story_of_little_room_suspensions_and_evictions() {
    let spec = "roles: [{name: a, replicas: 3, retryPolicy: {retry: true, delay: 2, maxRetryCount: 1}}]";
    let acts = [
        Act::Suspend,
        Act::Exit("t-a-0-0-0", 0),
        Act::Tick(10),
        Act::Resume,
        Act::Evict("t-a-0-0-1"),
        Act::Exit("t-a-0-0-1", 0),
        Act::Exit("t-a-0-0-2", 0),
        Act::Suspend,
        Act::Tick(2),
        Act::Resume,
        Act::Exit("t-a-0-1-1", 0),
    ];
    attack(1, spec, &acts, "Succeeded");
}

#[test]
fn in_the_story_of_a_gang() {
    let gang = "template: {metadata: {annotations: {scheduling.k8s.io/group-name: g}}}";
    let spec = format!(
        "retryPolicy: {{retry: true, delay: 1, maxRetryCount: 1}}\n\
         roles: [{{name: x}}, {{name: a, replicas: 2, {gang}}}, {{name: b, dependsOn: [x], {gang}}}]"
    );
    let acts = [
        Act::Up("t-x-0-0-0"),
        Act::Up("t-a-0-0-1"),
        Act::Exit("t-a-0-0-0", 1),
        Act::Exit("t-a-0-0-1", 0),
        Act::Exit("t-x-0-0-0", 0),
        Act::Exit("t-b-0-0-0", 0),
        Act::Tick(1),
        Act::Exit("t-x-1-0-0", 0),
        Act::Exit("t-a-1-0-0", 0),
        Act::Exit("t-a-1-0-1", 0),
        Act::Exit("t-b-1-0-0", 0),
    ];
    attack(10, &spec, &acts, "Succeeded");
}

#[test]
fn in_the_story_of_replicas_that_make_room_for_others() {
    let spec = "roles: [{name: a, replicas: 2, retryPolicy: {retry: true, delay: 1, maxRetryCount: 1}}]";
    let acts = [
        Act::Up("t-a-0-0-0"),
        Act::Drain,
        Act::Exit("t-a-0-0-0", 143),
        Act::Lose("t-a-0-0-1"),
        Act::Up("t-a-0-1-0"),
        Act::Exit("t-a-0-1-0", 1),
        Act::Tick(1),
        Act::Exit("t-a-0-2-0", 0),
        Act::Exit("t-a-0-1-1", 0),
    ];
    attack(10, spec, &acts, "Succeeded");
}
