//! C: DAGs and `depends`, as far as the scenario files of the program do not show it.

use crate::{answer::Script, check::check, play::Play};

#[test]
fn c10_failing_fast_takes_the_first_failed_target_and_not_failing_fast_the_last() {
    for (fail_fast, phase) in [("true", "Failed"), ("false", "Error")] {
        let spec = format!(
            "
templates: [{{name: main, dag: {{failFast: {fail_fast}, tasks: [{{name: A, template: fail}}, {{name: B, template: ok}}]}}}}]"
        );
        let script =
            Script::default().on("B", crate::answer::Answer::ends(crate::answer::Ending::Catalog("disk".into())));
        assert_eq!(Play::with(&spec, script).finish().phase(), phase);
    }
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
