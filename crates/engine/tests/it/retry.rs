//! E: retries.

use std::time::Duration;

use octoflow_engine::Command;

use crate::{
    answer::{Script, exit, never},
    check::check,
    done::Done,
    play::Play,
    text::manifest,
};

/// A root that is retried by this strategy and always exits with 1.
fn retried(strategy: &str, script: Script) -> Play {
    let spec = format!("templates: [{{name: main, retryStrategy: {strategy}, container: {{image: i, command: [c]}}}}]");
    Play::with(&spec, script.on("main", exit(1)))
}

fn attempts(done: &Done) -> usize {
    done.count() - 1
}

#[test]
fn e01_a_limit_of_nothing_is_one_attempt() {
    let done = retried("{limit: 0}", Script::default()).finish();
    assert_eq!((done.phase(), done.message(), attempts(&done)), ("Failed", "No more retries left", 1));
    assert_eq!(done.status()["progress"], "0/1");
}

#[test]
fn e02_the_limit_may_come_from_a_variable() {
    let done = check(
        "
arguments: {parameters: [{name: limit, value: 1}]}
templates:
- name: main
  inputs: {parameters: [{name: limit}]}
  retryStrategy: {limit: '{{inputs.parameters.limit}}'}
  container: {image: i, command: [c]}
---
answers: {main: 1}
phase: Failed
message: No more retries left",
    );
    assert_eq!(done.count(), 3);
}

#[test]
fn e03_the_longest_duration_bounds_the_attempts() {
    let done = retried("{limit: 10, backoff: {duration: 10s, maxDuration: 1m}}", Script::default()).finish();
    assert_eq!(done.phase(), "Failed");
    assert!(done.count() <= 10, "{}", done.count());
    assert_eq!(done.message(), "Backoff would exceed max duration limit");
}

#[test]
fn e04_while_it_waits_the_retry_node_says_for_how_long() {
    let mut play = retried("{limit: 3, backoff: {duration: 2, factor: 2}}", Script::default());
    let message =
        |play: &Play| play.engine.run(crate::play::RUN).unwrap().state.nodes[0].message.as_deref().map(str::to_owned);
    play.advance(Duration::from_secs(1));
    assert_eq!(message(&play).as_deref(), Some("Backoff for 2 seconds"));
    play.advance(Duration::from_secs(2));
    assert_eq!(message(&play), None);
    play.advance(Duration::from_secs(1));
    assert_eq!(message(&play).as_deref(), Some("Backoff for 4 seconds"));
    let done = play.finish();
    assert_eq!(done.started_at("w(2)").as_secs(), 8);
    assert_eq!(attempts(&done), 4);
}

#[test]
fn e05_an_expression_that_is_false_ends_it() {
    let done = retried("{limit: 5, retryPolicy: Always, expression: 'false'}", Script::default()).finish();
    assert_eq!((done.message(), attempts(&done)), ("retryStrategy.expression evaluated to false", 1));
}

#[test]
fn e06_the_limit_is_checked_before_the_expression() {
    let done = retried("{limit: 0, retryPolicy: Always, expression: 'false'}", Script::default()).finish();
    assert_eq!(done.message(), "No more retries left");
}

fn errors(strategy: &str) -> Done {
    let lost = crate::answer::Answer::ends(crate::answer::Ending::Surroundings("the disk is full".into()));
    retried(strategy, Script::default().on("main", lost)).finish()
}

#[test]
fn e07_a_policy_that_does_not_match_keeps_the_attempts_own_message() {
    let done = errors("{limit: 3, retryPolicy: OnFailure}");
    assert_eq!((done.phase(), done.message(), attempts(&done)), ("Error", "the disk is full", 1));
    let done = retried("{limit: 3, retryPolicy: OnError}", Script::default()).finish();
    assert_eq!((done.phase(), done.message(), attempts(&done)), ("Failed", "main: Error (exit code 1)", 1));
}

#[test]
fn e08_errors_are_retried_by_default_only_when_an_expression_decides() {
    assert_eq!(attempts(&errors("{limit: 2}")), 1);
    assert_eq!(attempts(&errors("{limit: 2, expression: 'true'}")), 3);
    assert_eq!(attempts(&errors("{limit: 2, retryPolicy: OnError}")), 3);
    assert_eq!(attempts(&errors("{limit: 2, retryPolicy: Always}")), 3);
}

#[test]
fn e09_an_expression_sees_the_exit_code() {
    let strategy = "{limit: 9, expression: 'asInt(lastRetry.exitCode) > 1'}";
    let done = retried(strategy, Script::default().on("w(0)", exit(3)).on("w(1)", exit(2))).finish();
    assert_eq!((attempts(&done), done.message()), (3, "retryStrategy.expression evaluated to false"));
    let strategy = "{limit: 9, expression: \"lastRetry.status == 'Failed' && asInt(retries) < 2\"}";
    assert_eq!(attempts(&retried(strategy, Script::default()).finish()), 3);
}

#[test]
fn e10_e11_each_attempt_knows_its_number_and_how_the_last_one_ended() {
    let done = check(
        "
templates:
- name: main
  retryStrategy: {limit: 2}
  container: {image: i, command: [c], args: ['{{retries}} {{lastRetry.exitCode}} {{lastRetry.status}} {{=asInt(retries) + 10}}']}
---
answers: {w(0): 7, w(1): 8}
phase: Succeeded",
    );
    assert_eq!(done.said("w(0)"), "0 0  10");
    assert_eq!(done.said("w(1)"), "1 7 Failed 11");
    assert_eq!(done.said("w(2)"), "2 8 Failed 12");
}

#[test]
fn e12_an_unknown_policy_is_said_to_be_none() {
    let spec = "templates: [{name: main, retryStrategy: {limit: 1, retryPolicy: noExist}, container: {image: i, command: [c]}}]";
    let done = Play::unchecked(manifest(spec), Script::default().on("main", exit(1))).finish();
    assert_eq!(done.message(), "noExist is not a valid RetryPolicy");
}

#[test]
fn e13_a_huge_factor_does_not_overflow() {
    let strategy = "{limit: 9, backoff: {duration: 1h, factor: 1000000, maxDuration: 2h}}";
    assert_eq!(retried(strategy, Script::default()).finish().message(), "Backoff would exceed max duration limit");
    let strategy = "{limit: 9, backoff: {duration: 1h, factor: 1000000, cap: 2h}}";
    assert_eq!(retried(strategy, Script::default()).finish().message(), "No more retries left");
}

#[test]
fn e14_a_retry_node_has_the_outputs_of_its_last_attempt() {
    let done = check(
        "
templates:
- {name: main, steps: [[{name: a, template: flaky}], [{name: b, template: echo, arguments: {parameters: [{name: m, value: '{{steps.a.outputs.parameters.p}}/{{steps.a.outputs.exitCode}}/{{steps.a.outputs.result}}'}]}}]]}
- name: flaky
  retryStrategy: {limit: 2}
  container: {image: i, command: [c]}
  outputs: {parameters: [{name: p, valueFrom: {path: /tmp/p}}]}
---
answers: {a(0): 1, a(1): {parameters: {p: good}, result: out}}
phase: Succeeded
said: {b: good/0/out}",
    );
    assert_eq!(done.output("a", "p"), "good");
}

#[test]
fn e15_the_exit_handler_of_a_retried_step_sees_the_last_attempts_outputs() {
    check(
        "
templates:
- name: main
  steps:
  - - name: a
      template: flaky
      hooks: {exit: {template: echo, arguments: {parameters: [{name: m, value: '{{steps.a.outputs.parameters.p}}'}]}}}
- name: flaky
  retryStrategy: {limit: 2}
  container: {image: i, command: [c]}
  outputs: {parameters: [{name: p, valueFrom: {path: /tmp/p}}]}
---
answers: {a(0): 1, a(1): {parameters: {p: good}}}
phase: Succeeded
said: {a.onExit: good}",
    );
}

#[test]
fn e16_stopping_ends_the_retrying() {
    let mut play = retried("{limit: 9}", Script::default().on("w(1)", never()));
    play.advance(Duration::from_secs(5));
    play.command(Command::Stop).unwrap();
    let done = play.finish();
    assert_eq!((done.phase(), done.node_phase("w"), attempts(&done)), ("Failed", "Failed", 2));
    assert_eq!(done.node_message("w"), "Stopped with strategy 'Stop'");
    assert_eq!(done.node_message("w(1)"), "workflow shutdown with strategy:  Stop");
}

#[test]
fn e16_stopping_ends_the_waiting_between_attempts() {
    let mut play = retried("{limit: 9, backoff: {duration: 1h}}", Script::default());
    play.advance(Duration::from_secs(5));
    play.command(Command::Stop).unwrap();
    assert!(play.over());
    let done = play.done();
    assert_eq!(done.node_message("w"), "Stopped with strategy 'Stop'");
    assert_eq!(done.message(), "Stopped with strategy 'Stop'");
}

#[test]
fn e17_the_workflows_own_strategy_retries_every_template_without_one() {
    let done = check(
        "
retryStrategy: {limit: 1}
templates:
- {name: main, steps: [[{name: a, template: fail}]]}
---
phase: Failed
nodes: {w: Failed, w(0): Failed, 'w(0)[0].a': Failed, 'w(0)[0].a(1)': Failed, 'w(1)[0].a(1)': Failed}",
    );
    assert_eq!(done.node("w")["type"], "Retry");
    assert_eq!(done.node("w(0)")["type"], "Steps");
    assert_eq!(done.children("w"), ["w(0)", "w(1)"]);
}

#[test]
fn e18_the_longest_duration_counts_from_the_first_attempt() {
    let strategy = "{limit: 9, retryPolicy: Always, backoff: {duration: 1, maxDuration: '5'}}";
    let lost = crate::answer::Answer::ends(crate::answer::Ending::Surroundings("disk".into()));
    let done = retried(strategy, Script::default().on("w(0)", lost.after(4)).on("main", exit(1).after(9))).finish();
    // The second attempt may not run beyond the fifth second.
    assert_eq!(done.node_message("w(1)"), "Pod was active on the node longer than the specified deadline");
    assert_eq!(done.message(), "Max duration limit exceeded");
}

#[test]
fn back_off_waits_without_a_limit_too() {
    let done = retried("{backoff: {duration: 10}}", Script::default().on("w(2)", exit(0))).finish();
    assert_eq!((done.phase(), done.started_at("w(2)").as_secs()), ("Succeeded", 22));
}

#[test]
fn a_lost_task_is_an_error_and_follows_the_retry_rules() {
    let lost = crate::answer::Answer::ends(crate::answer::Ending::Lost("the machine went away".into()));
    let done =
        retried("{limit: 3, retryPolicy: Always}", Script::default().on("w(0)", lost).on("w(1)", exit(0))).finish();
    assert_eq!((done.phase(), done.node_phase("w(0)")), ("Succeeded", "Error"));
    assert_eq!(done.node_message("w(0)"), "lost: the machine went away");
}

#[test]
fn the_longest_duration_ends_attempts_of_whole_templates_too() {
    for (body, name) in [
        (
            "steps: [[{name: a, template: ok, onExit: ok}], [{name: b, template: slow}, {name: c, template: wait}], [{name: d, template: ok}]]",
            "c",
        ),
        ("dag: {tasks: [{name: b, template: slow}, {name: c, template: inner, depends: b.Failed}]}", "'w[0].x(0)'"),
    ] {
        let done = check(&format!(
            "
templates:
- {{name: main, steps: [[{{name: x, template: again, continueOn: {{failed: true}}}}], [{{name: y-after, template: ok}}]]}}
- name: again
  retryStrategy: {{limit: 5, retryPolicy: Always, backoff: {{duration: 1s, maxDuration: 10s}}}}
  {body}
- {{name: inner, steps: [[{{name: deep, template: slow}}]]}}
- {{name: slow, container: {{image: i, command: [c]}}}}
---
answers: {{slow: {{never: true}}}}
phase: Succeeded
nodes: {{x: Failed, y-after: Succeeded, b: Failed, {name}: Failed}}
messages: {{x: Max duration limit exceeded, b: Step exceeded its deadline}}
absent: ['x(1)', d]"
        ));
        let begun = done.starts.iter().find(|(_, name)| name == "w[1].y-after").unwrap().0;
        assert!(begun.since(crate::play::DAWN) < Duration::from_secs(12), "{begun}");
    }
}

#[test]
fn the_longest_duration_reaches_deep_and_lets_handlers_run() {
    let done = check(
        "
templates:
- {name: main, steps: [[{name: x, template: again}]]}
- name: again
  retryStrategy: {limit: 5, backoff: {maxDuration: 10s}}
  dag: {tasks: [{name: t, template: inner, onExit: ok}, {name: u, template: ok, depends: t.Failed}]}
- {name: inner, retryStrategy: {limit: 3}, steps: [[{name: deep, template: slow, onExit: late}]]}
- {name: slow, container: {image: i, command: [c]}}
- {name: late, container: {image: i, command: [c]}}
---
answers: {slow: {never: true}, late: {after: 20}}
phase: Failed
nodes: {x: Failed, t: Failed, deep.onExit: Succeeded, t.onExit: Succeeded}
absent: ['t(1)', 'x(1)', u]",
    );
    assert_eq!(done.starts.len(), 3);
}
