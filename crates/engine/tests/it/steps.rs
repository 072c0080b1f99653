//! Steps; most of B is in the scenario files of the program.

use crate::check::check;

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
