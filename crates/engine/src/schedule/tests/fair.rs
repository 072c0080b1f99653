//! Runs of equal priority take turns, and nobody who waits is overtaken for ever.

use std::collections::{BTreeMap, HashSet};

use proptest::prelude::*;

use super::*;

fn of(run: u64, node: u32) -> TaskRef {
    TaskRef { run: RunId(run), node: NodeIx(node) }
}

fn order(scheduler: &mut Scheduler) -> Vec<(u64, u32)> {
    std::iter::from_fn(|| scheduler.pick(|_| true)).map(|task| (task.run.0, task.node.0)).collect()
}

#[test]
fn a_run_of_one_task_does_not_wait_behind_all_tasks_of_another() {
    let mut scheduler = Scheduler::new(Capacity { slots: 1, ..CAPACITY });
    (0..400).for_each(|node| scheduler.enqueue(of(1, node), 0, cpu(0)));
    assert_eq!(order(&mut scheduler), [(1, 0)]);
    scheduler.enqueue(of(2, 0), 0, cpu(0));
    scheduler.enqueue(of(3, 0), 0, cpu(0));
    let mut gone = Vec::new();
    for _ in 0..4 {
        let last = gone.last().copied().unwrap_or((1, 0));
        scheduler.release(of(last.0, last.1));
        gone.extend(order(&mut scheduler));
    }
    assert_eq!(gone, [(1, 1), (2, 0), (3, 0), (1, 2)]);
}

#[test]
fn what_no_longer_waits_costs_its_run_no_turn() {
    let mut scheduler = Scheduler::new(Capacity { slots: 1, ..CAPACITY });
    (1..=2).for_each(|node| scheduler.enqueue(of(1, node), 0, cpu(0)));
    scheduler.enqueue(of(2, 1), 0, cpu(0));
    assert_eq!(scheduler.pick(|task| task != of(1, 1)), Some(of(1, 2)));
}

#[test]
fn a_large_task_is_not_overtaken_by_runs_that_come_after_it() {
    let mut scheduler = Scheduler::new(CAPACITY);
    scheduler.enqueue(of(1, 0), 0, cpu(500));
    scheduler.enqueue(of(1, 1), 0, cpu(2000));
    assert_eq!(order(&mut scheduler), [(1, 0)]);
    for run in 2..50 {
        scheduler.enqueue(of(run, 0), 0, cpu(1));
        assert_eq!(order(&mut scheduler), []);
    }
    scheduler.release(of(1, 0));
    assert_eq!(order(&mut scheduler), [(1, 1)]);
}

#[derive(Clone, Debug)]
enum Step {
    Come {
        run: u64,
        priority: i32,
        cpu: u64,
    },
    /// The oldest that runs ends.
    End,
    /// A task that waits is ended by somebody.
    Give {
        which: prop::sample::Index,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => (1..5_u64, 0..2_i32, prop::sample::select(vec![1_u64, 1, 1, 900, 2000]))
            .prop_map(|(run, priority, cpu)| Step::Come { run, priority, cpu }),
        4 => Just(Step::End),
        1 => any::<prop::sample::Index>().prop_map(|which| Step::Give { which }),
    ];
    prop::collection::vec(step, 1..200)
}

/// A task that waits, as the laws see it.
struct Waits {
    priority: i32,
    /// How often each other run of its priority had a turn since this task was the first of its own run.
    since_first: BTreeMap<u64, usize>,
}

proptest! {
    #[test]
    fn turns_are_fair_and_nobody_is_overtaken(steps in steps()) {
        let capacity = CAPACITY;
        let mut scheduler = Scheduler::new(capacity);
        let mut waiting: BTreeMap<TaskRef, Waits> = BTreeMap::new();
        let mut running: Vec<(TaskRef, u64)> = Vec::new();
        let mut wants: BTreeMap<TaskRef, u64> = BTreeMap::new();
        let mut given: HashSet<TaskRef> = HashSet::new();
        let mut next = 0;
        for step in steps {
            let head = scheduler.head().map(|(task, _)| task);
            let mut came = None;
            match step {
                Step::Come { run, priority, cpu: wanted } => {
                    next += 1;
                    let task = of(run, next);
                    scheduler.enqueue(task, priority, cpu(wanted));
                    waiting.insert(task, Waits { priority, since_first: BTreeMap::new() });
                    wants.insert(task, wanted);
                    came = Some(priority);
                }
                Step::End if !running.is_empty() => scheduler.release(running.remove(0).0),
                Step::Give { which } if !waiting.is_empty() => {
                    let task = *which.get(&waiting.keys().copied().collect::<Vec<_>>());
                    waiting.remove(&task);
                    given.insert(task);
                }
                Step::End | Step::Give { .. } => {}
            }
            let mut first = true;
            while let Some(task) = scheduler.pick(|task| !given.contains(&task)) {
                let own = waiting.remove(&task);
                prop_assert!(own.is_some(), "{task:?} went and did not wait");
                let own = own.unwrap();
                // The head goes before everybody else, unless somebody more important came or it was given up.
                if first && let Some(head) = head.filter(|head| !given.contains(head)) {
                    prop_assert!(task == head || came.is_some_and(|priority| own.priority == priority && priority > 0));
                }
                first = false;
                for (other, waits) in &mut waiting {
                    prop_assert!(waits.priority <= own.priority, "{task:?} went before {other:?}");
                    if waits.priority != own.priority {
                        continue;
                    }
                    if other.run == task.run {
                        prop_assert!(other.node > task.node, "{task:?} went before {other:?}");
                        waits.since_first.clear();
                    } else {
                        let turns = waits.since_first.entry(task.run.0).or_insert(0);
                        *turns += 1;
                    }
                }
                running.push((task, wants[&task]));
                let used: u64 = running.iter().map(|(_, cpu)| cpu).sum();
                prop_assert!(running.len() <= capacity.slots && used <= capacity.cpu_milli);
            }
            // Whoever is the first of its run sees every other run once at most before it goes.
            let mut firsts: BTreeMap<(u64, i32), TaskRef> = BTreeMap::new();
            for (task, waits) in &waiting {
                firsts.entry((task.run.0, waits.priority)).or_insert(*task);
            }
            for task in firsts.values() {
                prop_assert!(waiting[task].since_first.values().all(|turns| *turns <= 1), "{task:?} was passed over");
            }
            prop_assert_eq!(scheduler.waiting() >= waiting.len(), true);
            prop_assert!(waiting.is_empty() || !running.is_empty(), "nothing runs and something waits");
        }
    }
}
