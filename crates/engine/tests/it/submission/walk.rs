//! The stages, by the numbers of the scenarios.

use std::time::Duration;

use octoflow_model::{
    plugin::PluginType::{AccessGate, FactorGenerator, SchedulerBinder, TemplateDecorator, TemplateTranslator},
    request::Answer,
    submitted::WalkState,
};
use serde_json::{Value, json};

use super::world::{World, feature, task_set};

fn plain() -> Value {
    json!({})
}

#[test]
fn pl_09_a_feature_counts_from_the_next_stage_on() {
    let gate = |name| feature(name, AccessGate, &plain());
    let mut off = gate("off");
    off.spec.enabled = false;
    let mut world = World::new(&[gate("on"), off]);
    world.submit(&task_set());
    assert_eq!(world.called(), ["on"]);
    // The stage is bound: whoever comes now has missed it, and whoever goes is called all the same.
    let decorator = feature("late", TemplateDecorator, &plain());
    world.put_features(&[gate("new"), decorator]);
    world.answer("on", &json!({"decision": "pass"}));
    assert_eq!(world.called(), ["on", "late"]);
}

#[test]
fn pl_16_the_header_of_a_job_has_reserved_names_that_nobody_overrides() {
    let mut world = World::new(&[feature("d", TemplateDecorator, &plain())]);
    world.submit_with(&json!({
        "userID": "ada", "jobName": "n", "jobKind": "TaskSet", "submittedBy": "token-of-ada", "job": task_set(),
        "header": {"jobID": "x", "userID": "eve", "submittedBy": "root", "team": {"name": "x"}},
    }));
    let header = &world.calls[0].body["header"];
    let wanted = json!({"jobID": "j1", "userID": "ada", "jobName": "n", "jobKind": "TaskSet",
                        "submittedBy": "token-of-ada", "team": {"name": "x"}});
    assert_eq!(*header, wanted);
}

#[test]
fn pl_17_a_kind_that_nobody_translates_and_nobody_runs_fails_by_name() {
    let mut world = World::new(&[feature("g", AccessGate, &plain())]);
    world.submit(&json!({"kind": "TFJob"}));
    assert_eq!(world.state(), WalkState::Failed);
    assert!(world.message().contains("TFJob"), "{}", world.message());
    assert!(world.calls.is_empty() && world.ordered().is_none());
}

#[test]
fn a_kind_that_runs_here_needs_no_translator() {
    let mut world = World::new(&[]);
    let spec = json!({"entrypoint": "m", "templates": [{"name": "m", "container": {"image": "i", "command": ["c"]}}]});
    world.submit(&json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "spec": spec}));
    assert_eq!(world.state(), WalkState::Pending);
    world.create_child();
    assert_eq!(world.object()["status"]["child"]["kind"], "Workflow");
}

#[test]
fn a_submitted_job_is_no_job_of_another_one() {
    let mut world = World::new(&[]);
    world.submit(&json!({"apiVersion": "octoflow.io/v1alpha1", "kind": "SubmittedJob"}));
    assert_eq!(world.state(), WalkState::Failed);
}

#[test]
fn pl_18_two_translators_are_named_and_none_is_called() {
    let mut world =
        World::new(&[feature("one", TemplateTranslator, &plain()), feature("other", TemplateTranslator, &plain())]);
    world.submit(&json!({"kind": "TFJob"}));
    assert_eq!(world.state(), WalkState::Failed);
    for key in ["TemplateTranslator.one.a", "TemplateTranslator.other.a"] {
        assert!(world.message().contains(key), "{}", world.message());
    }
    assert!(world.calls.is_empty());
}

#[test]
fn pl_19_a_task_set_meets_no_translator() {
    let mut world = World::new(&[feature("t", TemplateTranslator, &plain())]);
    world.submit(&task_set());
    assert_eq!((world.state(), world.calls.len()), (WalkState::Pending, 0));
}

#[test]
fn pl_20_a_translator_makes_a_task_set() {
    for (answer, passes) in [(json!({"kind": "Other"}), false), (json!({"kind": "taskset"}), false), (task_set(), true)]
    {
        let mut world = World::new(&[feature("t", TemplateTranslator, &plain())]);
        world.submit(&json!({"kind": "TFJob"}));
        world.answer("t", &answer);
        assert_eq!(world.state() == WalkState::Pending, passes, "{}", world.message());
        assert_eq!(world.calls[0].body["header"]["jobKind"], "TFJob");
    }
}

#[test]
fn pl_21_factors_come_in_order_and_each_generator_sees_those_before() {
    let generator = |name| feature(name, FactorGenerator, &plain());
    let mut world = World::new(&[
        generator("user"),
        generator("empty"),
        generator("task"),
        feature("t", TemplateTranslator, &plain()),
        feature("d", TemplateDecorator, &plain()),
    ]);
    world.submit(&json!({"kind": "TFJob"}));
    world.answer("t", &task_set());
    world.answer("user", &json!({"topic": "priority", "advice": 10, "reason": "user is admin"}));
    world.answer("empty", &json!({"topic": "other", "advice": ""}));
    world.answer("task", &json!([{"topic": "priority", "advice": "4"}, {"topic": "priority", "advice": "1"}]));
    let last = &world.calls.last().unwrap().body;
    let advices: Vec<&str> =
        last["factors"]["priority"].as_array().unwrap().iter().filter_map(|one| one["advice"].as_str()).collect();
    assert_eq!(advices, ["10", "4", "1"]);
    assert_eq!(last["factors"].as_object().unwrap().len(), 1, "the empty one is absent");
    assert_eq!((&last["header"]["jobKind"], &last["job"]["kind"]), (&json!("TFJob"), &json!("TaskSet")));
    assert_eq!(
        world.calls[3].body["factors"]["priority"].as_array().unwrap().len(),
        1,
        "a generator sees what there is"
    );
}

#[test]
fn a_factor_generator_may_fail_if_its_feature_says_so() {
    let ignored = feature("soft", FactorGenerator, &json!({"onFailure": "ignore", "tries": 1}));
    let mut world = World::new(&[ignored, feature("hard", FactorGenerator, &json!({"tries": 1}))]);
    world.submit(&task_set());
    world.respond("soft", 500, "");
    world.respond("hard", 500, "");
    assert_eq!(world.state(), WalkState::Failed);
    assert!(world.message().contains("FactorGenerator.hard.a") && world.message().contains("500"));
}

#[test]
fn pl_23_a_decision_that_is_none_is_named() {
    let mut world = World::new(&[feature("g", AccessGate, &plain())]);
    world.submit(&task_set());
    world.answer("g", &json!({"decision": "maybe"}));
    assert_eq!(world.state(), WalkState::Failed);
    assert!(world.message().contains("maybe") && world.message().contains("AccessGate.g.a"), "{}", world.message());
}

fn decorated(change: impl FnOnce(&mut Value)) -> World {
    let mut world = World::new(&[feature("d", TemplateDecorator, &plain())]);
    world.submit(&task_set());
    let mut job = task_set();
    change(&mut job);
    world.answer("d", &job);
    world
}

type Change = fn(&mut Value);

const POD: &str = "/spec/roles/0/template/spec";

#[test]
fn pl_26_a_decorator_adds_and_the_job_has_both() {
    let world = decorated(|job| {
        let pod = job.pointer_mut(POD).unwrap();
        pod["volumes"] = json!([{"name": "v", "emptyDir": {}}]);
        pod["containers"][0]["env"] = json!([{"name": "A", "value": "1"}]);
        let side = json!({"name": "side", "image": "i", "command": ["c"]});
        pod["containers"].as_array_mut().unwrap().insert(0, side);
    });
    let (_, manifest) = world.ordered().expect("it is handed over");
    let pod = manifest.pointer(POD).unwrap();
    assert_eq!((&pod["containers"][0]["name"], &pod["containers"][1]["name"]), (&json!("side"), &json!("main")));
    assert_eq!(pod["volumes"][0]["name"], "v");
}

#[test]
fn pl_27_a_decorator_that_changes_or_takes_away_is_told_where() {
    let changes: [(&str, Change); 3] = [
        ("image", |job| job.pointer_mut(POD).unwrap()["containers"][0]["image"] = json!("other")),
        ("replicas", |job| drop(job["spec"]["roles"][0].as_object_mut().unwrap().remove("replicas"))),
        ("containers", |job| job.pointer_mut(POD).unwrap()["containers"] = json!([])),
    ];
    for (place, change) in changes {
        let world = decorated(change);
        assert_eq!(world.state(), WalkState::Failed, "{place}");
        let message = world.message();
        assert!(message.contains("TemplateDecorator.d.a") && message.contains("spec.roles[0]"), "{message}");
    }
}

#[test]
fn pl_28_commands_are_only_prepended() {
    for (script, passes) in [
        ("echo hi;sleep 20;exit 0", true),
        ("exit 0;sleep 20", false),
        ("sleep 20;exit 0;echo hi", false),
        ("echo hi;exit 0", false),
    ] {
        let world = decorated(|job| {
            job.pointer_mut(POD).unwrap()["containers"][0]["command"] = json!(["sh", "-c", script]);
        });
        assert_eq!(world.state() == WalkState::Pending, passes, "{script}: {}", world.message());
    }
}

#[test]
fn the_scheduler_is_the_binders_to_add_and_nobodys_to_change() {
    let with = |job: &mut Value, name: &str| job.pointer_mut(POD).unwrap()["schedulerName"] = json!(name);
    assert_eq!(decorated(|job| with(job, "gang")).state(), WalkState::Failed);
    for (before, passes) in [(None, true), (Some("mine"), false)] {
        let mut world = World::new(&[feature("b", SchedulerBinder, &plain())]);
        let mut job = task_set();
        before.iter().for_each(|name| with(&mut job, name));
        world.submit(&job);
        with(&mut job, "gang");
        world.answer("b", &job);
        assert_eq!(world.state() == WalkState::Pending, passes, "{}", world.message());
    }
}

#[test]
fn a_conflict_names_the_plugin_that_had_set_the_value() {
    let mut world =
        World::new(&[feature("first", TemplateDecorator, &plain()), feature("second", TemplateDecorator, &plain())]);
    world.submit(&task_set());
    let mut job = task_set();
    job["spec"]["added"] = json!(1);
    world.answer("first", &job);
    assert_eq!(world.calls[1].body["job"]["spec"]["added"], 1, "each decorates what the one before it has made");
    job["spec"]["added"] = json!(2);
    world.answer("second", &job);
    let message = world.message();
    for part in ["TemplateDecorator.second.a", "TemplateDecorator.first.a", "spec.added"] {
        assert!(message.contains(part), "{part} is not in: {message}");
    }
}

#[test]
fn pl_30_one_binder_binds_two_are_named_and_none_is_no_failure() {
    let binder = |name| feature(name, SchedulerBinder, &plain());
    let mut world = World::new(&[binder("one"), binder("other")]);
    world.submit(&task_set());
    assert_eq!((world.state(), world.calls.len()), (WalkState::Failed, 0));
    assert!(world.message().contains("SchedulerBinder.one.a") && world.message().contains("SchedulerBinder.other.a"));
    let mut world = World::new(&[]);
    world.submit(&task_set());
    let (_, manifest) = world.ordered().unwrap();
    assert!(manifest.pointer(POD).unwrap().get("schedulerName").is_none());
}

#[test]
fn pl_31_odd_values_survive_a_decorator() {
    let odd = json!({"quoted": "a \"b\"", "less": -1, "half": 1.5, "many": (0..12).collect::<Vec<_>>()});
    let mut world = World::new(&[feature("d", TemplateDecorator, &plain())]);
    let mut job = task_set();
    job["metadata"]["annotations"]["odd"] = json!(odd.to_string());
    job["odd"] = odd;
    world.submit(&job);
    let mut more = job.clone();
    more["odd"]["many"].as_array_mut().unwrap().push(json!(12));
    world.answer("d", &more);
    assert_eq!(
        world.object()["status"]["job"]["odd"]["many"].as_array().map(Vec::len),
        Some(13),
        "{}",
        world.message()
    );
}

#[test]
fn pl_33_failures_name_plugin_and_status_and_only_what_may_pass_is_tried_again() {
    for (status, tries) in [(500, 3), (503, 3), (404, 1), (302, 1)] {
        let mut world = World::new(&[feature("g", AccessGate, &plain())]);
        world.submit(&task_set());
        let mut pauses = Vec::new();
        while world.state() == WalkState::Preparing {
            world.respond("g", status, "the body");
            if world.state() == WalkState::Preparing {
                pauses.push(world.wait().unwrap());
            }
        }
        assert_eq!(world.calls.len(), tries, "{status}");
        assert!(pauses.windows(2).all(|pair| pair[0] < pair[1]), "{pauses:?}");
        let message = world.message();
        assert!(message.contains("AccessGate.g.a") && message.contains(&status.to_string()), "{message}");
        assert!(!message.contains("the body"), "{message}");
        let keys: Vec<&str> = world.calls.iter().map(|call| call.key.as_str()).collect();
        assert!(keys.iter().all(|key| *key == "j1/AccessGate.g.a"), "one question has one key: {keys:?}");
        assert_eq!(world.object()["status"]["trace"][0]["tries"], tries);
    }
}

#[test]
fn pl_33_a_time_out_is_tried_again_and_then_told() {
    let mut world = World::new(&[feature("g", AccessGate, &json!({"tries": 2}))]);
    world.submit(&task_set());
    let silent = || Answer::Refused("http://plugins/g did not answer within 5 s".to_owned());
    world.report("g", silent());
    world.wait();
    world.report("g", silent());
    assert_eq!(world.state(), WalkState::Failed);
    assert!(world.message().contains("did not answer within 5 s (tried 2 times)"), "{}", world.message());
}

#[test]
fn calls_carry_what_their_feature_has_and_follow_nobody() {
    let mut world = World::new(&[feature("g", AccessGate, &plain())]);
    world.submit(&task_set());
    let call = &world.calls[0];
    assert!(call.headers.contains(&("Authorization".to_owned(), "Basic c2VjcmV0".to_owned())));
    assert!(!call.follow);
    let journal = serde_json::to_string(&world.journals[&super::world::JOB]).unwrap();
    assert!(!journal.contains("c2VjcmV0"), "a journal has no credentials");
}

#[test]
fn the_plugins_of_a_job_have_a_budget_together() {
    let slow = json!({"tries": 10, "timeoutSeconds": 30});
    let features: Vec<_> = ["a", "b", "c"]
        .map(|name| {
            feature(name, FactorGenerator, &{
                let mut slow = slow.clone();
                slow["onFailure"] = json!("ignore");
                slow
            })
        })
        .into();
    let mut world = World::new(&features);
    world.submit(&task_set());
    while world.state() == WalkState::Preparing {
        match world.call() {
            Some((_, plugin)) => {
                world.now = world.now.saturating_add(Duration::from_secs(30));
                let name = plugin.split('.').nth(1).unwrap().to_owned();
                world.report(&name, Answer::Refused("it did not answer within 30 s".to_owned()));
            }
            None => drop(world.wait()),
        }
    }
    assert_eq!((world.state(), world.calls.len()), (WalkState::Failed, 20));
    assert!(world.message().contains("10 minutes"), "{}", world.message());
}
