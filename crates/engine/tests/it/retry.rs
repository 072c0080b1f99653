//! E: retries, as far as the scenario files of the program do not show them.

use std::time::Duration;

use crate::{
    answer::{Script, exit},
    check::check,
    play::Play,
};

/// A root that is retried by this strategy and always exits with 1.
fn retried(strategy: &str, script: Script) -> Play {
    let spec = format!("templates: [{{name: main, retryStrategy: {strategy}, container: {{image: i, command: [c]}}}}]");
    Play::with(&spec, script.on("main", exit(1)))
}

#[test]
fn e18_the_longest_duration_counts_from_the_first_attempt() {
    let strategy = "{limit: 9, retryPolicy: Always, backoff: {duration: 1, maxDuration: '5'}}";
    let lost = crate::answer::Answer::ends(crate::answer::Ending::Catalog("disk".into()));
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
