//! What is promised and what is as good as gone: tasks that are being ended, room and quota kept for others, nodes and queues
//! that went away.

use super::*;

fn of(queue: &str, cpu_milli: u64) -> Demand {
    Demand { queue: queue.into(), ..demand(cpu_milli) }
}

fn stage(nodes: &[NodeSpec], queues: &[QueueSpec]) -> Stage {
    let mut stage = Stage::declared(nodes);
    queues.iter().for_each(|queue| stage.scheduler.put_queue(queue.clone()));
    stage
}

fn node(name: &str, cpu_milli: u64) -> NodeSpec {
    declared(name, &[("cpu", cpu_milli), ("pods", 1000)])
}

fn deserves(name: &str, cpu_milli: u64) -> QueueSpec {
    QueueSpec { deserved: quantities(&[("cpu", cpu_milli)]), ..QueueSpec::new(name) }
}

fn guarantees(cpu_milli: u64, queue: QueueSpec) -> QueueSpec {
    QueueSpec { guarantee: quantities(&[("cpu", cpu_milli)]), ..queue }
}

/// Returns the victims; nothing may start. They are told to be ending, as the engine does.
fn victims(stage: &mut Stage) -> Vec<TaskRef> {
    let victims = stage.decisions().into_iter().map(|decision| match decision {
        Decision::Preempt(preemption) => preemption.victim,
        Decision::Start { task, .. } => panic!("{task:?} started"),
    });
    victims.collect()
}

#[test]
fn tasks_that_are_being_ended_do_not_count_as_what_a_queue_has() {
    let queues = [guarantees(5000, deserves("rich", 5000)), deserves("one", 2000), deserves("two", 2000)];
    let mut stage = stage(&[node("n", 8000)], &queues);
    (0..8).for_each(|task_at| stage.enqueue(task(1, task_at), of("rich", 1000)));
    assert_eq!(stage.started().len(), 8);
    stage.enqueue(task(2, 0), of("one", 2000));
    assert_eq!(victims(&mut stage).len(), 2);
    // Six go on. Another two would leave less than is guaranteed, though eight still have their room.
    stage.enqueue(task(3, 0), of("two", 2000));
    assert_eq!(victims(&mut stage), []);
}

#[test]
fn after_a_restart_those_who_are_being_ended_are_enough() {
    let queues = [deserves("rich", 4000), deserves("poor", 4000), deserves("idle", 0)];
    let mut before = stage(&[node("n", 8000)], &queues);
    (0..8).for_each(|task_at| before.enqueue(task(1, task_at), of("rich", 1000)));
    before.started();
    before.enqueue(task(2, 0), of("poor", 2000));
    let ended = victims(&mut before);
    assert_eq!(ended.len(), 2);
    let mut after = stage(&[node("n", 8000)], &queues);
    for (task, running) in &before.scheduler.running {
        after.scheduler.adopt(*task, running.demand.clone(), Some(&running.assignment), running.started);
        if running.ending {
            after.scheduler.set_ending(*task);
        }
    }
    after.enqueue(task(2, 0), of("poor", 2000));
    assert_eq!(victims(&mut after), [], "nobody else has to end");
    // Their room is kept again.
    after.enqueue(task(3, 0), of("idle", 1000));
    after.scheduler.release(ended[0], after.now);
    assert_eq!(after.started(), []);
    after.scheduler.release(ended[1], after.now);
    assert_eq!(after.started(), [(2, 0)]);
}

#[test]
fn nobody_is_ended_for_a_task_that_does_not_wait_any_more() {
    let mut stage = stage(&[node("n", 8000)], &[deserves("rich", 4000), deserves("poor", 4000)]);
    (0..8).for_each(|task_at| stage.enqueue(task(1, task_at), of("rich", 1000)));
    stage.started();
    stage.enqueue(task(2, 0), of("poor", 2000));
    stage.enqueue(task(3, 0), of("poor", 1000));
    let waits = |one: TaskRef| one.run != RunId(2);
    let decided: Vec<Decision> = std::iter::from_fn(|| stage.scheduler.next(stage.now, waits, |_| true)).collect();
    let [Decision::Preempt(only)] = &decided[..] else { panic!("{decided:?}") };
    assert_eq!(only.by, task(3, 0));
    stage.scheduler.release(only.victim, stage.now);
    assert_eq!(stage.started(), [(3, 0)]);
}

#[test]
fn nobody_is_ended_for_a_task_that_guarantees_of_others_keep_from_starting() {
    let mut stage = stage(&[node("n", 4000)], &[deserves("rich", 2000), deserves("poor", 2000)]);
    (0..4).for_each(|task_at| stage.enqueue(task(1, task_at), of("rich", 1000)));
    assert_eq!(stage.started().len(), 4);
    // What is left of the first and what is kept from now on is all there is.
    stage.scheduler.put_queue(guarantees(2000, deserves("kept", 2000)));
    stage.enqueue(task(2, 0), of("poor", 2000));
    assert_eq!(victims(&mut stage), []);
}

#[test]
fn a_class_preempts_inside_of_what_its_queue_is_guaranteed() {
    let mut stage =
        stage(&[node("n", 8000)], &[guarantees(4000, deserves("a", 4000)), guarantees(4000, deserves("b", 4000))]);
    stage.scheduler.put_class("high", Some(ClassSpec { value: 100, preempts: true }), false);
    let low = Demand { preemptable: Some(true), ..of("a", 4000) };
    stage.enqueue(task(1, 0), low);
    stage.enqueue(task(2, 0), of("b", 4000));
    assert_eq!(stage.started().len(), 2);
    stage.enqueue(task(3, 0), Demand { class: Some("high".into()), ..of("a", 4000) });
    assert_eq!(victims(&mut stage), [task(1, 0)], "the queue has as much afterwards as before");
}

#[test]
fn nobody_waits_for_a_promise_that_cannot_be_kept() {
    let queues = [deserves("rich", 4000), deserves("poor", 4000)];
    let mut stage = stage(&[node("n", 4000), node("m", 4000)], &queues);
    (0..2).for_each(|task_at| stage.enqueue(task(1, task_at), of("rich", 4000)));
    assert_eq!(stage.started().len(), 2);
    stage.enqueue(task(2, 0), of("poor", 4000));
    let ended = victims(&mut stage);
    let (kept, other) = if stage.node_of(ended[0].run.0, ended[0].node.0) == "n" { ("n", "m") } else { ("m", "n") };
    // The node where room is made is gone for new tasks, and the other one becomes free.
    stage.scheduler.put_node(NodeSpec { cordoned: true, ..node(kept, 4000) });
    let on_other = (0..2).find(|at| stage.node_of(1, *at) == other).unwrap();
    stage.release(1, on_other);
    assert_eq!(stage.started(), [(2, 0)]);
}

#[test]
fn quota_is_kept_for_whom_others_are_ended() {
    let team = QueueSpec { capability: quantities(&[("cpu", 4000)]), ..deserves("team", 4000) };
    let below = |queue: QueueSpec| QueueSpec { parent: Some("team".into()), ..queue };
    let queues = [team, below(deserves("a", 2000)), below(deserves("b", 2000)), deserves("rich", 4000)];
    let mut stage = stage(&[node("n", 8000), node("small", 2000)], &queues);
    stage.enqueue(task(9, 0), of("a", 2000));
    stage.started();
    (0..8).for_each(|task_at| stage.enqueue(task(1, task_at), of("rich", 1000)));
    assert_eq!(stage.started().len(), 8);
    stage.enqueue(task(2, 0), of("b", 2000));
    let ended = victims(&mut stage);
    assert_eq!(ended.len(), 2);
    // A relative ends, and another one comes: there is room for it, and the quota is promised.
    stage.release(9, 0);
    stage.enqueue(task(3, 0), of("a", 1000));
    stage.enqueue(task(3, 1), of("a", 2000));
    assert_eq!(stage.started().len(), 1, "a quarter of the quota is left");
    ended.iter().for_each(|victim| stage.scheduler.release(*victim, stage.now));
    assert_eq!(stage.started(), [(2, 0)]);
}

#[test]
fn a_node_that_comes_back_still_has_what_ran_there() {
    let mut stage = stage(&[node("n", 4000)], &[]);
    stage.enqueue(task(1, 0), demand(3000));
    assert_eq!(stage.started().len(), 1);
    stage.scheduler.remove_node("n");
    let used = |stage: &Stage| stage.scheduler.queue("default").unwrap().allocated.get("cpu").copied();
    assert_eq!(used(&stage), Some(3000));
    stage.scheduler.put_node(node("n", 4000));
    stage.enqueue(task(2, 0), demand(3000));
    assert_eq!(stage.started(), [], "the first may still run there");
    stage.release(1, 0);
    assert_eq!(stage.started(), [(2, 0)]);
}

#[test]
fn a_task_on_a_node_that_nobody_knows_counts_for_its_queue_in_full() {
    let mut stage = stage(&[node("n", 4000)], &[]);
    let gone = Assignment { node: "gone".to_owned(), ..Assignment::default() };
    stage.scheduler.adopt(task(1, 0), Arc::new(demand(3000)), Some(&gone), stage.now);
    assert_eq!(stage.scheduler.queue("default").unwrap().allocated.get("cpu"), Some(&3000));
    stage.release(1, 0);
    assert_eq!(stage.scheduler.nodes().len(), 1, "nothing is left of it");
}

#[test]
fn a_queue_that_does_not_exist_takes_no_share() {
    let mut stage = stage(&[node("n", 8000)], &[QueueSpec::new("a")]);
    stage.enqueue(task(1, 0), of("unknown", 1000));
    assert_eq!(stage.started(), []);
    let deserved = |stage: &Stage| stage.scheduler.queue("a").unwrap().deserved["cpu"];
    assert_eq!(deserved(&stage), 4000, "half, beside the queue that always exists");
    stage.scheduler.put_queue(QueueSpec::new("b"));
    stage.scheduler.remove_queue("b");
    assert_eq!(stage.started(), []);
    assert_eq!(deserved(&stage), 4000);
}

#[test]
fn whoever_gathers_in_a_queue_that_nobody_created_is_told_so() {
    let gang = Gang {
        namespace: "n".into(),
        name: "g".into(),
        own: None,
        least: 2,
        part: "".into(),
        least_of: Arc::default(),
    };
    let mut stage = stage(&[node("n", 4000)], &[]);
    stage.enqueue(task(1, 0), Demand { gang: Some(gang), ..of("unknown", 1000) });
    assert_eq!(stage.started(), []);
    assert!(!stage.scheduler.why(task(1, 0)).unwrap().queue_exists);
}

#[test]
fn what_can_never_start_holds_up_nobody() {
    let strict = QueueSpec { strict: true, ..QueueSpec::new("strict") };
    let mut stage = stage(&[node("n", 8000)], &[strict, guarantees(6000, QueueSpec::new("kept")), QueueSpec::new("a")]);
    stage.enqueue(task(1, 0), of("strict", 9000));
    stage.enqueue(task(2, 0), of("strict", 1000));
    assert_eq!(stage.started(), [(2, 0)], "larger than every node");
    stage.release(2, 0);
    stage.enqueue(task(3, 0), of("a", 3000));
    stage.enqueue(task(4, 0), of("a", 1000));
    assert_eq!(stage.started(), [(4, 0)], "larger than what guarantees leave");
}

#[test]
fn guarantees_hold_on_what_shrunken_nodes_leave() {
    let mut stage = stage(&[node("n", 8000), node("m", 8000)], &[guarantees(6000, QueueSpec::new("kept"))]);
    stage.enqueue(task(1, 0), demand(8000));
    assert_eq!(stage.started().len(), 1);
    let full = stage.node_of(1, 0).to_owned();
    stage.scheduler.put_node(node(&full, 1000));
    stage.enqueue(task(2, 0), demand(4000));
    assert_eq!(stage.started(), []);
    stage.enqueue(task(3, 0), of("kept", 6000));
    assert_eq!(stage.started(), [(3, 0)]);
}

#[test]
fn whoever_waited_alone_waits_for_its_gang_again_when_that_has_too_few_left() {
    let gang = Gang {
        namespace: "n".into(),
        name: "g".into(),
        own: None,
        least: 2,
        part: "".into(),
        least_of: Arc::default(),
    };
    let member = |cpu_milli| Demand { gang: Some(gang.clone()), ..demand(cpu_milli) };
    let mut stage = stage(&[node("n", 4000)], &[]);
    (0..2).for_each(|at| stage.enqueue(task(1, at), member(2000)));
    assert_eq!(stage.started().len(), 2);
    stage.enqueue(task(2, 0), member(2000));
    assert_eq!(stage.started(), []);
    // The run of the others is over, and one alone is no gang.
    (0..2).for_each(|at| stage.release(1, at));
    stage.scheduler.leave(RunId(1));
    assert_eq!(stage.started(), []);
    stage.enqueue(task(2, 1), member(2000));
    assert_eq!(stage.started(), [(2, 0), (2, 1)]);
}

#[test]
fn quota_that_a_guarantee_covers_is_kept_for_whom_others_are_ended() {
    let mut stage = Stage::declared(&[declared("n", &[("cpu", 8000), ("pods", 100)])]);
    let guarantee = |name: &str, cpu| QueueSpec { guarantee: quantities(&[("cpu", cpu)]), ..QueueSpec::new(name) };
    stage.scheduler.put_queue(guarantee("a", 2000));
    stage.scheduler.put_queue(guarantee("b", 6000));
    stage.scheduler.put_class("high", Some(ClassSpec { value: 100, preempts: true }), false);
    let low = Demand { queue: "a".into(), preemptable: Some(true), ..demand(1000) };
    (0..2).for_each(|node| stage.enqueue(task(1, node), low.clone()));
    assert_eq!(stage.started().len(), 2, "all that it is guaranteed");
    stage.enqueue(task(2, 0), Demand { queue: "a".into(), class: Some("high".into()), ..demand(2000) });
    let ended: Vec<TaskRef> = stage
        .decisions()
        .into_iter()
        .map(|decision| match decision {
            Decision::Preempt(preemption) => preemption.victim,
            Decision::Start { task, .. } => panic!("{task:?}"),
        })
        .collect();
    assert_eq!(ended.len(), 2, "there is room, and quota is what it lacks");
    stage.scheduler.release(ended[0], stage.now);
    stage.scheduler.enqueue(ended[0], Arc::new(low), Time::from_secs(1));
    assert_eq!(stage.started(), [], "it does not get back what was promised");
    stage.scheduler.release(ended[1], stage.now);
    assert_eq!(stage.started(), [(2, 0)]);
}
