//! Retries and resubmits on a real disk: either the old run or the new one exists, never both and never none, and
//! results are found under the id of the run that made them.

use octoflow_control::{Controller, Error, RerunOptions, ResubmitOptions, read};
use octoflow_engine::Command;
use octoflow_model::{AttemptId, RunId};
use octoflow_store::{Change, Reader};
use serde_json::{Value, json};

use crate::{container, finish, open, resume, submit};

/// A task, a gate that can be failed, and another task.
fn gated() -> Value {
    json!({"metadata": {"generateName": "gated-", "labels": {"team": "a"}}, "spec": {
        "entrypoint": "main",
        "arguments": {"parameters": [{"name": "p", "value": "1"}]},
        "templates": [
            {"name": "main", "steps": [
                [{"name": "first", "template": "leaf"}], [{"name": "gate", "template": "gate"}],
                [{"name": "last", "template": "leaf"}],
            ]},
            {"name": "gate", "suspend": {}},
            {"name": "leaf", "container": container(), "metrics": {"prometheus": [
                {"name": "leaves", "help": "L", "counter": {"value": "1"}},
            ]}},
        ],
    }})
}

fn failed(controller: &Controller, run: RunId) -> Value {
    controller
        .command(run, Command::StopNodes { selector: "displayName=gate".to_owned(), message: "no".to_owned() })
        .unwrap();
    let object = finish(controller, run);
    assert_eq!(object["status"]["phase"], "Failed");
    object
}

fn attempt(reader: &Reader, run: RunId, object: &Value, display: &str) -> Option<AttemptId> {
    let nodes = object["status"]["nodes"].as_object().unwrap();
    let id = nodes.values().find(|node| node["displayName"] == display).unwrap()["id"].as_str().unwrap();
    read::attempts(reader, run).unwrap().into_iter().find(|(node, _)| node == id).map(|(_, attempt)| attempt)
}

/// Waits until the gate is reached: a retry then finds a run that continues by itself.
fn at_the_gate(controller: &Controller, run: RunId) {
    let facts = controller.watch(run);
    let waits = |object: &Value| {
        let nodes = object["status"]["nodes"].as_object().unwrap();
        nodes.values().any(|node| node["displayName"] == "gate" && node["phase"] == "Running")
    };
    while !waits(&controller.object(run).unwrap()) {
        facts.recv().unwrap();
    }
}

fn gate(controller: &Controller, name: &str) -> RunId {
    let run = controller.submit(submit(name, gated())).unwrap();
    at_the_gate(controller, run);
    run
}

#[test]
fn j11_a_retry_takes_the_place_of_the_old_run_and_finds_its_logs() {
    let dir = tempfile::tempdir().unwrap();
    let controller = open(dir.path());
    let first = gate(&controller, "w");
    let old = failed(&controller, first);
    let plan = controller.again_plan(first, &RerunOptions::default()).unwrap();
    assert_eq!(plan.rerun.iter().map(|one| one.display.as_str()).collect::<Vec<_>>(), ["gate"]);

    let second = controller.retry(first, &RerunOptions::default()).unwrap();
    at_the_gate(&controller, second);
    let reader = Reader::open(dir.path()).unwrap();
    assert!(reader.run(first).unwrap().is_none() && reader.archive(first).unwrap().is_none());
    let row = reader.run_by_name("default", None, "w").unwrap().unwrap();
    assert_eq!((row.run, row.phase.as_str(), &json!(row.uid)), (second, "Running", &old["metadata"]["uid"]));
    let open_object = controller.object(second).unwrap();
    assert_eq!(open_object["metadata"]["creationTimestamp"], old["metadata"]["creationTimestamp"]);
    assert_eq!(open_object["metadata"]["labels"]["team"], "a");
    assert_eq!(attempt(&reader, second, &open_object, "first").unwrap().run, first);

    failed(&controller, second);
    let third = controller.retry(second, &RerunOptions::default()).unwrap();
    at_the_gate(&controller, third);
    controller.command(third, resume()).unwrap();
    let new = finish(&controller, third);
    assert_eq!((&new["status"]["phase"], &new["status"]["progress"]), (&json!("Succeeded"), &json!("3/3")));
    let reader = Reader::open(dir.path()).unwrap();
    let attempts = ["first", "last"].map(|name| attempt(&reader, third, &new, name).unwrap().run);
    assert_eq!(attempts, [first, third], "each log is where it was written");
    assert_eq!(read::numbers(&reader, third).unwrap(), [first, second, third]);
    assert!(controller.metrics().unwrap().contains("argo_workflows_leaves 2"), "what is done once counts once");
}

#[test]
fn j11_a_retry_that_is_interrupted_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let controller = open(dir.path());
    let first = gate(&controller, "w");
    failed(&controller, first);
    controller.close().unwrap();
    let controller = open(dir.path());
    let options = RerunOptions { parameters: vec![("p".to_owned(), "2".to_owned())], ..RerunOptions::default() };
    let second = controller.retry(first, &options).unwrap();
    assert!(second > first);
    at_the_gate(&controller, second);
    controller.close().unwrap();

    let controller = open(dir.path());
    drop(controller.restore_run(second).unwrap());
    controller.command(second, resume()).unwrap();
    let object = finish(&controller, second);
    assert_eq!(object["status"]["phase"], "Succeeded");
    assert_eq!(object["spec"]["arguments"]["parameters"], json!([{"name": "p", "value": "2"}]));
    let reader = Reader::open(dir.path()).unwrap();
    assert_eq!(attempt(&reader, second, &object, "first").unwrap().run, first);
}

#[test]
fn j14_a_run_is_retried_once_at_a_time_and_only_when_it_is_over() {
    let dir = tempfile::tempdir().unwrap();
    let controller = open(dir.path());
    let run = gate(&controller, "w");
    let refused = controller.retry(run, &RerunOptions::default()).unwrap_err();
    assert_eq!(refused.to_string(), "Cannot retry a workflow in phase Running");
    failed(&controller, run);
    let second = std::thread::scope(|scope| {
        let tries: Vec<_> = (0..4).map(|_| scope.spawn(|| controller.retry(run, &RerunOptions::default()))).collect();
        let answers: Vec<_> = tries.into_iter().map(|one| one.join().unwrap()).collect();
        let made: Vec<RunId> = answers.iter().filter_map(|answer| answer.as_ref().ok().copied()).collect();
        assert_eq!(made.len(), 1, "{answers:?}");
        made[0]
    });
    assert!(matches!(controller.submit(submit("w", gated())), Err(Error::NameTaken { .. })));
    at_the_gate(&controller, second);
    controller.command(second, resume()).unwrap();
    finish(&controller, second);
    let refused = controller.retry(second, &RerunOptions::default()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "To retry a succeeded workflow, set the options restartSuccessful and nodeFieldSelector"
    );
}

#[test]
fn j13_a_memoized_resubmit_stands_beside_the_old_run() {
    let dir = tempfile::tempdir().unwrap();
    let controller = open(dir.path());
    let first = gate(&controller, "w");
    let memoized = ResubmitOptions { memoized: true, ..ResubmitOptions::default() };
    assert!(matches!(controller.resubmit(first, &memoized), Err(Error::Rerun(_))));
    let old = failed(&controller, first);
    let second = controller.resubmit(first, &memoized).unwrap();
    at_the_gate(&controller, second);
    controller.command(second, resume()).unwrap();
    let new = finish(&controller, second);
    assert_eq!(new["status"]["phase"], "Succeeded");
    assert!(new["metadata"]["name"].as_str().unwrap().starts_with("gated-"));
    assert_ne!(new["metadata"]["uid"], old["metadata"]["uid"]);
    assert_eq!(new["metadata"]["labels"]["workflows.argoproj.io/resubmitted-from-workflow"], "w");
    let nodes = new["status"]["nodes"].as_object().unwrap();
    let first_node = nodes.values().find(|node| node["displayName"] == "first").unwrap();
    let message = first_node["message"].as_str().unwrap();
    assert!(first_node["phase"] == "Skipped" && message.starts_with("original pod: w-"), "{first_node}");
    let reader = Reader::open(dir.path()).unwrap();
    assert!(reader.run(first).unwrap().is_some(), "the old run stays");
    assert_eq!(read::numbers(&reader, second).unwrap(), [second], "and keeps its logs");
    assert_eq!(attempt(&reader, second, &new, "first").unwrap().run, first);
    let third = controller.resubmit(second, &ResubmitOptions::default()).unwrap();
    at_the_gate(&controller, third);
}

#[test]
fn an_argument_that_its_enum_does_not_list_is_refused_and_nothing_is_touched() {
    let dir = tempfile::tempdir().unwrap();
    let controller = open(dir.path());
    let mut manifest = gated();
    manifest["spec"]["arguments"]["parameters"][0]["enum"] = json!(["1", "2"]);
    let run = controller.submit(submit("w", manifest)).unwrap();
    at_the_gate(&controller, run);
    failed(&controller, run);
    let given = |value: &str| vec![("p".to_owned(), value.to_owned())];
    let retried = |value: &str| RerunOptions { parameters: given(value), ..RerunOptions::default() };
    let resubmitted = |value: &str| ResubmitOptions { parameters: given(value), ..ResubmitOptions::default() };
    let refused = [
        controller.again_plan(run, &retried("3")).map(drop),
        controller.retry(run, &retried("3")).map(drop),
        controller.resubmit(run, &resubmitted("3")).map(drop),
    ];
    for refused in refused {
        let Err(Error::Rerun(refusal)) = refused else { panic!("{refused:?}") };
        assert_eq!(refusal.to_string(), "the parameter 'p' cannot be '3'; its enum allows: '1', '2'");
    }
    let beside = controller.resubmit(run, &resubmitted("2")).unwrap();
    assert_eq!(controller.object(beside).unwrap()["spec"]["arguments"]["parameters"][0]["value"], "2");
    let again = controller.retry(run, &retried("2")).unwrap();
    assert_eq!(controller.object(again).unwrap()["spec"]["arguments"]["parameters"][0]["value"], "2");
}

#[test]
fn a_retry_of_a_run_that_was_deleted_meanwhile_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let controller = open(dir.path());
    let run = gate(&controller, "w");
    failed(&controller, run);
    controller.store().commit_wait(Change::DeleteRun { run }.into()).unwrap();
    assert!(matches!(controller.retry(run, &RerunOptions::default()), Err(Error::UnknownRun(_))));
}

#[test]
fn artifacts_that_go_with_the_end_keep_nobody_who_made_none_from_staying_done() {
    let dir = tempfile::tempdir().unwrap();
    let controller = open(dir.path());
    let mut manifest = gated();
    manifest["spec"]["artifactGC"] = json!({"strategy": "OnWorkflowCompletion"});
    let run = controller.submit(submit("w", manifest)).unwrap();
    at_the_gate(&controller, run);
    failed(&controller, run);
    // Nothing made an artifact, so nothing went.
    let second = controller.retry(run, &RerunOptions::default()).unwrap();
    at_the_gate(&controller, second);
    let reader = Reader::open(dir.path()).unwrap();
    let object = controller.object(second).unwrap();
    assert_eq!(attempt(&reader, second, &object, "first").unwrap().run, run);
}
