//! The run that comes out: how it is ordered and followed, also across restarts.

use std::collections::BTreeMap;

use octoflow_engine::{Command, Input, Refusal};
use octoflow_model::{order::Exit, plugin::PluginType::TemplateDecorator, submitted::WalkState};
use serde_json::json;

use super::world::{World, feature, task_set};

fn handed_over() -> World {
    let mut world = World::new(&[]);
    world.submit(&task_set());
    world.create_child();
    world
}

#[test]
fn pl_45_the_run_has_the_id_as_its_name_and_keeps_what_the_user_wrote() {
    let mut world = World::new(&[]);
    world.submit(&task_set());
    let (_, manifest) = world.ordered().unwrap();
    let metadata = &manifest["metadata"];
    assert_eq!((&metadata["name"], &metadata["namespace"]), (&json!("j1"), &json!("default")));
    assert_eq!(metadata["annotations"]["note"], "mine");
    let header: serde_json::Value = serde_json::from_str(metadata["annotations"]["header"].as_str().unwrap()).unwrap();
    assert_eq!((&header["jobID"], &header["userID"]), (&json!("j1"), &json!("ada")));
    assert_eq!(metadata["ownerReferences"][0]["uid"], "u-1");
}

#[test]
fn a_job_ends_as_the_run_that_came_out() {
    for (code, state) in [(0, WalkState::Succeeded), (3, WalkState::Failed)] {
        let mut world = handed_over();
        assert!(matches!(world.state(), WalkState::Pending | WalkState::Running));
        let pod = world.pod().unwrap();
        world.input(Input::Report(octoflow_model::Report::Started { attempt: pod, at: world.now }));
        assert_eq!(world.state(), WalkState::Running);
        world.restart();
        assert_eq!(world.state(), WalkState::Running);
        world.exit(pod, Exit::Code(code));
        assert_eq!(world.state(), state, "{}", world.message());
        let status = &world.object()["status"];
        assert!(status["startedAt"].is_string() && status["finishedAt"].is_string());
    }
}

#[test]
fn a_run_that_is_refused_fails_the_job_with_everything_that_is_wrong() {
    let mut world = World::new(&[]);
    let mut job = task_set();
    job["spec"]["roles"][0]["surprise"] = json!(1);
    job["spec"]["roles"][0]["replicas"] = json!(-1);
    world.submit(&job);
    world.create_child();
    assert_eq!(world.state(), WalkState::Failed);
    let message = world.message();
    assert!(message.contains("surprise") && message.contains("replicas"), "{message}");
}

#[test]
fn pl_35_a_run_that_somebody_deletes_leaves_the_job_stopped() {
    let mut world = handed_over();
    let child = world.children()[0];
    world.input(Input::Release { run: child });
    assert_eq!(world.state(), WalkState::Stopped);
    assert!(world.message().contains("deleted"), "{}", world.message());
}

#[test]
fn stopping_the_job_stops_its_run_and_whoever_stops_the_run_has_stopped_the_job() {
    let mut world = handed_over();
    let why = Command::Because { reason: "enough".to_owned(), command: Box::new(Command::Stop) };
    assert_eq!(world.command(why), None);
    assert_eq!((world.state(), world.message().as_str()), (WalkState::Stopped, "enough"));
    let mut world = handed_over();
    let child = world.children()[0];
    world.input(Input::Command { run: child, command: Command::Stop });
    assert_eq!(world.state(), WalkState::Stopped, "{}", world.message());
}

#[test]
fn suspending_and_resuming_is_passed_on_and_seen_from_both_sides() {
    let resume = || Command::Resume { selector: None, supplied: BTreeMap::new() };
    let mut world = handed_over();
    let child = world.children()[0];
    let suspended = |world: &World| world.engine.run(child).unwrap().head().suspended;
    assert_eq!(world.command(Command::Suspend), None);
    assert_eq!((world.state(), suspended(&world)), (WalkState::Suspended, true));
    assert_eq!(world.command(resume()), None);
    assert_ne!(world.state(), WalkState::Suspended);
    assert!(!suspended(&world));
    world.input(Input::Command { run: child, command: Command::Suspend });
    assert_eq!(world.state(), WalkState::Suspended, "whoever suspends the run suspends the job");
    world.input(Input::Command { run: child, command: resume() });
    assert_ne!(world.state(), WalkState::Suspended);
    assert!(matches!(world.command(resume()), Some(Refusal::Invalid(_))));
}

#[test]
fn a_job_suspended_on_the_way_hands_the_suspension_over() {
    let mut world = World::new(&[feature("d", TemplateDecorator, &json!({}))]);
    world.submit(&task_set());
    world.answer("d", &task_set());
    assert_eq!(world.command(Command::Suspend), None);
    world.create_child();
    let child = world.children()[0];
    assert!(world.engine.run(child).unwrap().head().suspended);
    assert_eq!(world.state(), WalkState::Suspended);
}
