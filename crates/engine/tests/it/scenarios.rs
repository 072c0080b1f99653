//! The acceptance scenarios of the Argo dialect, by their numbers.

use std::time::Duration;

use octoflow_engine::Command;

use crate::{
    answer::{Script, exit, prints},
    check::check,
    play::{Play, RUN},
};

#[test]
fn aw_01_the_diamond_runs_in_order() {
    let done = check(
        "
templates:
- name: main
  dag:
    tasks:
    - {name: A, template: echo, arguments: {parameters: [{name: m, value: A}]}}
    - {name: B, dependencies: [A], template: echo, arguments: {parameters: [{name: m, value: B}]}}
    - {name: C, dependencies: [A], template: echo, arguments: {parameters: [{name: m, value: C}]}}
    - {name: D, dependencies: [B, C], template: echo, arguments: {parameters: [{name: m, value: D}]}}
---
answers: {C: {after: 5}}
phase: Succeeded
progress: 4/4
said: {A: A, B: B, C: C, D: D}",
    );
    let starts: Vec<u64> = ["A", "B", "C", "D"].map(|task| done.started_at(&format!("w.{task}")).as_secs()).to_vec();
    assert_eq!(starts, [0, 1, 1, 6]);
}

#[test]
fn aw_04_a_result_is_the_exact_output() {
    check(
        r#"
templates:
- name: main
  steps:
  - [{name: gen, template: say}]
  - [{name: use, template: echo, arguments: {parameters: [{name: m, value: '{{steps.gen.outputs.result}}'}]}}]
---
answers: {gen: {result: '{"a": [1, "two"]}'}}
phase: Succeeded
said: {use: '{"a": [1, "two"]}'}"#,
    );
}

const COINFLIP: &str = "
templates:
- name: main
  steps:
  - [{name: flip-coin, template: say}]
  - - {name: heads, template: ok, when: '{{steps.flip-coin.outputs.result}} == heads'}
    - {name: tails, template: main, when: '{{steps.flip-coin.outputs.result}} == tails'}";

#[test]
fn aw_05_the_coin_is_flipped_until_it_shows_heads() {
    let script = Script::default()
        .on("w[0].flip-coin", prints("tails"))
        .on("w[1].tails[0].flip-coin", prints("tails"))
        .on("say", prints("heads"));
    let done = Play::with(COINFLIP, script).finish();
    assert_eq!(done.phase(), "Succeeded");
    assert_eq!(done.node_phase("w[1].heads"), "Skipped");
    assert_eq!(done.node_phase("w[1].tails[1].tails[1].heads"), "Succeeded");
    assert_eq!(done.node_phase("w[1].tails[1].tails[1].tails"), "Skipped");
}

#[test]
fn aw_05_an_endless_recursion_meets_its_limit() {
    let done = Play::with(COINFLIP, Script::default().on("say", prints("tails"))).finish();
    assert_eq!(done.phase(), "Failed");
    let deepest = format!("w{}[0].flip-coin", "[1].tails".repeat(99));
    assert_eq!(done.node_phase(&deepest), "Error");
    assert!(done.node_message(&deepest).contains("Maximum recursion depth exceeded"));
}

#[test]
fn aw_06_conditions_compare_unquoted_words() {
    check(
        "
templates:
- name: main
  steps:
  - [{name: flip, template: say}]
  - - {name: same, template: ok, when: '{{steps.flip.outputs.result}} == heads'}
    - {name: other, template: ok, when: '{{steps.flip.outputs.result}} != heads'}
    - {name: neither, template: ok, when: '{{steps.flip.outputs.result}}'}
---
answers: {flip: {result: heads}}
phase: Failed
nodes: {same: Succeeded, other: Skipped, neither: Error}",
    );
}

#[test]
fn aw_07_siblings_of_a_failed_step_finish_and_later_groups_never_start() {
    check(
        "
templates:
- {name: main, steps: [[{name: a, template: ok}], [{name: b, template: fail}, {name: c, template: ok}], [{name: d, template: ok}]]}
---
answers: {c: {after: 30}}
phase: Failed
nodes: {a: Succeeded, b: Failed, c: Succeeded}
absent: [d]",
    );
}

#[test]
fn aw_08_a_forgiven_failure_lets_the_rest_run() {
    check(
        "
templates:
- name: main
  steps:
  - [{name: a, template: ok}]
  - [{name: b, template: fail, continueOn: {failed: true}}, {name: c, template: ok}]
  - [{name: d, template: ok}]
---
phase: Succeeded
nodes: {b: Failed, d: Succeeded}",
    );
}

#[test]
fn aw_10_a_task_for_a_failure_that_never_came_is_omitted() {
    check(
        "
templates: [{name: main, dag: {tasks: [{name: A, template: ok}, {name: B, template: ok, depends: A.Failed}]}}]
---
phase: Succeeded
nodes: {B: Omitted}",
    );
}

fn resume() -> Command {
    Command::Resume { selector: None, supplied: Default::default() }
}

#[test]
fn aw_12_a_suspension_waits_for_a_person() {
    let spec = "templates: [{name: main, steps: [[{name: a, template: ok}], [{name: pause, template: wait}], [{name: b, template: ok}]]}]";
    let mut play = Play::new(spec);
    play.advance(Duration::from_secs(1000));
    let state = &play.engine.run_of::<octoflow_engine::argo::Run>(RUN).unwrap().state;
    let pause = state.nodes.iter().find(|node| node.name.ends_with("pause")).unwrap();
    assert_eq!(pause.phase.word(), "Running");
    assert_eq!((state.phase.word(), play.starts.len()), ("Running", 1));
    play.command(resume()).unwrap();
    let done = play.finish();
    assert_eq!((done.phase(), done.started_at("w[2].b").as_secs()), ("Succeeded", 1000));
}

#[test]
fn aw_13_a_suspension_ends_after_its_duration() {
    for (duration, seconds) in [("2", 2), ("2s", 2), ("1m", 60)] {
        let spec = format!(
            "
templates:
- {{name: main, steps: [[{{name: pause, template: pause}}], [{{name: b, template: ok}}]]}}
- {{name: pause, suspend: {{duration: {duration:?}}}}}"
        );
        let done = Play::new(&spec).finish();
        assert_eq!((done.phase(), done.started_at("w[1].b").as_secs()), ("Succeeded", seconds));
    }
}

#[test]
fn aw_14_suspending_lets_the_running_task_finish_and_starts_no_other() {
    let spec =
        "templates: [{name: main, dag: {tasks: [{name: A, template: ok}, {name: B, template: ok, depends: A}]}}]";
    let mut play = Play::with(spec, Script::default().on("A", exit(0).after(10)));
    play.command(Command::Suspend).unwrap();
    play.advance(Duration::from_secs(100));
    assert_eq!(play.starts.len(), 1);
    assert!(!play.over());
    play.command(resume()).unwrap();
    let done = play.finish();
    assert_eq!((done.phase(), done.started_at("w.B").as_secs()), ("Succeeded", 100));
}

#[test]
fn aw_21_retries_wait_longer_each_time() {
    let done = check(
        "
templates:
- name: main
  retryStrategy: {limit: 2, retryPolicy: OnFailure, backoff: {duration: '1', factor: 2}}
  container: {image: i, command: [c]}
---
answers: {main: {exit: 1, after: 10}}
phase: Failed
message: No more retries left",
    );
    let starts: Vec<u64> = ["w(0)", "w(1)", "w(2)"].map(|attempt| done.started_at(attempt).as_secs()).to_vec();
    assert_eq!(starts, [0, 11, 23]);
    assert_eq!(done.count(), 4);
}

#[test]
fn aw_22_a_loop_keeps_its_limit_and_its_results_are_a_list() {
    let done = check(
        "
templates:
- name: main
  parallelism: 2
  steps:
  - [{name: a, template: echo, withItems: [1, 2, 3], arguments: {parameters: [{name: m, value: '{{item}}'}]}}]
  - [{name: b, template: echo, arguments: {parameters: [{name: m, value: '{{steps.a.outputs.result}}'}]}}]
  - [{name: c, template: echo, withParam: '{{steps.a.outputs.result}}', arguments: {parameters: [{name: m, value: 'n{{item}}'}]}}]
---
answers: {'a(0:1)': {after: 9}}
phase: Succeeded
said: {b: '[1,2,3]', 'c(2:3)': n3}",
    );
    assert_eq!(done.crowd, 2);
}

#[test]
fn aw_24_an_engine_killed_in_the_middle_goes_on_and_runs_nothing_twice() {
    let spec = "
templates:
- name: main
  dag:
    tasks:
    - {name: A, template: ok}
    - {name: B, template: flaky, depends: A, onExit: ok}
    - {name: C, template: ok, depends: A, withItems: [1, 2, 3]}
    - {name: D, template: pause, depends: B && C}
    - {name: E, template: ok, depends: D}
- {name: flaky, retryStrategy: {limit: 2, backoff: {duration: 5}}, container: {image: i, command: [c]}}
- {name: pause, suspend: {duration: '7'}}";
    let script = || Script::default().on("B(0)", exit(1)).on("C(1:2)", exit(0).after(3));
    let expected = Play::with(spec, script()).finish();
    for kill in 0..30 {
        let mut play = Play::with(spec, script());
        for _ in 0..kill {
            if !play.over() {
                play.step();
            }
        }
        play.restart(crate::play::ROOMY, kill % 2 == 0);
        let done = play.finish();
        assert_eq!(done.object, expected.object, "killed after {kill} events");
        assert_eq!(done.started(), expected.started());
    }
}
