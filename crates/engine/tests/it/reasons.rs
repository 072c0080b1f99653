//! Why a node is not over is data.

use std::time::Duration;

use octoflow_engine::{
    Capacity, Command,
    argo::explain::{Reason, explain},
};

use crate::{
    answer::{Script, exit, never},
    play::{DAWN, Play, ROOMY, RUN},
    text::manifest,
};

/// The reasons by display name.
fn reason(play: &Play, node: &str) -> Reason {
    let all = explain(
        play.engine.run_of::<octoflow_engine::argo::Run>(RUN).expect("the run is there"),
        Some(play.engine.scheduler()),
    );
    let found = all.iter().find(|why| why.node == node);
    found.unwrap_or_else(|| panic!("nothing is said of {node}: {all:?}")).reason.clone()
}

#[test]
fn a_task_that_is_no_node_yet_names_what_it_waits_for() {
    let spec = "
templates:
- {name: main, dag: {tasks: [{name: A, template: ok}, {name: B, template: ok}, {name: C, template: ok, depends: A && B}]}}";
    let mut play = Play::with(spec, Script::default().on("B", exit(0).after(9)));
    assert_eq!(reason(&play, "C"), Reason::Dependencies(vec!["A".into(), "B".into()]));
    play.advance(Duration::from_secs(2));
    assert_eq!(reason(&play, "C"), Reason::Dependencies(vec!["B".into()]));
    assert_eq!(reason(&play, "w"), Reason::Children { open: 1, still_to_start: 1 });
}

#[test]
fn a_task_that_waits_for_the_machine_says_what_it_lacks() {
    let spec = "templates: [{name: main, steps: [[{name: a, template: ok}, {name: b, template: ok}, {name: c, template: ok}]]}]";
    let play = Play::prepared(manifest(spec), Script::default(), Capacity { slots: 1, ..ROOMY }, &[]);
    assert!(matches!(reason(&play, "a"), Reason::Starting { .. }));
    assert_eq!(
        reason(&play, "b").to_string(),
        "waits in queue 'default', 1 of 2: 1 node without enough free pods; to let it go: free 1 place for a task on node local"
    );
}

#[test]
fn limits_are_told_with_their_numbers() {
    let spec = "
parallelism: 2
templates:
- {name: main, steps: [[{name: a, template: ok, withItems: [1, 2, 3, 4, 5]}]]}";
    let play = Play::new(spec);
    assert_eq!(reason(&play, "[0]").to_string(), "the workflow allows 2 at a time and 2 are active");
    let play = Play::new(&spec.replace("parallelism: 2", "").replace("name: main,", "name: main, parallelism: 3,"));
    assert_eq!(reason(&play, "[0]").to_string(), "template 'main' allows 3 at a time and 3 are active");
}

#[test]
fn waiting_for_time_or_for_a_person_is_told() {
    let spec = "
templates:
- {name: main, dag: {tasks: [{name: A, template: wait}, {name: B, template: flaky}, {name: C, template: ok, onExit: ok}]}}
- {name: flaky, retryStrategy: {limit: 2, backoff: {duration: 1m}}, container: {image: i, command: [c]}}";
    let script = Script::default().on("flaky", exit(1)).on("C.onExit", never());
    let mut play = Play::with(spec, script);
    play.advance(Duration::from_secs(5));
    assert_eq!(reason(&play, "A"), Reason::Suspended { until: None });
    let until = DAWN.saturating_add(Duration::from_secs(61));
    assert_eq!(reason(&play, "B"), Reason::Backoff { until, attempts: 1 });
    assert_eq!(reason(&play, "C"), Reason::Handler);
    assert!(matches!(reason(&play, "C.onExit"), Reason::Starting { .. } | Reason::Running { .. }));
    play.command(Command::Stop).unwrap();
    assert!(matches!(reason(&play, "C.onExit"), Reason::Starting { .. } | Reason::Running { .. }));
}

#[test]
fn a_suspended_run_and_one_that_is_being_ended_say_so() {
    let spec =
        "templates: [{name: main, dag: {tasks: [{name: A, template: ok}, {name: B, template: ok, depends: A}]}}]";
    let mut play = Play::with(spec, Script::default().on("A", never()));
    play.command(Command::Suspend).unwrap();
    assert_eq!(reason(&play, "w"), Reason::RunSuspended);
    play.command(Command::Stop).unwrap();
    assert_eq!(reason(&play, "A"), Reason::Stopping("workflow shutdown with strategy:  Stop".into()));
}
