//! The change that is proposed for a waiting task, made in a copy, lets it go; where several are needed, one after the other
//! does.

use octoflow_model::task::placement::{NodeConstraints, Taint, TaintEffect};
use proptest::{prelude::*, strategy::ValueTree};

use super::*;

#[derive(Clone, Debug)]
struct Come {
    queue: usize,
    tenant: usize,
    cpu: u64,
    gpus: u64,
    bound: Option<u64>,
    gang: Option<(u32, usize)>,
    ssd: bool,
}

#[derive(Clone, Debug)]
struct World {
    tasks: Vec<Come>,
    /// Capability, guarantee and deserved of each queue, in cores.
    quotas: Vec<(Option<u64>, Option<u64>, Option<u64>)>,
    cordoned: usize,
    tainted: usize,
    strict: bool,
    ended: Vec<prop::sample::Index>,
}

const QUEUES: [(&str, Option<&str>); 5] =
    [("p", None), ("a", Some("p")), ("b", Some("p")), ("default", None), ("missing", None)];

fn come() -> impl Strategy<Value = Come> {
    let cores = prop::sample::select(vec![0_u64, 500, 1000, 1000, 2000, 3000, 6000, 9000, 30_000]);
    let gang = prop::option::weighted(0.25, (2..4_u32, 0..2_usize));
    (1..5_usize, 0..2_usize, cores, 0..3_u64, prop::option::of(1..200_u64), gang, prop::bool::weighted(0.1))
        .prop_map(|(queue, tenant, cpu, gpus, bound, gang, ssd)| Come { queue, tenant, cpu, gpus, bound, gang, ssd })
}

fn world() -> impl Strategy<Value = World> {
    let quota = (prop::option::of(1..12_u64), prop::option::of(0..3_u64), prop::option::of(0..9_u64));
    (
        prop::collection::vec(come(), 1..25),
        prop::collection::vec(quota, 3),
        0..6_usize,
        0..6_usize,
        any::<bool>(),
        prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    )
        .prop_map(|(tasks, quotas, cordoned, tainted, strict, ended)| World {
            tasks,
            quotas,
            cordoned,
            tainted,
            strict,
            ended,
        })
}

fn build(world: &World) -> (Stage, Vec<TaskRef>) {
    let mut nodes = vec![
        declared("x", &[("cpu", 4000), ("pods", 5), ("gpu", 2)]),
        declared("y", &[("cpu", 8000), ("pods", 8)]),
        declared("z", &[("cpu", 2000), ("pods", 3), ("gpu", 1)]),
    ];
    nodes[0].labels_declared = true;
    if let Some(node) = nodes.get_mut(world.cordoned) {
        node.cordoned = true;
    }
    if let Some(node) = nodes.get_mut(world.tainted) {
        node.taints.push(Taint::new("t", "", TaintEffect::NoSchedule));
    }
    let mut stage = Stage::declared(&nodes);
    let cores = |amount: Option<u64>| amount.map_or_else(Quantities::new, |cores| quantities(&[("cpu", cores * 1000)]));
    for (at, (name, parent)) in QUEUES.iter().enumerate().take(4) {
        let (capability, guarantee, deserved) = world.quotas.get(at).copied().unwrap_or_default();
        stage.scheduler.put_queue(QueueSpec {
            parent: parent.map(Into::into),
            capability: cores(capability),
            guarantee: cores(guarantee),
            deserved: cores(deserved),
            strict: world.strict,
            ..QueueSpec::new(*name)
        });
    }
    let mut all = Vec::new();
    for (at, come) in world.tasks.iter().enumerate() {
        let others = if come.gpus > 0 { quantities(&[("gpu", come.gpus)]) } else { Quantities::new() };
        let gang = come.gang.map(|(least, number)| Gang {
            namespace: "n".into(),
            name: format!("{number}").into(),
            own: None,
            least,
            part: if at % 2 == 0 { "even".into() } else { "odd".into() },
            least_of: Arc::new([("even".to_owned(), 1)].into()),
        });
        let selector = if come.ssd { [("disk".to_owned(), "ssd".to_owned())].into() } else { Default::default() };
        let demand = Demand {
            queue: QUEUES[if gang.is_some() { 1 } else { come.queue }].0.into(),
            gang,
            constraints: Arc::new(NodeConstraints { selector, ..NodeConstraints::default() }),
            bound: come.bound.map(Duration::from_secs),
            ..Demand::new(["t", "u"][come.tenant], Resources { others, ..cpu(come.cpu) })
        };
        let task = task(1 + come.tenant as u64, at as u32);
        stage.enqueue(task, demand);
        stage.scheduler.clock = stage.now;
        stage.scheduler.start_all();
        all.push(task);
        stage.wait(1);
    }
    for which in &world.ended {
        let mut running: Vec<TaskRef> = stage.scheduler.running.keys().copied().collect();
        running.sort_unstable();
        if !running.is_empty() {
            stage.scheduler.release(*which.get(&running), stage.now);
            stage.scheduler.clock = stage.now;
            stage.scheduler.start_all();
        }
    }
    all.retain(|task| stage.scheduler.waiting.contains_key(task));
    (stage, all)
}

/// Makes the proposed changes in a copy, one after the other; returns how many it took.
fn follow(scheduler: &Scheduler, task: TaskRef) -> usize {
    let mut copy = scheduler.clone();
    let mut told = Vec::new();
    for round in 1..=40 {
        let proposal = copy.propose(task).unwrap_or_else(|| panic!("{task:?}: nothing is proposed after {told:?}"));
        copy = copy.with_change(task, &proposal.change);
        let goes = copy.start_all().contains(&task);
        assert!(goes || proposal.suffices == Some(false), "{task:?} does not go after {proposal}");
        if goes {
            return round;
        }
        told.push(proposal.to_string());
    }
    panic!("{task:?} does not go after {told:#?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn the_proposed_change_lets_the_task_go(world in world()) {
        let (stage, waiting) = build(&world);
        for task in waiting {
            follow(&stage.scheduler, task);
        }
    }
}

#[test]
fn one_change_is_often_enough() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut one, mut all) = (0, 0);
    for _ in 0..60 {
        let world = world().new_tree(&mut runner).unwrap().current();
        let (stage, waiting) = build(&world);
        for task in waiting {
            all += 1;
            one += usize::from(follow(&stage.scheduler, task) == 1);
        }
    }
    assert!(all > 100 && one * 3 >= all, "{one} of {all}");
}

#[test]
fn an_estimate_comes_from_when_those_before_it_end() {
    let mut stage = Stage::declared(&[declared("n", &[("cpu", 4000), ("pods", 9)])]);
    let bound = |seconds| Some(Duration::from_secs(seconds));
    stage.enqueue(task(1, 1), Demand { bound: bound(100), ..demand(4000) });
    assert_eq!(stage.started(), [(1, 1)]);
    stage.enqueue(task(1, 2), Demand { bound: bound(50), ..demand(4000) });
    stage.enqueue(task(1, 3), demand(4000));
    stage.enqueue(task(1, 4), demand(4000));
    assert_eq!(stage.started(), []);
    let by = |seconds| Estimate::By(Time::from_secs(seconds));
    assert_eq!(stage.scheduler.estimate(task(1, 2)), by(1100));
    assert_eq!(stage.scheduler.estimate(task(1, 3)), by(1150));
    assert_eq!(stage.scheduler.estimate(task(1, 4)), Estimate::Unknown, "nobody knows how long the third takes");
    let new = demand(1000);
    assert_eq!(stage.scheduler.estimate_new([(&new, 2)].into_iter(), stage.now), Estimate::Unknown);
    assert_eq!(stage.scheduler.explain(task(1, 3)).unwrap().expected, Some(Time::from_secs(1150)));
    let idle = Stage::declared(&[declared("n", &[("cpu", 4000), ("pods", 9)])]);
    assert_eq!(idle.scheduler.estimate_new([(&new, 2)].into_iter(), idle.now), Estimate::Now);
}

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
