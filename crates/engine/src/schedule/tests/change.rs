//! Which change is proposed: the smallest, one that somebody could make, with all that it needs.

use octoflow_model::task::placement::{NodeConstraints, Taint, TaintEffect};

use super::{
    remedy::{follow, goes},
    *,
};

#[test]
fn what_is_kept_from_a_task_by_labels_taints_and_sizes_is_named() {
    let proposed = |node: NodeSpec, demand: Demand| {
        let mut stage = Stage::declared(&[node]);
        stage.enqueue(task(1, 1), demand);
        assert_eq!(stage.started(), []);
        assert_eq!(follow(&stage.scheduler, task(1, 1)), 1);
        stage.scheduler.explain(task(1, 1)).unwrap().remedy.unwrap().to_string()
    };
    let node = || declared("n", &[("cpu", 4000), ("pods", 9)]);
    let ssd = NodeConstraints { selector: [("disk".to_owned(), "ssd".to_owned())].into(), ..Default::default() };
    let picky = Demand { constraints: Arc::new(ssd), ..demand(1000) };
    assert_eq!(proposed(NodeSpec { labels_declared: true, ..node() }, picky), "label node n with disk=ssd");
    let taint = Taint::new("gpu", "", TaintEffect::NoSchedule);
    assert_eq!(proposed(NodeSpec { taints: vec![taint], ..node() }, demand(1000)), "remove the taint gpu from node n");
    assert_eq!(proposed(node(), demand(6000)), "give node n 6 cpu");
    assert_eq!(proposed(NodeSpec { cordoned: true, ..node() }, demand(1000)), "uncordon node n");
}

/// Returns what is proposed for a task on these nodes, some of them filled before.
fn proposed(nodes: &[NodeSpec], before: &[Demand], wanted: Demand) -> String {
    let mut stage = Stage::declared(nodes);
    for (at, demand) in before.iter().enumerate() {
        stage.enqueue(task(1, at as u32), demand.clone());
        assert_eq!(stage.started().len(), 1);
    }
    stage.enqueue(task(2, 0), wanted);
    assert_eq!(stage.started(), []);
    follow(&stage.scheduler, task(2, 0));
    stage.scheduler.explain(task(2, 0)).unwrap().remedy.unwrap().to_string()
}

#[test]
fn no_more_is_to_be_freed_than_is_in_use_and_the_smallest_task_that_is_enough_ends() {
    let node = |name| declared(name, &[("cpu", 8000), ("pods", 9)]);
    let before = [demand(4000), demand(1000), demand(2000), demand(1000)];
    assert_eq!(proposed(&[node("n")], &before, demand(2000)), "free 2 cpu on node n");
    let gang = Gang {
        namespace: "n".into(),
        name: "g".into(),
        own: None,
        least: 2,
        part: "p".into(),
        least_of: Arc::default(),
    };
    let mut stage = Stage::declared(&[node("x"), node("y")]);
    (0..4).for_each(|at| stage.enqueue(task(1, at), demand(4000)));
    assert_eq!(stage.started().len(), 4);
    (0..2).for_each(|at| stage.enqueue(task(2, at), Demand { gang: Some(gang.clone()), ..demand(6000) }));
    assert_eq!(stage.started(), []);
    assert_eq!(follow(&stage.scheduler, task(2, 0)), 1);
    let told = stage.scheduler.explain(task(2, 0)).unwrap().remedy.unwrap().to_string();
    assert_eq!(told, "free 16 cpu", "each node has 8, and each member wants 6 of one");
}

#[test]
fn a_node_to_be_added_has_the_labels_that_the_task_asks_for() {
    let node = NodeSpec { labels_declared: true, ..declared("n", &[("cpu", 8000), ("pods", 9)]) };
    let other = ("zone".to_owned(), "a".to_owned());
    let tape = NodeConstraints { selector: [("disk".to_owned(), "tape".to_owned())].into(), ..Default::default() };
    let mut stage = Stage::declared(&[NodeSpec { labels: [other].into(), ..node }]);
    stage.enqueue(task(1, 1), Demand { constraints: Arc::new(tape), ..demand(1000) });
    assert_eq!(stage.started(), []);
    let add = stage.scheduler.candidates_for(task(1, 1)).pop().unwrap();
    assert_eq!(add.to_string(), "add a node with 1 cpu, 1 place for a task, labelled disk=tape");
    assert!(goes(&stage.scheduler, task(1, 1), &add));
    let Remedy::AddNode { capacity, .. } = add else { panic!("{add}") };
    assert!(!goes(&stage.scheduler, task(1, 1), &Remedy::AddNode { capacity, labels: Default::default() }));
}

#[test]
fn a_capability_is_not_raised_above_that_of_the_queue_above() {
    let mut stage = Stage::declared(&[declared("n", &[("cpu", 8000), ("pods", 9)])]);
    let queue = |name: &str, parent: Option<&str>, cores| QueueSpec {
        parent: parent.map(Into::into),
        capability: quantities(&[("cpu", cores)]),
        ..QueueSpec::new(name)
    };
    stage.scheduler.put_queue(queue("p", None, 4000));
    stage.scheduler.put_queue(queue("a", Some("p"), 3000));
    stage.enqueue(task(1, 1), Demand { queue: "a".into(), ..demand(5000) });
    assert_eq!(stage.started(), []);
    let first = stage.scheduler.propose(task(1, 1)).unwrap().to_string();
    assert_eq!(first, "raise the capability of queue 'p' to 5 cpu, which alone is not enough");
    assert_eq!(follow(&stage.scheduler, task(1, 1)), 2);
}
