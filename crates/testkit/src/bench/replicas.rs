//! The row `taskset`: what a replica of a TaskSet costs, against a step of a workflow that runs the same.

use super::{
    measure::{Outcome, Tools},
    role::Role,
    row::{Goal, Line, median, seconds},
    rows::Size,
};

/// As many at a time as in the rows of processes.
const IN_FLIGHT: u32 = 4;

pub(super) fn replicas(size: Size, tools: &Tools) -> Outcome<Vec<Line>> {
    let count = size.of(1000, 50);
    let cost = |a_task_set: bool| -> Outcome<f64> {
        let dir = tools.fresh()?;
        let octoflow = tools.octoflow().to_owned();
        let role = Role::Crowd { a_task_set, count, in_flight: IN_FLIGHT, dir: dir.path().to_owned(), octoflow };
        Ok(seconds(tools.role(&role)?.cpu) / f64::from(count))
    };
    let (mut ratios, mut sets, mut steps) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..size.turns(7, 1) {
        // Whoever goes second finds the machine warm.
        let (set, step) = if pair.is_multiple_of(2) {
            let step = cost(false)?;
            (cost(true)?, step)
        } else {
            (cost(true)?, cost(false)?)
        };
        ratios.push(set / step);
        sets.push(set);
        steps.push(step);
    }
    let millis = |values| format!("{:.2} ms", 1e3 * median(values));
    Ok(vec![Line {
        row: format!("taskset, {count} replicas, {IN_FLIGHT} in flight"),
        what: "CPU a replica / CPU a step",
        ours: millis(sets),
        yardstick: millis(steps),
        value: median(ratios),
        unit: "",
        goal: Some(Goal::AtMost(1.2)),
    }])
}
