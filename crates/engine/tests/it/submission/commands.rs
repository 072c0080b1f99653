//! Gates that suspend, and commands to a job on its way.

use std::{collections::BTreeMap, time::Duration};

use octoflow_engine::{Command, Refusal};
use octoflow_model::{plugin::PluginType::AccessGate, submitted::WalkState};
use serde_json::{Value, json};

use super::world::{World, feature, task_set};

fn resume() -> Command {
    Command::Resume { selector: None, supplied: BTreeMap::new() }
}

fn recheck() -> Command {
    Command::Perform { action: "recheck".to_owned() }
}

fn because(command: Command, reason: &str) -> Command {
    Command::Because { reason: reason.to_owned(), command: Box::new(command) }
}

fn gates(names: &[&str]) -> World {
    let features: Vec<_> = names.iter().map(|name| feature(name, AccessGate, &json!({}))).collect();
    let mut world = World::new(&features);
    world.submit(&task_set());
    world
}

fn suspend(reason: &str) -> Value {
    json!({"decision": "suspend", "reason": reason})
}

#[test]
fn pl_22_a_resumed_job_goes_on_with_the_next_gate() {
    let mut world = gates(&["g1", "g2", "g3"]);
    world.answer("g1", &json!({"decision": "pass"}));
    world.answer("g2", &suspend("over quota"));
    assert_eq!((world.state(), world.message().as_str()), (WalkState::Suspended, "over quota"));
    assert_eq!(world.called(), ["g1", "g2"]);
    assert_eq!(world.command(because(resume(), "it is paid")), None);
    assert_eq!(world.state(), WalkState::Preparing, "it waits no more, at once");
    world.answer("g3", &json!({"decision": "stop", "reason": "closed"}));
    assert_eq!(world.called(), ["g1", "g2", "g3"]);
    let object = world.object();
    assert_eq!((world.state(), world.message().as_str()), (WalkState::Stopped, "closed"));
    assert_eq!(object["status"]["reasons"][0]["reason"], "it is paid");
    assert_eq!(object["status"]["phase"], "stopped");
}

#[test]
fn a_gate_is_asked_again_if_that_is_wanted_and_its_question_is_another_one() {
    let mut world = gates(&["g"]);
    world.answer("g", &suspend("full"));
    assert_eq!(world.command(recheck()), None);
    assert_eq!(world.state(), WalkState::Preparing);
    world.answer("g", &suspend("still full"));
    assert_eq!(world.command(recheck()), None);
    world.answer("g", &json!({"decision": "pass"}));
    assert_eq!(world.state(), WalkState::Pending);
    let keys: Vec<&str> = world.calls.iter().map(|call| call.key.as_str()).collect();
    assert_eq!(keys, ["j1/AccessGate.g.a", "j1/AccessGate.g.a#1", "j1/AccessGate.g.a#2"]);
}

#[test]
fn a_gate_may_ask_to_be_asked_again_and_the_job_stays_suspended_meanwhile() {
    let mut world = gates(&["g"]);
    world.answer("g", &json!({"decision": "suspend", "reason": "night", "recheckAfter": 600}));
    for _ in 0..3 {
        world.restart();
        assert_eq!(world.wait(), Some(Duration::from_secs(600)));
        assert_eq!((world.state(), world.message().as_str()), (WalkState::Suspended, "night"));
        world.answer("g", &json!({"decision": "suspend", "reason": "night", "recheckAfter": 600}));
        assert_eq!(world.state(), WalkState::Suspended);
    }
    assert_eq!(world.object()["status"]["trace"].as_array().map(Vec::len), Some(1), "its trace does not grow");
    world.wait();
    world.answer("g", &json!({"decision": "pass"}));
    assert_eq!(world.state(), WalkState::Pending);
}

#[test]
fn whoever_resumes_does_not_wait_for_a_gate_that_is_asked_again_by_itself() {
    let mut world = gates(&["g", "next"]);
    world.answer("g", &json!({"decision": "suspend", "recheckAfter": 5}));
    world.wait();
    assert_eq!(world.called(), ["g", "g"]);
    assert_eq!(world.command(resume()), None);
    assert_eq!(world.called(), ["g", "g", "next"], "the answer of the gate is not waited for");
    world.answer("next", &json!({"decision": "pass"}));
    assert_eq!(world.state(), WalkState::Pending);
}

#[test]
fn pl_25_what_is_not_suspended_is_not_resumed() {
    let mut world = gates(&["g1", "g2"]);
    assert!(matches!(world.command(resume()), Some(Refusal::Invalid(_))));
    assert!(matches!(world.command(recheck()), Some(Refusal::Invalid(_))));
    world.answer("g1", &suspend("x"));
    assert_eq!(world.command(resume()), None);
    assert!(matches!(world.command(resume()), Some(Refusal::Invalid(_))), "nor twice in a row");
    world.answer("g2", &json!({"decision": "pass"}));
    assert!(matches!(world.command(resume()), Some(Refusal::Invalid(_))), "nor after the hand-over");
    world.create_child();
    let pod = world.pod().unwrap();
    world.exit(pod, octoflow_model::order::Exit::Code(0));
    assert_eq!(world.state(), WalkState::Succeeded);
    assert!(matches!(world.command(resume()), Some(Refusal::Finished { .. })));
}

#[test]
fn a_job_that_somebody_suspends_calls_nobody_until_it_is_resumed() {
    let mut world = gates(&["g1", "g2"]);
    assert_eq!(world.command(Command::Suspend), None);
    assert_eq!(world.state(), WalkState::Suspended);
    world.answer("g1", &json!({"decision": "pass"}));
    assert_eq!(world.called(), ["g1"], "what was asked is answered, and nobody else is asked");
    world.restart();
    assert_eq!(world.command(resume()), None);
    assert_eq!(world.called(), ["g1", "g2"]);
}

#[test]
fn a_stop_overtakes_everything_and_its_reason_stays() {
    for gated in [false, true] {
        let mut world = gates(&["g"]);
        if gated {
            world.answer("g", &suspend("x"));
        }
        assert_eq!(world.command(because(Command::Stop, "no longer needed")), None);
        assert_eq!((world.state(), world.message().as_str()), (WalkState::Stopped, "no longer needed"));
        assert!(world.call().is_none(), "nobody is asked any more");
        assert!(matches!(world.command(Command::Stop), Some(Refusal::Finished { .. })));
    }
}
