//! B: steps.

use crate::{check::check, play::Play, text::manifest};

#[test]
fn b01_members_of_a_failing_group_run_to_their_end_and_the_message_names_the_child() {
    let done = check(
        "
templates: [{name: main, steps: [[{name: a, template: fail}, {name: b, template: ok}], [{name: c, template: ok}]]}]
---
answers: {b: {after: 60}}
phase: Failed
nodes: {a: Failed, b: Succeeded, '[0]': Failed, w: Failed}
absent: ['[1]', c]",
    );
    let message = format!("child '{}' failed", done.node("a")["id"].as_str().unwrap());
    assert_eq!(done.node_message("[0]"), message);
    assert_eq!(done.message(), message);
    assert_eq!(done.node_message("a"), "main: Error (exit code 1)");
}

#[test]
fn b02_a_forgiven_failure_lets_the_next_group_run() {
    check(
        "
templates:
- {name: main, steps: [[{name: a, template: fail, continueOn: {failed: true}}], [{name: b, template: ok}]]}
---
phase: Succeeded
nodes: {a: Failed, '[0]': Succeeded, b: Succeeded}",
    );
}

#[test]
fn b03_forgiving_errors_does_not_forgive_a_timeout() {
    check(
        "
templates:
- {name: main, steps: [[{name: a, template: slow, continueOn: {error: true}}], [{name: b, template: ok}]]}
- {name: slow, timeout: 5s, container: {image: i, command: [c]}}
---
answers: {slow: {never: true}}
phase: Failed
nodes: {a: Failed}
messages: {a: Pod was active on the node longer than the specified deadline}
absent: [b]",
    );
}

#[test]
fn b04_a_condition_over_a_skipped_steps_output_errors_the_group_and_fails_the_run() {
    check(
        "
templates:
- name: main
  steps:
  - [{name: a, template: make, when: 'false'}]
  - [{name: b, template: ok, when: '{{steps.a.outputs.parameters.p}} == x'}]
---
phase: Failed
nodes: {a: Skipped, b: Error, '[1]': Error, w: Failed}
messages: {'[1]': absent optional}",
    );
}

#[test]
fn b05_a_loop_over_nothing_is_skipped() {
    let done = check(
        "
templates:
- name: main
  steps: [[{name: a, template: ok, withParam: '[]'}], [{name: b, template: ok}]]
---
phase: Succeeded
all:
  w: Steps Succeeded
  'w[0]': StepGroup Succeeded
  'w[0].a': Skipped Skipped
  'w[1]': StepGroup Succeeded
  'w[1].b': Pod Succeeded
messages: {a: 'Skipped, empty params'}",
    );
    assert_eq!(done.node("a")["displayName"], "a");
    assert_eq!(done.node("a")["templateName"], "ok");
    assert_eq!(done.children("w[0].a"), ["w[1]"]);
}

#[test]
fn b06_failing_fast_starts_nothing_more_and_says_so() {
    check(
        "
templates:
- name: main
  parallelism: 2
  failFast: true
  steps:
  - [{name: step1, template: fail}, {name: step2, template: ok}, {name: step3, template: ok}]
---
answers: {step2: {after: 5}}
phase: Failed
message: template has failed or errored children and failFast enabled
nodes: {'[0]': Failed, step1: Failed, step2: Succeeded}
absent: [step3]",
    );
}

#[test]
fn b07_a_template_that_turns_out_missing_errors_the_group() {
    let spec = "
templates: [{name: main, steps: [[{name: a, template: '{{workflow.parameters.t}}'}]]}]
arguments: {parameters: [{name: t, value: nowhere}]}";
    let done = Play::unchecked(manifest(spec), Default::default()).finish();
    assert_eq!((done.phase(), done.node_phase("a"), done.node_phase("[0]")), ("Failed", "Error", "Error"));
    assert!(done.message().contains("template name 'nowhere' undefined"), "{}", done.message());
}

#[test]
fn b08_an_input_nobody_supplies_errors_the_group() {
    let spec = "templates: [{name: main, steps: [[{name: a, template: echo}]]}]";
    let done = Play::unchecked(manifest(spec), Default::default()).finish();
    assert_eq!(done.phase(), "Failed");
    assert!(done.node_message("a").contains("inputs.parameters.m was not supplied"));
}

#[test]
fn b09_outputs_of_a_looped_step_can_be_looped_over() {
    check(
        "
templates:
- name: main
  steps:
  - - name: odd
      template: two
      arguments: {parameters: [{name: k, value: '{{item}}'}]}
      withItems: [1, 2, 3]
  - - name: print
      template: echo
      when: '{{item.evenness}} == odd'
      arguments: {parameters: [{name: m, value: 'N={{item.num}}'}]}
      withParam: '{{steps.odd.outputs.parameters}}'
- name: two
  inputs: {parameters: [{name: k}]}
  container: {image: i, command: [c], args: ['{{inputs.parameters.k}}']}
  outputs: {parameters: [{name: num, valueFrom: {path: /tmp/n}}, {name: evenness, valueFrom: {path: /tmp/e}}]}
---
answers:
  'odd(0:1)': {parameters: {num: '1', evenness: odd}}
  'odd(1:2)': {parameters: {num: '2', evenness: even}}
  'odd(2:3)': {parameters: {num: '3', evenness: odd}}
phase: Succeeded
nodes:
  'print(0:evenness:odd,num:1)': Succeeded
  'print(1:evenness:even,num:2)': Skipped
  'print(2:evenness:odd,num:3)': Succeeded
said: {'print(2:evenness:odd,num:3)': N=3}",
    );
}

#[test]
fn b10_skipped_and_failed_items_are_left_out_of_the_aggregate() {
    check(
        "
templates:
- name: main
  steps:
  - - name: a
      template: make
      when: '{{item}} != 2'
      continueOn: {failed: true}
      arguments: {parameters: [{name: m, value: 'v{{item}}'}]}
      withItems: [1, 2, 3, 4]
  - [{name: b, template: echo, arguments: {parameters: [{name: m, value: '{{steps.a.outputs.parameters.p}}'}]}}]
---
answers: {'a(2:3)': 1, 'a(0:1)': {after: 9}}
phase: Succeeded
nodes: {'a(1:2)': Skipped, 'a(2:3)': Failed}
said: {b: '[\"v1\",\"v4\"]'}",
    );
}

#[test]
fn b11_a_step_that_is_skipped_may_refer_to_what_is_not_there() {
    check(
        "
templates:
- name: main
  steps:
  - [{name: a, template: make, when: 'false'}]
  - - name: b
      template: echo
      when: \"{{steps.a.status}} == Succeeded\"
      arguments: {parameters: [{name: m, value: '{{steps.a.outputs.parameters.p}}'}]}
---
phase: Succeeded
nodes: {a: Skipped, b: Skipped}
messages: {b: \"when 'Skipped == Succeeded' evaluated false\"}",
    );
}

#[test]
fn b12_a_steps_output_from_a_skipped_step_needs_a_default() {
    let spec = |default: &str| {
        format!(
            "
templates:
- name: main
  steps: [[{{name: a, template: make, when: 'false'}}]]
  outputs: {{parameters: [{{name: o, valueFrom: {{parameter: '{{{{steps.a.outputs.parameters.p}}}}'{default}}}}}]}}"
        )
    };
    let done = Play::new(&spec("")).finish();
    assert_eq!(done.phase(), "Error");
    assert!(done.message().contains("is an absent optional"), "{}", done.message());
    let done = Play::new(&spec(", default: d")).finish();
    assert_eq!((done.phase(), done.output("w", "o")), ("Succeeded", "d"));
}

#[test]
fn an_inline_template_runs_at_its_place() {
    check(
        "
templates:
- name: main
  inputs: {parameters: [{name: x, default: X}]}
  steps:
  - - name: a
      inline: {container: {image: i, command: [c], args: ['{{inputs.parameters.x}}-{{item}}']}}
      withItems: [1, 2]
  - - name: b
      inline:
        dag: {tasks: [{name: c, inline: {container: {image: i, command: [c], args: [deep]}}}]}
---
phase: Succeeded
nodes: {'a(0:1)': Succeeded, b: Succeeded, c: Succeeded}
said: {'a(0:1)': X-1, 'a(1:2)': X-2, c: deep}",
    );
}
