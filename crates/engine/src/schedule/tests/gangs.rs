//! Gangs start together or not at all.

use proptest::prelude::*;

use super::*;

fn member(name: &str, least: u32, cpu_milli: u64) -> Demand {
    let gang = Gang {
        namespace: "default".into(),
        name: name.into(),
        own: None,
        least,
        part: "".into(),
        least_of: Arc::default(),
    };
    Demand { gang: Some(gang), ..demand(cpu_milli) }
}

#[test]
fn a_gang_goes_when_all_its_members_are_there_and_fit() {
    let mut stage = Stage::measured(3, 2000);
    stage.enqueue(task(1, 9), demand(0));
    assert_eq!(stage.started(), [(1, 9)]);
    (1..=2).for_each(|node| stage.enqueue(task(1, node), member("g", 3, 0)));
    assert_eq!(stage.started(), []);
    assert_eq!(stage.scheduler.gathering(task(1, 1)), Some((2, 3)));
    stage.enqueue(task(1, 3), member("g", 3, 0));
    assert_eq!(stage.started(), [], "one place of three is taken");
    assert_eq!(stage.scheduler.gathering(task(1, 1)), None, "it waits for room now, not for members");
    assert!(stage.scheduler.why(task(1, 1)).unwrap().to_string().contains("no room for all of its gang at once"));
    stage.release(1, 9);
    assert_eq!(stage.started(), [(1, 1), (1, 2), (1, 3)]);
}

#[test]
fn only_the_least_has_to_fit_and_the_others_follow_as_room_comes() {
    let mut stage = Stage::declared(&[declared("n", &[("pods", 3)])]);
    (1..=5).for_each(|node| stage.enqueue(task(1, node), member("g", 2, 0)));
    assert_eq!(stage.started(), [(1, 1), (1, 2), (1, 3)]);
    stage.release(1, 1);
    assert_eq!(stage.started(), [(1, 4)]);
}

#[test]
fn the_least_of_each_part_is_among_the_first() {
    let mut stage = Stage::declared(&[declared("n", &[("pods", 3)])]);
    let of = |part: &str| {
        let mut demand = member("g", 3, 0);
        let least_of = BTreeMap::from([("ps".to_owned(), 1), ("worker".to_owned(), 2)]);
        demand.gang = demand.gang.map(|gang| Gang { part: part.into(), least_of: Arc::new(least_of), ..gang });
        demand
    };
    (1..=4).for_each(|node| stage.enqueue(task(1, node), of("worker")));
    assert_eq!(stage.started(), [], "four workers are not enough without a ps");
    stage.enqueue(task(1, 5), of("ps"));
    assert_eq!(stage.started(), [(1, 1), (1, 2), (1, 5)]);
}

#[test]
fn a_gang_starts_over_several_nodes_at_once() {
    let mut stage =
        Stage::declared(&[declared("a", &[("cpu", 2000), ("pods", 9)]), declared("b", &[("cpu", 2000), ("pods", 9)])]);
    (1..=4).for_each(|node| stage.enqueue(task(1, node), member("g", 4, 1000)));
    assert_eq!(stage.started().len(), 4);
    let on_a = (1..=4).filter(|node| stage.node_of(1, *node) == "a").count();
    assert_eq!(on_a, 2);
}

#[test]
fn a_gang_larger_than_a_measured_machine_runs_alone() {
    let mut stage = Stage::measured(2, 2000);
    stage.enqueue(task(2, 1), demand(0));
    assert_eq!(stage.started(), [(2, 1)]);
    (1..=5).for_each(|node| stage.enqueue(task(1, node), member("g", 5, 900)));
    stage.enqueue(task(3, 6), demand(0));
    assert_eq!(stage.started(), [], "nobody passes: it needs the machine for itself");
    stage.release(2, 1);
    assert_eq!(stage.started().len(), 5);
    assert_eq!(stage.started(), []);
    (1..=5).for_each(|node| stage.release(1, node));
    assert_eq!(stage.started(), [(3, 6)]);
}

#[test]
fn a_gang_larger_than_declared_nodes_waits() {
    let mut stage = Stage::declared(&[declared("n", &[("cpu", 2000), ("pods", 9)])]);
    (1..=3).for_each(|node| stage.enqueue(task(1, node), member("g", 3, 1000)));
    assert_eq!(stage.started(), []);
    stage.enqueue(task(2, 1), demand(2000));
    assert_eq!(stage.started(), [(2, 1)], "it could never start, so it holds up nobody");
}

#[test]
fn a_gang_that_starts_anew_gathers_anew() {
    let mut stage = Stage::measured(9, 2000);
    for _ in 0..2 {
        stage.enqueue(task(1, 1), member("g", 2, 0));
        assert_eq!(stage.started(), []);
        stage.enqueue(task(1, 2), member("g", 2, 0));
        assert_eq!(stage.started(), [(1, 1), (1, 2)]);
        (1..=2).for_each(|node| stage.release(1, node));
        stage.scheduler.leave(RunId(1));
    }
}

#[test]
fn a_gang_that_loses_a_member_before_it_started_waits_for_another() {
    let mut stage = Stage::measured(2, 2000);
    stage.enqueue(task(2, 1), demand(0));
    assert_eq!(stage.started(), [(2, 1)]);
    (1..=2).for_each(|node| stage.enqueue(task(1, node), member("g", 2, 0)));
    assert_eq!(stage.started(), []);
    stage.release(1, 1);
    stage.release(2, 1);
    assert_eq!(stage.started(), []);
    assert_eq!(stage.scheduler.gathering(task(1, 2)), Some((1, 2)));
    stage.enqueue(task(1, 3), member("g", 2, 0));
    assert_eq!(stage.started(), [(1, 2), (1, 3)]);
}

#[test]
fn members_that_differ_find_nodes_if_there_are_any() {
    let mut stage = Stage::declared(&[
        declared("a", &[("cpu", 2000), ("pods", 9), ("gpu", 1)]),
        declared("b", &[("cpu", 3000), ("pods", 9)]),
    ]);
    // The fullest node that fits the first is the only one that fits the second.
    stage.enqueue(task(1, 1), member("g", 2, 2000));
    let others = BTreeMap::from([("gpu".to_owned(), 1)]);
    stage.enqueue(task(1, 2), Demand { resources: Resources { others, ..cpu(1000) }, ..member("g", 2, 1000) });
    assert_eq!(stage.started(), [(1, 1), (1, 2)]);
    assert_eq!((stage.node_of(1, 1), stage.node_of(1, 2)), ("b", "a"));
}

#[test]
fn members_that_wait_alone_do_not_count_as_started() {
    let mut stage = Stage::declared(&[declared("n", &[("pods", 2)])]);
    (1..=4).for_each(|node| stage.enqueue(task(1, node), member("g", 2, 0)));
    assert_eq!(stage.started(), [(1, 1), (1, 2)]);
    // Both are ended for another and wait again, and so do the others: for each other.
    (1..=2).for_each(|node| stage.scheduler.quit_gang(task(1, node)));
    stage.release(1, 1);
    stage.enqueue(task(1, 1), member("g", 2, 0));
    assert_eq!(stage.started(), [], "one alone is no gang");
    stage.release(1, 2);
    stage.enqueue(task(1, 2), member("g", 2, 0));
    assert_eq!(stage.started().len(), 2);
}

#[test]
fn a_member_that_comes_later_does_not_end_its_own_gang() {
    let mut stage = Stage::declared(&[declared("n", &[("cpu", 2000), ("pods", 9)])]);
    stage.scheduler.put_class("high", Some(ClassSpec { value: 1000, preempts: true }), false);
    let member = |class: Option<&str>, cpu_milli| Demand {
        class: class.map(Into::into),
        preemptable: Some(true),
        ..member("g", 2, cpu_milli)
    };
    (1..=2).for_each(|node| stage.enqueue(task(1, node), member(None, 1000)));
    assert_eq!(stage.started(), [(1, 1), (1, 2)]);
    stage.enqueue(task(1, 3), member(Some("high"), 1000));
    assert_eq!(stage.decisions(), []);
}

#[test]
fn members_that_waited_alone_start_together_when_the_run_is_gone_whose_members_had_started() {
    let mut stage = Stage::declared(&[declared("n", &[("pods", 2)])]);
    (1..=2).for_each(|node| stage.enqueue(task(1, node), member("g", 2, 0)));
    assert_eq!(stage.started().len(), 2);
    (1..=2).for_each(|node| stage.enqueue(task(2, node), member("g", 2, 0)));
    (1..=2).for_each(|node| stage.release(1, node));
    stage.scheduler.leave(RunId(1));
    stage.enqueue(task(3, 1), demand(0));
    assert_eq!(stage.started(), [(2, 1), (2, 2)]);
}

/// Starts everything that may, ends what runs one by one, and starts again, until nothing runs.
fn play_to_the_end(stage: &mut Stage) {
    stage.scheduler.start_all();
    while let Some(first) = stage.scheduler.running.keys().copied().min() {
        stage.wait(1);
        stage.scheduler.release(first, stage.now);
        stage.scheduler.clock = stage.now;
        stage.scheduler.start_all();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// Only tasks that run hold room or quota. So gangs and quotas close no circle: once everything has ended, nothing is held,
    /// and whoever is left waits for something else than an end.
    #[test]
    fn nobody_holds_room_or_quota_while_it_waits(world in remedy::world()) {
        let (mut stage, _) = remedy::build(&world);
        play_to_the_end(&mut stage);
        for queue in stage.scheduler.queues() {
            prop_assert_eq!((queue.running, queue.allocated), (0, Quantities::new()), "{}", queue.spec.name);
        }
        for node in stage.scheduler.nodes() {
            prop_assert_eq!((node.running, node.allocated), (0, Quantities::new()), "{}", node.spec.name);
        }
        prop_assert!(stage.scheduler.nominees.is_empty(), "room is kept for somebody, and nobody is to end");
        for task in stage.scheduler.waiting.keys().copied() {
            let wait = stage.scheduler.why(task).expect("it waits");
            prop_assert!(wait.is_blocked() || wait.gathers(), "{task:?} could go: {wait}");
            let change = stage.scheduler.propose(task).expect("something would help").change;
            prop_assert_eq!(change.ends(), &[] as &[TaskRef], "{}", change);
        }
    }
}
