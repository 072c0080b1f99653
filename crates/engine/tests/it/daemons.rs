//! Daemons: C7, G8, J28 and what must never be left behind.

use std::time::Duration;

use octoflow_engine::{Capacity, Command, argo::explain::explain};
use octoflow_model::Order;

use crate::{
    answer::{Script, exit, never},
    check::check,
    play::{Play, ROOMY, RUN},
    text::manifest,
};

const SERVER: &str = "
- {name: server, daemon: true, container: {image: i, command: [serve]}}";

#[test]
fn a_daemon_stays_up_for_the_steps_after_it_and_ends_well_with_them() {
    let done = check(&format!(
        "
templates:
- name: main
  steps:
  - - {{name: s, template: server}}
    - {{name: s2, template: server}}
  - - {{name: a, template: echo, arguments: {{parameters: [{{name: m, value: '{{{{steps.s.ip}}}} {{{{steps.s.status}}}} {{{{=steps.s.ip}}}}'}}]}}}}
  - - {{name: b, template: ok}}{SERVER}
---
answers: {{server: {{never: true}}}}
phase: Succeeded
progress: 4/4
nodes: {{s: Succeeded, s2: Succeeded, a: Succeeded, b: Succeeded}}
said: {{a: 127.0.0.1 Running 127.0.0.1}}"
    ));
    assert_eq!(done.node("s")["podIP"], "127.0.0.1");
    assert!(done.node("s")["daemoned"].is_null(), "it is up no more");
    let end = |name: &str| done.node(name)["finishedAt"].as_str().unwrap().to_owned();
    assert!(end("s") >= end("b") && end("s") <= end("w"));
}

#[test]
fn a_daemon_that_is_up_is_told_as_such() {
    let spec = format!(
        "templates:\n- {{name: main, steps: [[{{name: s, template: server}}], [{{name: a, template: ok}}]]}}{SERVER}"
    );
    let mut play = Play::of(manifest(&spec), Script::default().on("server", never()).on("a", exit(0).after(60)));
    play.advance(Duration::from_secs(5));
    let run = play.engine.run_of::<octoflow_engine::argo::Run>(RUN).unwrap();
    let status = octoflow_engine::argo::status::status(run);
    let server = status["nodes"].as_object().unwrap().values().find(|node| node["displayName"] == "s").unwrap();
    assert_eq!((server["phase"].as_str(), server["daemoned"].as_bool()), (Some("Running"), Some(true)));
    assert_eq!(status["progress"], "0/2");
    let told: Vec<String> = explain(run, None).iter().map(|why| format!("{}: {}", why.node, why.reason)).collect();
    assert!(told.iter().any(|line| line.starts_with("s: a daemon, up since")), "{told:#?}");
    // It takes no place from those who end by themselves.
    assert_eq!((run.state.active_pods, play.engine.scheduler().running()), (1, 1));
    let done = play.finish();
    assert_eq!(done.phase(), "Succeeded");
}

#[test]
fn c07_dependents_of_a_daemon_start_and_its_later_failure_does_not_stop_them() {
    check(&format!(
        "
templates:
- name: main
  dag:
    tasks:
    - {{name: A, template: server}}
    - {{name: B, template: ok, depends: A}}
    - {{name: C, template: ok, depends: A.Daemoned}}
    - {{name: D, template: ok, depends: A || A.Failed}}
    - {{name: F, template: ok, depends: B && C && D}}{SERVER}
---
answers: {{A: {{exit: 3, after: 30}}, B: {{after: 60}}, C: {{after: 60}}, D: {{after: 60}}}}
phase: Succeeded
nodes: {{A: Failed, B: Succeeded, C: Succeeded, D: Succeeded, F: Succeeded}}
messages: {{A: 'exit code 3'}}"
    ));
    check(&format!(
        "
templates:
- {{name: main, dag: {{tasks: [{{name: A, template: server}}, {{name: E, template: ok, depends: A.Succeeded}}, {{name: F, template: ok, depends: A.Failed}}]}}}}{SERVER}
---
answers: {{A: {{never: true}}}}
phase: Succeeded
nodes: {{A: Succeeded, E: Omitted, F: Omitted}}"
    ));
}

#[test]
fn g08_stopping_ends_a_daemon_well() {
    let spec = format!(
        "templates:\n- {{name: main, steps: [[{{name: s, template: server}}], [{{name: a, template: ok}}]]}}{SERVER}"
    );
    for command in [Command::Stop, Command::Terminate] {
        let mut play = Play::of(manifest(&spec), Script::default().on("server", never()).on("a", never()));
        play.advance(Duration::from_secs(5));
        play.command(command).unwrap();
        let done = play.finish();
        assert_eq!((done.phase(), done.node_phase("s"), done.node_phase("a")), ("Failed", "Succeeded", "Failed"));
    }
}

#[test]
fn the_deadline_of_the_run_ends_a_daemon_too_and_its_own_fails_it() {
    check(&format!(
        "
activeDeadlineSeconds: 5
templates:
- {{name: main, dag: {{tasks: [{{name: s, template: server}}, {{name: a, template: ok, depends: s}}]}}}}{SERVER}
---
answers: {{server: {{never: true}}, a: {{never: true}}}}
phase: Failed
nodes: {{s: Succeeded, a: Failed}}"
    ));
    check(
        "
templates:
- {name: main, dag: {tasks: [{name: s, template: server}, {name: a, template: ok, depends: s}]}}
- {name: server, daemon: true, activeDeadlineSeconds: 5, container: {image: i, command: [serve]}}
---
answers: {server: {never: true}, a: {after: 60}}
phase: Succeeded
nodes: {s: Failed, a: Succeeded}
messages: {s: 'longer than the specified deadline'}",
    );
}

#[test]
fn j28_a_daemon_that_ends_by_itself_has_failed_and_is_restarted_where_it_is_retried() {
    let done = check(&format!(
        "
templates:
- {{name: main, steps: [[{{name: s, template: server}}], [{{name: a, template: ok}}]]}}{SERVER}
---
answers: {{server: {{after: 10}}, a: {{after: 60}}}}
phase: Succeeded
nodes: {{s: Failed, a: Succeeded}}
messages: {{s: 'a daemon must not end by itself'}}"
    ));
    assert_eq!(done.starts.len(), 2);
    let done = check(
        "
templates:
- {name: main, dag: {tasks: [{name: s, template: server}, {name: a, template: ok, depends: s}, {name: b, template: ok, depends: a}]}}
- {name: server, daemon: true, retryStrategy: {}, container: {image: i, command: [serve]}}
---
answers: {server: {after: 10}, a: {after: 35}}
phase: Succeeded
nodes: {s: Succeeded, 's(0)': Failed, a: Succeeded}",
    );
    assert!(done.find("s(3)").is_some(), "{:#?}", done.phases());
}

#[test]
fn a_daemon_that_fails_before_it_is_up_fails_its_steps() {
    check(&format!(
        "
templates:
- {{name: main, steps: [[{{name: s, template: server}}], [{{name: a, template: ok}}]]}}{SERVER}
---
answers: {{server: {{notStarted: nowhere}}}}
phase: Failed
nodes: {{s: Failed}}
absent: [a]"
    ));
}

#[test]
fn a_daemon_in_back_off_is_ended_well_with_its_steps() {
    check(
        "
templates:
- {name: main, steps: [[{name: s, template: server}], [{name: a, template: ok}]]}
- {name: server, daemon: true, retryStrategy: {backoff: {duration: 1h}}, container: {image: i, command: [serve]}}
---
answers: {server: {after: 10}, a: {after: 60}}
phase: Succeeded
nodes: {s: Succeeded, 's(0)': Failed}",
    );
}

/// Its deadline passes just before the last step ends, and its stop takes until after that.
#[test]
fn a_daemon_that_is_being_stopped_when_its_steps_end_is_not_tried_again() {
    check(
        "
templates:
- {name: main, steps: [[{name: s, template: server}], [{name: a, template: ok}]]}
- {name: server, daemon: true, timeout: 4995ms, retryStrategy: {}, container: {image: i, command: [serve]}}
---
answers: {server: {never: true}, a: {after: 5}}
phase: Succeeded
nodes: {s: Succeeded, 's(0)': Failed, a: Succeeded}
absent: ['s(1)']",
    );
}

#[test]
fn daemons_of_loops_and_of_inner_templates_end_with_the_template_around_them() {
    let done = check(&format!(
        "
templates:
- name: main
  steps:
  - - {{name: in, template: inner}}
  - - {{name: after, template: ok}}
- name: inner
  dag:
    tasks:
    - {{name: s, template: server, withItems: [1, 2, 3]}}
    - {{name: a, template: ok, depends: s}}{SERVER}
---
answers: {{server: {{never: true}}}}
phase: Succeeded
nodes: {{'s(0:1)': Succeeded, 's(2:3)': Succeeded, a: Succeeded, after: Succeeded}}"
    ));
    let begun = |name: &str| done.starts.iter().find(|(_, begun)| begun == name).unwrap().0;
    let over = done.node("s(0:1)")["finishedAt"].as_str().unwrap().to_owned();
    assert!(over <= begun("w[1].after").to_string());
}

#[test]
fn limits_do_not_wait_for_daemons() {
    let spec = format!(
        "
parallelism: 1
templates:
- {{name: main, parallelism: 1, steps: [[{{name: s, template: server, withItems: [1, 2]}}], [{{name: a, template: ok, withItems: [1, 2]}}]]}}{SERVER}"
    );
    let small = Capacity { slots: 1, ..ROOMY };
    let script = Script::default().on("server", never());
    let done = Play::prepared(manifest(&spec), script, small, &[]).finish();
    assert_eq!(done.phase(), "Succeeded");
    assert_eq!(done.crowd, 3);
}

#[test]
fn a_restarted_engine_takes_a_daemon_over_and_ends_it_later() {
    let spec = format!(
        "templates:\n- {{name: main, steps: [[{{name: s, template: server}}], [{{name: a, template: ok}}]]}}{SERVER}"
    );
    let mut play = Play::of(manifest(&spec), Script::default().on("server", never()).on("a", exit(0).after(60)));
    play.advance(Duration::from_secs(5));
    play.restart(ROOMY, false);
    play.advance(Duration::from_secs(5));
    assert!(!play.orders.iter().any(|order| matches!(order, Order::Stop { .. })), "nobody ends it early");
    assert_eq!(play.engine.scheduler().running(), 1);
    let done = play.finish();
    assert_eq!((done.phase(), done.node_phase("s")), ("Succeeded", "Succeeded"));
}

#[test]
fn a_daemons_hooks_and_exit_handler_run_and_are_waited_for() {
    let done = check(&format!(
        "
templates:
- name: main
  steps:
  - - {{name: s, template: server, onExit: ok, hooks: {{up: {{expression: steps.s.status == 'Running', template: ok}}, down: {{expression: steps.s.status == 'Succeeded', template: ok}}}}}}
  - - {{name: a, template: ok}}{SERVER}
---
answers: {{server: {{never: true}}}}
phase: Succeeded
nodes: {{s: Succeeded, s.hooks.up: Succeeded, s.hooks.down: Succeeded, s.onExit: Succeeded}}"
    ));
    assert_eq!(done.starts.len(), 5);
}

#[test]
fn a_daemon_with_nobody_beside_it_runs_to_its_end() {
    check(&format!(
        "
onExit: server
templates:
- {{name: main, daemon: true, container: {{image: i, command: [c]}}}}{SERVER}
---
phase: Succeeded
nodes: {{w: Succeeded, w.onExit: Succeeded}}"
    ));
}

#[test]
fn a_task_that_is_no_daemon_has_an_address_and_a_host_too() {
    check(
        "
templates:
- name: main
  steps:
  - - {name: a, template: ok}
  - - {name: b, template: echo, arguments: {parameters: [{name: m, value: '{{steps.a.ip}} {{steps.a.hostNodeName}}'}]}}
---
phase: Succeeded
said: {b: 127.0.0.1 localhost}",
    );
}
