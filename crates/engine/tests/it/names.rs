//! A: names, ids, types and the drawing graph.

use crate::check::check;

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
