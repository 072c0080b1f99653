//! Time and random numbers in expressions: they derive from the node, so that a restart repeats them and no two nodes
//! share them.

use std::{collections::BTreeSet, time::Duration};

use octoflow_engine::Engine;
use octoflow_model::{Task, Time};

use crate::{
    answer::{Script, exit},
    check::check,
    inputs,
    play::{DAWN, Play, ROOMY, RUN},
};

const SPEC: &str = "
templates:
- name: main
  steps:
  - - {name: first, template: ok}
  - - {name: a, template: say, arguments: {parameters: [{name: given, value: '{{=now().Unix()}} {{=sprig.uuidv4()}}'}]}}
    - {name: b, template: say, arguments: {parameters: [{name: given, value: '{{=now().Unix()}} {{=sprig.uuidv4()}}'}]}}
    - {name: c, inline: {container: {image: i, command: [c], args: ['x', '{{=now().Unix()}} {{=sprig.uuidv4()}}', '{{=sprig.uuidv4()}}']}}}
- name: say
  inputs: {parameters: [{name: given}, {name: own, default: '{{=sprig.uuidv4()}}'}]}
  container:
    image: i
    command: [c]
    args: ['{{inputs.parameters.given}}', '{{=now().Unix()}} {{=sprig.uuidv4()}}', '{{=sprig.uuidv4()}} {{=sprig.uuidv4()}}', '{{inputs.parameters.own}}']";

fn slow() -> Script {
    ["a", "b", "c"].into_iter().fold(Script::default(), |script, name| script.on(name, exit(0).after(100)))
}

fn words<'t>(tasks: impl Iterator<Item = &'t Task>) -> Vec<&'t str> {
    tasks.flat_map(|task| &task.main.args).flat_map(|text| text.split(' ')).filter(|word| word.len() == 36).collect()
}

#[test]
fn a_task_that_is_built_again_after_a_restart_says_the_same() {
    let mut play = Play::with(SPEC, slow());
    play.advance(Duration::from_secs(7));
    // When a task runs is later than when its node came into being.
    play.tell_all();
    let mut engine = Engine::new(ROOMY);
    inputs::restore(&mut engine, RUN, play.facts.iter().cloned());
    let (believed, _) = inputs::go_on(&mut engine, &[RUN], Time(DAWN.0 + 60_000_000));
    assert_eq!(believed.len(), 3);
    for (attempt, task) in believed {
        let name = &engine.run_of::<octoflow_engine::argo::Run>(RUN).unwrap().state.node(attempt.task).name;
        assert_eq!(*task, play.tasks[&**name], "{name}");
        assert!(task.main.args[1].starts_with("17000000"), "{:?}", task.main.args);
    }
}

#[test]
fn every_node_every_field_and_every_call_draws_its_own() {
    let play = Play::with(SPEC, slow());
    let done = play.finish();
    let drawn = words(done.tasks.values());
    assert_eq!(drawn.len(), 5 + 5 + 2, "{drawn:?}");
    assert_eq!(drawn.iter().collect::<BTreeSet<_>>().len(), drawn.len(), "{drawn:?}");
    let again = Play::with(SPEC, slow()).finish();
    assert_eq!(words(again.tasks.values()), drawn, "the same run of the same identity draws the same");
}

#[test]
fn the_items_of_a_loop_and_the_attempts_of_a_retry_draw_their_own() {
    let spec = "
templates:
- name: main
  steps: [[{name: a, template: say, withItems: [1, 1, 1]}]]
- name: say
  retryStrategy: {limit: 1}
  container: {image: i, command: [c], args: ['{{=sprig.uuidv4()}}']}";
    let done = Play::with(spec, Script::default().on("a", exit(1))).finish();
    let drawn = words(done.tasks.values());
    assert_eq!(drawn.iter().collect::<BTreeSet<_>>().len(), done.tasks.len());
    assert!(done.tasks.len() >= 3);
}

#[test]
fn parameters_of_the_workflow_are_drawn_once_and_differ() {
    let spec = "
arguments: {parameters: [{name: one, value: '{{=sprig.randAlphaNum(20)}}'}, {name: two, value: '{{=sprig.randAlphaNum(20)}}'}]}
templates:
- name: main
  steps:
  - - {name: a, template: say}
  - - {name: b, template: say}
- {name: say, container: {image: i, command: [c], args: ['{{workflow.parameters.one}}', '{{workflow.parameters.two}}']}}";
    let done = Play::new(spec).finish();
    let args: Vec<&Vec<String>> = done.tasks.values().map(|task| &task.main.args).collect();
    assert_eq!(args[0], args[1]);
    assert_ne!(args[0][0], args[0][1]);
    assert_eq!(args[0][0].len(), 20);
}

#[test]
fn conditions_and_outputs_go_by_the_present() {
    let done = check(
        "
templates:
- name: main
  steps:
  - - {name: a, template: ok}
  - - {name: b, template: ok, when: '{{=now().Year() < 2000}}'}
    - {name: c, template: ok, when: '{{=now().Year() == 2023}}'}
  outputs: {parameters: [{name: day, valueFrom: {expression: \"sprig.date('2006-01-02', sprig.now())\"}}]}
---
nodes: {b: Skipped, c: Succeeded}
phase: Succeeded",
    );
    assert_eq!(done.output("w", "day"), "2023-11-14");
}
