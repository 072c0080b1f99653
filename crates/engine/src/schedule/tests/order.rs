//! Who goes first: priority with aging, turns of runs, fairness between tenants, and the bound on starvation.

use super::*;

#[test]
fn priority_goes_first_and_equals_go_in_order() {
    let mut stage = Stage::measured(9, 2000);
    for (node, priority) in [(1, 0), (2, 5), (3, 0), (4, 5)] {
        stage.enqueue(task(1, node), Demand { priority, ..demand(0) });
    }
    assert_eq!(stage.started(), [(1, 2), (1, 4), (1, 1), (1, 3)]);
}

#[test]
fn a_long_wait_outweighs_a_higher_priority() {
    let mut stage = Stage::measured(1, 2000);
    stage.enqueue(task(1, 0), demand(0));
    assert_eq!(stage.started(), [(1, 0)]);
    stage.enqueue(task(1, 1), demand(0));
    stage.wait(61);
    stage.enqueue(task(2, 1), Demand { priority: 1, ..demand(0) });
    stage.enqueue(task(2, 2), Demand { priority: 2, ..demand(0) });
    stage.release(1, 0);
    assert_eq!(stage.started(), [(2, 2)], "two points are worth two minutes");
    stage.release(2, 2);
    assert_eq!(stage.started(), [(1, 1)], "one point is worth one minute");
}

#[test]
fn a_run_of_one_task_does_not_wait_behind_all_tasks_of_another() {
    let mut stage = Stage::measured(1, 2000);
    (0..400).for_each(|node| stage.enqueue(task(1, node), demand(0)));
    assert_eq!(stage.started(), [(1, 0)]);
    stage.wait(1);
    stage.enqueue(task(2, 0), demand(0));
    stage.enqueue(task(3, 0), demand(0));
    let mut gone = vec![(1, 0)];
    for _ in 0..4 {
        let (run, node) = gone[gone.len() - 1];
        stage.release(run, node);
        gone.extend(stage.started());
    }
    assert_eq!(gone[1..], [(1, 1), (2, 0), (3, 0), (1, 2)]);
}

#[test]
fn tenants_share_by_what_they_used_and_usage_fades() {
    let mut stage = Stage::measured(1, 2000);
    let of = |tenant: &str| Demand::new(tenant, cpu(0));
    stage.enqueue(task(1, 0), of("a"));
    assert_eq!(stage.started(), [(1, 0)]);
    for node in 1..4 {
        stage.enqueue(task(1, node), of("a"));
        stage.enqueue(task(2, node), of("b"));
    }
    stage.wait(600);
    stage.release(1, 0);
    // A used ten minutes: b goes until it has used as much.
    let mut order = Vec::new();
    for _ in 0..4 {
        let (run, node) = stage.started()[0];
        order.push(run);
        stage.wait(250);
        stage.release(run, node);
    }
    assert_eq!(order, [2, 2, 2, 1]);
}

#[test]
fn whoever_waited_longest_is_first_whatever_its_tenant_used() {
    let mut stage = Stage::measured(1, 2000);
    let of = |tenant: &str| Demand { longest_wait: Some(Duration::from_secs(100)), ..Demand::new(tenant, cpu(0)) };
    stage.enqueue(task(1, 0), of("a"));
    assert_eq!(stage.started(), [(1, 0)]);
    stage.enqueue(task(1, 1), of("a"));
    stage.wait(10);
    stage.enqueue(task(2, 1), of("b"));
    assert_eq!(stage.scheduler.wake_at(), Some(Time::from_secs(1100)));
    stage.wait(95);
    stage.release(1, 0);
    assert_eq!(stage.started(), [(1, 1)], "b has used nothing, but a's task is overdue");
}

#[test]
fn tasks_that_no_longer_wait_are_dropped() {
    let mut stage = Stage::measured(1, 2000);
    stage.enqueue(task(1, 1), demand(0));
    stage.enqueue(task(1, 2), demand(0));
    let next = stage.scheduler.next(stage.now, |waiting| waiting != task(1, 1), |_| true);
    assert!(matches!(next, Some(Decision::Start { task: started, .. }) if started == task(1, 2)));
    assert_eq!(stage.scheduler.waiting(), 0);
}

#[test]
fn runs_that_are_not_ready_keep_their_place_and_block_nobody() {
    let mut stage = Stage::measured(1, 2000);
    stage.enqueue(task(1, 1), demand(0));
    stage.enqueue(task(2, 1), demand(0));
    let next = stage.scheduler.next(stage.now, |_| true, |run| run != RunId(1));
    assert!(matches!(next, Some(Decision::Start { task: started, .. }) if started == task(2, 1)));
    stage.release(2, 1);
    assert_eq!(stage.started(), [(1, 1)]);
}

#[test]
fn decisions_end_at_the_end_of_time() {
    let mut stage = Stage::measured(1, 2000);
    (0..3).for_each(|node| stage.enqueue(task(1, node), demand(0)));
    assert_eq!(stage.started(), [(1, 0)]);
    stage.now = Time(i64::MAX);
    stage.enqueue(task(2, 0), demand(0));
    assert_eq!(stage.started(), []);
    assert_eq!(stage.scheduler.wake_at(), None, "nothing is later");
    stage.release(1, 0);
    assert_eq!(stage.started(), [(1, 1)]);
}

#[test]
fn tenants_who_used_the_same_go_by_priority_and_then_by_arrival() {
    let mut stage = Stage::measured(1, 2000);
    stage.enqueue(task(9, 0), demand(0));
    assert_eq!(stage.started(), [(9, 0)]);
    for (node, (tenant, priority)) in [("ada", 0), ("bea", 5), ("cis", 0)].into_iter().enumerate() {
        stage.enqueue(task(1, node as u32), Demand { priority, ..Demand::new(tenant, cpu(0)) });
        stage.wait(1);
    }
    stage.release(9, 0);
    assert_eq!(stage.started(), [(1, 1)]);
    stage.release(1, 1);
    assert_eq!(stage.started(), [(1, 0)]);
    stage.release(1, 0);
    assert_eq!(stage.started(), [(1, 2)]);
}

#[test]
fn edits_of_classes_and_of_the_longest_wait_act_on_those_who_wait_as_after_a_restart() {
    let mut stage = Stage::declared(&[declared("n", &[("cpu", 1000), ("pods", 9)])]);
    stage.scheduler.put_queue(QueueSpec::new("q"));
    let of = |class: Option<&str>| Demand { queue: "q".into(), class: class.map(Into::into), ..demand(1000) };
    stage.enqueue(task(1, 0), of(None));
    assert_eq!(stage.started(), [(1, 0)]);
    stage.enqueue(task(2, 0), of(None));
    stage.wait(10);
    stage.enqueue(task(3, 0), of(Some("late")));
    stage.wait(10);
    stage.enqueue(task(4, 0), Demand { tenant: "new".into(), ..of(None) });
    stage.scheduler.put_class("late", Some(ClassSpec { value: 100, preempts: false }), false);
    assert_eq!(stage.started(), []);
    // The first tenant has used something, and yet whoever has waited longer than ten seconds is before the other.
    stage.scheduler.put_queue(QueueSpec { longest_wait: Some(Duration::from_secs(15)), ..QueueSpec::new("q") });
    stage.release(1, 0);
    assert_eq!(stage.started(), [(2, 0)], "it has waited too long by now");
    stage.scheduler.put_queue(QueueSpec::new("q"));
    stage.release(2, 0);
    assert_eq!(stage.started(), [(4, 0)], "the tenant that used less");
    stage.enqueue(task(4, 1), Demand { tenant: "tenant".into(), ..of(None) });
    stage.enqueue(task(5, 0), of(None));
    stage.release(4, 0);
    assert_eq!(stage.started(), [(3, 0)], "its class was created while it waited");
}
