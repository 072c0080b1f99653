//! Expiry: by time to live, by retention limits, and on demand.

use octoflow_control::{
    Controller, Error,
    expire::{Expirer, RetentionPolicy},
};
use octoflow_model::{RunId, Time};
use serde_json::{Value, json};

use super::{container, finish, open, submit, waiting};

fn kept_for(ttl: Value) -> Value {
    json!({"spec": {"entrypoint": "main", "ttlStrategy": ttl, "templates": [{"name": "main", "container": container()}]}})
}

fn later(controller: &Controller, run: RunId, seconds: i64) -> Time {
    let ended = controller.store().reader().unwrap().run(run).unwrap().unwrap().finished.unwrap();
    Time(ended.0 + seconds * 1_000_000)
}

fn is_there(controller: &Controller, run: RunId) -> bool {
    controller.store().reader().unwrap().run(run).unwrap().is_some()
}

#[test]
fn j20_a_run_goes_when_its_time_is_up_and_zero_means_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let controller = open(dir.path());
    let mut expirer = Expirer::new(RetentionPolicy::default());
    let soon = controller.submit(submit("soon", kept_for(json!({"secondsAfterCompletion": 0})))).unwrap();
    let slow = controller
        .submit(submit("slow", kept_for(json!({"secondsAfterCompletion": 0, "secondsAfterSuccess": 60}))))
        .unwrap();
    let kept = controller.submit(submit("kept", kept_for(json!({"secondsAfterFailure": 0})))).unwrap();
    for run in [soon, slow, kept] {
        finish(&controller, run);
    }
    let due = later(&controller, slow, 60);
    let wake = expirer.run_due(&controller, later(&controller, slow, 30)).unwrap();
    assert_eq!((is_there(&controller, soon), is_there(&controller, slow)), (false, true));
    assert_eq!(wake, Some(due));
    assert_eq!(expirer.run_due(&controller, due).unwrap(), None);
    assert_eq!((is_there(&controller, slow), is_there(&controller, kept)), (false, true));
    assert!(matches!(controller.object(soon), Err(Error::UnknownRun(_))));
    // The name is free again.
    controller.submit(submit("soon", waiting())).unwrap();
    assert!(expirer.overdue().is_empty());
    controller.close().unwrap();
}

#[test]
fn j20_what_fell_due_while_the_controller_was_closed_goes_when_it_opens() {
    let dir = tempfile::tempdir().unwrap();
    let controller = open(dir.path());
    let run = controller.submit(submit("w", kept_for(json!({"secondsAfterCompletion": 3600})))).unwrap();
    finish(&controller, run);
    let due = later(&controller, run, 3600);
    controller.close().unwrap();
    let controller = open(dir.path());
    let mut expirer = Expirer::new(RetentionPolicy::default());
    assert_eq!(expirer.run_due(&controller, Time(due.0 - 1)).unwrap(), Some(due));
    assert!(is_there(&controller, run));
    expirer.run_due(&controller, due).unwrap();
    assert!(!is_there(&controller, run));
    controller.close().unwrap();
}

#[test]
fn only_the_newest_finished_runs_are_kept_and_only_for_so_long() {
    let dir = tempfile::tempdir().unwrap();
    let controller = open(dir.path());
    let runs: Vec<RunId> = (0..5)
        .map(|at| {
            let run = controller.submit(submit(&format!("w{at}"), kept_for(json!({})))).unwrap();
            finish(&controller, run);
            run
        })
        .collect();
    let open_run = controller.submit(submit("open", waiting())).unwrap();
    let last = later(&controller, runs[4], 1);
    let mut expirer = Expirer::new("succeeded=3".parse().unwrap());
    expirer.run_due(&controller, last).unwrap();
    let left = |controller: &Controller| runs.iter().filter(|run| is_there(controller, **run)).count();
    assert_eq!(left(&controller), 3);
    assert!(is_there(&controller, runs[4]) && !is_there(&controller, runs[0]));
    let mut expirer = Expirer::new("succeeded=1h".parse().unwrap());
    expirer.run_due(&controller, last).unwrap();
    assert_eq!(left(&controller), 3);
    expirer.run_due(&controller, later(&controller, runs[4], 3600)).unwrap();
    assert_eq!(left(&controller), 0);
    assert!(is_there(&controller, open_run));
    controller.close().unwrap();
}

#[test]
fn a_run_that_goes_on_is_ended_and_deleted_with_what_belongs_to_it() {
    let dir = tempfile::tempdir().unwrap();
    let controller = open(dir.path());
    let parent = json!({"spec": {"entrypoint": "main", "templates": [{"name": "main", "resource": {
        "action": "create", "setOwnerReference": true, "successCondition": "status.phase == Succeeded",
        "manifest": json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "child"},
            "spec": waiting()["spec"]}).to_string()}}]}});
    let facts = controller.submit_watched(submit("parent", parent)).unwrap();
    let child =
        std::iter::repeat_with(|| controller.store().reader().unwrap().run_by_name("default", None, "child").unwrap())
            .find_map(|row| {
                std::thread::yield_now();
                row
            })
            .unwrap();
    let removed = controller.delete_run(facts.0).unwrap();
    assert_eq!(removed.names, ["parent", "child"]);
    assert!(removed.warnings.is_empty(), "{:?}", removed.warnings);
    assert!(!is_there(&controller, facts.0) && !is_there(&controller, child.run));
    assert!(matches!(controller.delete_run(facts.0), Err(Error::UnknownRun(_))));
    // Locks and names of it are free.
    controller.submit(submit("parent", waiting())).unwrap();
    controller.close().unwrap();
}

#[test]
fn a_run_that_nobody_has_restored_can_be_deleted_too() {
    let dir = tempfile::tempdir().unwrap();
    let controller = open(dir.path());
    let run = controller.submit(submit("w", waiting())).unwrap();
    controller.close().unwrap();
    let controller = open(dir.path());
    controller.delete_run(run).unwrap();
    assert!(!is_there(&controller, run));
    controller.close().unwrap();
}
