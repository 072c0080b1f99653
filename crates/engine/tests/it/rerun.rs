//! J: doing a run again: what is kept, what runs again and why.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use octoflow_engine::{
    Capacity, Command,
    argo::rerun::{
        RerunOptions, RerunPlan, RerunRefusal, RunContext, memoized, plan, resubmit_manifest, retry_manifest,
    },
};
use octoflow_model::{
    AttemptId, Fact, NodeIx, RunId, Time,
    argo::{Phase, WorkflowFact},
    previous::PreviousRun,
    submission::Stored,
};
use proptest::prelude::*;
use serde_json::Value;

use crate::{
    answer::{Script, exit, never, prints},
    done::Done,
    plan::{Dice, Plan},
    play::{Play, ROOMY},
    text::complete,
};

fn options() -> RerunOptions {
    RerunOptions::default()
}

fn planned(done: &Done, options: &RerunOptions) -> RerunPlan {
    plan(&done.object, &context(done), options).unwrap_or_else(|why| panic!("{why}"))
}

/// Every node that ran a task has a log.
fn context(done: &Done) -> RunContext {
    let names = done.starts.iter().enumerate();
    let attempts = names.map(|(at, (_, name))| {
        let id = done.node(name)["id"].as_str().expect("a node has an id").to_owned();
        (id, AttemptId { run: RunId(1), task: NodeIx(at as u32), attempt: 0 })
    });
    RunContext { attempts: attempts.collect(), ..RunContext::default() }
}

fn retried(done: &Done, options: &RerunOptions, script: Script) -> Play {
    retried_with(done, options, script, ROOMY)
}

fn retried_with(done: &Done, options: &RerunOptions, script: Script, capacity: Capacity) -> Play {
    let fresh = retry_manifest(&done.object, &options.parameters);
    let before = planned(done, options).before(vec![RunId(7)]);
    Play::after(fresh.manifest, fresh.stored, before, script, capacity)
}

/// Names and reasons of what would run again.
fn reasons(done: &Done, options: &RerunOptions) -> Vec<(String, String)> {
    planned(done, options).rerun.into_iter().map(|one| (one.node, one.why.to_string())).collect()
}

/// A node as displayed, without the fields that depend on its environment.
fn shown(done: &Done, name: &str) -> BTreeMap<String, Value> {
    let node = done.node(name).as_object().expect("a node is an object").clone();
    node.into_iter().filter(|(field, _)| !matches!(field.as_str(), "children" | "estimatedDuration")).collect()
}

const DIAMOND: &str = "
templates:
- name: main
  dag:
    tasks:
    - {name: a, template: makes}
    - {name: b, template: ok, depends: a}
    - {name: c, template: flaky, depends: a}
    - {name: d, template: takes, depends: b && c, arguments: {parameters: [{name: p, value: '{{tasks.a.outputs.parameters.x}}'}]}}
- {name: makes, container: {image: i, command: [c]}, outputs: {parameters: [{name: x, valueFrom: {path: /x}, globalName: g}]}}
- {name: flaky, container: {image: i, command: [c]}}
- {name: takes, inputs: {parameters: [{name: p}]}, container: {image: i, command: [c], args: ['{{inputs.parameters.p}}']}}
";

fn diamond() -> Done {
    let mut makes = exit(0);
    makes.parameters = vec![("x".to_owned(), Some("42".to_owned()))];
    Play::with(DIAMOND, Script::default().on("a", makes).on("c", exit(3))).finish()
}

#[test]
fn j11_what_succeeded_is_not_run_again_and_keeps_what_it_gave() {
    let first = diamond();
    assert_eq!((first.phase(), first.node_phase("d")), ("Failed", "Omitted"));
    let second = retried(&first, &options(), Script::default()).finish();
    assert_eq!(second.phase(), "Succeeded");
    assert_eq!(second.started(), ["w.c", "w.d"]);
    assert_eq!(second.said("d"), "42");
    assert_eq!(second.status()["outputs"]["parameters"][0]["value"], "42");
    assert_eq!(second.status()["progress"], "4/4");
    for name in ["w.a", "w.b"] {
        assert_eq!(shown(&first, name), shown(&second, name));
    }
    assert_eq!(second.node("w")["startedAt"], first.node("w.a")["startedAt"], "the work began when it began");
}

#[test]
fn j11_a_dry_run_says_what_runs_again_and_why() {
    let first = diamond();
    let again = reasons(&first, &options());
    assert_eq!(
        again,
        [
            ("w.c".to_owned(), "it ended Failed: main: Error (exit code 3)".to_owned()),
            ("w.d".to_owned(), "it was omitted and may run now".to_owned()),
        ],
        "{again:?}"
    );
    let from = RerunOptions { from: vec!["b".to_owned()], ..options() };
    assert_eq!(reasons(&first, &from)[0], ("w.b".to_owned(), "it was chosen".to_owned()));
    let unknown = RerunOptions { nodes: vec!["x".to_owned()], ..options() };
    let refused = plan(&first.object, &RunContext::default(), &unknown);
    assert_eq!(refused, Err(RerunRefusal::NoNode { node: "x".to_owned() }));
}

#[test]
fn j12_a_task_that_was_omitted_has_its_turn_after_a_retry() {
    let first = diamond();
    let second = retried(&first, &options(), Script::default()).finish();
    assert_eq!((first.node_phase("d"), second.node_phase("d")), ("Omitted", "Succeeded"));
    let third = retried(&first, &options(), Script::default().on("c", exit(1))).finish();
    assert_eq!((third.phase(), third.node_phase("d")), ("Failed", "Omitted"));
}

#[test]
fn j13_a_memoized_resubmit_shows_what_succeeded_as_skipped_and_has_its_outputs() {
    let first = diamond();
    let again = memoized(&first.object, &context(&first), Time::from_secs(1_800_000_000)).unwrap();
    let fresh = resubmit_manifest(&first.object, &[]);
    let second = Play::after(fresh.manifest, fresh.stored, again.before(Vec::new()), Script::default(), ROOMY).finish();
    assert_eq!((second.phase(), second.started()), ("Succeeded", vec!["w.c", "w.d"]));
    let a = second.node("w.a");
    assert_eq!((&a["type"], &a["phase"]), (&"Skipped".into(), &"Skipped".into()));
    assert_eq!(second.node_message("w.a"), format!("original pod: {}", first.node("w.a")["id"].as_str().unwrap()));
    assert_eq!((second.output("w.a", "x"), second.said("d")), ("42", "42"));
    // Such a run can be retried like any other.
    let failing = Play::after(
        resubmit_manifest(&first.object, &[]).manifest,
        Stored::default(),
        memoized(&first.object, &context(&first), Time::from_secs(1_800_000_000)).unwrap().before(Vec::new()),
        Script::default().on("c", exit(1)),
        ROOMY,
    );
    let third = retried(&failing.finish(), &options(), Script::default()).finish();
    assert_eq!((third.phase(), third.started(), third.said("d")), ("Succeeded", vec!["w.c", "w.d"], "42"));
    assert_eq!(third.node("w.a")["phase"], "Skipped");
}

#[test]
fn j13_a_task_taken_over_counts_as_succeeded_for_whoever_asks() {
    let spec = "
templates:
- name: main
  dag:
    tasks:
    - {name: fan, template: again, withItems: [x, z]}
    - {name: sum, template: takes, depends: fan.Succeeded, arguments: {parameters: [{name: p, value: '{{tasks.fan.outputs.result}}'}]}}
- {name: again, retryStrategy: {limit: 3}, script: {image: i, command: [c], source: s}}
- {name: takes, inputs: {parameters: [{name: p}]}, container: {image: i, command: [c], args: ['{{inputs.parameters.p}}']}}
";
    let script = Script::default().on("w.fan(1:z)(0)", exit(1)).on("again", prints("v")).on("sum", exit(1));
    let first = Play::with(spec, script).finish();
    assert_eq!(first.phase(), "Failed");
    let again = memoized(&first.object, &context(&first), Time(0)).unwrap();
    let fresh = resubmit_manifest(&first.object, &[]);
    let second = Play::after(fresh.manifest, fresh.stored, again.before(Vec::new()), Script::default(), ROOMY).finish();
    assert_eq!((second.phase(), second.started()), ("Succeeded", vec!["w.sum"]));
    assert_eq!(second.said("sum"), "[\"v\",\"v\"]");
    assert_eq!(second.node_phase("w.fan(1:z)"), "Succeeded");
}

#[test]
fn j14_a_run_that_is_open_or_ended_well_is_not_retried_without_saying_what() {
    let mut play = Play::new("templates: [{name: main, suspend: {}}]");
    let open = octoflow_engine::argo::status::object(
        play.engine.run_of::<octoflow_engine::argo::Run>(crate::play::RUN).unwrap(),
    );
    let refused = plan(&open, &RunContext::default(), &options()).unwrap_err();
    assert_eq!(refused.to_string(), "Cannot retry a workflow in phase Running");
    play.command(Command::Resume { selector: None, supplied: BTreeMap::new() }).unwrap();
    let done = play.done();
    let refused = plan(&done.object, &RunContext::default(), &options()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "To retry a succeeded workflow, set the options restartSuccessful and nodeFieldSelector"
    );
    for selector in ["name=w", "phase=Succeeded"] {
        let chosen = RerunOptions { restart_successful: true, selector: Some(selector.to_owned()), ..options() };
        assert_eq!(reasons(&done, &chosen), [("w".to_owned(), "it was chosen".to_owned())]);
    }
    let half = RerunOptions { selector: Some("name=w".to_owned()), ..options() };
    assert_eq!(plan(&done.object, &RunContext::default(), &half), Err(RerunRefusal::Succeeded));
    let none = RerunOptions { restart_successful: true, selector: Some("name=x".to_owned()), ..options() };
    assert!(matches!(plan(&done.object, &RunContext::default(), &none), Err(RerunRefusal::NoMatch { .. })));
    let refused = memoized(&done.object, &RunContext::default(), Time(0)).unwrap_err();
    assert_eq!(refused.to_string(), "Workflow must be Failed/Error to resubmit in memoized mode");
}

#[test]
fn chosen_nodes_run_again_with_or_without_what_comes_after_them() {
    let spec = "
templates:
- {name: main, steps: [[{name: a, template: ok}], [{name: b, template: inner}], [{name: c, template: ok}]]}
- {name: inner, steps: [[{name: x, template: ok}], [{name: z, template: ok}]]}
";
    let first = Play::new(spec).finish();
    assert_eq!(first.phase(), "Succeeded");
    let only = RerunOptions { nodes: vec!["b".to_owned()], ..options() };
    let second = retried(&first, &only, Script::default()).finish();
    assert_eq!((second.phase(), second.started()), ("Succeeded", vec!["w[1].b[0].x", "w[1].b[1].z"]));
    let onwards = RerunOptions { from: vec!["x".to_owned()], ..options() };
    let third = retried(&first, &onwards, Script::default()).finish();
    assert_eq!(third.started(), ["w[1].b[0].x", "w[1].b[1].z", "w[2].c"]);
    let selected = RerunOptions { restart_successful: true, selector: Some("displayName=z".to_owned()), ..options() };
    let fourth = retried(&first, &selected, Script::default()).finish();
    assert_eq!(fourth.started(), ["w[1].b[1].z", "w[2].c"]);
    assert_eq!(fourth.phases(), first.phases());
}

#[test]
fn attempts_of_a_call_that_came_through_are_not_tried_again_and_not_waited_for() {
    let spec = "
templates:
- {name: main, steps: [[{name: a, template: again}], [{name: b, template: flaky}]]}
- {name: again, retryStrategy: {limit: 3, backoff: {duration: 1h}}, container: {image: i, command: [c]}}
- {name: flaky, retryStrategy: {limit: 1}, container: {image: i, command: [c]}}
";
    let script = Script::default().on("w[0].a(0)", exit(1)).on("w[0].a(1)", exit(1)).on("flaky", exit(2));
    let first = Play::with(spec, script).finish();
    assert_eq!((first.phase(), first.node_phase("w[0].a")), ("Failed", "Succeeded"));
    assert_eq!(reasons(&first, &options()).len(), 1, "a retried call is told once");
    let play = retried(&first, &options(), Script::default());
    assert_eq!(play.starts.len(), 1, "nothing is waited for");
    let second = play.finish();
    assert_eq!((second.phase(), second.started()), ("Succeeded", vec!["w[1].b(0)"]));
    for name in ["w[0].a(0)", "w[0].a(1)", "w[0].a(2)"] {
        assert_eq!(shown(&first, name), shown(&second, name));
    }
    assert!(second.find("w[1].b(1)").is_none());
}

#[test]
fn a_failure_that_was_forgiven_is_kept_unless_somebody_wants_it_again() {
    let spec = "
templates:
- name: main
  steps:
  - [{name: a, template: fail, continueOn: {failed: true}}, {name: r, template: again, continueOn: {failed: true}}]
  - [{name: b, template: ok}]
  - [{name: c, template: flaky}]
- {name: again, retryStrategy: {limit: 1}, container: {image: i, command: [c]}}
- {name: flaky, container: {image: i, command: [c]}}
";
    let script = || Script::default().on("again", exit(1)).on("a", exit(1));
    let first = Play::with(spec, script().on("flaky", exit(1))).finish();
    let second = retried(&first, &options(), script()).finish();
    assert_eq!((second.phase(), second.started()), ("Succeeded", vec!["w[2].c"]));
    for name in ["w[0].a", "w[0].r(0)", "w[0].r(1)", "w[1].b"] {
        assert_eq!(shown(&first, name), shown(&second, name));
    }
    assert_eq!((second.node_phase("w[0].r"), second.node_message("w[0].r")), ("Failed", "No more retries left"));
    let all = RerunOptions { failed: true, ..options() };
    let third = retried(&first, &all, Script::default()).finish();
    assert_eq!(third.started(), ["w[0].a", "w[0].r(0)", "w[1].b", "w[2].c"]);
}

#[test]
fn what_came_after_a_failure_is_done_again_with_it() {
    let spec = "
templates:
- name: main
  dag:
    tasks:
    - {name: a, template: flaky}
    - {name: rescue, template: ok, depends: a.Failed}
    - {name: next, template: ok, depends: a.Succeeded}
- {name: flaky, container: {image: i, command: [c]}}
";
    let first = Play::with(spec, Script::default().on("flaky", exit(1))).finish();
    assert_eq!((first.phase(), first.node_phase("rescue")), ("Failed", "Succeeded"));
    let second = retried(&first, &options(), Script::default().on("flaky", exit(1))).finish();
    assert_eq!(second.started(), ["w.a", "w.rescue"], "a new failure needs a new rescue");
    let third = retried(&first, &options(), Script::default()).finish();
    assert_eq!(
        (third.phase(), third.node_phase("rescue"), third.node_phase("next")),
        ("Succeeded", "Omitted", "Succeeded")
    );
}

#[test]
fn handlers_go_with_what_they_belong_to_and_that_of_the_run_always_runs() {
    let spec = "
onExit: bye
hooks: {running: {template: note, expression: workflow.status == 'Running'}}
templates:
- name: main
  steps:
  - - name: a
      template: ok
      hooks:
        exit: {template: note}
        running: {template: note, expression: steps.a.status == 'Running'}
        missed: {template: note, expression: steps.a.status == 'Failed'}
  - - {name: b, template: flaky, onExit: note}
- {name: flaky, container: {image: i, command: [c]}}
- {name: note, container: {image: i, command: [c]}}
- {name: bye, steps: [[{name: x, template: note}]]}
";
    let mut play = Play::with(spec, Script::default().on("flaky", exit(1)));
    play.tell_all();
    let first = play.finish();
    assert_eq!(first.node_phase("w[0].a.hooks.running"), "Succeeded");
    let second = retried(&first, &options(), Script::default()).finish();
    let mut started = second.started();
    started.sort_unstable();
    assert_eq!(started, ["w.hooks.running", "w.onExit[0].x", "w[1].b", "w[1].b.onExit"]);
    assert_eq!(second.phase(), "Succeeded");
    assert_eq!(first.phases().len(), second.phases().len(), "{:#?}\n{:#?}", first.phases(), second.phases());
    for name in ["w[0].a.hooks.running", "w[0].a.onExit"] {
        assert_eq!(shown(&first, name), shown(&second, name));
    }
}

#[test]
fn a_daemon_runs_again_where_something_beside_it_does_and_nowhere_else() {
    let spec = "
templates:
- {name: main, steps: [[{name: one, template: pair}], [{name: two, template: pair}]]}
- {name: pair, steps: [[{name: db, template: server}], [{name: client, template: ok}]]}
- {name: server, daemon: true, container: {image: i, command: [c]}}
";
    let script = || Script::default().on("server", never());
    let first = Play::with(spec, script().on("w[1].two[1].client", exit(1))).finish();
    assert_eq!(first.phase(), "Failed");
    let second = retried(&first, &options(), script()).finish();
    assert_eq!((second.phase(), second.started()), ("Succeeded", vec!["w[1].two[0].db", "w[1].two[1].client"]));
    assert_eq!(second.node_phase("w[0].one[0].db"), "Succeeded");
}

#[test]
fn what_was_done_needs_no_lock_and_no_cache() {
    let spec = "
templates:
- {name: main, steps: [[{name: a, template: careful}, {name: b, template: tried}], [{name: m, template: kept}], [{name: c, template: flaky}]]}
- {name: careful, synchronization: {mutexes: [{name: m}]}, container: {image: i, command: [c]}}
- {name: tried, retryStrategy: {limit: 2}, synchronization: {mutexes: [{name: m}]}, container: {image: i, command: [c]}}
- {name: kept, memoize: {key: k, cache: {configMap: {name: cache}}}, steps: [[{name: x, template: ok}]]}
- {name: flaky, synchronization: {mutexes: [{name: m}]}, container: {image: i, command: [c]}}
";
    let first = Play::with(spec, Script::default().on("flaky", exit(1)).on("w[0].b(0)", exit(1))).finish();
    assert_eq!(first.phase(), "Failed");
    let second = retried(&first, &options(), Script::default()).finish();
    assert_eq!((second.phase(), second.started()), ("Succeeded", vec!["w[2].c"]));
    let locks = second.facts.iter().filter(|fact| matches!(fact, Fact::Workflow(WorkflowFact::Wanted { .. }))).count();
    assert_eq!(locks, 1, "only what runs asks for its lock");
    assert!(!second.facts.iter().any(|fact| matches!(fact, Fact::Workflow(WorkflowFact::Recalled { .. }))));
    assert_eq!(second.phases(), {
        let mut phases = first.phases();
        for name in ["w", "w[2]", "w[2].c"] {
            phases.insert(name.to_owned(), phases[name].replace("Failed", "Succeeded"));
        }
        phases
    });
}

#[test]
fn containers_and_suspensions_that_are_over_stay_over() {
    let spec = "
templates:
- {name: main, steps: [[{name: set, template: set}, {name: ask, template: ask}], [{name: c, template: takes, arguments: {parameters: [{name: p, value: '{{steps.ask.outputs.parameters.who}}'}]}}]]}
- name: set
  containerSet:
    containers: [{name: one, image: i, command: [c]}, {name: main, image: i, command: [c], dependencies: [one]}]
- name: ask
  suspend: {}
  outputs: {parameters: [{name: who, valueFrom: {supplied: {}}}]}
- {name: takes, inputs: {parameters: [{name: p}]}, container: {image: i, command: [c], args: ['{{inputs.parameters.p}}']}}
";
    let mut play = Play::with(spec, Script::default().on("takes", exit(1)));
    play.advance(Duration::from_secs(5));
    let supplied = [("who".to_owned(), "me".to_owned())].into();
    play.command(Command::Resume { selector: None, supplied }).unwrap();
    let first = play.finish();
    let second = retried(&first, &options(), Script::default()).finish();
    assert_eq!((second.phase(), second.started(), second.said("c")), ("Succeeded", vec!["w[1].c"], "me"));
    for name in ["w[0].set", "w[0].set.one", "w[0].set.main", "w[0].ask"] {
        assert_eq!(shown(&first, name), shown(&second, name));
    }
    assert_eq!(second.status()["progress"], first.status()["progress"].as_str().unwrap().replacen('4', "5", 1));
}

#[test]
fn a_task_whose_artifact_is_gone_is_run_again() {
    let spec = "
templates:
- {name: main, steps: [[{name: a, template: makes}], [{name: b, template: flaky}]]}
- {name: makes, container: {image: i, command: [c]}, outputs: {artifacts: [{name: f, path: /f}]}}
- {name: flaky, container: {image: i, command: [c]}}
";
    let mut first = Play::with(spec, Script::default().on("flaky", exit(1))).finish();
    let kept = retried(&first, &options(), Script::default()).finish();
    assert_eq!(kept.started(), ["w[1].b"]);
    assert_eq!(shown(&first, "w[0].a"), shown(&kept, "w[0].a"));
    let id = first.node("w[0].a")["id"].as_str().unwrap().to_owned();
    let doomed = RunContext { deleting: [id.clone()].into(), ..RunContext::default() };
    let again = plan(&first.object, &doomed, &options()).unwrap();
    assert_eq!(again.rerun[0].why.to_string(), "its artifact 'f' was deleted");
    first.object["status"]["nodes"][id]["outputs"]["artifacts"][0]["deleted"] = true.into();
    assert_eq!(retried(&first, &options(), Script::default()).finish().started(), ["w[0].a", "w[1].b"]);
}

#[test]
fn arguments_can_be_others_the_next_time() {
    let spec = "
arguments: {parameters: [{name: p, value: old}]}
templates:
- {name: main, steps: [[{name: a, template: ok}], [{name: b, template: says, arguments: {parameters: [{name: p, value: '{{workflow.parameters.p}}'}]}}]]}
- {name: says, inputs: {parameters: [{name: p}]}, container: {image: i, command: [c], args: ['{{inputs.parameters.p}}']}}
";
    let first = Play::with(spec, Script::default().on("b", exit(1))).finish();
    let other = RerunOptions { parameters: vec![("p".to_owned(), "new".to_owned())], ..options() };
    let second = retried(&first, &other, Script::default()).finish();
    assert_eq!((first.said("b"), second.said("b"), second.started()), ("old", "new", vec!["w[1].b"]));
}

#[test]
fn stopping_chosen_nodes_fails_only_them() {
    let spec = "
templates:
- {name: main, steps: [[{name: a, template: wait, continueOn: {failed: true}}, {name: b, template: wait}]]}
- {name: wait, suspend: {}}
";
    let mut play = Play::new(spec);
    let stop = |selector: &str| Command::StopNodes { selector: selector.to_owned(), message: "no".to_owned() };
    assert!(play.command(stop("displayName=x")).is_err());
    play.command(stop("displayName=a")).unwrap();
    play.command(Command::Resume { selector: None, supplied: BTreeMap::new() }).unwrap();
    let done = play.done();
    assert_eq!((done.node_phase("a"), done.node_message("a"), done.node_phase("b")), ("Failed", "no", "Succeeded"));
    assert_eq!(done.phase(), "Succeeded");
}

#[test]
fn a_suspended_node_is_given_values_and_then_an_end() {
    let spec = "
templates:
- name: main
  suspend: {}
  outputs: {parameters: [{name: x, valueFrom: {supplied: {}}}, {name: z, valueFrom: {supplied: {}}}]}
";
    let mut play = Play::new(spec);
    let set = |phase: Option<Phase>, message: &str, outputs: &[(&str, &str)]| Command::Set {
        selector: "name=w".to_owned(),
        phase,
        message: message.to_owned(),
        outputs: outputs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
    };
    let refused = play.command(set(None, "", &[("other", "1")])).unwrap_err();
    assert_eq!(refused.to_string(), "node is not expecting output parameter 'other'");
    assert!(play.command(set(Some(Phase::Running), "", &[])).is_err());
    play.command(set(None, "half", &[("x", "1")])).unwrap();
    play.restart(ROOMY, false);
    let refused = play.command(set(Some(Phase::Succeeded), "", &[])).unwrap_err();
    assert!(refused.to_string().contains("'z' has not been set"), "{refused}");
    play.command(set(Some(Phase::Succeeded), "whole", &[("z", "2")])).unwrap();
    let done = play.done();
    assert_eq!((done.output("w", "x"), done.output("w", "z")), ("1", "2"));
    assert_eq!((done.node_message("w"), done.phase()), ("half; whole", "Succeeded"));
    let mut play = Play::new(spec);
    play.command(set(Some(Phase::Error), "bad", &[])).unwrap();
    assert_eq!(play.done().phase(), "Error");
}

fn random(plan: &Plan) -> Done {
    let answers = plan.clone();
    Play::prepared(complete(plan.spec()), Script::by(move |node| answers.answer(node)), ROOMY, &[]).finish()
}

/// Reused results, by full name.
fn kept(before: &PreviousRun) -> BTreeSet<String> {
    before.results.keys().map(|suffix| format!("w{suffix}")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_retry_never_starts_what_is_kept_and_loses_nothing_that_succeeded(seed in any::<u64>(), size in 1..6_usize) {
        let plan = Plan::new(seed, size);
        let first = random(&plan);
        prop_assume!(first.phase() != "Succeeded");
        let before = planned(&first, &options()).before(Vec::new());
        let kept = kept(&before);
        let told = reasons(&first, &options());
        // Only what comes after a failure that counts, and what goes with it, may have succeeded for nothing.
        let after = |name: &str| told.iter().any(|(node, why)| name.starts_with(node.as_str()) && (why.contains("comes after") || why.contains("handler")));
        for (name, what) in first.phases() {
            if what == "Pod Succeeded" && !after(&name) {
                prop_assert!(kept.contains(&name), "{name} is lost: {told:?}");
            }
        }
        let mut dice = Dice(seed);
        let mut play = retried(&first, &options(), Script::default());
        while !play.over() {
            if dice.chance(20) {
                play.restart(ROOMY, dice.chance(50));
            }
            if !play.over() {
                play.step();
            }
        }
        let second = play.done();
        for name in second.started() {
            prop_assert!(!kept.contains(name), "{name} ran again");
        }
    }

    #[test]
    fn a_retry_where_everything_goes_as_before_ends_as_before(seed in any::<u64>(), size in 1..6_usize, slots in 1..20_usize) {
        let plan = Plan::new(seed, size);
        let first = random(&plan);
        prop_assume!(first.phase() != "Succeeded");
        let answers = plan.clone();
        let script = Script::by(move |node| answers.answer(node));
        let second = retried_with(&first, &options(), script, Capacity { slots, ..ROOMY }).finish();
        prop_assert_eq!(first.phases(), second.phases(), "{:#}", plan.spec());
        prop_assert_eq!(first.phase(), second.phase());
        prop_assert_eq!(&first.status()["progress"], &second.status()["progress"]);
    }
}
