//! D: `when`.

use crate::{check::check, play::Play};

/// How a step with this condition ends.
fn outcome(condition: &str) -> (String, String) {
    let spec = format!("templates: [{{name: main, steps: [[{{name: a, template: ok, when: {condition:?}}}]]}}]");
    let done = Play::new(&spec).finish();
    (done.node_phase("a").to_owned(), done.node_message("a").to_owned())
}

#[test]
fn d01_conditions_that_hold() {
    for condition in [
        "foo == foo",
        "'a/b' == 'a/b'",
        "1/2 == 0.5",
        "a < b",
        "(1 > 0) && (1 < 2)",
        "Error in (Failed, Error)",
        "!(Succeeded in (Failed, Error))",
        "true == true",
    ] {
        assert_eq!(outcome(condition).0, "Succeeded", "{condition}");
    }
}

#[test]
fn d02_conditions_that_do_not_hold() {
    for condition in ["foo == bar", "1 <= 0", "(1 > 0) && (11 < 2)", "Succeeded in (Failed, Error)", "false == true"] {
        assert_eq!(outcome(condition).0, "Skipped", "{condition}");
    }
}

#[test]
fn d03_a_skipped_step_says_the_condition_as_it_was_evaluated() {
    check(
        "
arguments: {parameters: [{name: x, value: here}]}
templates:
- name: main
  dag: {tasks: [{name: A, template: ok, when: '{{workflow.parameters.x}} == there'}]}
---
phase: Succeeded
all: {w: DAG Succeeded, w.A: Skipped Skipped}
messages: {A: \"when 'here == there' evaluated false\"}
progress: 0/0",
    );
}

#[test]
fn d04_an_expression_can_be_the_condition_alone_or_in_a_loop() {
    check(
        "
entrypoint: main
arguments: {parameters: [{name: x, value: 'yes'}]}
templates:
- name: main
  inputs: {parameters: [{name: x}]}
  steps:
  - - {name: a, template: ok, when: \"{{= inputs.parameters.x == 'yes' }}\"}
    - {name: b, template: ok, when: \"{{= inputs.parameters.x == 'no' }}\"}
    - {name: c, template: ok, when: \"{{= asInt(item) > 1 }}\", withItems: [1, 2]}
  - - {name: d, template: dag}
- name: dag
  dag:
    tasks:
    - {name: e, template: ok, when: \"{{= workflow.parameters.x == 'no' }}\"}
    - {name: f, template: ok, when: \"{{= item == 'u' }}\", withItems: [u, v]}
---
phase: Succeeded
nodes: {a: Succeeded, b: Skipped, 'c(0:1)': Skipped, 'c(1:2)': Succeeded, e: Skipped, 'f(0:u)': Succeeded, 'f(1:v)': Skipped}",
    );
}

#[test]
fn d05_a_condition_that_is_neither_true_nor_false_is_an_error() {
    let (phase, message) = outcome("1 + 2");
    assert_eq!(phase, "Error");
    assert!(message.contains("Expected boolean evaluation for '1 + 2'"), "{message}");
}

#[test]
fn a_loop_whose_condition_fails_for_every_item_skips_every_item() {
    check(
        "
templates:
- name: main
  steps: [[{name: a, template: ok, when: 'false', withItems: [1, 2]}], [{name: b, template: dag}]]
- name: dag
  dag: {tasks: [{name: c, template: ok, when: 'false', withItems: [1, 2]}, {name: d, template: ok, depends: c}]}
---
phase: Succeeded
nodes: {d: Succeeded}
all:
  w: Steps Succeeded
  'w[0]': StepGroup Succeeded
  'w[0].a(0:1)': Skipped Skipped
  'w[0].a(1:2)': Skipped Skipped
  'w[1]': StepGroup Succeeded
  'w[1].b': DAG Succeeded
  'w[1].b.c': TaskGroup Succeeded
  'w[1].b.c(0:1)': Skipped Skipped
  'w[1].b.c(1:2)': Skipped Skipped
  'w[1].b.d': Pod Succeeded",
    );
}

#[test]
fn a_loop_that_is_not_to_run_need_not_have_a_list() {
    check(
        "
templates:
- name: main
  steps:
  - [{name: p, template: make, when: 'false'}]
  - [{name: a, template: ok, when: '{{steps.p.status}} == Succeeded', withParam: '{{steps.p.outputs.parameters.p}}'}]
---
phase: Succeeded
nodes: {a: Skipped}
messages: {a: \"when 'Skipped == Succeeded' evaluated false\"}",
    );
}
