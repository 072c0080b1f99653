//! Clearing away: by the runs' own wish, by what is kept, and on demand.

use octoflow_control::{
    Error, House,
    expire::{Expirer, RetentionPolicy},
};
use octoflow_model::{RunId, Time};
use serde_json::{Value, json};

use super::{container, finish, open, submit, waiting};

fn kept_for(ttl: Value) -> Value {
    json!({"spec": {"entrypoint": "main", "ttlStrategy": ttl, "templates": [{"name": "main", "container": container()}]}})
}

fn later(house: &House, run: RunId, seconds: i64) -> Time {
    let ended = house.store().reader().unwrap().run(run).unwrap().unwrap().finished.unwrap();
    Time(ended.0 + seconds * 1_000_000)
}

fn is_there(house: &House, run: RunId) -> bool {
    house.store().reader().unwrap().run(run).unwrap().is_some()
}

#[test]
fn j20_a_run_goes_when_its_time_is_up_and_zero_means_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let house = open(dir.path());
    let mut expirer = Expirer::new(RetentionPolicy::default());
    let soon = house.submit(submit("soon", kept_for(json!({"secondsAfterCompletion": 0})))).unwrap();
    let slow = house
        .submit(submit("slow", kept_for(json!({"secondsAfterCompletion": 0, "secondsAfterSuccess": 60}))))
        .unwrap();
    let kept = house.submit(submit("kept", kept_for(json!({"secondsAfterFailure": 0})))).unwrap();
    for run in [soon, slow, kept] {
        finish(&house, run);
    }
    let due = later(&house, slow, 60);
    let wake = expirer.look(&house, later(&house, slow, 30)).unwrap();
    assert_eq!((is_there(&house, soon), is_there(&house, slow)), (false, true));
    assert_eq!(wake, Some(due));
    assert_eq!(expirer.look(&house, due).unwrap(), None);
    assert_eq!((is_there(&house, slow), is_there(&house, kept)), (false, true));
    assert!(matches!(house.object(soon), Err(Error::UnknownRun(_))));
    // The name is free again.
    house.submit(submit("soon", waiting())).unwrap();
    assert!(expirer.overdue().is_empty());
    house.close().unwrap();
}

#[test]
fn j20_what_fell_due_while_the_house_was_closed_goes_when_it_opens() {
    let dir = tempfile::tempdir().unwrap();
    let house = open(dir.path());
    let run = house.submit(submit("w", kept_for(json!({"secondsAfterCompletion": 3600})))).unwrap();
    finish(&house, run);
    let due = later(&house, run, 3600);
    house.close().unwrap();
    let house = open(dir.path());
    let mut expirer = Expirer::new(RetentionPolicy::default());
    assert_eq!(expirer.look(&house, Time(due.0 - 1)).unwrap(), Some(due));
    assert!(is_there(&house, run));
    expirer.look(&house, due).unwrap();
    assert!(!is_there(&house, run));
    house.close().unwrap();
}

#[test]
fn only_the_newest_finished_runs_are_kept_and_only_for_so_long() {
    let dir = tempfile::tempdir().unwrap();
    let house = open(dir.path());
    let runs: Vec<RunId> = (0..5)
        .map(|at| {
            let run = house.submit(submit(&format!("w{at}"), kept_for(json!({})))).unwrap();
            finish(&house, run);
            run
        })
        .collect();
    let open_run = house.submit(submit("open", waiting())).unwrap();
    let last = later(&house, runs[4], 1);
    let mut expirer = Expirer::new("succeeded=3".parse().unwrap());
    expirer.look(&house, last).unwrap();
    let left = |house: &House| runs.iter().filter(|run| is_there(house, **run)).count();
    assert_eq!(left(&house), 3);
    assert!(is_there(&house, runs[4]) && !is_there(&house, runs[0]));
    let mut expirer = Expirer::new("succeeded=1h".parse().unwrap());
    expirer.look(&house, last).unwrap();
    assert_eq!(left(&house), 3);
    expirer.look(&house, later(&house, runs[4], 3600)).unwrap();
    assert_eq!(left(&house), 0);
    assert!(is_there(&house, open_run));
    house.close().unwrap();
}

#[test]
fn a_run_that_goes_on_is_ended_and_deleted_with_what_belongs_to_it() {
    let dir = tempfile::tempdir().unwrap();
    let house = open(dir.path());
    let parent = json!({"spec": {"entrypoint": "main", "templates": [{"name": "main", "resource": {
        "action": "create", "setOwnerReference": true, "successCondition": "status.phase == Succeeded",
        "manifest": json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "child"},
            "spec": waiting()["spec"]}).to_string()}}]}});
    let facts = house.submit_watched(submit("parent", parent)).unwrap();
    let child =
        std::iter::repeat_with(|| house.store().reader().unwrap().run_by_name("default", None, "child").unwrap())
            .find_map(|row| {
                std::thread::yield_now();
                row
            })
            .unwrap();
    let removed = house.delete_run(facts.0).unwrap();
    assert_eq!(removed.names, ["parent", "child"]);
    assert!(removed.warnings.is_empty(), "{:?}", removed.warnings);
    assert!(!is_there(&house, facts.0) && !is_there(&house, child.run));
    assert!(matches!(house.delete_run(facts.0), Err(Error::UnknownRun(_))));
    // Locks and names of it are free.
    house.submit(submit("parent", waiting())).unwrap();
    house.close().unwrap();
}

#[test]
fn a_run_that_nobody_has_taken_up_can_be_deleted_too() {
    let dir = tempfile::tempdir().unwrap();
    let house = open(dir.path());
    let run = house.submit(submit("w", waiting())).unwrap();
    house.close().unwrap();
    let house = open(dir.path());
    house.delete_run(run).unwrap();
    assert!(!is_there(&house, run));
    house.close().unwrap();
}
