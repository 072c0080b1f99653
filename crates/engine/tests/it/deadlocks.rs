//! Runs that hold what another waits for are found and named within ten seconds; nobody is ended.

use octoflow_engine::{Command, argo::explain::Reason};
use octoflow_model::{Fact, RunFact, RunId};

use crate::town::Town;

/// Holds the first lock while its step waits for the second.
fn nested(outer: &str, inner: &str) -> String {
    format!(
        "
synchronization: {{mutexes: [{{{outer}}}]}}
templates:
- {{name: main, steps: [[{{name: before, template: plain}}], [{{name: both, template: locked}}]]}}
- {{name: plain, container: {{image: i, command: [c]}}}}
- {{name: locked, synchronization: {{mutexes: [{{{inner}}}]}}, container: {{image: i, command: [c]}}}}"
    )
}

fn deadlocks(town: &Town, run: u64) -> Vec<Option<String>> {
    let facts = town.facts[&RunId(run)].iter();
    facts
        .filter_map(|fact| match fact {
            Fact::Run(RunFact::Deadlock { message, .. }) => Some(message.clone()),
            _ => None,
        })
        .collect()
}

#[test]
fn two_runs_with_two_locks_in_opposite_order_are_named_and_go_on_when_one_is_ended() {
    let mut town = Town::new();
    town.submit(1, &nested("name: a", "name: b"));
    town.submit(2, &nested("name: b", "name: a"));
    town.end_first(0);
    town.end_first(0);
    assert!(town.flights.is_empty(), "both wait");
    assert_eq!(town.message(1), "");
    let due = town.engine().wake_at().expect("it looks for circles");
    assert!(due.since(town.now).as_secs() < 10);
    town.tick(5);
    let told = "Deadlock: workflow w1 (both) waits for the lock default/Mutex/b, which workflow w2 holds; \
                workflow w2 (both) waits for the lock default/Mutex/a, which workflow w1 holds";
    assert_eq!(town.message(1), told);
    assert!(town.message(2).starts_with("Deadlock: "), "{}", town.message(2));
    assert_eq!(town.status(1)["deadlock"]["message"], told);
    assert_eq!(town.reasons(1)[0], ("w1".to_owned(), Reason::Deadlock(told.to_owned())));
    // It is told once, and nothing wakes the engine for it again.
    town.tick(60);
    assert_eq!(deadlocks(&town, 1).len(), 1);
    assert_eq!(town.engine().wake_at(), None);
    // A restart tells nothing again.
    town.restart();
    town.tick(5);
    town.tick(60);
    assert_eq!(deadlocks(&town, 1).len(), 1);
    town.command(2, Command::Terminate);
    assert_eq!(town.flights.len(), 1, "the first goes on");
    town.tick(5);
    assert_eq!(town.message(1), "");
    assert_eq!(deadlocks(&town, 1).last(), Some(&None));
    town.end_first(0);
    assert_eq!(town.phase(1), "Succeeded");
}

#[test]
fn siblings_of_one_run_are_named_too() {
    let mut town = Town::new();
    let inner = |outer: &str, inner: &str| {
        format!(
            "
- {{name: outer-{outer}, synchronization: {{mutexes: [{{name: {outer}}}]}}, steps: [[{{name: one, template: plain}}], [{{name: two, template: only-{inner}}}]]}}
- {{name: only-{inner}, synchronization: {{mutexes: [{{name: {inner}}}]}}, container: {{image: i, command: [c]}}}}"
        )
    };
    let spec = format!(
        "
templates:
- {{name: main, steps: [[{{name: left, template: outer-a}}, {{name: right, template: outer-b}}]]}}
- {{name: plain, container: {{image: i, command: [c]}}}}{}{}",
        inner("a", "b"),
        inner("b", "a")
    );
    town.submit(1, &spec);
    town.end_first(0);
    town.end_first(0);
    assert!(town.flights.is_empty());
    town.tick(5);
    let message = town.message(1);
    assert!(
        message.contains("(two) waits for the lock default/Mutex/") && message.contains("(left) holds"),
        "{message}"
    );
}

#[test]
fn who_only_waits_for_somebody_at_work_is_in_no_circle() {
    let mut town = Town::new();
    town.submit(1, &nested("name: a", "name: b"));
    town.submit(2, &nested("name: a", "name: b"));
    town.end_first(0);
    assert_eq!(town.flights.len(), 1);
    town.tick(5);
    town.tick(60);
    assert!(deadlocks(&town, 1).is_empty() && deadlocks(&town, 2).is_empty());
    assert_eq!(town.engine().wake_at(), None);
}

#[test]
fn a_child_that_wants_the_lock_of_whoever_waits_for_it_is_named() {
    let mut town = Town::new();
    town.submit(
        1,
        "
synchronization: {mutexes: [{name: m}]}
templates:
- {name: main, steps: [[{name: make, template: child}]]}
- name: child
  resource:
    action: create
    successCondition: status.phase == Succeeded
    manifest: '{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: w2}}'",
    );
    town.parents.insert(2, 1);
    town.submit(
        2,
        "
synchronization: {mutexes: [{name: m}]}
templates: [{name: main, container: {image: i, command: [c]}}]",
    );
    town.tick(5);
    let told = "Deadlock: workflow w2 waits for the lock default/Mutex/m, which workflow w1 holds";
    assert_eq!(town.message(2), told);
}

#[test]
fn names_of_other_namespaces_are_not_told() {
    let mut town = Town::new();
    town.namespaces.insert(2, "other".to_owned());
    town.submit(1, &nested("name: a", "name: b"));
    town.submit(2, &nested("name: b, namespace: default", "name: a, namespace: default"));
    town.end_first(0);
    town.end_first(0);
    assert!(town.flights.is_empty());
    town.tick(5);
    let message = town.message(1);
    assert!(message.contains("a workflow of another namespace") && !message.contains("w2"), "{message}");
    assert!(!town.message(2).contains("w1"), "{}", town.message(2));
}

#[test]
fn too_many_who_wait_are_not_examined_and_that_is_told() {
    let mut town = Town::new();
    town.submit(1, &nested("name: a", "name: b"));
    town.submit(2, &nested("name: b", "name: a"));
    town.end_first(0);
    town.end_first(0);
    assert_eq!(town.engine().unexamined_waiters(), 0);
    let many = "
templates:
- {name: main, steps: [[{name: each, template: locked, withSequence: {count: 5000}}]]}
- {name: locked, synchronization: {mutexes: [{name: a}]}, container: {image: i, command: [c]}}";
    town.submit(3, many);
    assert_eq!(town.engine().unexamined_waiters(), 5002);
    town.tick(5);
    town.tick(5);
    assert!(deadlocks(&town, 1).is_empty());
    town.command(3, Command::Terminate);
    assert_eq!(town.engine().unexamined_waiters(), 0);
    town.tick(5);
    assert!(town.message(1).starts_with("Deadlock: "), "{}", town.message(1));
}
