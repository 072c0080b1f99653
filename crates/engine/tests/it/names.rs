//! A: names, ids, types and the drawing graph.

use crate::check::check;

#[test]
fn a01_a_single_container_is_one_node_named_after_the_run() {
    let done = check(
        "
templates: [{name: main, container: {image: i, command: [c]}}]
---
all: {w: Pod Succeeded}
phase: Succeeded
progress: 1/1",
    );
    let node = done.node("w");
    assert_eq!((node["id"].as_str(), node["displayName"].as_str()), (Some("w"), Some("w")));
    assert_eq!(node["progress"], "1/1");
    assert_eq!(node["templateName"], "main");
    assert_eq!(done.object["metadata"]["labels"]["workflows.argoproj.io/phase"], "Succeeded");
    assert_eq!(done.object["metadata"]["labels"]["workflows.argoproj.io/completed"], "true");
}

#[test]
fn a02_ids_are_the_hash_of_the_full_name() {
    let done = check(
        "
templates: [{name: main, dag: {tasks: [{name: A, template: ok}]}}]
---
phase: Succeeded",
    );
    // FNV-1a of "w.A", in decimal.
    let hash = "w.A".bytes().fold(2_166_136_261_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(16_777_619));
    assert_eq!(done.node("A")["id"], format!("w-{hash}"));
    assert_eq!(done.tasks["w.A"].name, format!("w-ok-{hash}"));
}

#[test]
fn a03_steps_have_groups_that_hang_off_the_ends_of_the_group_before() {
    let done = check(
        "
templates: [{name: main, steps: [[{name: a, template: ok}, {name: b, template: ok}], [{name: c, template: ok}]]}]
---
all:
  w: Steps Succeeded
  w[0]: StepGroup Succeeded
  w[1]: StepGroup Succeeded
  w[0].a: Pod Succeeded
  w[0].b: Pod Succeeded
  w[1].c: Pod Succeeded",
    );
    assert_eq!(done.node("w[0]")["displayName"], "[0]");
    assert_eq!(done.node("w[0].a")["displayName"], "a");
    assert_eq!(done.children("w"), ["w[0]"]);
    assert_eq!(done.children("w[0]"), ["w[0].a", "w[0].b"]);
    assert_eq!(done.children("w[0].a"), ["w[1]"]);
    assert_eq!(done.children("w[0].b"), ["w[1]"]);
    assert_eq!(done.outbound("w"), ["w[1].c"]);
    assert_eq!(done.boundary("w[0]").as_deref(), Some("w"));
    assert_eq!(done.boundary("w[0].a").as_deref(), Some("w"));
    assert_eq!(done.boundary("w"), None);
}

#[test]
fn a03_steps_inside_a_dag_hand_their_ends_to_the_next_task() {
    let done = check(
        "
templates:
- name: main
  dag: {tasks: [{name: A, template: two}, {name: B, template: ok, depends: A}]}
- name: two
  steps: [[{name: x, template: ok}], [{name: q, template: ok}, {name: z, template: ok}]]
---
all:
  w: DAG Succeeded
  w.A: Steps Succeeded
  'w.A[0]': StepGroup Succeeded
  'w.A[0].x': Pod Succeeded
  'w.A[1]': StepGroup Succeeded
  'w.A[1].q': Pod Succeeded
  'w.A[1].z': Pod Succeeded
  w.B: Pod Succeeded
progress: 4/4",
    );
    assert_eq!(done.children("w"), ["w.A"]);
    assert_eq!(done.outbound("w.A"), ["w.A[1].q", "w.A[1].z"]);
    assert_eq!(done.children("w.A[1].q"), ["w.B"]);
    assert_eq!(done.children("w.A[1].z"), ["w.B"]);
    assert_eq!(done.outbound("w"), ["w.B"]);
    assert_eq!(done.boundary("w.A[1].q").as_deref(), Some("w.A"));
    assert_eq!(done.node("w.A[1].q")["displayName"], "q");
    assert_eq!(done.node("w.A")["progress"], "3/3");
}

#[test]
fn a04_a_map_item_is_described_by_its_sorted_pairs() {
    let done = check(
        r#"
templates:
- name: main
  steps:
  - - name: a
      template: echo
      arguments: {parameters: [{name: m, value: '{{item}}'}]}
      withItems: [{number: 2, string: foo, list: [0, "1"], json: {number: 2, string: foo, list: [0, "1"]}}]
---
phase: Succeeded"#,
    );
    let name = r#"w[0].a(0:json:{"list":[0,"1"],"number":2,"string":"foo"},list:[0,"1"],number:2,string:foo)"#;
    let said = r#"{"json":{"list":[0,"1"],"number":2,"string":"foo"},"list":[0,"1"],"number":2,"string":"foo"}"#;
    assert_eq!(done.said(name), said);
}

#[test]
fn a05_a_newline_in_an_item_is_escaped_in_the_name_only() {
    let done = check(
        r#"
templates:
- name: main
  steps:
  - - name: a
      template: echo
      arguments: {parameters: [{name: m, value: '{{item}}'}]}
      withItems: ["alpha\nbeta"]
---
phase: Succeeded"#,
    );
    assert_eq!(done.said(r"w[0].a(0:alpha\nbeta)"), "alpha\nbeta");
}

#[test]
fn a06_a_list_item_is_named_by_its_words() {
    let done = check(
        r#"
templates:
- name: main
  steps:
  - - {name: a, template: echo, arguments: {parameters: [{name: m, value: '{{item}}'}]}, withItems: [[1, "two", 3]]}
---
phase: Succeeded"#,
    );
    assert_eq!(done.said("w[0].a(0:[1 two 3])"), r#"[1,"two",3]"#);
}

#[test]
fn a07_parentheses_are_dropped_from_the_name_only() {
    let done = check(
        "
templates:
- name: main
  dag:
    tasks: [{name: A, template: echo, arguments: {parameters: [{name: m, value: '{{item}}'}]}, withItems: ['f(x)']}]
---
phase: Succeeded",
    );
    assert_eq!(done.said("w.A(0:fx)"), "f(x)");
}

#[test]
fn a08_a_retried_root_is_a_retry_node_with_flagged_attempts() {
    let done = check(
        "
templates: [{name: main, retryStrategy: {limit: 0}, container: {image: i, command: [c]}}]
---
answers: {main: {exit: 1}}
all: {w: Retry Failed, w(0): Pod Failed}
phase: Failed
message: No more retries left
progress: 0/1",
    );
    assert!(done.node("w").get("nodeFlag").is_none());
    assert_eq!(done.node("w(0)")["nodeFlag"]["retried"], true);
    assert_eq!(done.children("w"), ["w(0)"]);
}

#[test]
fn a09_a_looped_task_has_a_task_group_and_a_looped_step_has_none() {
    let done = check(
        "
templates:
- name: main
  dag:
    tasks:
    - {name: A, template: echo, arguments: {parameters: [{name: m, value: '{{item}}'}]}, withItems: [foo, bar]}
    - {name: B, template: steps, depends: A}
- name: steps
  steps: [[{name: s, template: echo, arguments: {parameters: [{name: m, value: '{{item}}'}]}, withItems: [1, 2]}]]
---
all:
  w: DAG Succeeded
  w.A: TaskGroup Succeeded
  w.A(0:foo): Pod Succeeded
  w.A(1:bar): Pod Succeeded
  w.B: Steps Succeeded
  'w.B[0]': StepGroup Succeeded
  'w.B[0].s(0:1)': Pod Succeeded
  'w.B[0].s(1:2)': Pod Succeeded",
    );
    assert_eq!(done.children("w.A"), ["w.A(0:foo)", "w.A(1:bar)"]);
    assert_eq!(done.children("w.A(0:foo)"), ["w.B"]);
    assert_eq!(done.children("w.A(1:bar)"), ["w.B"]);
    assert_eq!(done.children("w.B[0]"), ["w.B[0].s(0:1)", "w.B[0].s(1:2)"]);
    assert_eq!(done.outbound("w"), ["w.B[0].s(0:1)", "w.B[0].s(1:2)"]);
    assert_eq!(done.node("w.A(0:foo)")["displayName"], "A(0:foo)");
    assert_eq!(done.boundary("w.A(0:foo)").as_deref(), Some("w"));
    assert_eq!(done.node("w.A")["templateName"], "echo");
}

#[test]
fn a10_retries_inside_a_loop_wrap_each_item() {
    let done = check(
        "
templates:
- name: main
  dag:
    tasks:
    - {name: A, template: flaky, withItems: [x, u]}
    - {name: B, template: ok, depends: A}
- {name: flaky, retryStrategy: {limit: 2}, container: {image: i, command: [c]}}
---
answers: {'A(0:x)(0)': 1}
all:
  w: DAG Succeeded
  w.A: TaskGroup Succeeded
  w.A(0:x): Retry Succeeded
  w.A(0:x)(0): Pod Failed
  w.A(0:x)(1): Pod Succeeded
  w.A(1:u): Retry Succeeded
  w.A(1:u)(0): Pod Succeeded
  w.B: Pod Succeeded
progress: 3/4",
    );
    assert_eq!(done.children("w.A(0:x)"), ["w.A(0:x)(0)", "w.A(0:x)(1)"]);
    assert_eq!(done.children("w.A(0:x)(1)"), ["w.B"]);
    assert!(done.children("w.A(0:x)(0)").is_empty());
    assert_eq!(done.node("w.A(0:x)(0)")["displayName"], "A(0:x)(0)");
}

#[test]
fn a11_exit_handlers_are_named_after_what_they_follow() {
    let done = check(
        "
onExit: ok
templates: [{name: main, steps: [[{name: s, template: ok, onExit: ok}], [{name: t, template: ok}]]}]
---
all:
  w: Steps Succeeded
  'w[0]': StepGroup Succeeded
  'w[0].s': Pod Succeeded
  'w[0].s.onExit': Pod Succeeded
  'w[1]': StepGroup Succeeded
  'w[1].t': Pod Succeeded
  w.onExit: Pod Succeeded",
    );
    assert_eq!(done.node("w[0].s.onExit")["displayName"], "s.onExit");
    assert_eq!(done.node("w[0].s.onExit")["nodeFlag"]["hooked"], true);
    assert_eq!(done.node("w.onExit")["displayName"], "w.onExit");
    assert_eq!(done.children("w[0].s"), ["w[0].s.onExit", "w[1]"]);
    assert_eq!(done.boundary("w[0].s.onExit").as_deref(), Some("w"));
    assert_eq!(done.boundary("w.onExit"), None);
}

#[test]
fn a14_a_forgiven_step_whose_body_is_a_failed_dag_keeps_its_shape() {
    let done = check(
        "
templates:
- name: main
  steps:
  - [{name: A, template: ok}, {name: B, template: broken, continueOn: {failed: true}}]
  - [{name: C, template: ok}]
- {name: broken, dag: {tasks: [{name: F, template: fail}]}}
---
phase: Succeeded
nodes: {A: Succeeded, B: Failed, F: Failed, C: Succeeded}",
    );
    assert_eq!(done.count(), 7);
    assert_eq!(done.children("B").len(), 1);
    assert_eq!(done.outbound("B").len(), 1);
}

#[test]
fn a15_a_template_can_choose_the_name_people_see() {
    let done = check(
        "
templates:
- {name: main, steps: [[{name: s, template: shown}]]}
- {name: shown, metadata: {annotations: {workflows.argoproj.io/display-name: nice-name}}, container: {image: i, command: [c]}}
---
phase: Succeeded",
    );
    assert_eq!(done.node("w[0].s")["displayName"], "nice-name");
}
