//! C: DAGs and `depends`.

use crate::{
    answer::{Script, exit},
    check::check,
    play::Play,
};

#[test]
fn c01_what_depends_on_a_failure_is_omitted_and_the_run_fails_without_a_message() {
    let done = check(
        "
templates:
- name: main
  dag:
    tasks:
    - {name: A, template: ok}
    - {name: B, template: ok, depends: A}
    - {name: C, template: fail, depends: A}
    - {name: D, template: ok, depends: B && C}
---
all: {w: DAG Failed, w.A: Pod Succeeded, w.B: Pod Succeeded, w.C: Pod Failed, w.D: Skipped Omitted}
phase: Failed
message: ''
messages: {D: 'omitted: depends condition not met'}",
    );
    assert_eq!(done.children("w.A"), ["w.B", "w.C"]);
    assert_eq!(done.children("w.B"), ["w.D"]);
    assert_eq!(done.children("w.C"), ["w.D"]);
    assert_eq!(done.outbound("w"), ["w.D"]);
    assert_eq!(done.node("w.D")["templateName"], "ok");
}

#[test]
fn c02_conditions_choose_what_runs_and_only_leaves_count() {
    check(
        "
templates:
- name: main
  dag:
    tasks:
    - {name: P, template: ok}
    - {name: F, template: fail}
    - {name: should-execute-1, template: ok, depends: 'P && (F.Succeeded || F.Failed)'}
    - {name: should-execute-2, template: ok, depends: P || F}
    - {name: should-not-execute, template: ok, depends: P && F}
    - {name: should-execute-3, template: ok, depends: should-execute-2.Succeeded || should-not-execute}
---
phase: Succeeded
nodes:
  F: Failed
  should-execute-1: Succeeded
  should-execute-2: Succeeded
  should-not-execute: Omitted
  should-execute-3: Succeeded",
    );
}

#[test]
fn c03_nothing_is_decided_while_a_task_it_mentions_runs() {
    let spec = "
templates:
- {name: main, dag: {tasks: [{name: A, template: ok}, {name: B, template: ok}, {name: C, template: ok, depends: A || B}]}}";
    let done = Play::with(spec, Script::default().on("B", exit(0).after(100))).finish();
    assert_eq!(done.started_at("w.C").as_secs(), 100);
}

#[test]
fn c04_any_and_all_look_at_the_items_of_a_loop() {
    check(
        "
templates:
- name: main
  dag:
    tasks:
    - {name: A, template: ok, withItems: [1, 2]}
    - {name: B, template: fail, withItems: [1, 2]}
    - {name: E, template: ok, withItems: [1, 2]}
    - {name: any, template: ok, depends: A.AnySucceeded}
    - {name: none, template: ok, depends: B.AnySucceeded}
    - {name: all, template: ok, depends: B.AllFailed}
    - {name: errors-do-not-count, template: ok, depends: E.AllFailed}
---
answers: {'A(0:1)': 1, 'E(0:1)': 1, 'E(1:2)': {surroundings: disk}}
nodes: {any: Succeeded, none: Omitted, all: Succeeded, errors-do-not-count: Omitted, A: Failed, B: Failed, E: Error}",
    );
}

#[test]
fn c05_bare_dependency_on_an_omitted_task_is_false() {
    check(
        "
templates:
- name: main
  dag:
    tasks:
    - {name: A, template: ok}
    - {name: B, template: ok, depends: A.Failed}
    - {name: C, template: ok, depends: B}
    - {name: D, template: ok, depends: B.Omitted}
---
phase: Succeeded
nodes: {B: Omitted, C: Omitted, D: Succeeded}",
    );
}

#[test]
fn c06_bare_dependency_on_a_skipped_task_is_true() {
    check(
        "
templates:
- name: main
  dag: {tasks: [{name: A, template: ok, when: 'false'}, {name: B, template: ok, depends: A}]}
---
phase: Succeeded
nodes: {A: Skipped, B: Succeeded}",
    );
}

#[test]
fn c08_a_failed_leaf_that_is_forgiven_does_not_fail_the_dag() {
    check(
        "
templates:
- name: main
  dag:
    tasks: [{name: A, template: ok}, {name: B, template: fail, dependencies: [A], continueOn: {failed: true}}]
---
phase: Succeeded
nodes: {B: Failed}",
    );
}

#[test]
fn c09_what_depends_on_a_forgiven_failure_runs() {
    check(
        "
templates:
- name: main
  dag:
    tasks:
    - {name: F, template: fail, continueOn: {failed: true}}
    - {name: P, template: ok, dependencies: [F]}
    - {name: E, template: ok, continueOn: {failed: true}}
    - {name: Q, template: ok, dependencies: [E]}
---
answers: {E: {surroundings: disk}}
phase: Error
nodes: {F: Failed, P: Succeeded, E: Error, Q: Omitted}",
    );
}

#[test]
fn c10_a_failure_waits_for_the_other_branches() {
    for fail_fast in ["true", "false"] {
        let spec = format!(
            "
templates:
- name: main
  dag:
    failFast: {fail_fast}
    tasks:
    - {{name: A, template: fail}}
    - {{name: B, template: ok}}
    - {{name: C, template: ok, dependencies: [B]}}"
        );
        let done = Play::with(&spec, Script::default().on("B", exit(0).after(30))).finish();
        assert_eq!((done.phase(), done.node_phase("C")), ("Failed", "Succeeded"));
    }
}

#[test]
fn c10_failing_fast_takes_the_first_failed_target_and_not_failing_fast_the_last() {
    for (fail_fast, phase) in [("true", "Failed"), ("false", "Error")] {
        let spec = format!(
            "
templates: [{{name: main, dag: {{failFast: {fail_fast}, tasks: [{{name: A, template: fail}}, {{name: B, template: ok}}]}}}}]"
        );
        let script =
            Script::default().on("B", crate::answer::Answer::ends(crate::answer::Ending::Surroundings("disk".into())));
        assert_eq!(Play::with(&spec, script).finish().phase(), phase);
    }
}

#[test]
fn c11_a_task_that_succeeds_on_its_second_attempt_succeeded() {
    check(
        "
templates:
- {name: main, dag: {tasks: [{name: A, template: flaky}, {name: B, template: ok, depends: A}]}}
- {name: flaky, retryStrategy: {limit: 3}, container: {image: i, command: [c]}}
---
answers: {A(0): 1}
phase: Succeeded
nodes: {A: Succeeded, A(0): Failed, A(1): Succeeded, B: Succeeded}
progress: 2/3",
    );
}

#[test]
fn c12_exhausted_retries_inside_a_nested_dag_omit_the_outer_dependents() {
    check(
        "
templates:
- {name: main, dag: {tasks: [{name: A, template: inner}, {name: B, template: ok, depends: A}]}}
- {name: inner, dag: {tasks: [{name: X, template: flaky}]}}
- {name: flaky, retryStrategy: {limit: 1}, container: {image: i, command: [c]}}
---
answers: {flaky: 1}
phase: Failed
nodes: {A: Failed, X: Failed, X(0): Failed, X(1): Failed, B: Omitted}",
    );
}

#[test]
fn c13_targets_run_only_what_they_need() {
    check(
        "
arguments: {parameters: [{name: t, value: 'B C'}]}
templates:
- name: main
  dag:
    target: '{{workflow.parameters.t}}'
    tasks:
    - {name: A, template: ok}
    - {name: B, template: ok, depends: A}
    - {name: C, template: ok}
    - {name: D, template: ok, depends: B}
    - {name: E, template: ok}
---
phase: Succeeded
nodes: {A: Succeeded, B: Succeeded, C: Succeeded}
absent: [D, E]",
    );
}

#[test]
fn c14_a_task_looping_over_nothing_is_skipped_and_its_dependents_run() {
    check(
        "
templates:
- name: main
  dag: {tasks: [{name: A, template: ok, withParam: '[]'}, {name: B, template: ok, depends: A}]}
---
all: {w: DAG Succeeded, w.A: Skipped Skipped, w.B: Pod Succeeded}
messages: {A: 'Skipped, empty params'}",
    );
}

#[test]
fn c15_a_loop_over_what_is_no_list_is_an_error() {
    check(
        "
arguments: {parameters: [{name: l, value: 'not a list'}]}
templates: [{name: main, dag: {tasks: [{name: A, template: ok, withParam: '{{workflow.parameters.l}}'}]}}]
---
phase: Error
nodes: {A: Error}
messages: {A: withParam value could not be parsed as a JSON list}",
    );
}

fn consumer_of(producer: &str, argument: &str, input: &str, default: &str) -> String {
    format!(
        "
templates:
- name: main
  dag:
    tasks:
    - {{name: z, template: ok}}
    - {{name: p, template: maker, {producer}}}
    - name: c
      template: consumer
      depends: p || p.Omitted
      arguments: {{parameters: [{{name: m, value: {argument:?}}}]}}
- name: maker
  container: {{image: i, command: [c], args: [made]}}
  outputs: {{parameters: [{{name: m, valueFrom: {{path: /tmp/m{default}}}}}]}}
- name: consumer
  inputs: {{parameters: [{{name: m{input}}}]}}
  container: {{image: i, command: [c], args: ['{{{{inputs.parameters.m}}}}']}}"
    )
}

const REFERENCE: &str = "{{tasks.p.outputs.parameters.m}}";

#[test]
fn c16_the_output_of_a_skipped_task_is_absent() {
    let done = Play::new(&consumer_of("when: 'false'", REFERENCE, "", "")).finish();
    assert_eq!((done.phase(), done.node_phase("c")), ("Error", "Error"));
    assert!(done.node_message("c").contains("absent optional"));
}

#[test]
fn c17_the_output_of_an_omitted_task_is_absent() {
    let done = Play::new(&consumer_of("depends: z.Failed", REFERENCE, "", "")).finish();
    assert_eq!((done.phase(), done.node_phase("p"), done.node_phase("c")), ("Error", "Omitted", "Error"));
    assert!(done.node_message("c").contains("absent optional"));
}

#[test]
fn c18_the_consumers_default_stands_in_for_an_absent_output() {
    let done = Play::new(&consumer_of("when: 'false'", REFERENCE, ", default: mine", "")).finish();
    assert_eq!((done.phase(), done.said("c")), ("Succeeded", "mine"));
}

#[test]
fn c19_the_producers_default_stands_in_for_an_absent_output() {
    let done = Play::new(&consumer_of("when: 'false'", REFERENCE, ", default: mine", ", default: its")).finish();
    assert_eq!((done.phase(), done.said("c")), ("Succeeded", "its"));
}

#[test]
fn c20_an_expression_can_fall_back_from_an_absent_output() {
    let done = Play::new(&consumer_of("when: 'false'", "{{= tasks.p.outputs.parameters.m ?? 'fb'}}", "", "")).finish();
    assert_eq!((done.phase(), done.said("c")), ("Succeeded", "fb"));
    let done = Play::new(&consumer_of("when: 'true'", "{{= tasks.p.outputs.parameters.m ?? 'fb'}}", "", "")).finish();
    assert_eq!((done.phase(), done.said("c")), ("Succeeded", "made"));
}

#[test]
fn c21_a_skipped_producers_default_can_be_looped_over() {
    check(
        "
templates:
- name: main
  dag:
    tasks:
    - {name: p, template: maker, when: 'false'}
    - {name: c, template: ok, depends: p, withParam: '{{tasks.p.outputs.parameters.m}}'}
- name: maker
  container: {image: i, command: [c]}
  outputs: {parameters: [{name: m, valueFrom: {path: /tmp/m, default: '[\"x\"]'}}]}
---
phase: Succeeded
nodes: {'c(0:x)': Succeeded}",
    );
}

#[test]
fn c22_a_forgiven_loop_with_failed_items_is_forgiven_as_a_whole() {
    check(
        "
templates:
- name: main
  dag:
    tasks:
    - {name: A, template: ok, withItems: [1, 2, 3], continueOn: {failed: true}}
    - {name: B, template: ok, dependencies: [A]}
    - {name: L, template: ok, withItems: [1, 2], continueOn: {failed: true}}
---
answers: {'A(1:2)': 1, 'L(0:1)': 1}
phase: Succeeded
nodes: {A: Failed, B: Succeeded, L: Failed}",
    );
}

#[test]
fn c28_failing_fast_starts_no_more_tasks_and_says_so() {
    check(
        "
templates:
- name: main
  parallelism: 2
  failFast: true
  dag: {tasks: [{name: task1, template: fail}, {name: task2, template: ok}, {name: task3, template: ok}]}
---
answers: {task2: {after: 5}}
phase: Failed
message: template has failed or errored children and failFast enabled
nodes: {task1: Failed, task2: Succeeded}
absent: [task3]",
    );
}

#[test]
fn a_skipped_target_takes_the_phase_that_reaches_it() {
    check(
        "
templates:
- name: main
  dag:
    tasks:
    - {name: A, template: fail}
    - {name: B, template: ok, depends: A.Failed, when: 'false'}
    - {name: C, template: ok}
    - {name: D, template: ok, depends: C.Failed}
---
phase: Failed
nodes: {B: Skipped, D: Omitted}",
    );
}

#[test]
fn a_task_that_ran_well_after_a_failure_makes_its_branch_good() {
    check(
        "
templates:
- {name: main, dag: {tasks: [{name: A, template: fail}, {name: B, template: ok, depends: A.Failed}]}}
---
phase: Succeeded
nodes: {A: Failed, B: Succeeded}",
    );
}
