//! H: parallelism.

use crate::{
    answer::{Script, exit},
    play::{Play, ROOMY},
    text::manifest,
};

#[test]
fn a_templates_limit_may_come_from_an_input() {
    let spec = "
arguments: {parameters: [{name: many, value: 3}]}
templates:
- name: main
  inputs: {parameters: [{name: many}]}
  parallelism: '{{inputs.parameters.many}}'
  dag: {tasks: [{name: A, template: ok, withItems: [1, 2, 3, 4, 5, 6, 7]}]}";
    // A variable is no number to the checker of manifests.
    let done = Play::unchecked(manifest(spec), Script::default()).finish();
    assert_eq!((done.phase(), done.crowd), ("Succeeded", 3));
}

#[test]
fn limits_of_both_levels_hold_together() {
    let spec = "
parallelism: 3
templates:
- {name: main, dag: {tasks: [{name: A, template: inner}, {name: B, template: inner}]}}
- name: inner
  parallelism: 2
  steps: [[{name: x, template: flaky, withItems: [1, 2, 3, 4]}]]
- {name: flaky, retryStrategy: {limit: 1}, container: {image: i, command: [c]}}";
    let script = Script::default().on("x(0:1)(0)", exit(1)).on("x(3:4)(0)", exit(1));
    let done = Play::with(spec, script).finish();
    assert_eq!((done.phase(), done.crowd, done.starts.len()), ("Succeeded", 3, 12));
}

#[test]
fn the_machines_places_are_never_exceeded() {
    let spec = "templates: [{name: main, dag: {tasks: [{name: A, template: ok, withItems: [1, 2, 3, 4, 5]}]}}]";
    let two = octoflow_engine::Capacity { slots: 2, ..ROOMY };
    let done = Play::prepared(manifest(spec), Script::default(), two, &[]).finish();
    assert_eq!((done.phase(), done.crowd), ("Succeeded", 2));
}

#[test]
fn failing_fast_waits_for_the_last_attempt_and_lets_handlers_run() {
    let spec = "
templates:
- name: main
  failFast: true
  steps: [[{name: a, template: flaky}, {name: b, template: fail, onExit: ok}]]
- {name: flaky, retryStrategy: {limit: 1}, container: {image: i, command: [c]}}";
    let done = Play::with(spec, Script::default().on("a(0)", exit(1)).on("b", exit(1).after(9))).finish();
    assert_eq!(
        (done.node_phase("a"), done.node_phase("b"), done.node_phase("b.onExit")),
        ("Succeeded", "Failed", "Succeeded")
    );
    assert_eq!(done.message(), "template has failed or errored children and failFast enabled");
}

#[test]
fn a_limit_of_nothing_is_no_limit() {
    let spec = "{parallelism: 0, templates: [{name: main, parallelism: 0, steps: [[{name: a, template: ok, withItems: [1, 2]}]]}]}";
    assert_eq!(Play::unchecked(manifest(spec), Script::default()).finish().crowd, 2);
}
