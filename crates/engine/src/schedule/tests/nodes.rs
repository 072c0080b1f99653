//! Room on nodes: measured amounts are soft, declared ones hard; selectors, taints, devices, reservations and backfill.

use octoflow_model::task::placement::{NodeConstraints, Taint, TaintEffect, Toleration};

use super::*;

#[test]
fn places_are_never_exceeded_and_come_back() {
    let mut stage = Stage::measured(2, 2000);
    (1..=3).for_each(|node| stage.enqueue(task(1, node), demand(0)));
    assert_eq!(stage.started(), [(1, 1), (1, 2)]);
    let why = stage.scheduler.why(task(1, 3)).unwrap();
    assert_eq!(why.to_string(), "waits in queue 'default', 1 of 1: 1 node without enough free pods");
    stage.release(1, 1);
    assert_eq!(stage.started(), [(1, 3)]);
}

#[test]
fn a_task_larger_than_a_measured_machine_gets_the_whole_of_it() {
    let mut stage = Stage::measured(9, 2000);
    stage.enqueue(task(1, 1), demand(64_000));
    stage.enqueue(task(1, 2), demand(1));
    assert_eq!(stage.started(), [(1, 1)]);
    stage.release(1, 1);
    assert_eq!(stage.started(), [(1, 2)]);
}

#[test]
fn a_task_larger_than_a_declared_node_waits_and_holds_up_nobody() {
    let mut stage = Stage::declared(&[declared("n", &[("cpu", 2000), ("pods", 9)])]);
    stage.enqueue(task(1, 1), demand(64_000));
    stage.enqueue(task(1, 2), demand(1000));
    assert_eq!(stage.started(), [(1, 2)]);
    let why = stage.scheduler.why(task(1, 1)).unwrap();
    assert_eq!(why.nodes, BTreeMap::from([(Misfit::TooLarge("cpu".to_owned()), 1)]));
    stage.scheduler.put_node(declared("big", &[("cpu", 64_000), ("pods", 1)]));
    assert_eq!(stage.started(), [(1, 1)]);
    assert_eq!(stage.node_of(1, 1), "big");
}

#[test]
fn selectors_bind_only_where_somebody_declared_labels() {
    let wants =
        NodeConstraints { selector: [("disk".to_owned(), "ssd".to_owned())].into(), ..NodeConstraints::default() };
    let wants = Demand { constraints: Arc::new(wants), ..demand(0) };
    let mut stage = Stage::measured(1, 1000);
    stage.enqueue(task(1, 1), wants.clone());
    assert_eq!(stage.started(), [(1, 1)], "a laptop that nobody configured");
    let labelled = |value: &str| NodeSpec {
        labels: [("disk".to_owned(), value.to_owned())].into(),
        labels_declared: true,
        ..declared(value, &[("pods", 1)])
    };
    let mut stage = Stage::declared(&[labelled("hdd")]);
    stage.enqueue(task(1, 1), wants);
    assert_eq!(stage.started(), []);
    stage.scheduler.put_node(labelled("ssd"));
    assert_eq!(stage.started(), [(1, 1)]);
    assert_eq!(stage.node_of(1, 1), "ssd");
}

#[test]
fn taints_and_cordons_keep_tasks_away() {
    let taint = Taint::new("gpu", "", TaintEffect::NoSchedule);
    let node = NodeSpec { taints: vec![taint], ..declared("n", &[("pods", 2)]) };
    let mut stage = Stage::declared(&[NodeSpec { cordoned: true, ..node.clone() }]);
    let tolerates = Toleration { key: "gpu".to_owned(), exists: true, ..Toleration::default() };
    let constraints = NodeConstraints { tolerations: vec![tolerates], ..NodeConstraints::default() };
    stage.enqueue(task(1, 1), demand(0));
    stage.enqueue(task(1, 2), Demand { constraints: Arc::new(constraints), ..demand(0) });
    assert_eq!(stage.started(), []);
    let why = stage.scheduler.explain(task(1, 2)).unwrap();
    assert_eq!(why.remedy.unwrap().change, Remedy::Uncordon { node: "n".to_owned() });
    stage.scheduler.put_node(node);
    assert_eq!(stage.started(), [(1, 2)]);
}

#[test]
fn two_tasks_never_get_the_same_device() {
    let mut stage = Stage::declared(&[declared("n", &[("pods", 9), ("nvidia.com/gpu", 3)])]);
    let gpus = |count| Demand::new("t", Resources { others: quantities(&[("nvidia.com/gpu", count)]), ..cpu(0) });
    stage.enqueue(task(1, 1), gpus(2));
    stage.enqueue(task(1, 2), gpus(1));
    stage.enqueue(task(1, 3), gpus(1));
    let devices = |decision: &Decision| match decision {
        Decision::Start { assignment, .. } => assignment.devices["nvidia.com/gpu"].clone(),
        Decision::Preempt(_) => Vec::new(),
    };
    let first: Vec<_> = stage.decisions().iter().map(devices).collect();
    assert_eq!(first, [vec![0, 1], vec![2]]);
    stage.release(1, 1);
    assert_eq!(stage.decisions().iter().map(devices).collect::<Vec<_>>(), [vec![0]]);
}

#[test]
fn tasks_are_packed_and_a_queue_may_spread_them() {
    let nodes = [declared("a", &[("cpu", 4000), ("pods", 9)]), declared("b", &[("cpu", 3000), ("pods", 9)])];
    let mut stage = Stage::declared(&nodes);
    (1..=3).for_each(|node| stage.enqueue(task(1, node), demand(1000)));
    stage.started();
    assert_eq!((1..=3).map(|node| stage.node_of(1, node)).collect::<Vec<_>>(), ["b", "b", "b"]);
    let mut stage = Stage::declared(&nodes);
    stage.scheduler.put_queue(QueueSpec { spread: true, ..QueueSpec::new(spec::DEFAULT) });
    (1..=3).for_each(|node| stage.enqueue(task(1, node), demand(1000)));
    stage.started();
    assert_eq!((1..=3).map(|node| stage.node_of(1, node)).collect::<Vec<_>>(), ["a", "b", "a"]);
}

#[test]
fn others_pass_the_first_only_if_they_end_before_or_use_what_it_does_not_need() {
    let mut stage = Stage::declared(&[declared("n", &[("cpu", 4000), ("pods", 9), ("memory", 100)])]);
    let bound = |seconds| Some(Duration::from_secs(seconds));
    stage.enqueue(task(1, 1), Demand { bound: bound(100), ..demand(3000) });
    assert_eq!(stage.started(), [(1, 1)]);
    stage.enqueue(task(2, 1), demand(4000));
    stage.enqueue(task(3, 1), demand(1000));
    stage.enqueue(task(4, 1), Demand { bound: bound(100), ..demand(1000) });
    stage.enqueue(task(5, 1), Demand::new("tenant", Resources { memory_bytes: 50, ..cpu(0) }));
    assert_eq!(stage.started(), [(4, 1), (5, 1)], "the third would delay the second");
    let why = stage.scheduler.why(task(2, 1)).unwrap();
    assert_eq!(why.expected, Some(Time::from_secs(1100)));
    stage.wait(100);
    stage.release(1, 1);
    stage.release(4, 1);
    assert_eq!(stage.started(), [(2, 1)]);
}

#[test]
fn a_strict_queue_lets_nobody_pass() {
    let mut stage = Stage::declared(&[declared("n", &[("cpu", 4000), ("pods", 9)])]);
    stage.scheduler.put_queue(QueueSpec { strict: true, ..QueueSpec::new(spec::DEFAULT) });
    stage.enqueue(task(1, 1), Demand { bound: Some(Duration::from_secs(100)), ..demand(3000) });
    assert_eq!(stage.started(), [(1, 1)]);
    stage.enqueue(task(2, 1), demand(4000));
    stage.enqueue(task(4, 1), Demand { bound: Some(Duration::from_secs(10)), ..demand(1000) });
    assert_eq!(stage.started(), []);
}

#[test]
fn whoever_only_fits_on_a_cordoned_node_holds_up_nobody_in_strict_order() {
    let nodes = [declared("small", &[("cpu", 1000), ("pods", 9)]), declared("large", &[("cpu", 2000), ("pods", 9)])];
    let mut stage = Stage::declared(&nodes);
    stage.scheduler.put_queue(QueueSpec { strict: true, ..QueueSpec::new("q") });
    let of = |cpu_milli| Demand { queue: "q".into(), ..demand(cpu_milli) };
    stage.enqueue(task(1, 0), of(2000));
    assert_eq!(stage.started(), [(1, 0)]);
    stage.enqueue(task(1, 1), of(2000));
    stage.wait(1);
    stage.enqueue(task(1, 2), of(1000));
    assert_eq!(stage.started(), [], "the first is only to wait");
    stage.scheduler.put_node(NodeSpec { cordoned: true, ..nodes[1].clone() });
    assert_eq!(stage.started(), [(1, 2)]);
}

#[test]
fn one_that_can_never_start_does_not_let_others_pass_the_next() {
    for (queue, never) in [
        (QueueSpec::new("q"), 9000),
        (QueueSpec { capability: quantities(&[("cpu", 8000)]), ..QueueSpec::new("q") }, 8500),
        (QueueSpec { strict: true, ..QueueSpec::new("q") }, 9000),
    ] {
        let mut stage = Stage::declared(&[declared("n", &[("cpu", 8000), ("pods", 100)])]);
        let strict = queue.strict;
        stage.scheduler.put_queue(queue);
        let of = |cpu_milli| Demand { queue: "q".into(), ..demand(cpu_milli) };
        (0..8).for_each(|node| stage.enqueue(task(1, node), of(1000)));
        assert_eq!(stage.started().len(), 8);
        stage.enqueue(task(2, 0), of(never));
        stage.wait(1);
        stage.enqueue(task(3, 0), of(8000));
        stage.wait(1);
        (0..4).for_each(|node| stage.enqueue(task(4, node), of(1000)));
        for node in 0..8 {
            stage.release(1, node);
            let started = stage.started();
            let expected: &[(u64, u32)] = if node == 7 { &[(3, 0)] } else { &[] };
            assert_eq!(started, expected, "after {node}, strict: {strict}");
        }
    }
}

#[test]
fn a_gang_over_many_nodes_holds_its_room_and_counts_as_one_that_can_start() {
    let nodes: Vec<NodeSpec> = (0..40).map(|at| declared(&format!("n{at}"), &[("cpu", 1000), ("pods", 9)])).collect();
    let mut stage = Stage::declared(&nodes);
    (0..40).for_each(|node| stage.enqueue(task(1, node), demand(1000)));
    assert_eq!(stage.started().len(), 40);
    let gang = Gang {
        namespace: "d".into(),
        name: "g".into(),
        own: None,
        least: 40,
        part: "".into(),
        least_of: Arc::default(),
    };
    (0..40).for_each(|node| stage.enqueue(task(2, node), Demand { gang: Some(gang.clone()), ..demand(1000) }));
    stage.wait(1);
    stage.enqueue(task(3, 0), demand(1000));
    for node in 0..39 {
        stage.release(1, node);
        assert_eq!(stage.started(), [], "nobody takes the room of the gang");
    }
    stage.release(1, 39);
    assert_eq!(stage.started().len(), 40);
}

#[test]
fn a_gang_that_fits_only_in_another_order_is_not_refused() {
    let nodes =
        [declared("x", &[("cpu", 4000), ("pods", 9), ("gpu", 1)]), declared("y", &[("cpu", 4000), ("pods", 9)])];
    let gpu = Resources { others: BTreeMap::from([("gpu".to_owned(), 1)]), ..cpu(4000) };
    let members = [(&demand(4000), 1), (&Demand::new("tenant", gpu), 1)];
    assert_eq!(fit::judge(&nodes, &[], &members), fit::FitVerdict::default());
}
