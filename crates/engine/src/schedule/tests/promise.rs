//! Promises that meet: two preemptors at once, gangs that lose members while one of them is promised room, guarantees that
//! cover what is promised.

use super::*;

const HIGH: &str = "high";

fn of(queue: &str, cpu_milli: u64) -> Demand {
    Demand { queue: queue.into(), ..demand(cpu_milli) }
}

fn low(queue: &str, cpu_milli: u64) -> Demand {
    Demand { preemptable: Some(true), ..of(queue, cpu_milli) }
}

fn high(queue: &str, cpu_milli: u64) -> Demand {
    Demand { class: Some(HIGH.into()), ..of(queue, cpu_milli) }
}

fn member(least: u32, demand: Demand) -> Demand {
    let gang = Gang {
        namespace: "default".into(),
        name: "gang".into(),
        own: None,
        least,
        part: "".into(),
        least_of: Arc::default(),
    };
    Demand { gang: Some(gang), ..demand }
}

fn queue(name: &str, deserved: u64, guarantee: u64) -> QueueSpec {
    let guarantee = quantities(&[("cpu", guarantee)]);
    QueueSpec { deserved: quantities(&[("cpu", deserved)]), guarantee, ..QueueSpec::new(name) }
}

fn stage(nodes: &[(&str, u64)], queues: &[QueueSpec]) -> Stage {
    let nodes: Vec<NodeSpec> =
        nodes.iter().map(|(name, cpu)| declared(name, &[("cpu", *cpu), ("pods", 100)])).collect();
    let mut stage = Stage::declared(&nodes);
    queues.iter().for_each(|queue| stage.scheduler.put_queue(queue.clone()));
    stage.scheduler.put_class(HIGH, Some(ClassSpec { value: 100, preempts: true }), false);
    stage
}

/// Returns who is ended for whom. Victims leave their gangs, as the engine tells them to.
fn preemptions(stage: &mut Stage) -> Vec<(TaskRef, TaskRef)> {
    let mut pairs = Vec::new();
    while let Some(decision) = stage.scheduler.next(stage.now, |_| true, |_| true) {
        let Decision::Preempt(preemption) = decision else { panic!("{decision:?}") };
        stage.scheduler.quit_gang(preemption.victim);
        pairs.push((preemption.victim, preemption.by));
    }
    pairs
}

#[test]
fn a_preemptor_whose_gang_is_ended_meanwhile_waits_for_its_gang() {
    let mut stage = stage(&[("n", 4000)], &[queue("rich", 1000, 0), queue("poor", 3000, 0)]);
    (0..2).for_each(|at| stage.enqueue(task(1, at), member(2, of("rich", 1000))));
    (0..2).for_each(|at| stage.enqueue(task(2, at), low("rich", 1000)));
    assert_eq!(stage.started().len(), 4);
    stage.enqueue(task(3, 0), of("poor", 3000));
    stage.enqueue(task(1, 2), member(2, high("rich", 1000)));
    let ended = preemptions(&mut stage);
    assert!(ended.iter().all(|(_, by)| *by == task(3, 0)) && ended.len() == 3, "{ended:?}");
    assert_eq!(stage.scheduler.gathering(task(1, 2)), Some((1, 2)));
    assert_eq!(stage.scheduler.waiting(), 2);
}

/// Returns for whom tasks of run 2 are ended, and nobody else's.
fn ended_of_2(stage: &mut Stage) -> Vec<TaskRef> {
    let each = preemptions(stage).into_iter().inspect(|(victim, _)| assert_eq!(victim.run, RunId(2)));
    each.map(|(_, by)| by).collect()
}

#[test]
fn nobody_of_a_gang_is_ended_while_one_of_it_is_promised_room() {
    let mut stage = stage(&[("n", 6000)], &[queue("rich", 1000, 0), queue("poor", 3000, 0)]);
    stage.enqueue(task(2, 0), of("rich", 1000));
    stage.enqueue(task(2, 1), low("rich", 1000));
    assert_eq!(stage.started().len(), 2);
    stage.wait(10);
    (0..3).for_each(|at| stage.enqueue(task(1, at), member(3, of("rich", 1000))));
    assert_eq!(stage.started().len(), 3);
    // Somebody ends one of the gang: it waits, and the gang with it.
    stage.scheduler.quit_gang(task(1, 2));
    stage.release(1, 2);
    stage.enqueue(task(4, 0), of("poor", 2000));
    assert_eq!(stage.started(), [(4, 0)]);
    stage.enqueue(task(1, 2), member(3, high("rich", 1000)));
    assert_eq!(ended_of_2(&mut stage), [task(1, 2)]);
    stage.enqueue(task(5, 0), of("poor", 1000));
    assert_eq!(ended_of_2(&mut stage), [task(5, 0)], "the younger ones are of the gang");
}

#[test]
fn what_a_guarantee_covers_is_promised_once() {
    let below = |name: &str| QueueSpec { parent: Some("p".into()), ..QueueSpec::new(name) };
    let queues = [QueueSpec::new("p"), below("a"), below("b"), QueueSpec::new("c")];
    let mut stage = stage(&[("gone", 6000)], &queues);
    stage.enqueue(task(1, 0), of("a", 4000));
    stage.enqueue(task(1, 1), low("a", 2000));
    assert_eq!(stage.started().len(), 2);
    stage.scheduler.put_node(declared("n", &[("cpu", 9000), ("pods", 100)]));
    stage.scheduler.remove_node("gone");
    stage.enqueue(task(2, 0), of("c", 4000));
    assert_eq!(stage.started(), [(2, 0)]);
    stage.scheduler.put_queue(QueueSpec { guarantee: quantities(&[("cpu", 5000)]), ..QueueSpec::new("p") });
    stage.enqueue(task(3, 0), high("a", 1000));
    stage.enqueue(task(3, 1), of("b", 1000));
    let ended = preemptions(&mut stage);
    let [(victim, by)] = ended[..] else { panic!("{ended:?}") };
    assert_eq!(victim, task(1, 1));
    stage.release(1, 1);
    assert_eq!(stage.started(), [(by.run.0, by.node.0)], "the one for whom somebody was ended, and not the other");
}

#[test]
fn a_promise_does_not_wait_for_the_ends_that_pay_for_another() {
    let mut stage = stage(&[("n", 5000)], &[queue("a", 7000, 4000), queue("b", 5000, 0)]);
    let busy = |demand: Demand| Demand { tenant: "busy".into(), ..demand };
    (0..3).for_each(|at| stage.enqueue(task(1, at), busy(of("a", 1000))));
    (3..5).for_each(|at| stage.enqueue(task(1, at), low("a", 1000)));
    assert_eq!(stage.started().len(), 5);
    stage.scheduler.put_node(declared("m", &[("cpu", 9000), ("pods", 100)]));
    (0..4).for_each(|at| stage.enqueue(task(2, at), of("b", 2000)));
    stage.enqueue(task(2, 4), of("b", 1000));
    assert_eq!(stage.started().len(), 5);
    stage.wait(100);
    // It comes after those whose tenant has used less.
    stage.enqueue(task(3, 0), busy(high("a", 2000)));
    let by: Vec<TaskRef> = preemptions(&mut stage).into_iter().map(|(_, by)| by).collect();
    assert_eq!(by, [task(3, 0); 2]);
    stage.release(1, 3);
    stage.enqueue(task(1, 3), low("a", 1000));
    let ended = preemptions(&mut stage);
    assert!(matches!(ended[..], [(victim, by)] if victim.run == RunId(2) && by == task(1, 3)), "{ended:?}");
    stage.release(1, 4);
    assert_eq!(stage.started(), [(3, 0)]);
}

#[test]
fn guarantees_above_all_nodes_exclude_no_queue_from_its_own_part() {
    let mut stage = stage(&[("n", 5000)], &[queue("a", 6000, 6000), queue("b", 0, 2000)]);
    (0..3).for_each(|at| stage.enqueue(task(1, at), of("a", 1000)));
    (0..2).for_each(|at| stage.enqueue(task(2, at), low("b", 1000)));
    assert_eq!(stage.started().len(), 5);
    stage.enqueue(task(3, 0), high("b", 2000));
    assert_eq!(preemptions(&mut stage).len(), 2);
}
