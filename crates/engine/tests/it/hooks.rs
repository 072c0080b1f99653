//! F: life-cycle hooks other than exit handlers.

use std::time::Duration;

use octoflow_engine::{Command, Input};
use octoflow_model::{
    Fact,
    argo::{Role, WorkflowFact},
};

use crate::{
    answer::{Script, exit, never},
    check::check,
    done::Done,
    play::{Play, RUN, refused},
    text::manifest,
};

/// Names of fired hooks, in order.
fn fired(done: &Done) -> Vec<String> {
    let hooks = done.facts.iter().filter_map(|fact| match fact {
        Fact::Workflow(WorkflowFact::Added(added)) if matches!(added.role, Role::Hook(_) | Role::RunHook(_)) => {
            Some(added.name.clone())
        }
        _ => None,
    });
    hooks.collect()
}

#[test]
fn f07_hooks_of_the_workflow_fire_when_it_runs_and_when_it_is_over() {
    let done = check(
        "
hooks:
  running: {expression: workflow.status == 'Running', template: ok}
  succeed: {expression: workflow.status == 'Succeeded', template: echo, arguments: {parameters: [{name: m, value: '{{workflow.status}}'}]}}
  failed: {expression: workflow.status == 'Failed', template: ok}
onExit: ok
templates: [{name: main, container: {image: i, command: [c]}}]
---
phase: Succeeded
progress: 4/4
nodes: {w.hooks.running: Succeeded, w.hooks.succeed: Succeeded, w.onExit: Succeeded}
said: {w.hooks.succeed: Succeeded}
absent: [w.hooks.failed]",
    );
    assert_eq!(done.node("w.hooks.running")["nodeFlag"]["hooked"], true);
    let children: Vec<&str> =
        done.node("w")["children"].as_array().unwrap().iter().filter_map(|id| id.as_str()).collect();
    assert!(children.contains(&done.node("w.hooks.running")["id"].as_str().unwrap()), "{children:?}");
    let begun: Vec<&str> = done.starts.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(begun, ["w", "w.hooks.running", "w.hooks.succeed", "w.onExit"]);
    check(
        "
hooks: {failed: {expression: workflow.status == 'Failed', template: ok}}
templates: [{name: main, container: {image: i, command: [c]}}]
---
answers: {main: 3}
phase: Failed
nodes: {w.hooks.failed: Succeeded}",
    );
}

#[test]
fn f08_a_hook_without_an_expression_is_refused() {
    let spec = "{hooks: {failure: {template: ok}}, templates: [{name: main, container: {image: i}}]}";
    assert!(refused(spec).contains("hooks.failure Expression required"), "{}", refused(spec));
    let spec = "{templates: [{name: main, steps: [[{name: a, template: ok, hooks: {now: {template: ok}}}]]}]}";
    assert!(refused(spec).contains("hooks.now Expression required"), "{}", refused(spec));
}

#[test]
fn f09_the_workflow_waits_for_a_hook_that_is_still_at_work() {
    let spec = "
hooks: {running: {expression: workflow.status == 'Running', template: slow}}
templates:
- {name: main, container: {image: i, command: [c]}}
- {name: slow, container: {image: i, command: [c]}}";
    let mut play = Play::of(manifest(spec), Script::default().on("slow", exit(0).after(10)));
    play.advance(Duration::from_secs(5));
    let run = play.engine.run_of::<octoflow_engine::argo::Run>(RUN).unwrap();
    assert!(!run.state.finished());
    assert_eq!(run.state.progress, (1, 2));
    let done = play.finish();
    assert_eq!((done.phase(), done.status()["progress"].as_str().unwrap()), ("Succeeded", "2/2"));
}

#[test]
fn f10_hooks_nobody_needs_do_not_fire() {
    check(
        "
templates:
- name: main
  dag:
    tasks:
    - {name: A, template: fail, hooks: {good: {expression: tasks.A.status == 'Succeeded', template: ok}}}
    - name: B
      template: ok
      dependencies: [A]
      hooks:
        running: {expression: tasks.B.status == 'Running', template: ok}
        good: {expression: tasks.B.status == 'Succeeded', template: ok}
---
phase: Failed
progress: 0/1
nodes: {A: Failed, B: Omitted}
absent: [A.hooks.good, B.hooks.running, B.hooks.good]",
    );
}

#[test]
fn f11_each_item_of_a_loop_has_its_own_hooks() {
    let done = check(
        "
templates:
- name: main
  steps:
  - - name: a
      template: echo
      withItems: [x, z]
      arguments: {parameters: [{name: m, value: '{{item}}'}]}
      hooks:
        running: {expression: steps.a.status == 'Running', template: echo, arguments: {parameters: [{name: m, value: 'r {{item}}'}]}}
        done: {expression: steps.a.status == 'Succeeded', template: echo, arguments: {parameters: [{name: m, value: 'd {{item}}'}]}}
  - - {name: b, template: d}
- name: d
  dag: {tasks: [{name: t, template: ok, withItems: [1, 2], hooks: {running: {expression: tasks.t.status == 'Running', template: ok}}}]}
---
phase: Succeeded
said: {'a(0:x).hooks.running': r x, 'a(1:z).hooks.running': r z, 'a(0:x).hooks.done': d x, 'a(1:z).hooks.done': d z}
nodes: {'t(0:1).hooks.running': Succeeded, 't(1:2).hooks.running': Succeeded}
absent: [t.hooks.running]",
    );
    assert_eq!(fired(&done).len(), 6);
}

#[test]
fn f13_a_hooks_arguments_can_use_parameters_and_the_nodes_own_outputs() {
    check(
        "
arguments: {parameters: [{name: who, value: me}]}
hooks: {late: {expression: workflow.status == 'Succeeded', template: echo, arguments: {parameters: [{name: m, value: '{{workflow.parameters.who}}'}]}}}
templates:
- name: main
  steps:
  - - name: a
      template: make
      hooks:
        got: {expression: steps.a.outputs.parameters.p == 'made', template: echo, arguments: {parameters: [{name: m, value: '{{steps.a.outputs.parameters.p}} {{steps.a.status}}'}]}}
---
phase: Succeeded
said: {w.hooks.late: me, a.hooks.got: made Succeeded}",
    );
}

#[test]
fn a12_a_hook_is_named_after_its_node_and_sees_it_running_however_short_it_is() {
    let done = check(
        "
templates:
- name: main
  dag: {tasks: [{name: step-1, template: ok, hooks: {running: {expression: \"tasks['step-1'].status == 'Running'\", template: slow}}}, {name: after, template: ok, depends: step-1}]}
- {name: slow, container: {image: i, command: [c]}}
---
answers: {step-1: {after: 0}, slow: {after: 60}}
phase: Succeeded
nodes: {w.step-1.hooks.running: Succeeded}",
    );
    assert_eq!(done.node("w.step-1.hooks.running")["displayName"], "step-1.hooks.running");
    assert_eq!(done.node("w.step-1.hooks.running")["nodeFlag"]["hooked"], true);
    // What comes after waits for the hook.
    let begun: Vec<&str> = done.starts.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(begun, ["w.step-1", "w.step-1.hooks.running", "w.after"]);
    assert!(done.starts[2].0 > done.starts[1].0);
}

#[test]
fn how_a_hook_ends_changes_nothing() {
    check(
        "
hooks: {bad: {expression: workflow.status == 'Running', template: fail}}
templates:
- name: main
  steps: [[{name: a, template: ok, hooks: {bad: {expression: steps.a.status == 'Succeeded', template: fail}}}], [{name: b, template: ok}]]
---
phase: Succeeded
nodes: {w.hooks.bad: Failed, a.hooks.bad: Failed, a: Succeeded, b: Succeeded}",
    );
}

#[test]
fn a_retried_call_has_its_hooks_on_the_node_above_the_attempts() {
    let done = check(
        "
templates:
- name: main
  steps:
  - - name: a
      template: again
      hooks:
        running: {expression: steps.a.status == 'Running', template: ok}
        failed: {expression: steps.a.status == 'Failed', template: ok}
        exit: {template: ok}
- {name: again, retryStrategy: {limit: 1}, container: {image: i, command: [c]}}
---
answers: {again: 1}
phase: Failed
nodes: {a.hooks.running: Succeeded, a.hooks.failed: Succeeded, a.onExit: Succeeded}",
    );
    assert_eq!(fired(&done), ["w[0].a.hooks.running", "w[0].a.hooks.failed", "w[0].a.onExit"]);
}

#[test]
fn a_hook_that_finds_no_room_at_its_moment_fires_when_there_is_some() {
    let done = check(
        "
parallelism: 1
hooks: {running: {expression: workflow.status == 'Running', template: ok}}
templates:
- {name: main, steps: [[{name: a, template: inner}]]}
- name: inner
  parallelism: 1
  steps: [[{name: b, template: ok, hooks: {running: {expression: steps.b.status == 'Running', template: ok}}}], [{name: c, template: ok}]]
---
phase: Succeeded
nodes: {b.hooks.running: Succeeded, w.hooks.running: Succeeded, c: Succeeded}",
    );
    assert_eq!(done.crowd, 1);
}

#[test]
fn suspended_steps_and_whole_templates_have_hooks_too() {
    let done = check(
        "
templates:
- name: main
  steps:
  - - {name: a, template: pause, hooks: {running: {expression: steps.a.status == 'Running', template: ok}}}
    - {name: b, template: inner, hooks: {running: {expression: steps.b.status == 'Running', template: ok}, done: {expression: steps.b.status == 'Succeeded', template: ok}}}
- {name: pause, suspend: {duration: 5s}}
- {name: inner, dag: {tasks: [{name: c, template: ok}]}}
---
phase: Succeeded
nodes: {a.hooks.running: Succeeded, b.hooks.running: Succeeded, b.hooks.done: Succeeded}",
    );
    assert_eq!(fired(&done).len(), 3);
}

#[test]
fn a_hook_may_look_at_its_neighbours_and_at_what_the_run_hands_out() {
    check(
        "
templates:
- name: main
  steps:
  - - {name: a, template: ok, hooks: {neighbour: {expression: steps.b.status == 'Failed', template: ok}, told: {expression: workflow.outputs.parameters.g == 'made', template: ok}}}
    - {name: b, template: fail, continueOn: {failed: true}}
    - {name: c, template: global}
- name: global
  container: {image: i, command: [c], args: [made]}
  outputs: {parameters: [{name: p, globalName: g, valueFrom: {path: /p}}]}
---
answers: {a: {after: 60}}
phase: Succeeded
nodes: {a.hooks.neighbour: Succeeded, a.hooks.told: Succeeded}",
    );
}

#[test]
fn stopping_ends_hooks_and_starts_no_more_of_them() {
    let spec = "
hooks: {running: {expression: workflow.status == 'Running', template: endless}, failed: {expression: workflow.status == 'Failed', template: ok}}
templates:
- name: main
  steps: [[{name: a, template: endless, hooks: {running: {expression: steps.a.status == 'Running', template: endless}, failed: {expression: steps.a.status == 'Failed', template: ok}, exit: {template: ok}}}]]
- {name: endless, container: {image: i, command: [c]}}
onExit: ok";
    for (command, exits) in [(Command::Stop, true), (Command::Terminate, false)] {
        // Two of each, so that the one that is told to run is hooked.
        let mut play = Play::of(manifest(spec), Script::default().on("endless", never()));
        play.tell_all();
        play.advance(Duration::from_secs(5));
        play.input(Input::Command { run: RUN, command });
        let done = play.finish();
        assert_eq!(done.phase(), "Failed");
        assert_eq!(done.node_phase("w.hooks.running"), "Failed");
        assert_eq!(done.node_phase("a.hooks.running"), "Failed");
        assert!(done.find("a.hooks.failed").is_none() && done.find("w.hooks.failed").is_none());
        assert_eq!(done.find("w.onExit").is_some(), exits);
        assert_eq!(done.find("a.onExit").is_some(), exits);
    }
}

#[test]
fn the_deadline_of_the_run_ends_its_hooks() {
    check(
        "
activeDeadlineSeconds: 5
hooks: {running: {expression: workflow.status == 'Running', template: endless}}
templates:
- {name: main, container: {image: i, command: [c]}}
- {name: endless, container: {image: i, command: [c]}}
---
answers: {endless: {never: true}}
phase: Succeeded
nodes: {w: Succeeded, w.hooks.running: Failed}
messages: {w.hooks.running: Step exceeded its deadline}",
    );
}

#[test]
fn a_hook_that_makes_no_sense_is_an_error_of_its_own() {
    check(
        "
templates:
- name: main
  steps: [[{name: a, template: ok, hooks: {odd: {expression: steps.a.status, template: ok}, lost: {expression: steps.a.status == 'Succeeded', template: echo, arguments: {parameters: [{name: m, value: '{{steps.a.outputs.result}}'}]}}}}]]
---
phase: Succeeded
nodes: {a: Succeeded, a.hooks.odd: Error}",
    );
}

#[test]
fn a_suspended_run_fires_its_hooks_when_it_is_resumed() {
    let spec = "
templates:
- name: main
  steps: [[{name: a, template: ok, hooks: {running: {expression: steps.a.status == 'Running', template: ok}}}]]";
    let mut play = Play::of(manifest(spec), Script::default().on("a", exit(0).after(10)));
    play.input(Input::Command { run: RUN, command: Command::Suspend });
    play.advance(Duration::from_secs(30));
    assert!(!play.over());
    play.input(Input::Command { run: RUN, command: Command::Resume { selector: None, supplied: Default::default() } });
    let done = play.finish();
    assert_eq!((done.phase(), done.node_phase("a.hooks.running")), ("Succeeded", "Succeeded"));
}

#[test]
fn a_skipped_or_omitted_node_can_have_hooks_and_they_are_waited_for() {
    let done = check(
        "
templates:
- name: main
  steps:
  - - {name: a, template: ok, when: 'false', onExit: ok, hooks: {skipped: {expression: steps.a.status == 'Skipped', template: slow}}}
    - {name: none, template: ok, withItems: [], hooks: {skipped: {expression: steps.none.status == 'Skipped', template: ok}}}
  - - {name: b, template: d}
- name: d
  dag:
    tasks:
    - {name: c, template: ok}
    - {name: o, template: ok, depends: c.Failed, hooks: {omitted: {expression: tasks.o.status == 'Omitted', template: ok}}}
- {name: slow, container: {image: i, command: [c]}}
---
answers: {slow: {after: 30}}
phase: Succeeded
nodes: {a.hooks.skipped: Succeeded, none.hooks.skipped: Succeeded, o.hooks.omitted: Succeeded}
absent: [a.onExit]",
    );
    assert!(done.started_at("w[1].b.c") >= Duration::from_secs(30), "the next group waits for the hook");
}

#[test]
fn a_run_goes_on_with_its_hooks_after_a_restart_at_any_moment() {
    let spec = "
parallelism: 1
hooks: {begun: {expression: workflow.status == 'Running', template: ok}, good: {expression: workflow.status == 'Succeeded', template: ok}}
templates:
- name: main
  steps:
  - - {name: a, template: ok, onExit: ok, hooks: {running: {expression: steps.a.status == 'Running', template: ok}, over: {expression: steps.a.status == 'Succeeded', template: ok}}}";
    let whole = Play::new(spec).finish();
    assert_eq!(whole.phase(), "Succeeded");
    assert_eq!(fired(&whole).len(), 5, "{:#?}", fired(&whole));
    for moment in 0..40 {
        let mut play = Play::new(spec);
        for _ in 0..moment {
            if play.over() {
                break;
            }
            play.step();
        }
        if !play.over() {
            play.restart(crate::play::ROOMY, false);
        }
        let done = play.finish();
        let (mut left, mut right) = (fired(&done), fired(&whole));
        left.sort();
        right.sort();
        assert_eq!(left, right, "restarted after {moment} steps");
    }
}
