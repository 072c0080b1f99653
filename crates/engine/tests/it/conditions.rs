//! D: `when`.

use crate::check::check;

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
