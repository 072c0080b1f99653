//! Quotas: what `deserved` names decides who takes back and who lets go, capabilities are made free for whoever is entitled, and
//! short tasks pass one that waits for quota.

use super::*;

fn of(queue: &str, cpu_milli: u64) -> Demand {
    Demand { queue: queue.into(), ..demand(cpu_milli) }
}

fn deserves(name: &str, cpu_milli: u64) -> QueueSpec {
    QueueSpec { deserved: quantities(&[("cpu", cpu_milli)]), ..QueueSpec::new(name) }
}

fn below(parent: &str, queue: QueueSpec) -> QueueSpec {
    QueueSpec { parent: Some(parent.into()), ..queue }
}

fn stage(pods: u64, queues: &[QueueSpec]) -> Stage {
    let mut stage = Stage::declared(&[declared("n", &[("cpu", 8000), ("memory", 8 << 30), ("pods", pods)])]);
    queues.iter().for_each(|queue| stage.scheduler.put_queue(queue.clone()));
    stage
}

fn gang(name: &str, least: u32) -> Gang {
    Gang { namespace: "d".into(), name: name.into(), own: None, least, part: "".into(), least_of: Arc::default() }
}

/// Returns who is ended now and who starts.
fn decided(stage: &mut Stage) -> (Vec<TaskRef>, Vec<TaskRef>) {
    let (mut ended, mut started) = (Vec::new(), Vec::new());
    for decision in stage.decisions() {
        match decision {
            Decision::Preempt(preemption) => ended.push(preemption.victim),
            Decision::Start { task, .. } => started.push(task),
        }
    }
    (ended, started)
}

/// Ends everybody who is to be ended, for some seconds; returns how many that were and how many started.
fn settle(stage: &mut Stage) -> (usize, usize) {
    let mut sums = (0, 0);
    for _ in 0..20 {
        let (ended, started) = decided(stage);
        sums = (sums.0 + ended.len(), sums.1 + started.len());
        ended.into_iter().for_each(|victim| stage.scheduler.release(victim, stage.now));
        stage.wait(2);
    }
    sums
}

#[test]
fn what_deserved_does_not_name_neither_blocks_taking_back_nor_costs_anybody_tasks() {
    // By weight each of three queues would deserve five of the pods, and a third of the memory.
    let mut stage = stage(16, &[deserves("small", 2000), deserves("large", 6000)]);
    (0..8).for_each(|node| stage.enqueue(task(1, node), of("small", 1000)));
    assert_eq!(stage.started().len(), 8);
    stage.wait(5);
    let memory = Resources { memory_bytes: 1 << 30, ..cpu(1000) };
    let member = Demand { gang: Some(gang("g", 6)), resources: memory, ..of("large", 1000) };
    (0..6).for_each(|node| stage.enqueue(task(2, node), member.clone()));
    assert_eq!(settle(&mut stage), (6, 6), "six cores are due to it, whatever it uses of pods and memory");

    let mut stage = self::stage(16, &[deserves("small", 2000), deserves("large", 6000)]);
    (0..12).for_each(|node| stage.enqueue(task(1, node), of("large", 500)));
    (0..2).for_each(|node| stage.enqueue(task(2, node), of("small", 1000)));
    assert_eq!(stage.started().len(), 14);
    (0..4).for_each(|node| stage.enqueue(task(3, node), of("default", 0)));
    assert_eq!(settle(&mut stage), (0, 2), "two places are left, and both queues are within their share");
}

#[test]
fn a_number_of_tasks_counts_where_somebody_names_it() {
    let counted = |name: &str, pods| QueueSpec { deserved: quantities(&[("pods", pods)]), ..QueueSpec::new(name) };
    let mut stage = stage(8, &[counted("a", 2), counted("b", 6)]);
    (0..8).for_each(|node| stage.enqueue(task(1, node), of("a", 0)));
    assert_eq!(stage.started().len(), 8);
    (0..8).for_each(|node| stage.enqueue(task(2, node), of("b", 0)));
    assert_eq!(settle(&mut stage), (6, 6));
}

#[test]
fn what_an_ancestor_names_counts_for_those_below_it() {
    let team = deserves("team", 6000);
    let (a, b) = (below("team", QueueSpec::new("a")), below("team", QueueSpec::new("b")));
    let mut stage = stage(16, &[team, a, b]);
    (0..8).for_each(|node| stage.enqueue(task(1, node), of("a", 1000)));
    assert_eq!(stage.started().len(), 8);
    (0..8).for_each(|node| stage.enqueue(task(2, node), of("b", 1000)));
    assert_eq!(settle(&mut stage), (3, 3), "by weight, half of what the ancestor names");
}

#[test]
fn a_capability_is_made_free_for_whom_it_is_due() {
    let team = QueueSpec { capability: quantities(&[("cpu", 4000)]), ..QueueSpec::new("team") };
    let queues = [team, below("team", deserves("a", 1000)), below("team", deserves("b", 3000))];
    let mut stage = stage(100, &queues);
    (0..4).for_each(|node| stage.enqueue(task(1, node), of("a", 1000)));
    assert_eq!(stage.started().len(), 4, "half of the node is idle, and the parent is full");
    (0..3).for_each(|node| stage.enqueue(task(2, node), Demand { gang: Some(gang("g", 3)), ..of("b", 1000) }));
    assert_eq!(settle(&mut stage), (3, 3));
    (4..9).for_each(|node| stage.enqueue(task(1, node), of("a", 1000)));
    assert_eq!(settle(&mut stage), (0, 0), "and nobody takes it back in turn");
}

#[test]
fn a_class_ends_lower_ones_in_a_queue_that_is_full() {
    let queue = QueueSpec { capability: quantities(&[("cpu", 4000)]), ..QueueSpec::new("q") };
    let mut stage = stage(100, &[queue, QueueSpec::new("other")]);
    stage.scheduler.put_class("high", Some(ClassSpec { value: 100, preempts: true }), false);
    (0..4).for_each(|node| stage.enqueue(task(1, node), Demand { preemptable: Some(true), ..of("q", 1000) }));
    (4..8).for_each(|node| stage.enqueue(task(1, node), Demand { preemptable: Some(true), ..of("other", 1000) }));
    assert_eq!(stage.started().len(), 8);
    stage.enqueue(task(2, 0), Demand { class: Some("high".into()), ..of("q", 2000) });
    let (ended, _) = decided(&mut stage);
    assert_eq!(ended.len(), 2, "{ended:?}");
    assert!(ended.iter().all(|victim| victim.node.0 < 4), "of its own queue: {ended:?}");
    ended.into_iter().for_each(|victim| stage.scheduler.release(victim, stage.now));
    assert_eq!(stage.started(), [(2, 0)]);
}

#[test]
fn what_is_kept_for_a_guarantee_does_not_keep_a_queue_from_its_share() {
    let guarded = QueueSpec { guarantee: quantities(&[("cpu", 2000)]), ..QueueSpec::new("g") };
    let mut stage = stage(100, &[guarded, deserves("a", 1000), deserves("b", 5000)]);
    (0..8).for_each(|node| stage.enqueue(task(1, node), of("a", 1000)));
    assert_eq!(stage.started().len(), 6, "two cores are kept");
    stage.enqueue(task(2, 0), of("b", 1500));
    assert_eq!(settle(&mut stage), (2, 1), "there is room, and none that it may use");
}

#[test]
fn whoever_is_behind_one_that_nothing_is_due_to_takes_back() {
    for strict in [false, true] {
        let large = QueueSpec { strict, ..deserves("large", 6000) };
        let mut stage = stage(100, &[deserves("small", 2000), large]);
        (0..8).for_each(|node| stage.enqueue(task(1, node), of("small", 1000)));
        assert_eq!(stage.started().len(), 8);
        stage.enqueue(task(2, 0), of("large", 7000));
        stage.wait(1);
        (0..6).for_each(|node| stage.enqueue(task(3, node), of("large", 1000)));
        assert_eq!(settle(&mut stage), if strict { (0, 0) } else { (6, 6) });
    }
}

#[test]
fn a_class_preempts_from_behind_a_lighter_tenant_with_the_same_wishes() {
    let mut stage = stage(100, &[]);
    stage.scheduler.put_class("high", Some(ClassSpec { value: 100, preempts: true }), false);
    let low = Demand { preemptable: Some(true), ..demand(4000) };
    (0..2).for_each(|node| stage.enqueue(task(1, node), low.clone()));
    assert_eq!(stage.started().len(), 2);
    stage.wait(60);
    let light = Demand { tenant: "light".into(), ..demand(4000) };
    stage.enqueue(task(2, 0), light);
    stage.enqueue(task(3, 0), Demand { class: Some("high".into()), ..demand(4000) });
    let (ended, _) = decided(&mut stage);
    assert_eq!(ended.len(), 1);
}

#[test]
fn short_tasks_pass_one_that_waits_for_quota_and_others_do_not() {
    let capped = QueueSpec { capability: quantities(&[("cpu", 6000)]), ..QueueSpec::new("q") };
    let bounded = |cpu_milli, seconds| Demand { bound: Some(Duration::from_secs(seconds)), ..of("q", cpu_milli) };
    let mut stage = stage(100, &[capped]);
    stage.enqueue(task(1, 0), bounded(4000, 100));
    assert_eq!(stage.started().len(), 1);
    stage.enqueue(task(2, 0), bounded(5000, 100));
    stage.enqueue(task(3, 0), bounded(1000, 50));
    stage.enqueue(task(3, 1), bounded(1000, 500));
    stage.enqueue(task(3, 2), bounded(1000, 600));
    assert_eq!(stage.started(), [(3, 0), (3, 1)], "one ends before, and one core is left beside it");
    stage.wait(50);
    stage.release(3, 0);
    assert_eq!(stage.started(), [], "what is left is taken");
    stage.wait(50);
    stage.release(1, 0);
    assert_eq!(stage.started(), [(2, 0)]);
}
