//! The change that is proposed for a waiting task, made in a copy, lets it go; where several are needed, one after the other
//! does.

use octoflow_model::task::placement::{NodeConstraints, Taint, TaintEffect};
use proptest::{prelude::*, strategy::ValueTree, test_runner::RngSeed};

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
pub(super) struct World {
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

pub(super) fn world() -> impl Strategy<Value = World> {
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

pub(super) fn build(world: &World) -> (Stage, Vec<TaskRef>) {
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

/// Makes the proposed changes in a copy, one after the other; returns how many it took. Each is possible, and the least of its
/// kind if it is enough.
pub(super) fn follow(scheduler: &Scheduler, task: TaskRef) -> usize {
    let mut copy = scheduler.clone();
    let mut told = Vec::new();
    for round in 1..=40 {
        let proposal = copy.propose(task).unwrap_or_else(|| panic!("{task:?}: nothing is proposed after {told:?}"));
        assert_possible(&copy, &proposal.change);
        if proposal.suffices == Some(true) {
            for smaller in smaller(&copy, &proposal.change) {
                assert!(!goes(&copy, task, &smaller), "{task:?} goes after {smaller:?} too, not only after {proposal}");
            }
        }
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

pub(super) fn goes(scheduler: &Scheduler, task: TaskRef, change: &Remedy) -> bool {
    scheduler.with_change(task, change).start_all().contains(&task)
}

fn held(scheduler: &Scheduler, ends: &[TaskRef], name: &str) -> u64 {
    let index = scheduler.names.find(name).unwrap();
    ends.iter().map(|task| scheduler.running[task].amounts.get(index)).sum()
}

/// Insists that somebody could make the change.
fn assert_possible(scheduler: &Scheduler, change: &Remedy) {
    let queue = |name: &str| scheduler.tree.find(name).unwrap();
    let index = |name: &str| scheduler.names.find(name).unwrap();
    match change {
        Remedy::FreeQuota { amounts, ends, .. } | Remedy::FreeRoom { amounts, ends, .. } => {
            assert!(!ends.is_empty() && !amounts.is_empty(), "{change}: nothing is freed");
            for (name, amount) in amounts {
                assert_eq!(held(scheduler, ends, name), *amount, "{change}: {ends:?} hold something else");
            }
            for task in ends {
                let running = &scheduler.running[task];
                match change {
                    Remedy::FreeRoom { node: Some(node), .. } => assert_eq!(running.assignment.node, *node),
                    Remedy::FreeQuota { queue: whose, .. } => {
                        assert!(scheduler.tree.path(running.leaf).any(|at| at == queue(whose)), "{change}: {task:?}");
                    }
                    _ => {}
                }
            }
        }
        Remedy::RaiseCapability { queue: whose, to } => {
            assert!(!to.is_empty());
            for (name, to) in to {
                for (level, at) in scheduler.tree.path(queue(whose)).enumerate() {
                    let most = scheduler.tree.get(at).capability().get(index(name));
                    assert!(most.is_none_or(|most| if level == 0 { *to > most } else { *to <= most }), "{change}");
                }
            }
        }
        Remedy::LowerGuarantee { queue: whose, to } => {
            assert!(!to.is_empty());
            for (name, to) in to {
                let spec = &scheduler.tree.get(queue(whose)).spec;
                assert!(*to < spec.guarantee[name], "{change}");
                let below = QUEUES.iter().filter(|(_, parent)| *parent == Some(whose.as_str()));
                let below = below.filter_map(|(child, _)| scheduler.tree.get(queue(child)).spec.guarantee.get(name));
                assert!(below.sum::<u64>() <= *to, "{change}: its queues are guaranteed more");
            }
        }
        Remedy::RaiseCapacity { node, to } => {
            let node = scheduler.room.get(scheduler.room.find(node).unwrap()).unwrap();
            assert!(
                to.iter().all(|(name, to)| node.capacity(index(name)).is_some_and(|has| *to > has.amount)),
                "{change}"
            );
        }
        Remedy::AddNode { .. }
        | Remedy::CreateQueue { .. }
        | Remedy::AddMembers { .. }
        | Remedy::Uncordon { .. }
        | Remedy::RemoveTaint { .. }
        | Remedy::LabelNode { .. } => {}
    }
}

/// Returns changes of the same kind that are a little smaller.
fn smaller(scheduler: &Scheduler, change: &Remedy) -> Vec<Remedy> {
    let less = |amounts: &Quantities, by: fn(u64) -> u64| {
        amounts
            .iter()
            .map(|(name, amount)| {
                let mut fewer = amounts.clone();
                fewer.insert(name.clone(), by(*amount));
                fewer
            })
            .collect::<Vec<_>>()
    };
    match change {
        Remedy::FreeQuota { ends, .. } | Remedy::FreeRoom { ends, .. } => (0..ends.len())
            .map(|at| {
                let mut fewer = ends.clone();
                fewer.remove(at);
                scheduler.with_ends(change, fewer)
            })
            .collect(),
        Remedy::RaiseCapability { queue, to } => {
            less(to, |to| to - 1).into_iter().map(|to| Remedy::RaiseCapability { queue: queue.clone(), to }).collect()
        }
        Remedy::LowerGuarantee { queue, to } => {
            less(to, |to| to + 1).into_iter().map(|to| Remedy::LowerGuarantee { queue: queue.clone(), to }).collect()
        }
        Remedy::RaiseCapacity { node, to } => {
            less(to, |to| to - 1).into_iter().map(|to| Remedy::RaiseCapacity { node: node.clone(), to }).collect()
        }
        Remedy::AddNode { capacity, labels } => less(capacity, |amount| amount - 1)
            .into_iter()
            .map(|capacity| Remedy::AddNode { capacity, labels: labels.clone() })
            .collect(),
        Remedy::AddMembers { missing } => vec![Remedy::AddMembers { missing: missing - 1 }],
        Remedy::CreateQueue { .. }
        | Remedy::Uncordon { .. }
        | Remedy::RemoveTaint { .. }
        | Remedy::LabelNode { .. } => Vec::new(),
    }
}

/// The worlds of CI are the same each day, as those of the scheduler's oracle are; `OCTOFLOW_FRESH_WORLDS=1` draws others.
fn config() -> ProptestConfig {
    let fresh = ["OCTOFLOW_FRESH_WORLDS", "PROPTEST_RNG_SEED"].iter().any(|name| std::env::var_os(name).is_some());
    let default = ProptestConfig::default();
    ProptestConfig { cases: 60, rng_seed: if fresh { default.rng_seed } else { RngSeed::Fixed(1) }, ..default }
}

proptest! {
    #![proptest_config(config())]

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
fn a_frozen_scheduler_says_the_same_and_tries_nothing_until_it_is_asked_to() {
    let mut stage = Stage::declared(&[declared("n", &[("cpu", 1000), ("pods", 9)])]);
    (0..9).for_each(|node| stage.enqueue(task(1, node), demand(1000)));
    assert_eq!(stage.started(), [(1, 0)]);
    let frozen = stage.scheduler.freeze();
    for node in 1..9 {
        let waiting = task(1, node);
        assert_eq!(frozen.why(waiting), stage.scheduler.why(waiting));
        let mut told = frozen.explain(waiting).unwrap();
        assert_eq!(told.remedy, None);
        frozen.complete(&mut told);
        assert_eq!(Some(told), stage.scheduler.explain(waiting));
    }
    // A copy of it may be changed, and knows no line of before.
    let mut copy = frozen.clone();
    copy.release(task(1, 1), stage.now);
    assert_eq!(copy.why(task(1, 2)).unwrap().position, 0);
    assert_eq!(frozen.why(task(1, 2)).unwrap().position, 1);
}
