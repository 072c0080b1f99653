//! G: suspension, stopping, terminating, deadlines.

use std::{collections::BTreeMap, time::Duration};

use octoflow_engine::{Command, Refusal};
use octoflow_model::Order;

use crate::{
    answer::{Script, exit, never},
    play::{Play, ROOMY, RUN},
};

fn resume(selector: Option<&str>, supplied: &[(&str, &str)]) -> Command {
    let supplied: BTreeMap<String, String> =
        supplied.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Command::Resume { selector: selector.map(str::to_owned), supplied }
}

fn second() -> Duration {
    Duration::from_secs(1)
}

fn asking(duration: &str, default: &str) -> String {
    format!(
        "
templates:
- name: main
  steps:
  - [{{name: ask, template: ask}}]
  - [{{name: tell, template: echo, arguments: {{parameters: [{{name: m, value: '{{{{steps.ask.outputs.parameters.message}}}}'}}]}}}}]
- name: ask
  suspend: {{{duration}}}
  outputs: {{parameters: [{{name: message, valueFrom: {{supplied: {{}}{default}}}}}]}}"
    )
}

#[test]
fn a_person_supplies_the_value_or_is_told_what_is_missing() {
    let mut play = Play::new(&asking("", ""));
    play.advance(second());
    let refused = play.command(resume(None, &[])).unwrap_err();
    assert!(refused.to_string().contains("raw output parameter 'message' has not been set"));
    play.command(resume(None, &[("message", "hello")])).unwrap();
    let done = play.finish();
    assert_eq!((done.phase(), done.said("tell")), ("Succeeded", "hello"));
}

#[test]
fn g03_resuming_by_name_resumes_that_node_only() {
    let mut play =
        Play::new("templates: [{name: main, dag: {tasks: [{name: A, template: wait}, {name: B, template: wait}]}}]");
    play.command(resume(Some("displayName=A"), &[])).unwrap();
    let phases = |play: &Play| -> Vec<String> {
        play.engine
            .run_of::<octoflow_engine::argo::Run>(RUN)
            .unwrap()
            .state
            .nodes
            .iter()
            .skip(1)
            .map(|node| node.phase.to_string())
            .collect()
    };
    assert_eq!(phases(&play), ["Succeeded", "Running"]);
    let refused = play.command(resume(Some("displayName=A"), &[])).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "currently, set only targets suspend nodes: no suspend nodes matching nodeFieldSelector: displayName=A"
    );
    play.command(resume(Some("templateName=wait,phase!=Succeeded"), &[])).unwrap();
    assert!(play.over());
}

#[test]
fn g04_a_value_nobody_asked_for_is_refused() {
    let mut play = Play::new(&asking("", ", default: d"));
    play.advance(second());
    let before = play.facts.len();
    let refused = play.command(resume(None, &[("other", "x")])).unwrap_err();
    assert_eq!(refused, Refusal::Invalid("node is not expecting output parameter 'other'".to_owned()));
    assert_eq!(play.facts.len(), before);
}

const STOPPABLE: &str = "
onExit: ok
templates:
- name: main
  dag: {tasks: [{name: A, template: ok, onExit: ok}, {name: B, template: ok, depends: A || A.Failed}]}";

#[test]
fn g06_terminating_runs_no_exit_handler() {
    let mut play = Play::with(STOPPABLE, Script::default().on("A", never()));
    play.advance(second());
    play.command(Command::Terminate).unwrap();
    assert!(matches!(play.orders.last(), Some(Order::Kill { .. })));
    let done = play.finish();
    assert_eq!((done.phase(), done.message()), ("Failed", "Stopped with strategy 'Terminate'"));
    assert_eq!(done.count(), 2, "{:?}", done.phases());
}

#[test]
fn stopping_during_the_exit_handler_lets_it_finish() {
    let spec = "{onExit: ok, templates: [{name: main, container: {image: i, command: [c]}}]}";
    let mut play = Play::with(spec, Script::default().on("w.onExit", exit(0).after(60)));
    play.advance(Duration::from_secs(5));
    play.command(Command::Stop).unwrap();
    let done = play.finish();
    assert_eq!((done.phase(), done.node_phase("w.onExit")), ("Succeeded", "Succeeded"));
}

#[test]
fn stopping_twice_says_it_once_and_terminating_says_it_harder() {
    let mut play = Play::with(STOPPABLE, Script::default().on("A", never()));
    play.advance(second());
    play.command(Command::Stop).unwrap();
    play.command(Command::Stop).unwrap();
    let stops = play.orders.iter().filter(|order| matches!(order, Order::Stop { .. })).count();
    assert_eq!(stops, 1);
    play.command(Command::Terminate).unwrap();
    assert!(matches!(play.orders.last(), Some(Order::Kill { .. })));
    let done = play.finish();
    assert_eq!(done.message(), "Stopped with strategy 'Terminate'");
    assert!(done.find("A.onExit").is_none());
}

#[test]
fn a_task_told_to_stop_is_told_again_after_a_restart() {
    let mut play = Play::with(STOPPABLE, Script::default().on("A", never()));
    play.advance(second());
    play.command(Command::Stop).unwrap();
    let before = play.orders.len();
    play.restart(ROOMY, false);
    assert!(matches!(play.orders[before..], [Order::Stop { .. }]), "{:?}", &play.orders[before..]);
    assert_eq!(play.finish().phase(), "Failed");
}

#[test]
fn a_task_that_waits_longer_than_its_timeout_fails_without_running() {
    let spec = "
templates:
- {name: main, steps: [[{name: a, template: ok}, {name: b, template: slow}]]}
- {name: slow, timeout: 5s, container: {image: i, command: [c]}}";
    let script = Script::default().on("a", exit(0).after(60));
    let one = octoflow_engine::Capacity { slots: 1, ..ROOMY };
    let done = Play::prepared(crate::text::manifest(spec), script, one, &[]).finish();
    assert_eq!((done.node_phase("b"), done.node_message("b")), ("Failed", "timeout"));
    assert_eq!(done.started(), ["w[0].a"]);
}

#[test]
fn a_suspended_workflow_begins_when_it_is_resumed() {
    let mut play = Play::new("{suspend: true, templates: [{name: main, container: {image: i, command: [c]}}]}");
    play.advance(Duration::from_secs(5));
    assert!(play.starts.is_empty());
    play.command(resume(None, &[])).unwrap();
    let done = play.finish();
    assert_eq!((done.phase(), done.started_at("w").as_secs()), ("Succeeded", 5));
}

#[test]
fn stopping_a_suspended_workflow_ends_it_and_runs_its_exit_handlers() {
    let mut play = Play::with(STOPPABLE, Script::default().on("A", never()));
    play.command(Command::Suspend).unwrap();
    play.advance(second());
    play.command(Command::Stop).unwrap();
    let done = play.finish();
    assert_eq!(
        (done.phase(), done.node_phase("A.onExit"), done.node_phase("w.onExit")),
        ("Failed", "Succeeded", "Succeeded")
    );
}

#[test]
fn a_workflow_stopped_before_it_began_has_no_nodes() {
    let mut play =
        Play::new("{suspend: true, onExit: ok, templates: [{name: main, container: {image: i, command: [c]}}]}");
    play.command(Command::Stop).unwrap();
    assert!(play.over());
    let done = play.done();
    assert_eq!((done.phase(), done.message(), done.count()), ("Failed", "Stopped with strategy 'Stop'", 0));
}
