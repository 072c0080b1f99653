//! F: exit handlers.

use crate::{answer::Script, check::check, play::Play, text::manifest};

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
fn f02_a_failed_exit_handler_spoils_a_success_and_nothing_else() {
    check(
        "
onExit: fail
templates: [{name: main, container: {image: i, command: [c]}}]
---
phase: Failed
message: main: Error (exit code 1)
nodes: {w: Succeeded, w.onExit: Failed}"
            .replace("message: main: Error (exit code 1)", "message: 'main: Error (exit code 1)'")
            .as_str(),
    );
    check(
        "
onExit: ok
templates: [{name: main, container: {image: i, command: [c]}}]
---
answers: {main: {surroundings: disk}, w.onExit: 1}
phase: Error
message: disk",
    );
}

#[test]
fn f03_a_missing_exit_handler_is_an_error_at_run_time() {
    let spec = "{onExit: nowhere, templates: [{name: main, container: {image: i, command: [c]}}]}";
    let done = Play::unchecked(manifest(spec), Script::default()).finish();
    assert_eq!(done.phase(), "Error");
    assert!(done.message().contains("error in exit template execution"), "{}", done.message());
    assert!(done.message().contains("template name 'nowhere' undefined"), "{}", done.message());
}

#[test]
fn f04_a_missing_entrypoint_is_an_error_at_run_time() {
    let done = Play::unchecked(manifest("{entrypoint: nowhere}"), Script::default()).done();
    assert_eq!(done.phase(), "Error");
    assert!(done.message().starts_with("error in entry template execution"), "{}", done.message());
}

#[test]
fn f05_a_skipped_step_has_no_exit_handler() {
    check(
        "
templates:
- name: main
  steps: [[{name: a, template: ok, when: 'false', onExit: ok}], [{name: b, template: d}]]
- {name: d, dag: {tasks: [{name: c, template: ok, when: 'false', onExit: ok}, {name: o, template: ok, depends: c.Failed, onExit: ok}]}}
---
phase: Succeeded
nodes: {a: Skipped, c: Skipped, o: Omitted}
absent: [a.onExit, c.onExit, o.onExit]",
    );
}

#[test]
fn f06_a_handler_that_asks_for_an_output_never_written_does_not_hang_the_run() {
    check(
        "
templates:
- name: main
  steps:
  - - name: a
      template: make
      hooks: {exit: {template: echo, arguments: {parameters: [{name: m, value: '{{steps.a.outputs.parameters.p}}'}]}}}
---
answers: {a: {exit: 1, parameters: {p: null}}}
phase: Failed
nodes: {a: Failed, a.onExit: Error}",
    );
}

#[test]
fn f12_the_exit_handler_runs_after_the_deadline() {
    check(
        "
onExit: ok
activeDeadlineSeconds: 5
templates: [{name: main, steps: [[{name: a, template: ok}], [{name: b, template: ok}]]}]
---
answers: {a: {never: true}, w.onExit: {after: 60}}
phase: Failed
nodes: {a: Failed, w.onExit: Succeeded}
messages: {a: Step exceeded its deadline}
absent: [b]",
    );
}

#[test]
fn f14_failures_are_told_to_the_exit_handler() {
    let done = check(
        "
onExit: handler
templates:
- {name: main, steps: [[{name: a, template: fail}, {name: b, template: ok}]]}
- {name: handler, container: {image: i, command: [c], args: ['{{workflow.failures}}']}}
---
phase: Failed",
    );
    // The list is quoted, so that it can stand inside a JSON or shell text.
    let list: String = serde_json::from_str(done.said("w.onExit")).unwrap();
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    let failure = &list[0];
    assert_eq!(list.as_array().unwrap().len(), 1);
    assert_eq!(failure["displayName"], "a");
    assert_eq!(failure["message"], "main: Error (exit code 1)");
    assert_eq!(failure["templateName"], "fail");
    assert_eq!(failure["phase"], "Failed");
    assert_eq!(failure["podName"], done.tasks["w[0].a"].name);
    assert!(failure["finishedAt"].is_string());
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
