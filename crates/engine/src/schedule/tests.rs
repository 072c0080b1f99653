//! Tests of the scheduler's promises: order, room, and gangs that start together.

mod fair;

use std::sync::Arc;

use super::*;

const CAPACITY: Capacity = Capacity { slots: 2, cpu_milli: 2000, memory_bytes: 1000 };

fn task(node: u32) -> TaskRef {
    TaskRef { run: RunId(1), node: NodeIx(node) }
}

fn cpu(cpu_milli: u64) -> Resources {
    Resources { cpu_milli, memory_bytes: 0 }
}

#[test]
fn priority_goes_first_and_equals_go_in_order() {
    let mut scheduler = Scheduler::new(Capacity { slots: 9, ..CAPACITY });
    for (node, priority) in [(1, 0), (2, 5), (3, 0), (4, 5)] {
        scheduler.enqueue(task(node), priority, cpu(0));
    }
    let order: Vec<u32> = std::iter::from_fn(|| scheduler.pick(|_| true)).map(|task| task.node.0).collect();
    assert_eq!(order, [2, 4, 1, 3]);
}

#[test]
fn slots_are_never_exceeded_and_come_back() {
    let mut scheduler = Scheduler::new(CAPACITY);
    (1..=3).for_each(|node| scheduler.enqueue(task(node), 0, cpu(0)));
    assert!(scheduler.pick(|_| true).is_some() && scheduler.pick(|_| true).is_some());
    assert_eq!(scheduler.pick(|_| true), None);
    assert_eq!(scheduler.head(), Some((task(3), Some(Shortage::Slots { running: 2, slots: 2 }))));
    scheduler.release(task(1));
    assert_eq!(scheduler.pick(|_| true), Some(task(3)));
}

#[test]
fn a_task_bigger_than_the_machine_gets_the_whole_of_it() {
    let mut scheduler = Scheduler::new(CAPACITY);
    scheduler.enqueue(task(1), 0, cpu(64_000));
    scheduler.enqueue(task(2), 0, cpu(1));
    assert_eq!(scheduler.pick(|_| true), Some(task(1)));
    assert_eq!(scheduler.pick(|_| true), None);
    assert_eq!(scheduler.head(), Some((task(2), Some(Shortage::Cpu { wanted_milli: 1, free_milli: 0 }))));
    scheduler.release(task(1));
    assert_eq!(scheduler.pick(|_| true), Some(task(2)));
}

#[test]
fn tasks_that_no_longer_wait_are_dropped() {
    let mut scheduler = Scheduler::new(CAPACITY);
    scheduler.enqueue(task(1), 0, cpu(0));
    scheduler.enqueue(task(2), 0, cpu(0));
    assert_eq!(scheduler.pick(|waiting| waiting != task(1)), Some(task(2)));
}

fn gang(name: &str, least: u32) -> Gang {
    Gang { namespace: "default".into(), name: Arc::from(name), own: None, least }
}

fn picked(scheduler: &mut Scheduler) -> Vec<u32> {
    std::iter::from_fn(|| scheduler.pick(|_| true)).map(|task| task.node.0).collect()
}

#[test]
fn a_gang_goes_when_all_its_members_are_there_and_fit() {
    let mut scheduler = Scheduler::new(Capacity { slots: 3, ..CAPACITY });
    scheduler.enqueue(task(9), 0, cpu(0));
    assert_eq!(picked(&mut scheduler), [9]);
    for node in 1..=2 {
        scheduler.enqueue_member(task(node), 0, cpu(0), &gang("g", 3));
    }
    assert_eq!(picked(&mut scheduler), [] as [u32; 0]);
    assert_eq!(scheduler.gathering(task(1)), Some((2, 3)));
    scheduler.enqueue_member(task(3), 0, cpu(0), &gang("g", 3));
    assert_eq!(picked(&mut scheduler), [] as [u32; 0], "one place of three is taken");
    assert_eq!(scheduler.gathering(task(1)), None, "it waits for room now, not for members");
    scheduler.release(task(9));
    assert_eq!(picked(&mut scheduler), [1, 2, 3]);
}

#[test]
fn those_beyond_the_least_follow_alone() {
    let mut scheduler = Scheduler::new(Capacity { slots: 9, ..CAPACITY });
    for node in 1..=2 {
        scheduler.enqueue_member(task(node), 0, cpu(0), &gang("g", 2));
    }
    assert_eq!(picked(&mut scheduler), [1, 2]);
    scheduler.enqueue_member(task(3), 0, cpu(0), &gang("g", 2));
    assert_eq!(picked(&mut scheduler), [3]);
}

#[test]
fn a_gang_larger_than_the_machine_gets_the_whole_of_it() {
    let mut scheduler = Scheduler::new(CAPACITY);
    for node in 1..=5 {
        scheduler.enqueue_member(task(node), 0, cpu(900), &gang("g", 5));
    }
    assert_eq!(picked(&mut scheduler), [1, 2, 3, 4, 5]);
    scheduler.enqueue(task(6), 0, cpu(0));
    assert_eq!(picked(&mut scheduler), [] as [u32; 0]);
    (1..=5).for_each(|node| scheduler.release(task(node)));
    assert_eq!(picked(&mut scheduler), [6]);
}

#[test]
fn a_gang_that_starts_anew_gathers_anew() {
    let mut scheduler = Scheduler::new(Capacity { slots: 9, ..CAPACITY });
    for _ in 0..2 {
        scheduler.enqueue_member(task(1), 0, cpu(0), &gang("g", 2));
        assert_eq!(picked(&mut scheduler), [] as [u32; 0]);
        scheduler.enqueue_member(task(2), 0, cpu(0), &gang("g", 2));
        assert_eq!(picked(&mut scheduler), [1, 2]);
        (1..=2).for_each(|node| scheduler.release(task(node)));
        scheduler.leave(RunId(1));
    }
}

#[test]
fn members_that_no_longer_wait_do_not_count() {
    let mut scheduler = Scheduler::new(CAPACITY);
    for node in 1..=2 {
        scheduler.enqueue_member(task(node), 0, cpu(0), &gang("g", 2));
    }
    assert_eq!(scheduler.pick(|waiting| waiting != task(1)), None);
    scheduler.enqueue_member(task(3), 0, cpu(0), &gang("g", 2));
    assert_eq!(picked(&mut scheduler), [2, 3]);
}

#[test]
fn gangs_of_one_name_in_two_namespaces_are_two() {
    let mut scheduler = Scheduler::new(CAPACITY);
    scheduler.enqueue_member(task(1), 0, cpu(0), &gang("g", 2));
    let other = Gang { namespace: "other".into(), ..gang("g", 2) };
    scheduler.enqueue_member(task(2), 0, cpu(0), &other);
    assert_eq!(picked(&mut scheduler), [] as [u32; 0]);
}

#[test]
fn a_complete_gang_that_loses_a_member_gathers_again() {
    let mut scheduler = Scheduler::new(CAPACITY);
    scheduler.enqueue(task(9), 0, cpu(0));
    assert_eq!(picked(&mut scheduler), [9]);
    for node in 1..=2 {
        scheduler.enqueue_member(task(node), 0, cpu(0), &gang("g", 2));
    }
    assert_eq!(picked(&mut scheduler), [] as [u32; 0], "there is no room for two");
    scheduler.release(task(9));
    assert_eq!(scheduler.pick(|waiting| waiting != task(1)), None, "one does not go without the other");
    assert_eq!(scheduler.gathering(task(2)), Some((1, 2)));
    scheduler.enqueue_member(task(1), 0, cpu(0), &gang("g", 2));
    assert_eq!(picked(&mut scheduler), [1, 2]);
}

#[test]
fn a_member_that_comes_again_takes_the_whole_gang_out_of_the_queue() {
    let mut scheduler = Scheduler::new(CAPACITY);
    scheduler.enqueue(task(9), 0, cpu(0));
    assert_eq!(picked(&mut scheduler), [9]);
    for node in [1, 2, 1] {
        scheduler.enqueue_member(task(node), 0, cpu(0), &gang("g", 2));
        assert_eq!(picked(&mut scheduler), [] as [u32; 0]);
    }
    assert_eq!(scheduler.waiting(), 2);
    scheduler.release(task(9));
    assert_eq!(picked(&mut scheduler), [1, 2]);
}

#[test]
fn a_gang_whose_run_begins_anew_owes_nothing_to_its_old_place() {
    let mut scheduler = Scheduler::new(CAPACITY);
    scheduler.enqueue(task(9), 0, cpu(0));
    assert_eq!(picked(&mut scheduler), [9]);
    for _ in 0..2 {
        for node in 1..=2 {
            scheduler.enqueue_member(task(node), 0, cpu(0), &gang("g", 2));
        }
        assert_eq!(picked(&mut scheduler), [] as [u32; 0]);
        scheduler.leave(RunId(1));
    }
    for node in 1..=2 {
        scheduler.enqueue_member(task(node), 0, cpu(0), &gang("g", 2));
    }
    scheduler.release(task(9));
    assert_eq!(picked(&mut scheduler), [1, 2]);
}

#[test]
fn a_chosen_member_that_no_longer_waits_gives_its_room_back() {
    let mut scheduler = Scheduler::new(CAPACITY);
    for node in 1..=2 {
        scheduler.enqueue_member(task(node), 0, cpu(500), &gang("g", 2));
    }
    assert_eq!(scheduler.pick(|_| true), Some(task(1)));
    assert_eq!(scheduler.pick(|waiting| waiting != task(2)), None);
    assert_eq!(scheduler.running(), 1);
}

#[test]
fn a_place_in_the_queue_that_was_given_up_is_nobodys() {
    let mut scheduler = Scheduler::new(CAPACITY);
    (8..=9).for_each(|node| scheduler.enqueue(task(node), 0, cpu(0)));
    assert_eq!(picked(&mut scheduler), [8, 9]);
    scheduler.enqueue(task(1), 0, cpu(0));
    // It comes again as a member of a gang that is not complete.
    scheduler.enqueue_member(task(1), 0, cpu(0), &gang("g", 2));
    (8..=9).for_each(|node| scheduler.release(task(node)));
    assert_eq!(picked(&mut scheduler), [] as [u32; 0]);
    scheduler.enqueue_member(task(2), 0, cpu(0), &gang("g", 2));
    assert_eq!(picked(&mut scheduler), [1, 2]);
}

#[test]
fn one_beyond_the_least_that_comes_again_still_follows_the_others() {
    let mut scheduler = Scheduler::new(CAPACITY);
    for node in 1..=3 {
        scheduler.enqueue_member(task(node), 0, cpu(0), &gang("g", 2));
        if node == 2 {
            assert_eq!(picked(&mut scheduler), [1, 2]);
        }
    }
    assert_eq!(picked(&mut scheduler), [] as [u32; 0], "both places are taken");
    scheduler.enqueue_member(task(3), 0, cpu(0), &gang("g", 2));
    scheduler.release(task(1));
    assert_eq!(picked(&mut scheduler), [3]);
}
