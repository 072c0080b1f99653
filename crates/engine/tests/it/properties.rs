//! What must hold for every workflow: random ones, against an oracle that knows nothing of how the engine works.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use octoflow_engine::{Capacity, Command, Input};
use octoflow_model::{
    Fact, NodeIx, RunFact,
    argo::{NodeAdded, NodeKind, Role, WorkflowFact},
};
use proptest::prelude::*;

use crate::{
    answer::Script,
    done::Done,
    oracle::Oracle,
    plan::{Dice, Plan},
    play::{Play, ROOMY},
    text::complete,
};

fn play(plan: &Plan, capacity: Capacity) -> Play {
    let answers = plan.clone();
    let script = Script::by(move |node| answers.answer(node));
    Play::prepared(complete(plan.spec()), script, capacity, &[])
}

fn phases(done: &Done) -> BTreeMap<String, String> {
    let last = |what: &String| what.rsplit(' ').next().unwrap_or_default().to_owned();
    done.phases().iter().map(|(name, what)| (name.clone(), last(what))).collect()
}

fn agree(plan: &Plan, done: &Done) {
    let oracle = Oracle::of(plan);
    let found = phases(done);
    for (name, fate) in &oracle.fates {
        assert_eq!(found.get(name), Some(fate), "{name} in {:#}", plan.spec());
    }
    assert_eq!(found.len(), oracle.fates.len(), "nodes nobody expected: {found:?}");
    assert_eq!(done.phase(), oracle.run, "{:#}", plan.spec());
    keeps_order(done, &oracle);
    keeps_limits(plan, done);
    is_final(done);
}

/// Nothing begins before what it waits for is over.
fn keeps_order(done: &Done, oracle: &Oracle) {
    let (mut born, mut over, mut names) = (HashMap::new(), HashMap::new(), Vec::new());
    for (at, fact) in done.facts.iter().enumerate() {
        match fact {
            Fact::Workflow(WorkflowFact::Added(added)) => {
                born.insert(added.name.clone(), at);
                if added.phase.fulfilled() {
                    over.insert(added.name.clone(), at);
                }
                names.push(added.name.clone());
            }
            Fact::Workflow(WorkflowFact::Finished(finished)) => {
                over.insert(names[finished.node.at()].clone(), at);
            }
            _ => {}
        }
    }
    for (before, after) in &oracle.order {
        if let Some(begun) = born.get(after) {
            assert!(over[before] < *begun, "{after} began before {before} was over");
        }
    }
}

/// No limit of the run or of a template is ever exceeded.
fn keeps_limits(plan: &Plan, done: &Done) {
    let mut nodes: Vec<&NodeAdded> = Vec::new();
    let mut active: HashMap<Option<NodeIx>, i64> = HashMap::new();
    let counts = |node: &NodeAdded| matches!(node.kind, NodeKind::Pod | NodeKind::Steps | NodeKind::Dag);
    let template = |node: &NodeAdded| -> usize {
        node.template.as_deref().and_then(|name| name[1..].parse().ok()).unwrap_or_default()
    };
    for fact in &done.facts {
        match fact {
            Fact::Workflow(WorkflowFact::Added(added)) => {
                nodes.push(added);
                if added.phase.fulfilled() || !counts(added) {
                    continue;
                }
                if let Some(boundary) = added.boundary {
                    let children = active.entry(Some(boundary)).or_default();
                    *children += 1;
                    let limit = plan.templates[template(nodes[boundary.at()])].parallelism;
                    assert!(
                        limit.is_none_or(|limit| *children <= limit as i64),
                        "{} exceeds the limit of its boundary",
                        added.name
                    );
                }
                if added.kind == NodeKind::Pod {
                    let pods = active.entry(None).or_default();
                    *pods += 1;
                    assert!(
                        plan.parallelism.is_none_or(|limit| *pods <= limit as i64),
                        "{} exceeds the limit of the run",
                        added.name
                    );
                }
            }
            Fact::Workflow(WorkflowFact::Finished(finished)) => {
                let node = nodes[finished.node.at()];
                if counts(node) {
                    if node.boundary.is_some() {
                        *active.entry(node.boundary).or_default() -= 1;
                    }
                    if node.kind == NodeKind::Pod {
                        *active.entry(None).or_default() -= 1;
                    }
                }
            }
            _ => {}
        }
    }
}

/// A final state is reached once and never left.
fn is_final(done: &Done) {
    let mut over = std::collections::HashSet::new();
    let mut count = 0;
    for (at, fact) in done.facts.iter().enumerate() {
        match fact {
            Fact::Workflow(WorkflowFact::Added(added)) => {
                if added.phase.fulfilled() {
                    over.insert(NodeIx(count));
                }
                count += 1;
            }
            Fact::Workflow(WorkflowFact::Finished(finished)) => {
                assert!(over.insert(finished.node), "a node finished twice")
            }
            Fact::Workflow(WorkflowFact::Started { node, .. })
            | Fact::Workflow(WorkflowFact::Launched { node, .. }) => {
                assert!(!over.contains(node), "a finished node came alive")
            }
            Fact::Run(RunFact::Ended { .. }) => assert_eq!(at + 1, done.facts.len(), "facts after the end"),
            _ => {}
        }
    }
    assert_eq!(over.len() as u32, count);
    let attempts = done
        .facts
        .iter()
        .filter(
            |fact| matches!(fact, Fact::Workflow(WorkflowFact::Added(added)) if matches!(added.role, Role::Attempt(_))),
        )
        .count();
    assert!(attempts < 10_000);
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_workflow_ends_as_its_meaning_says(seed in any::<u64>(), size in 1..6_usize) {
        let plan = Plan::new(seed, size);
        let done = play(&plan, ROOMY).finish();
        agree(&plan, &done);
    }

    #[test]
    fn a_small_machine_changes_when_things_happen_and_not_what_happens(seed in any::<u64>(), size in 1..6_usize, slots in 1..3_usize) {
        let plan = Plan::new(seed, size);
        let done = play(&plan, Capacity { slots, ..ROOMY }).finish();
        prop_assert!(done.crowd <= slots);
        agree(&plan, &done);
    }

    #[test]
    fn an_engine_that_dies_again_and_again_comes_to_the_same_end(seed in any::<u64>(), size in 1..6_usize) {
        let plan = Plan::new(seed, size);
        let mut dice = Dice(seed);
        let mut play = play(&plan, ROOMY);
        while !play.over() {
            if dice.chance(30) {
                play.restart(ROOMY, dice.chance(50));
            }
            if !play.over() {
                play.step();
            }
        }
        agree(&plan, &play.done());
    }

    #[test]
    fn tasks_that_make_room_for_others_come_to_the_same_end(seed in any::<u64>(), size in 1..6_usize, slots in 1..20_usize) {
        let plan = Plan::new(seed, size);
        let mut dice = Dice(seed);
        let capacity = Capacity { slots, ..ROOMY };
        let mut play = play(&plan, capacity);
        let mut drains = 20;
        while !play.over() {
            if drains > 0 && dice.chance(20) {
                drains -= 1;
                play.input(Input::Drain { node: "local".to_owned() });
            }
            if dice.chance(15) {
                play.restart(capacity, dice.chance(50));
            }
            if !play.over() {
                play.step();
            }
        }
        agree(&plan, &play.done());
    }

    #[test]
    fn suspending_and_resuming_changes_nothing_in_the_end(seed in any::<u64>(), size in 1..6_usize) {
        let plan = Plan::new(seed, size);
        let mut dice = Dice(seed);
        let mut play = play(&plan, ROOMY);
        while !play.over() {
            if dice.chance(30) {
                play.command(Command::Suspend).unwrap();
                play.advance(Duration::from_secs(dice.below(20) as u64));
                if dice.chance(30) {
                    play.restart(ROOMY, false);
                }
                if !play.over() {
                    play.command(Command::Resume { selector: None, supplied: BTreeMap::new() }).unwrap();
                }
            } else {
                play.step();
            }
        }
        agree(&plan, &play.done());
    }

    #[test]
    fn stopping_and_terminating_always_come_to_an_end(seed in any::<u64>(), size in 1..6_usize, slots in 1..20_usize) {
        let mut dice = Dice(seed);
        let mut plan = Plan::new(seed, size);
        if dice.chance(50) {
            plan = plan.hurried(&mut dice);
        }
        let capacity = Capacity { slots, ..ROOMY };
        let mut play = play(&plan, capacity);
        let (stop, terminate) = (dice.below(30), dice.below(60));
        for event in 0.. {
            if play.over() {
                break;
            }
            if event == stop {
                play.command(Command::Stop).unwrap();
            }
            if event == terminate && !play.over() {
                play.command(Command::Terminate).unwrap();
            }
            if dice.chance(10) {
                play.restart(capacity, dice.chance(50));
            }
            if !play.over() {
                play.step();
            }
        }
        is_final(&play.done());
    }

    #[test]
    fn deadlines_and_losses_always_come_to_an_end(seed in any::<u64>(), size in 1..6_usize, slots in 1..20_usize) {
        let mut dice = Dice(seed);
        let plan = Plan::new(seed, size).hurried(&mut dice);
        let capacity = Capacity { slots, ..ROOMY };
        let mut play = play(&plan, capacity);
        while !play.over() {
            if dice.chance(10) {
                play.restart(capacity, dice.chance(50));
            }
            if !play.over() {
                play.step();
            }
        }
        let done = play.done();
        is_final(&done);
        keeps_limits(&plan, &done);
    }
}
