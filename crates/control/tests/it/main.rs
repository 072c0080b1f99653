//! The controller on a real disk with a runtime that runs nothing: acknowledged data is durable, and runs are resumed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod admission_cache;
mod archiver;
mod cron;
mod cron_job;
mod events;
mod expire;
mod hooks;
mod journals;
mod kept;
mod large;
mod logs;
mod maintenance;
mod meters;
mod model;
mod outage;
mod registry;
mod rerun;
mod resume;
mod scheduling;
mod taskset;

use std::path::Path;

use octoflow_control::{Capacity, Config, Controller, Error, NodeConfig, Place, Submit, read};
use octoflow_engine::Command;
use octoflow_model::{Fact, RunFact, submission::Stored};
use octoflow_store::{Batch, Change, Reader};
use serde_json::{Value, json};

fn open(dir: &Path) -> Controller {
    let capacity = Capacity { slots: 4, cpu_milli: 4000, memory_bytes: 1 << 32 };
    Controller::open(Config {
        data_dir: dir.to_owned(),
        capacity,
        node: NodeConfig::default(),
        place: Place::Nowhere,
        secrets_key: None,
    })
    .unwrap()
    .0
}

/// Makes a submission; a manifest without a kind is a workflow.
fn submit(name: &str, mut manifest: Value) -> Submit {
    if manifest["kind"].is_null() {
        manifest["kind"] = json!("Workflow");
    }
    Submit { namespace: "default".to_owned(), name: name.to_owned(), manifest, stored: Stored::default(), claim: None }
}

fn container() -> Value {
    json!({"image": "alpine", "command": ["true"]})
}

fn steps(count: u32) -> Value {
    json!({"spec": {"entrypoint": "main", "templates": [
        {"name": "main", "steps": [[{"name": "fan", "template": "leaf", "withSequence": {"count": count}}], [{"name": "last", "template": "leaf"}]]},
        {"name": "leaf", "container": container()},
    ]}})
}

fn waiting() -> Value {
    json!({"spec": {"entrypoint": "main", "templates": [
        {"name": "main", "steps": [[{"name": "gate", "template": "gate"}], [{"name": "last", "template": "leaf"}]]},
        {"name": "gate", "suspend": {}},
        {"name": "leaf", "container": container()},
    ]}})
}

fn finish(controller: &Controller, run: octoflow_model::RunId) -> Value {
    let facts = controller.watch(run);
    while facts.recv().is_ok() {}
    controller.object(run).unwrap()
}

#[test]
fn a_run_ends_and_stays_readable_without_the_controller() {
    let dir = tempfile::tempdir().unwrap();
    let controller = open(dir.path());
    let run = controller.submit(submit("w", steps(10))).unwrap();
    let object = finish(&controller, run);
    assert_eq!(object["status"]["phase"], "Succeeded");
    assert_eq!(object["status"]["progress"], "11/11");
    controller.close().unwrap();
    let reader = Reader::open(dir.path()).unwrap();
    assert_eq!(read::object(&reader, run).unwrap(), object);
    assert_eq!(read::attempts(&reader, run).unwrap().len(), 11);
    assert_eq!(reader.run_by_name("default", None, "w").unwrap().unwrap().phase, "Succeeded");
}

#[test]
fn a_name_is_given_once() {
    let dir = tempfile::tempdir().unwrap();
    let controller = open(dir.path());
    controller.submit(submit("w", waiting())).unwrap();
    assert!(matches!(controller.submit(submit("w", waiting())), Err(Error::NameTaken { .. })));
}

#[test]
fn a_closed_controller_leaves_a_run_that_can_be_restored() {
    let dir = tempfile::tempdir().unwrap();
    let controller = open(dir.path());
    let run = controller.submit(submit("w", waiting())).unwrap();
    assert_eq!(controller.object(run).unwrap()["status"]["phase"], "Running");
    controller.close().unwrap();

    let controller = open(dir.path());
    controller.restore_run(run).unwrap();
    let facts = controller.watch(run);
    assert_eq!(controller.explain(run).unwrap().last().unwrap().reason, "suspended until someone resumes it");
    controller.command(run, Command::Resume { selector: None, supplied: Default::default() }).unwrap();
    let seen: Vec<Fact> = facts.iter().flatten().collect();
    assert!(matches!(seen.last(), Some(Fact::Run(RunFact::Ended { .. }))));
    assert_eq!(controller.object(run).unwrap()["status"]["phase"], "Succeeded");
    let refused = controller.command(run, Command::Stop);
    assert!(matches!(refused, Err(Error::Refused(_))));
}

#[test]
fn a_second_writer_is_refused_and_readers_are_welcome() {
    let dir = tempfile::tempdir().unwrap();
    let controller = open(dir.path());
    let run = controller.submit(submit("w", waiting())).unwrap();
    let capacity = Capacity { slots: 1, cpu_milli: 0, memory_bytes: 0 };
    let second = Controller::open(Config {
        data_dir: dir.path().to_owned(),
        capacity,
        node: NodeConfig::default(),
        place: Place::Nowhere,
        secrets_key: None,
    });
    assert!(matches!(second, Err(Error::Store(octoflow_store::Error::Locked { .. }))));
    let reader = Reader::open(dir.path()).unwrap();
    assert_eq!(read::object(&reader, run).unwrap()["status"]["phase"], "Running");
}

#[test]
fn values_of_a_config_map_reach_the_run_and_survive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let controller = open(dir.path());
    controller.put_object(json!({"kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"k": "v"}})).unwrap();
    controller.close().unwrap();
    let controller = open(dir.path());
    let manifest = json!({"spec": {"entrypoint": "leaf",
        "arguments": {"parameters": [{"name": "p", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}]},
        "templates": [{"name": "leaf", "inputs": {"parameters": [{"name": "p"}]}, "container": container()}]}});
    let run = controller.submit(submit("w", manifest)).unwrap();
    let object = finish(&controller, run);
    assert_eq!(object["status"]["nodes"]["w"]["inputs"]["parameters"][0]["value"], "v");
}

/// Suspended while it holds these locks.
fn holding(locks: Value) -> Value {
    let mut manifest = waiting();
    manifest["spec"]["synchronization"] = locks;
    manifest
}

fn resume() -> Command {
    Command::Resume { selector: None, supplied: Default::default() }
}

#[test]
fn a_lock_stays_with_its_run_while_nobody_has_taken_that_up() {
    let dir = tempfile::tempdir().unwrap();
    let controller = open(dir.path());
    let first = controller.submit(submit("first", holding(json!({"mutexes": [{"name": "m"}]})))).unwrap();
    controller.close().unwrap();

    let controller = open(dir.path());
    let second = controller.submit(submit("second", holding(json!({"mutexes": [{"name": "m"}]})))).unwrap();
    assert_eq!(controller.object(second).unwrap()["status"]["phase"], "Pending");
    let reasons = controller.explain(second).unwrap();
    assert_eq!(reasons[0].reason, "waits for the lock default/Mutex/m, held by default/first");
    controller.restore_run(first).unwrap();
    assert_eq!(controller.object(second).unwrap()["status"]["phase"], "Pending");
    controller.command(first, resume()).unwrap();
    finish(&controller, first);
    assert_eq!(controller.object(second).unwrap()["status"]["phase"], "Running");
    controller.command(second, resume()).unwrap();
    assert_eq!(finish(&controller, second)["status"]["phase"], "Succeeded");
}

#[test]
fn raising_the_limit_of_a_semaphore_lets_the_next_run_begin() {
    let dir = tempfile::tempdir().unwrap();
    let controller = open(dir.path());
    let limit = |limit: &str| json!({"kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"k": limit}});
    controller.put_object(limit("1")).unwrap();
    let locks = json!({"semaphores": [{"configMapKeyRef": {"name": "c", "key": "k"}}]});
    controller.submit(submit("first", holding(locks.clone()))).unwrap();
    let second = controller.submit(submit("second", holding(locks))).unwrap();
    assert_eq!(controller.object(second).unwrap()["status"]["phase"], "Pending");
    controller.put_object(limit("2")).unwrap();
    assert_eq!(controller.object(second).unwrap()["status"]["phase"], "Running");
}

#[test]
fn h09_what_a_run_memoized_is_found_by_a_later_one_after_a_restart() {
    let memoized = json!({"spec": {"entrypoint": "main", "templates": [
        {"name": "main", "memoize": {"key": "k", "cache": {"configMap": {"name": "cache"}}}, "container": container()},
    ]}});
    let hit = |object: &Value, name: &str| object["status"]["nodes"][name]["memoizationStatus"]["hit"].clone();
    let dir = tempfile::tempdir().unwrap();
    let controller = open(dir.path());
    let first = controller.submit(submit("first", memoized.clone())).unwrap();
    assert_eq!(hit(&finish(&controller, first), "first"), false);
    controller.close().unwrap();

    let reader = Reader::open(dir.path()).unwrap();
    let cache = reader.object("ConfigMap", "default", "cache").unwrap().expect("the cache is made");
    let body: Value = serde_json::from_slice(&cache.body).unwrap();
    assert_eq!(body["metadata"]["labels"]["workflows.argoproj.io/configmap-type"], "Cache");
    assert!(body["data"]["k"].as_str().unwrap().contains("\"nodeID\":\"first\""), "{body}");

    let controller = open(dir.path());
    // Its file is given again, as with every run; its entries are kept.
    let label = json!({"workflows.argoproj.io/configmap-type": "Cache"});
    let given = json!({"kind": "ConfigMap", "metadata": {"name": "cache", "labels": label, "annotations": {"a": "b"}}});
    controller.put_object(given).unwrap();
    let second = controller.submit(submit("second", memoized.clone())).unwrap();
    let object = finish(&controller, second);
    assert_eq!(hit(&object, "second"), true);
    assert_eq!(object["status"]["phase"], "Succeeded");
    let mut other = memoized;
    other["spec"]["templates"][0]["memoize"]["key"] = json!("l");
    let third = controller.submit(submit("third", other)).unwrap();
    assert_eq!(hit(&finish(&controller, third), "third"), false);
    controller.close().unwrap();
    let cache = Reader::open(dir.path()).unwrap().object("ConfigMap", "default", "cache").unwrap().unwrap();
    let body: Value = serde_json::from_slice(&cache.body).unwrap();
    assert!(body["data"]["k"].is_string() && body["data"]["l"].is_string(), "{body}");
    assert_eq!(body["metadata"]["annotations"]["a"], "b");
}

#[test]
fn the_name_of_a_deleted_run_can_be_given_again() {
    let dir = tempfile::tempdir().unwrap();
    let controller = open(dir.path());
    let run = controller.submit(submit("w", steps(1))).unwrap();
    finish(&controller, run);
    controller.store().commit_wait(Batch::from(Change::DeleteRun { run })).unwrap();
    let again = controller.submit(submit("w", steps(1))).unwrap();
    assert_eq!(finish(&controller, again)["status"]["phase"], "Succeeded");
}

#[test]
fn of_many_who_want_one_name_at_once_one_gets_it() {
    let dir = tempfile::tempdir().unwrap();
    let controller = open(dir.path());
    let given: usize = std::thread::scope(|scope| {
        let callers: Vec<_> =
            (0..16).map(|_| scope.spawn(|| usize::from(controller.submit(submit("w", waiting())).is_ok()))).collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).sum()
    });
    assert_eq!(given, 1);
}
