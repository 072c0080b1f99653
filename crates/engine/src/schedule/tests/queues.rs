//! Queues share: guarantees are kept free, what is deserved orders, capability limits.

use super::*;

fn of(queue: &str, cpu_milli: u64) -> Demand {
    Demand { queue: queue.into(), ..demand(cpu_milli) }
}

fn stage(cpu_milli: u64, queues: &[QueueSpec]) -> Stage {
    let mut stage = Stage::declared(&[declared("n", &[("cpu", cpu_milli), ("pods", 1000)])]);
    queues.iter().for_each(|queue| stage.scheduler.put_queue(queue.clone()));
    stage
}

#[test]
fn equal_queues_get_equal_shares() {
    let mut stage = stage(8000, &[QueueSpec::new("a"), QueueSpec::new("b")]);
    for node in 0..20 {
        stage.enqueue(task(1, node), of("a", 1000));
    }
    for node in 0..20 {
        stage.enqueue(task(2, node), of("b", 1000));
    }
    let started = stage.started();
    assert_eq!(started.iter().filter(|(run, _)| *run == 1).count(), 4);
    assert_eq!(started.len(), 8);
}

#[test]
fn weights_divide_and_an_idle_share_is_lent() {
    let mut stage = stage(8000, &[QueueSpec { weight: 3, ..QueueSpec::new("a") }, QueueSpec::new("b")]);
    (0..20).for_each(|node| stage.enqueue(task(2, node), of("b", 1000)));
    assert_eq!(stage.started().len(), 8, "a is idle");
    (0..20).for_each(|node| stage.enqueue(task(1, node), of("a", 1000)));
    (0..4).for_each(|node| stage.release(2, node));
    assert_eq!(stage.started().iter().filter(|(run, _)| *run == 1).count(), 4);
}

#[test]
fn capability_is_a_limit_at_every_level_and_says_so() {
    let mut parent = QueueSpec::new("p");
    parent.capability = quantities(&[("cpu", 3000)]);
    let child = |name: &str| QueueSpec { parent: Some("p".into()), ..QueueSpec::new(name) };
    let mut stage = stage(8000, &[parent.clone(), child("a"), child("b")]);
    (0..3).for_each(|node| stage.enqueue(task(1, node), of("a", 1000)));
    (0..3).for_each(|node| stage.enqueue(task(2, node), of("b", 1000)));
    assert_eq!(stage.started().len(), 3);
    let why = stage.scheduler.explain(task(2, 2)).unwrap();
    assert_eq!(why.quota, Some(("p".to_owned(), "cpu".to_owned())));
    assert!(why.to_string().contains("queue 'p' has no cpu left (3 of 3 used)"), "{why}");
    let raised = Remedy::RaiseCapability { queue: "p".to_owned(), to: quantities(&[("cpu", 6000)]) };
    let raised = Proposal { change: raised, suffices: Some(true) };
    assert_eq!(why.remedy, Some(raised), "two others come before it");
    parent.capability = quantities(&[("cpu", 4000)]);
    stage.scheduler.put_queue(parent);
    assert_eq!(stage.started().len(), 1, "an edit acts at once");
    // A resource that it does not name is not limited.
    stage.enqueue(task(3, 0), Demand { queue: "a".into(), ..Demand::new("t", Resources::default()) });
    assert_eq!(stage.started(), [(3, 0)]);
}

#[test]
fn a_guarantee_is_never_lent() {
    let mut kept = QueueSpec::new("kept");
    kept.guarantee = quantities(&[("cpu", 3000)]);
    let mut stage = stage(8000, &[kept, QueueSpec::new("other")]);
    (0..20).for_each(|node| stage.enqueue(task(1, node), of("other", 1000)));
    assert_eq!(stage.started().len(), 5);
    (0..3).for_each(|node| stage.enqueue(task(2, node), of("kept", 1000)));
    assert_eq!(stage.started(), [(2, 0), (2, 1), (2, 2)]);
}

#[test]
fn a_guarantee_of_a_child_is_covered_by_its_parents() {
    let mut parent = QueueSpec::new("p");
    parent.guarantee = quantities(&[("cpu", 4000)]);
    let mut child = QueueSpec { parent: Some("p".into()), ..QueueSpec::new("a") };
    child.guarantee = quantities(&[("cpu", 3000)]);
    let sibling = QueueSpec { parent: Some("p".into()), ..QueueSpec::new("b") };
    let mut stage = stage(6000, &[parent, child, sibling]);
    (0..20).for_each(|node| stage.enqueue(task(1, node), of(spec::DEFAULT, 1000)));
    assert_eq!(stage.started().len(), 2);
    (0..20).for_each(|node| stage.enqueue(task(2, node), of("b", 1000)));
    assert_eq!(stage.started().len(), 1, "three of the parent's four are the other child's");
    (0..20).for_each(|node| stage.enqueue(task(3, node), of("a", 1000)));
    assert_eq!(stage.started().len(), 3);
}

#[test]
fn below_guarantee_comes_first_then_priority_then_the_smaller_share() {
    let mut poor = QueueSpec::new("poor");
    poor.guarantee = quantities(&[("cpu", 1000)]);
    let high = QueueSpec { priority: 5, ..QueueSpec::new("high") };
    let mut stage = stage(2000, &[poor, high, QueueSpec::new("low")]);
    for (run, queue) in [(1, "low"), (2, "high"), (3, "poor")] {
        (0..2).for_each(|node| stage.enqueue(task(run, node), of(queue, 500)));
    }
    let started = stage.decisions().into_iter().filter_map(|decision| match decision {
        Decision::Start { task, .. } => Some((task.run.0, task.node.0)),
        Decision::Preempt(_) => None,
    });
    assert_eq!(started.collect::<Vec<_>>(), [(3, 0), (3, 1), (2, 0), (2, 1)]);
}

#[test]
fn tasks_of_a_queue_that_does_not_exist_wait_and_start_when_it_comes() {
    let mut stage = stage(2000, &[]);
    stage.enqueue(task(1, 0), of("later", 1000));
    assert_eq!(stage.started(), []);
    let why = stage.scheduler.explain(task(1, 0)).unwrap();
    assert_eq!(why.to_string(), "waits for queue 'later', which does not exist");
    assert_eq!(why.remedy.unwrap().change, Remedy::CreateQueue { queue: "later".to_owned() });
    stage.scheduler.put_queue(QueueSpec::new("later"));
    assert_eq!(stage.started(), [(1, 0)]);
}

#[test]
fn a_blocked_head_does_not_stop_other_queues() {
    let mut stage = stage(4000, &[QueueSpec::new("a"), QueueSpec::new("b")]);
    stage.enqueue(task(1, 0), of("a", 1000));
    assert_eq!(stage.started(), [(1, 0)]);
    stage.enqueue(task(1, 1), of("a", 4000));
    stage.enqueue(task(1, 2), of("a", 1000));
    (0..4).for_each(|node| stage.enqueue(task(2, node), of("b", 1000)));
    assert_eq!(stage.started(), [(2, 0), (2, 1), (2, 2)]);
}

#[test]
fn a_shrunk_queue_kills_nobody() {
    let mut stage = stage(4000, &[QueueSpec::new("a")]);
    (0..4).for_each(|node| stage.enqueue(task(1, node), of("a", 1000)));
    assert_eq!(stage.started().len(), 4);
    let mut small = QueueSpec::new("a");
    small.capability = quantities(&[("cpu", 1000)]);
    stage.scheduler.put_queue(small);
    stage.enqueue(task(1, 9), of("a", 1000));
    assert_eq!(stage.decisions(), []);
    (0..4).for_each(|node| stage.release(1, node));
    assert_eq!(stage.started(), [(1, 9)]);
}

/// Each of these steps would look at all queues if edits were computed for everybody at once.
#[test]
fn ten_thousand_queues_and_their_edits_cost_others_nothing() {
    let mut stage = stage(8000, &[]);
    stage.enqueue(task(1, 0), of("default", 9000));
    for queue in 0..10_000 {
        let spec = QueueSpec { weight: queue % 7 + 1, ..QueueSpec::new(format!("q{queue}")) };
        let looks = work::looks(|| {
            stage.scheduler.put_queue(spec);
            assert_eq!(stage.started(), []);
        });
        assert!(looks <= 20, "a new queue costs looks at {looks}");
    }
    stage.enqueue(task(2, 0), of("q77", 1000));
    assert_eq!(stage.started(), [(2, 0)]);
    for edit in 0..10_000 {
        let spec = QueueSpec { weight: edit % 5 + 1, ..QueueSpec::new(format!("q{}", edit * 7 % 10_000)) };
        let looks = work::looks(|| {
            stage.scheduler.put_queue(spec);
            assert_eq!(stage.started(), []);
        });
        assert!(looks <= 20, "an edit looks at {looks} queues");
    }
    let report = stage.scheduler.queue("q77").unwrap();
    let all: u64 = stage
        .scheduler
        .queues()
        .iter()
        .filter(|one| &*one.spec.name != "root")
        .map(|one| u64::from(one.spec.weight))
        .sum();
    assert_eq!(report.deserved.get("cpu").copied().unwrap_or(0), 8000 * u64::from(report.spec.weight) / all);
    assert!(report.share > 0.0 || report.deserved.is_empty());
}

#[test]
fn a_queue_that_nobody_has_created_or_that_is_gone_takes_nothing_from_others() {
    let mut stage = stage(8000, &[QueueSpec::new("a"), QueueSpec::new("b")]);
    let deserved = |stage: &Stage, queue: &str| stage.scheduler.queue(queue).unwrap().deserved["cpu"];
    let third = 8000 / 3;
    assert_eq!((deserved(&stage, "a"), deserved(&stage, "default")), (third, third));
    stage.enqueue(task(1, 0), of("typo", 1000));
    assert_eq!(stage.started(), []);
    assert_eq!(deserved(&stage, "a"), third);
    stage.scheduler.remove_queue("b");
    assert_eq!(deserved(&stage, "a"), 4000);
    stage.scheduler.put_queue(QueueSpec::new("typo"));
    assert_eq!(stage.started(), [(1, 0)], "it was only missing");
    assert_eq!(deserved(&stage, "a"), third);
}

#[test]
fn moved_queues_take_what_they_use_and_reserve_with_them() {
    let parent = |name: &str, parent: &str| QueueSpec { parent: Some(parent.into()), ..QueueSpec::new(name) };
    let mut leaf = parent("leaf", "p");
    leaf.guarantee = quantities(&[("cpu", 3000)]);
    let mut stage = stage(8000, &[QueueSpec::new("p"), QueueSpec::new("q"), leaf.clone(), parent("other", "q")]);
    stage.enqueue(task(1, 0), of("leaf", 1000));
    (0..9).for_each(|node| stage.enqueue(task(2, node), of("other", 1000)));
    assert_eq!(stage.started().len(), 6, "2 of 8 are kept for the guarantee");
    let used = |stage: &Stage, queue: &str| stage.scheduler.queue(queue).unwrap().allocated.get("cpu").copied();
    assert_eq!((used(&stage, "p"), used(&stage, "q")), (Some(1000), Some(5000)));
    leaf.parent = Some("q".into());
    stage.scheduler.put_queue(leaf.clone());
    assert_eq!(stage.started(), []);
    assert_eq!((used(&stage, "p"), used(&stage, "q"), used(&stage, "root")), (None, Some(6000), Some(6000)));
    leaf.guarantee.clear();
    stage.scheduler.put_queue(leaf);
    assert_eq!(stage.started().len(), 2, "nothing is kept any more");
    assert_eq!(used(&stage, "root"), Some(8000));
}

#[test]
fn queues_that_were_deleted_and_names_that_nobody_created_leave_nothing_behind() {
    let mut stage = Stage::declared(&[declared("n", &[("cpu", 8000), ("pods", 100)])]);
    for at in 0..50_000_u32 {
        let name = format!("q{at}");
        stage.scheduler.put_queue(QueueSpec { parent: Some("root".into()), ..QueueSpec::new(name.as_str()) });
        if at % 1000 == 0 {
            stage.enqueue(task(1, at), Demand { queue: name.as_str().into(), ..demand(1000) });
            assert_eq!(stage.started().len(), 1);
            stage.scheduler.remove_queue(&name);
            stage.enqueue(task(2, at), Demand { queue: name.as_str().into(), ..demand(1000) });
            assert_eq!(stage.started(), [], "it does not exist any more");
            stage.release(2, at);
            stage.release(1, at);
        } else {
            stage.scheduler.remove_queue(&name);
        }
    }
    assert_eq!(stage.scheduler.tree.all().count(), 2, "root and default");
    stage.scheduler.put_queue(QueueSpec::new("again"));
    stage.enqueue(task(3, 0), Demand { queue: "again".into(), ..demand(1000) });
    assert_eq!(stage.started(), [(3, 0)]);
}

/// Room that nobody takes is offered to every queue once, however many there are.
#[test]
fn an_offer_that_nobody_takes_costs_about_one_look_for_each_queue() {
    const QUEUES: u64 = 1000;
    let small = |at: u64| QueueSpec { capability: quantities(&[("cpu", 500)]), ..QueueSpec::new(format!("q{at}")) };
    let mut stage = stage(1000, &(0..QUEUES).map(small).collect::<Vec<_>>());
    stage.enqueue(task(1, 0), of("default", 1000));
    assert_eq!(stage.started(), [(1, 0)]);
    // It finds no room, so its shape waits for some; the others of that shape lack quota.
    stage.enqueue(task(1, 1), of("default", 1000));
    assert_eq!(stage.started(), []);
    (0..QUEUES).for_each(|at| stage.enqueue(task(2, at as u32), of(&format!("q{at}"), 1000)));
    assert_eq!(stage.started(), []);
    stage.release(1, 1);
    let looks = work::looks(|| {
        stage.release(1, 0);
        assert_eq!(stage.started(), []);
    });
    assert!((QUEUES..QUEUES * 6).contains(&looks), "{looks} looks at {QUEUES} queues");
}

#[test]
fn a_queue_counts_tasks_that_wait_as_it_counts_tasks_that_run() {
    let mut stage = stage(3000, &[QueueSpec::new("p"), QueueSpec { parent: Some("p".into()), ..QueueSpec::new("a") }]);
    let gang = |least| Gang {
        namespace: "n".into(),
        name: format!("g{least}").into(),
        own: None,
        least,
        part: "p".into(),
        least_of: Arc::default(),
    };
    let counts = |stage: &Stage, queue: &str| {
        let report = stage.scheduler.queue(queue).unwrap();
        (report.running, report.pending)
    };
    stage.enqueue(task(1, 0), of("a", 1000));
    assert_eq!(stage.started(), [(1, 0)]);
    (0..3).for_each(|at| stage.enqueue(task(2, at), Demand { gang: Some(gang(3)), ..of("a", 1000) }));
    // It lacks one of its least.
    (0..4).for_each(|at| stage.enqueue(task(3, at), Demand { gang: Some(gang(5)), ..of("a", 1000) }));
    assert_eq!(stage.started(), []);
    assert_eq!([counts(&stage, "a"), counts(&stage, "p"), counts(&stage, "root")], [(1, 7); 3]);
    stage.scheduler.put_queue(QueueSpec::new("a"));
    assert_eq!([counts(&stage, "a"), counts(&stage, "p"), counts(&stage, "root")], [(1, 7), (0, 0), (1, 7)]);
    stage.release(1, 0);
    assert_eq!(stage.started(), [(2, 0), (2, 1), (2, 2)]);
    assert_eq!(counts(&stage, "a"), (3, 4));
}
