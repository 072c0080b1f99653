//! The rows `taskset` and `volcano`: what a replica of a TaskSet or a pod of a Volcano Job costs, against a step of a workflow
//! that runs the same.

use super::{
    measure::{Outcome, Tools},
    role::{Crowd, Role},
    row::{Goal, Line, median, seconds},
    rows::Size,
};

/// As many at a time as in the rows of processes.
const IN_FLIGHT: u32 = 4;

pub(super) fn replicas(size: Size, tools: &Tools) -> Outcome<Vec<Line>> {
    against_steps(Crowd::Replicas, "taskset", "CPU a replica / CPU a step", size, tools)
}

pub(super) fn pods(size: Size, tools: &Tools) -> Outcome<Vec<Line>> {
    against_steps(Crowd::Pods, "volcano", "CPU a pod / CPU a step", size, tools)
}

fn against_steps(of: Crowd, row: &str, what: &'static str, size: Size, tools: &Tools) -> Outcome<Vec<Line>> {
    let count = size.of(1000, 50);
    let cost = |of: Crowd| -> Outcome<f64> {
        let dir = tools.fresh()?;
        let octoflow = tools.octoflow().to_owned();
        let role = Role::Crowd { of, count, in_flight: IN_FLIGHT, dir: dir.path().to_owned(), octoflow };
        Ok(seconds(tools.role(&role)?.cpu) / f64::from(count))
    };
    let (mut ratios, mut ours, mut steps) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..size.turns(7, 1) {
        // Whoever goes second finds the machine warm.
        let (one, step) = if pair.is_multiple_of(2) {
            let step = cost(Crowd::Steps)?;
            (cost(of)?, step)
        } else {
            (cost(of)?, cost(Crowd::Steps)?)
        };
        ratios.push(one / step);
        ours.push(one);
        steps.push(step);
    }
    let millis = |values| format!("{:.2} ms", 1e3 * median(values));
    Ok(vec![Line {
        row: format!("{row}, {count} {}, {IN_FLIGHT} in flight", of.word()),
        what,
        ours: millis(ours),
        yardstick: millis(steps),
        value: median(ratios),
        unit: "",
        goal: Some(Goal::AtMost(1.2)),
    }])
}
