//! G: suspension, stopping, terminating, deadlines.

use std::{collections::BTreeMap, time::Duration};

use octoflow_engine::{Command, Refusal};
use octoflow_model::Order;

use crate::{
    answer::{Script, exit, never},
    check::check,
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
fn g01_a_suspension_that_ends_without_a_value_fails() {
    let done = Play::new(&asking("duration: 5s", "")).finish();
    assert_eq!((done.phase(), done.node_phase("ask")), ("Failed", "Failed"));
    let message = "raw output parameter 'message' has not been set and does not have a default value";
    assert!(done.node_message("ask").contains(message));
}

#[test]
fn g02_a_suspension_that_ends_takes_its_default() {
    let done = Play::new(&asking("duration: 5", ", default: silence")).finish();
    assert_eq!((done.phase(), done.said("tell")), ("Succeeded", "silence"));
    assert_eq!(done.status()["progress"], "2/2");
    assert_eq!(done.started_at("w[1].tell").as_secs(), 5);
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
        play.engine.run(RUN).unwrap().state.nodes.iter().skip(1).map(|node| node.phase.to_string()).collect()
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
fn g05_stopping_runs_the_exit_handlers() {
    let mut play = Play::with(STOPPABLE, Script::default().on("A", never()));
    play.advance(second());
    play.command(Command::Stop).unwrap();
    let done = play.finish();
    assert_eq!((done.phase(), done.message()), ("Failed", "Stopped with strategy 'Stop'"));
    assert_eq!(done.node_phase("A"), "Failed");
    assert_eq!(done.node_message("A"), "workflow shutdown with strategy:  Stop");
    assert_eq!((done.node_phase("A.onExit"), done.node_phase("w.onExit")), ("Succeeded", "Succeeded"));
}

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
fn g07_after_stopping_no_later_task_gets_a_node() {
    let mut play = Play::with(STOPPABLE, Script::default().on("A", never()));
    play.advance(second());
    play.command(Command::Stop).unwrap();
    assert!(play.finish().find("B").is_none());
    let spec = "templates: [{name: main, steps: [[{name: a, template: ok}], [{name: b, template: ok}]]}]";
    let mut play = Play::with(spec, Script::default().on("a", never()));
    play.advance(second());
    play.command(Command::Stop).unwrap();
    let done = play.finish();
    assert!(done.find("b").is_none() && done.find("w[1]").is_none());
    assert_eq!(done.node_phase("w"), "Failed");
}

#[test]
fn g09_terminating_during_the_exit_handler_ends_it() {
    let spec = "
onExit: handler
templates:
- {name: main, steps: [[{name: a, template: ok}]]}
- {name: handler, steps: [[{name: h, template: ok}], [{name: k, template: ok}]]}";
    let mut play = Play::with(spec, Script::default().on("h", never()));
    play.advance(Duration::from_secs(5));
    play.command(Command::Terminate).unwrap();
    let done = play.finish();
    assert_eq!(done.phase(), "Failed");
    assert_eq!(done.node_phase("w"), "Succeeded");
    for name in ["w.onExit", "w.onExit[0]", "w.onExit[0].h"] {
        assert_eq!(done.node_phase(name), "Failed", "{name}");
    }
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
fn g10_a_suspended_node_fails_at_the_workflows_deadline() {
    check(
        "
activeDeadlineSeconds: 10
templates: [{name: main, steps: [[{name: a, template: wait}]]}]
---
phase: Failed
nodes: {a: Failed}
messages: {a: Step exceeded its deadline}",
    );
}

#[test]
fn g11_a_templates_deadline_may_come_from_an_input() {
    let done = check(
        "
arguments: {parameters: [{name: ads, value: 5}]}
templates:
- name: main
  inputs: {parameters: [{name: ads}]}
  activeDeadlineSeconds: '{{inputs.parameters.ads}}'
  container: {image: i, command: [c]}
---
answers: {main: {after: 10}}
phase: Failed
message: Pod was active on the node longer than the specified deadline",
    );
    assert_eq!(done.node("w")["finishedAt"], "2023-11-14T22:13:25Z");
}

#[test]
fn g12_timeouts_from_inputs_end_each_step_in_its_time() {
    let spec = "
templates:
- name: main
  steps:
  - - name: a
      template: slow
      arguments: {parameters: [{name: t, value: '{{item}}s'}]}
      withItems: [5, 10, 15]
- name: slow
  inputs: {parameters: [{name: t}]}
  timeout: '{{inputs.parameters.t}}'
  container: {image: i, command: [c]}";
    let play = Play::with(spec, Script::default().on("slow", exit(0).after(30)));
    let done = play.finish();
    assert_eq!(done.phase(), "Failed");
    assert!(["a(0:5)", "a(1:10)", "a(2:15)"].iter().all(|name| done.node_phase(name) == "Failed"));
    assert_eq!(done.node("a(2:15)")["finishedAt"], "2023-11-14T22:13:35Z");
}

#[test]
fn a_task_that_waits_longer_than_its_timeout_fails_without_running() {
    let spec = "
templates:
- {name: main, steps: [[{name: a, template: ok}, {name: b, template: slow}]]}
- {name: slow, timeout: 5s, container: {image: i, command: [c]}}";
    let script = Script::default().on("a", exit(0).after(60));
    let one = octoflow_engine::schedule::Capacity { slots: 1, ..ROOMY };
    let done = Play::prepared(crate::text::manifest(spec), script, one, &[]).finish();
    assert_eq!((done.node_phase("b"), done.node_message("b")), ("Failed", "timeout"));
    assert_eq!(done.started(), ["w[0].a"]);
}

#[test]
fn g13_a_signal_is_told_as_a_shell_would() {
    for (signal, code) in [(15, 143), (9, 137)] {
        let spec = "templates: [{name: main, container: {image: i, command: [c]}}]";
        let killed = crate::answer::Answer::ends(crate::answer::Ending::Signal(signal));
        let done = Play::with(spec, Script::default().on("main", killed)).finish();
        assert_eq!((done.phase(), done.message()), ("Failed", format!("main: Error (exit code {code})").as_str()));
        assert_eq!(done.node("w")["outputs"]["exitCode"], code.to_string());
    }
}

#[test]
fn g14_a_command_that_is_not_there_fails_and_says_so() {
    check(
        "
templates: [{name: main, container: {image: i, command: [nonesuch]}}]
---
answers: {main: {notStarted: 'exec: \"nonesuch\": executable file not found in $PATH'}}
phase: Failed
messages: {w: executable file not found}",
    );
}

#[test]
fn g15_a_finished_run_cannot_be_stopped() {
    let mut play = Play::new("templates: [{name: main, container: {image: i, command: [c]}}]");
    play.advance(Duration::from_secs(5));
    assert!(play.over());
    assert_eq!(play.command(Command::Stop).unwrap_err().to_string(), "cannot shutdown a completed workflow: w");
    assert_eq!(play.command(Command::Terminate).unwrap_err().to_string(), "cannot shutdown a completed workflow: w");
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
