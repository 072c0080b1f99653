//! F: exit handlers.

use crate::check::check;

#[test]
fn f01_the_exit_handler_runs_after_a_failure_and_knows_of_it() {
    check(
        "
onExit: handler
templates:
- {name: main, dag: {tasks: [{name: A, template: fail}]}}
- {name: handler, container: {image: i, command: [c], args: ['{{workflow.status}} {{=workflow.status}}']}}
---
phase: Failed
nodes: {w.onExit: Succeeded}
said: {w.onExit: Failed Failed}",
    );
}

#[test]
fn the_parent_waits_for_a_steps_handler_and_ignores_how_it_ends() {
    let done = check(
        "
templates:
- name: main
  steps: [[{name: a, template: ok, onExit: fail}], [{name: b, template: d}]]
- {name: d, dag: {tasks: [{name: c, template: ok, onExit: fail}, {name: e, template: ok, depends: c}]}}
---
answers: {a.onExit: {exit: 1, after: 50}, c.onExit: {exit: 1, after: 50}}
phase: Succeeded
nodes: {a.onExit: Failed, c.onExit: Failed, e: Succeeded}",
    );
    assert_eq!(done.started_at("w[1].b.c").as_secs(), 51);
    assert_eq!(done.started_at("w[1].b.e").as_secs(), 102);
}

#[test]
fn each_item_of_a_loop_has_its_own_handler_with_its_own_outputs() {
    check(
        "
templates:
- name: main
  dag:
    tasks:
    - name: A
      template: make
      withItems: [x, z]
      arguments: {parameters: [{name: m, value: 'v{{item}}'}]}
      hooks: {exit: {template: echo, arguments: {parameters: [{name: m, value: '{{item}} {{tasks.A.outputs.parameters.p}}'}]}}}
---
phase: Succeeded
said: {'A(0:x).onExit': x vx, 'A(1:z).onExit': z vz}",
    );
}

#[test]
fn a_handler_with_an_expression_runs_only_when_it_holds() {
    check(
        "
hooks: {exit: {template: ok, expression: workflow.status == 'Failed'}}
templates:
- name: main
  steps:
  - - {name: a, template: ok, hooks: {exit: {template: ok, expression: steps.a.status == 'Failed'}}}
    - {name: b, template: ok, hooks: {exit: {template: ok, expression: steps.b.status == 'Succeeded'}}}
---
phase: Succeeded
nodes: {b.onExit: Succeeded}
absent: [a.onExit, w.onExit]",
    );
}

#[test]
fn an_exit_handler_can_be_a_whole_template_of_steps() {
    check(
        "
onExit: handler
arguments: {parameters: [{name: x, value: given}]}
templates:
- {name: main, container: {image: i, command: [c]}}
- name: handler
  steps:
  - - {name: good, template: ok, when: '{{workflow.status}} == Succeeded'}
    - {name: bad, template: ok, when: '{{workflow.status}} != Succeeded'}
  - [{name: last, template: echo, arguments: {parameters: [{name: m, value: '{{workflow.parameters.x}}'}]}}]
---
phase: Succeeded
nodes: {good: Succeeded, bad: Skipped}
said: {last: given}",
    );
}
