//! Reclaim between queues and preemption by class: who is ended, for whom, and who never is.

use super::*;

fn of(queue: &str, cpu_milli: u64) -> Demand {
    Demand { queue: queue.into(), ..demand(cpu_milli) }
}

fn stage(queues: &[QueueSpec]) -> Stage {
    let mut stage = Stage::declared(&[declared("n", &[("cpu", 8000), ("pods", 1000)])]);
    queues.iter().for_each(|queue| stage.scheduler.put_queue(queue.clone()));
    stage
}

fn deserves(name: &str, cpu_milli: u64) -> QueueSpec {
    QueueSpec { deserved: quantities(&[("cpu", cpu_milli)]), ..QueueSpec::new(name) }
}

/// Returns the victims; nothing may start.
fn victims(stage: &mut Stage) -> Vec<(u64, u32)> {
    let victims = stage.decisions().into_iter().map(|decision| match decision {
        Decision::Preempt(preemption) => (preemption.victim.run.0, preemption.victim.node.0),
        Decision::Start { task, .. } => panic!("{task:?} started"),
    });
    victims.collect()
}

#[test]
fn a_queue_takes_back_what_it_deserves_and_no_more() {
    let mut stage = stage(&[deserves("small", 2000), deserves("large", 6000)]);
    (0..8).for_each(|node| stage.enqueue(task(1, node), of("small", 1000)));
    assert_eq!(stage.started().len(), 8, "it borrows everything");
    stage.wait(5);
    (0..8).for_each(|node| stage.enqueue(task(2, node), of("large", 1000)));
    let (mut ended, mut began) = (0, 0);
    for _ in 0..20 {
        for decision in stage.decisions() {
            match decision {
                Decision::Preempt(preemption) => {
                    ended += 1;
                    stage.scheduler.release(preemption.victim, stage.now);
                }
                Decision::Start { .. } => began += 1,
            }
        }
        stage.wait(2);
    }
    assert_eq!((ended, began), (6, 6), "two are left for what the other deserves");
}

#[test]
fn the_room_of_victims_is_kept_for_whom_they_end() {
    let mut stage = stage(&[deserves("a", 4000), deserves("b", 4000), deserves("c", 0)]);
    (0..8).for_each(|node| stage.enqueue(task(1, node), of("a", 1000)));
    assert_eq!(stage.started().len(), 8);
    stage.enqueue(task(2, 0), of("b", 3000));
    let ended = victims(&mut stage);
    assert_eq!(ended.len(), 3);
    stage.enqueue(task(3, 0), of("c", 1000));
    stage.release(ended[0].0, ended[0].1);
    stage.wait(2);
    assert_eq!(stage.decisions(), [], "neither c nor a gets the room, and nobody is ended twice");
    assert!(stage.scheduler.why(task(2, 0)).unwrap().preempting);
    ended[1..].iter().for_each(|(run, node)| stage.release(*run, *node));
    assert_eq!(stage.started(), [(2, 0)]);
}

#[test]
fn a_gang_takes_back_at_once_and_gangs_are_ended_whole() {
    let mut stage = stage(&[deserves("a", 4000), deserves("b", 4000)]);
    let member = |queue: &str, name: &str, least| {
        let gang = Gang {
            namespace: "d".into(),
            name: name.into(),
            own: None,
            least,
            part: "".into(),
            least_of: Arc::default(),
        };
        Demand { gang: Some(gang), ..of(queue, 2000) }
    };
    (0..4).for_each(|node| stage.enqueue(task(1, node), member("a", "g", 4)));
    assert_eq!(stage.started().len(), 4);
    (0..2).for_each(|node| stage.enqueue(task(2, node), member("b", "h", 2)));
    assert_eq!(victims(&mut stage).len(), 4, "whoever is in a gang at its least takes it all along");
}

#[test]
fn members_above_the_least_go_first() {
    let mut stage = stage(&[deserves("a", 4000), deserves("b", 4000)]);
    let gang = Gang {
        namespace: "d".into(),
        name: "g".into(),
        own: None,
        least: 2,
        part: "".into(),
        least_of: Arc::default(),
    };
    (0..4).for_each(|node| stage.enqueue(task(1, node), Demand { gang: Some(gang.clone()), ..of("a", 2000) }));
    assert_eq!(stage.started().len(), 4);
    stage.enqueue(task(2, 0), of("b", 4000));
    let ended = victims(&mut stage);
    assert_eq!(ended.len(), 2);
}

#[test]
fn what_may_not_be_taken_is_not() {
    let mut guarded = deserves("a", 4000);
    guarded.guarantee = quantities(&[("cpu", 4000)]);
    for (queue, preemptable, expected) in [
        (QueueSpec { reclaimable: false, ..deserves("a", 4000) }, None, 0),
        (deserves("a", 4000), Some(false), 0),
        (deserves("a", 4000), Some(true), 1),
        (guarded, None, 1),
    ] {
        let mut stage = stage(&[queue, deserves("b", 4000)]);
        (0..8).for_each(|node| stage.enqueue(task(1, node), Demand { preemptable, ..of("a", 1000) }));
        stage.started();
        stage.enqueue(task(2, 0), of("b", 1000));
        assert_eq!(victims(&mut stage).len(), expected);
    }
}

#[test]
fn nobody_is_ended_if_that_does_not_help() {
    let mut stage = stage(&[deserves("a", 4000), deserves("b", 4000)]);
    stage.enqueue(task(1, 0), Demand { preemptable: Some(false), ..of("a", 6000) });
    (1..3).for_each(|node| stage.enqueue(task(1, node), of("a", 1000)));
    assert_eq!(stage.started().len(), 3);
    stage.enqueue(task(2, 0), of("b", 4000));
    assert_eq!(victims(&mut stage), []);
}

#[test]
fn two_queues_do_not_preempt_each_other_in_turn() {
    let mut stage = stage(&[deserves("a", 4000), deserves("b", 4000)]);
    (0..2).for_each(|node| stage.enqueue(task(1, node), of("a", 3000)));
    assert_eq!(stage.started().len(), 2);
    stage.enqueue(task(2, 0), of("b", 3000));
    let ended = victims(&mut stage);
    assert_eq!(ended.len(), 1);
    ended.iter().for_each(|(run, node)| stage.release(*run, *node));
    assert_eq!(stage.started(), [(2, 0)]);
    stage.enqueue(task(1, 9), of("a", 3000));
    for _ in 0..5 {
        stage.wait(2);
        assert_eq!(stage.decisions(), []);
    }
}

#[test]
fn a_class_ends_strictly_lower_ones_and_a_plain_priority_ends_nobody() {
    for (class, preempts, expected) in [(Some("high"), true, 1), (Some("high"), false, 0), (None, true, 0)] {
        let mut stage = stage(&[]);
        stage.scheduler.put_class("high", Some(ClassSpec { value: 100, preempts }), false);
        stage.scheduler.put_class("low", Some(ClassSpec { value: 10, preempts: true }), false);
        let low = Demand { class: Some("low".into()), preemptable: Some(true), ..demand(8000) };
        stage.enqueue(task(1, 0), low.clone());
        assert_eq!(stage.started().len(), 1);
        stage.enqueue(task(1, 1), low);
        assert_eq!(victims(&mut stage), [], "an equal class waits");
        stage.enqueue(task(2, 0), Demand { class: class.map(Into::into), priority: 1000, ..demand(1000) });
        assert_eq!(victims(&mut stage).len(), expected);
    }
}

#[test]
fn whoever_is_looked_for_again_after_its_node_is_gone_is_not_stuck() {
    let nodes = ["x", "y"].map(|name| declared(name, &[("cpu", 4000), ("pods", 9)]));
    let mut stage = Stage::declared(&nodes);
    stage.scheduler.put_queue(QueueSpec::new("rich"));
    stage.scheduler.put_queue(QueueSpec::new("poor"));
    (0..8).for_each(|node| stage.enqueue(task(1, node), Demand { queue: "rich".into(), ..demand(1000) }));
    assert_eq!(stage.started().len(), 8);
    stage.enqueue(task(2, 0), Demand { queue: "poor".into(), ..demand(1000) });
    let victims: Vec<TaskRef> = stage
        .decisions()
        .into_iter()
        .map(|decision| match decision {
            Decision::Preempt(preemption) => preemption.victim,
            Decision::Start { task, .. } => panic!("{task:?}"),
        })
        .collect();
    assert_eq!(victims.len(), 1);
    let gone = stage.node_of(1, victims[0].node.0).to_owned();
    stage.scheduler.remove_node(&gone);
    (0..8)
        .filter(|node| stage.scheduler.running.contains_key(&task(1, *node)))
        .collect::<Vec<_>>()
        .into_iter()
        .for_each(|node| {
            if stage.node_of(1, node) == gone {
                stage.release(1, node);
            }
        });
    stage.wait(2);
    let again = stage.decisions();
    assert!(!again.is_empty(), "it looks for victims on the other node");
    for decision in again {
        if let Decision::Preempt(preemption) = decision {
            stage.scheduler.release(preemption.victim, stage.now);
        }
    }
    assert_eq!(stage.started(), [(2, 0)]);
}

#[test]
fn victims_are_no_more_than_needed_and_the_youngest_of_one_node() {
    let nodes: Vec<NodeSpec> =
        (0..10).map(|at| declared(&format!("n{at}"), &[("cpu", 10_000), ("pods", 99)])).collect();
    let mut stage = Stage::declared(&nodes);
    stage.scheduler.put_queue(QueueSpec { spread: true, ..QueueSpec::new("rich") });
    stage.scheduler.put_queue(QueueSpec::new("poor"));
    for node in 0..100 {
        stage.enqueue(task(1, node), Demand { queue: "rich".into(), ..demand(1000) });
        assert_eq!(stage.started().len(), 1);
        stage.wait(1);
    }
    stage.enqueue(task(2, 0), Demand { queue: "poor".into(), ..demand(3000) });
    let victims: Vec<TaskRef> = stage
        .decisions()
        .into_iter()
        .filter_map(|decision| match decision {
            Decision::Preempt(preemption) => Some(preemption.victim),
            Decision::Start { .. } => None,
        })
        .collect();
    let on: BTreeSet<&str> = victims.iter().map(|victim| stage.node_of(1, victim.node.0)).collect();
    assert_eq!((victims.len(), on.len()), (3, 1), "{victims:?}");
    assert!(victims.iter().all(|victim| victim.node.0 >= 70), "{victims:?}");
    victims.iter().for_each(|victim| stage.release(1, victim.node.0));
    assert_eq!(stage.started(), [(2, 0)]);
}

#[test]
fn a_whole_gang_is_ended_once_although_one_of_it_was_chosen_alone_before() {
    let mut stage = stage(&[deserves("small", 1000), deserves("large", 8000)]);
    let gang = Gang {
        namespace: "default".into(),
        name: "g".into(),
        own: None,
        least: 2,
        part: "".into(),
        least_of: Arc::default(),
    };
    (0..3).for_each(|node| {
        stage.enqueue(task(1, node), Demand { gang: Some(gang.clone()), ..of("small", 2000) });
    });
    assert_eq!(stage.started().len(), 3);
    stage.wait(5);
    // One above the least is not enough for it, so the gang goes as a whole.
    stage.enqueue(task(2, 0), of("large", 8000));
    let mut ended = victims(&mut stage);
    ended.sort_unstable();
    assert_eq!(ended, [(1, 0), (1, 1), (1, 2)]);
}

#[test]
fn a_member_that_its_part_needs_is_not_ended_alone() {
    let mut stage = stage(&[deserves("a", 6000), deserves("b", 2000)]);
    let member = |part: &str| {
        let gang = Gang {
            namespace: "d".into(),
            name: "g".into(),
            own: None,
            least: 3,
            part: part.into(),
            least_of: Arc::new(BTreeMap::from([("ps".to_owned(), 1), ("worker".to_owned(), 2)])),
        };
        Demand { gang: Some(gang), ..of("a", 2000) }
    };
    (0..3).for_each(|node| stage.enqueue(task(1, node), member("worker")));
    assert_eq!(stage.started().len(), 0, "a server is missing");
    stage.enqueue(task(1, 3), member("ps"));
    assert_eq!(stage.started().len(), 4);
    stage.enqueue(task(2, 0), of("b", 2000));
    let ended = victims(&mut stage);
    assert_eq!(ended.len(), 1);
    assert!(ended[0].1 < 3, "a worker goes, not the only server: {ended:?}");
}

/// Who is being ended is known without a look at all who run.
#[test]
fn a_search_for_victims_looks_at_those_who_are_being_ended_and_at_no_other_task() {
    let nodes: Vec<NodeSpec> =
        (0..20).map(|at| declared(&format!("n{at}"), &[("cpu", 100_000), ("pods", 200)])).collect();
    let mut stage = Stage::declared(&nodes);
    let deserved =
        |name: &str, cores: u64| QueueSpec { deserved: quantities(&[("cpu", cores)]), ..QueueSpec::new(name) };
    stage.scheduler.put_queue(deserved("a", 500_000));
    stage.scheduler.put_queue(deserved("b", 1_500_000));
    let of = |queue: &str| Demand { queue: queue.into(), ..demand(1000) };
    (0..2000).for_each(|at| stage.enqueue(task(1, at), of("a")));
    assert_eq!(stage.started().len(), 2000);
    stage.enqueue(task(2, 0), of("b"));
    let mut decided = Vec::new();
    let looks = work::looks(|| decided = stage.decisions());
    assert!(matches!(decided[..], [Decision::Preempt(_)]), "{decided:?}");
    assert!(looks < 50, "{looks} looks");
    let Decision::Preempt(preemption) = &decided[0] else { panic!("{decided:?}") };
    let ending = |stage: &Stage| stage.scheduler.ending.iter().copied().collect::<Vec<_>>();
    assert_eq!(ending(&stage), [preemption.victim]);
    stage.scheduler.release(preemption.victim, stage.now);
    assert_eq!(ending(&stage), []);
}
