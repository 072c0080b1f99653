//! The row `sched`: what the scheduler costs on simulated nodes, with many tasks waiting and with many running, and what
//! queues cost a run. Beside it a naive pass over everything, from the same lists.

mod naive;
mod world;

use std::{
    path::Path,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use octoflow_control::{
    Capacity,
    registry::{Registry, WriteOptions, kinds},
};
use serde_json::json;

use super::{
    controller,
    measure::{Outcome, Tools},
    os,
    role::{Role, heard},
    row::{Goal, Line, median, seconds},
    rows::Size,
    shape,
};
use world::World;

/// How many tasks end in one measurement, and how many of them between two looks at the clock.
const EVENTS: usize = 4_000;
const BATCH: usize = 50;
const WARM_UP: usize = 80;
/// What takes longer has hung.
const PATIENCE: Duration = Duration::from_secs(120);
/// Runs in which waiting tasks are left behind for a restart.
const RUNS: u32 = 10;

pub(super) fn sched(size: Size, tools: &Tools) -> Outcome<Vec<Line>> {
    let sizes = [size.of(1_000, 500), size.of(10_000, 1_000), size.of(100_000, 5_000)];
    let mut events: Vec<Vec<f64>> = vec![Vec::new(); sizes.len()];
    let mut oracle = Vec::new();
    let (mut first, mut gangs, mut back) = (Vec::new(), Vec::new(), Vec::new());
    let mut deep = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..size.turns(5, 1) {
        for (waiting, events) in sizes.into_iter().zip(&mut events) {
            let said = tools.role(&Role::Sched { waiting })?.said;
            let (event, pass) = said.trim().split_once(' ').ok_or("two numbers were expected")?;
            let (event, pass): (f64, f64) = (event.parse::<f64>()? / 1e3, pass.parse::<f64>()? / 1e3);
            events.push(event);
            if waiting == sizes[1] {
                oracle.push(pass / event);
            }
        }
        let running = size.of(10_000, 1_000);
        first.push(1e3 * seconds(heard(&tools.role(&Role::Victims { running, gang: false })?.said)?));
        gangs.push(1e3 * seconds(heard(&tools.role(&Role::Victims { running, gang: true })?.said)?));
    }
    for _ in 0..size.turns(3, 1) {
        let dir = tools.fresh()?;
        tools.role(&Role::Waiters { count: sizes[1], dir: dir.path().to_owned() })?;
        let began = date()?;
        let first_ran = heard(&tools.role(&Role::Back { dir: dir.path().to_owned() })?.said)?;
        back.push(seconds(first_ran.saturating_sub(began)));
        let (groups, steps) = (size.of(100, 5), size.of(1000, 200));
        let mut taken = [0.0, 0.0];
        for (queues, taken) in [false, true].into_iter().zip(&mut taken) {
            let dir = tools.fresh()?;
            let role = Role::Queued { groups, steps, queues, dir: dir.path().to_owned() };
            *taken = 1e6 * seconds(tools.role(&role)?.cpu) / f64::from(groups * steps);
        }
        deep.0.push(taken[0]);
        deep.1.push(taken[1]);
        deep.2.push(taken[1] / taken[0]);
    }
    let events: Vec<f64> = events.into_iter().map(median).collect();
    let micros = |value: f64| format!("{value:.1} µs");
    let line = |row: String, what, (ours, yardstick): (String, String), value, unit, goal| Line {
        row,
        what,
        ours,
        yardstick,
        value,
        unit,
        goal: Some(goal),
    };
    let of = |waiting: u32| format!("sched, {waiting} waiting");
    let none = || (String::new(), String::new());
    Ok(vec![
        line(of(sizes[1]), "CPU of an end and the start that follows", none(), events[1], "µs", Goal::AtMost(25.0)),
        line(
            of(sizes[1]),
            "the same / with a tenth of them",
            (micros(events[1]), micros(events[0])),
            events[1] / events[0],
            "",
            Goal::AtMost(1.3),
        ),
        line(
            of(sizes[2]),
            "the same / with a tenth of them",
            (micros(events[2]), micros(events[1])),
            events[2] / events[1],
            "",
            Goal::AtMost(1.5),
        ),
        line(of(sizes[1]), "a naive pass / an end and a start", none(), median(oracle), "", Goal::AtLeast(50.0)),
        line("sched, 10000 running".to_owned(), "victims for a task", none(), median(first), "ms", Goal::AtMost(5.0)),
        line("sched, 10000 running".to_owned(), "victims for a gang", none(), median(gangs), "ms", Goal::AtMost(5.0)),
        line(
            of(sizes[1]),
            "from the start of the process to the first task",
            none(),
            median(back),
            "s",
            Goal::AtMost(0.3),
        ),
        line(
            "sched, null-100k in three levels of queues".to_owned(),
            "CPU a task / without queues",
            (micros(median(deep.1)), micros(median(deep.0))),
            median(deep.2),
            "",
            Goal::AtMost(1.05),
        ),
    ])
}

/// Nanoseconds of processor time of an end with the start that follows, and of a naive pass.
pub(super) fn events(waiting: u32) -> Outcome<String> {
    let mut world = World::new(waiting);
    let mut spent = Duration::ZERO;
    // After so many ends before it the mixture of what runs changes no more.
    for round in -(WARM_UP as i64)..(EVENTS / BATCH) as i64 {
        let ends = world.draw_ends(BATCH);
        let mut started = Vec::with_capacity(2 * BATCH);
        let began = os::thread_cpu()?;
        for task in ends {
            world.end(task, &mut started);
        }
        if round >= 0 {
            spent += os::thread_cpu()? - began;
        }
        world.note(&started);
        world.refill();
    }
    let began = os::thread_cpu()?;
    let passes = 5;
    for _ in 0..passes {
        std::hint::black_box(naive::pass(&world));
    }
    let pass = (os::thread_cpu()? - began) / passes;
    Ok(format!("{} {}", spent.as_nanos() / EVENTS as u128, pass.as_nanos()))
}

/// How long it takes to find victims for a task, or for a gang, among so many running ones.
pub(super) fn victims(running: u32, gang: bool) -> Outcome<Duration> {
    let mut world = World::full(running);
    world.want_room(gang);
    let began = os::thread_cpu()?;
    let found = world.first_victim();
    let took = os::thread_cpu()? - began;
    if found { Ok(took) } else { Err("nobody is ended although others use too much".into()) }
}

/// Leaves so many tasks waiting in a directory.
pub(super) fn leave(count: u32, dir: &Path) -> Outcome<()> {
    let registry = Registry::new(controller::open_with(dir, Capacity { slots: 0, ..controller::ROOM })?)?;
    registry.restore_all()?;
    for run in 0..RUNS {
        controller::submit(registry.controller(), &format!("waits-{run}"), shape::layers(1, count / RUNS))?;
    }
    until(
        || Ok(registry.gauges().map_err(|fault| fault.to_string())?.tasks_waiting >= (count / RUNS * RUNS) as usize),
    )?;
    Ok(registry.close()?)
}

/// Opens a directory with waiting tasks and returns the date at which the first of them has run. Whoever started this process
/// knows when that was: a user waits for that too.
pub(super) fn back(dir: &Path) -> Outcome<Duration> {
    let registry = Registry::new(controller::open_with(dir, Capacity { slots: 4, ..controller::ROOM })?)?;
    registry.restore_all()?;
    until(|| {
        let gauges = registry.gauges().map_err(|fault| fault.to_string())?;
        Ok(gauges.queues.iter().any(|queue| queue.completed > 0))
    })?;
    let date = date()?;
    // What is left would take longer than what was measured.
    std::mem::forget(registry);
    Ok(date)
}

fn date() -> Outcome<Duration> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?)
}

fn until(mut done: impl FnMut() -> Outcome<bool>) -> Outcome<()> {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if done()? {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(format!("nothing happened within {} seconds", PATIENCE.as_secs()).into())
}

/// The run of the row `null-100k`, in the third level of a tree of queues or without queues.
pub(super) fn null(groups: u32, steps: u32, queues: bool, dir: &Path) -> Outcome<()> {
    let registry = Registry::new(controller::open(dir)?)?;
    registry.restore_all()?;
    let mut run = shape::layers(groups, steps);
    if queues {
        let kind = kinds::of_word("queues.scheduling.volcano.sh").ok_or("there are no queues")?;
        for (name, parent) in [("a", "root"), ("b", "a"), ("c", "b")] {
            let queue = json!({
                "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
                "metadata": {"name": name}, "spec": {"parent": parent},
            });
            let created = registry.create(kind, "", queue, &WriteOptions::default());
            created.map_err(|fault| fault.to_string())?;
        }
        run["metadata"]["labels"] = json!({"volcano.sh/queue-name": "c"});
    }
    controller::to_the_end(registry.controller(), "layers", run)?;
    Ok(registry.close()?)
}
