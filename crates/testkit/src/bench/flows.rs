//! The row `jobflow`: what a job of a flow costs, against a one-step workflow that is handed in by itself; how long a wide flow
//! takes to be checked; and the way from the end of a job to the start of the next.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use octoflow_control::{
    Config, Controller, NodeConfig, Place,
    registry::{Registry, WriteOptions, kinds},
};
use octoflow_engine::admit::{Catalog, examine};
use octoflow_runtime::process::{self, Isolation};

use super::{
    controller::{self, ROOM},
    measure::{Outcome, Tools},
    role::{Role, heard},
    row::{Goal, Line, median, seconds},
    rows::Size,
    shape,
};

/// Jobs of a layer.
const WIDTH: u32 = 10;

pub(super) fn flows(size: Size, tools: &Tools) -> Outcome<Vec<Line>> {
    let layers = size.of(40, 4);
    let jobs = layers * WIDTH;
    let (mut ratios, mut ours, mut yards, mut checks) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..size.turns(5, 1) {
        let dir = tools.fresh()?;
        tools.role(&Role::Templates { layers, width: WIDTH, dir: dir.path().to_owned() })?;
        let flow = tools.role(&Role::Flow { layers, width: WIDTH, dir: dir.path().to_owned() })?;
        let dir = tools.fresh()?;
        let alone = tools.role(&Role::Alone { count: jobs, dir: dir.path().to_owned() })?;
        let of_job = seconds(flow.cpu) / f64::from(jobs);
        let of_workflow = seconds(alone.cpu) / f64::from(jobs);
        ratios.push(of_job / of_workflow);
        ours.push(of_job);
        yards.push(of_workflow);
        checks.push(1e3 * seconds(heard(&flow.said)?));
    }
    let millis = |values: Vec<f64>| format!("{:.2} ms", 1e3 * median(values));
    let row = format!("jobflow, {layers} layers of {WIDTH} jobs");
    let mut lines = vec![
        Line {
            row: row.clone(),
            what: "CPU a job / CPU a workflow by itself",
            ours: millis(ours),
            yardstick: millis(yards),
            value: median(ratios),
            unit: "",
            goal: Some(Goal::AtMost(2.0)),
        },
        Line {
            row,
            what: "validated in",
            ours: format!("{jobs} entries"),
            yardstick: String::new(),
            value: median(checks),
            unit: "ms",
            goal: Some(Goal::AtMost(100.0)),
        },
    ];
    lines.push(hops(size, tools)?);
    Ok(lines)
}

/// Jobs that each wait for the one before, against tasks of a workflow that do.
fn hops(size: Size, tools: &Tools) -> Outcome<Line> {
    let count = size.of(100, 10);
    let (mut ratios, mut ours, mut yards) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..size.turns(5, 1) {
        let (dir, octoflow) = (tools.fresh()?, tools.octoflow().to_owned());
        let role = Role::Chain { count, isolated: false, dir: dir.path().to_owned(), octoflow: octoflow.clone() };
        let tasks = seconds(heard(&tools.role(&role)?.said)?) / f64::from(count);
        let dir = tools.fresh()?;
        tools.role(&Role::Templates { layers: count, width: 1, dir: dir.path().to_owned() })?;
        let role = Role::FlowChain { count, dir: dir.path().to_owned(), octoflow };
        let jobs = seconds(heard(&tools.role(&role)?.said)?) / f64::from(count);
        ratios.push(jobs / tasks);
        ours.push(jobs);
        yards.push(tasks);
    }
    let millis = |values: Vec<f64>| format!("{:.2} ms", 1e3 * median(values));
    Ok(Line {
        row: format!("jobflow, chain of {count}, plain"),
        what: "a hop / a hop of `chain`",
        ours: millis(ours),
        yardstick: millis(yards),
        value: median(ratios),
        unit: "",
        goal: Some(Goal::AtMost(1.5)),
    })
}

/// Stores the templates of a flow.
pub(super) fn store(layers: u32, width: u32, dir: &Path) -> Outcome<()> {
    let registry = Registry::new(controller::open(dir)?)?;
    registry.restore_all()?;
    let kind = kinds::of_key("JobTemplate").ok_or("there are no templates")?;
    for entry in shape::flow(layers, width)["spec"]["flows"].as_array().into_iter().flatten() {
        let template = shape::job_template(entry["name"].as_str().unwrap_or_default());
        registry.create(kind, "default", template, &WriteOptions::default()).map_err(|fault| fault.to_string())?;
    }
    registry.close()?;
    Ok(())
}

/// Runs a flow whose templates are stored and whose tasks run nowhere to its end; gives how long it took to be checked.
pub(super) fn flow(layers: u32, width: u32, dir: &Path) -> Outcome<Duration> {
    let controller = controller::open(dir)?;
    let began = Instant::now();
    let admitted = examine(&shape::flow(layers, width), &Everything).map_err(|problems| problems.to_string())?;
    let took = began.elapsed();
    controller::to_the_end(&controller, "flow", admitted.manifest)?;
    controller.close()?;
    Ok(took)
}

/// Hands so many one-step workflows in, each by itself: as many at a time as a layer has jobs.
pub(super) fn alone(count: u32, dir: &Path) -> Outcome<()> {
    let controller = controller::open(dir)?;
    for layer in 0..count.div_ceil(WIDTH) {
        let mut open = Vec::new();
        for at in 0..WIDTH {
            let admitted = examine(&shape::hello(), &Everything).map_err(|problems| problems.to_string())?;
            let run = controller::submit(&controller, &format!("w-{layer}-{at}"), admitted.manifest)?;
            open.push(controller.watch(run));
        }
        open.into_iter().for_each(|watch| drop(watch.into_iter().last()));
    }
    controller.close()?;
    Ok(())
}

/// Runs a flow of processes whose templates are stored, each job after the one before; gives how long it took.
pub(super) fn chain(count: u32, dir: &Path, octoflow: &Path) -> Outcome<Duration> {
    let mut config = process::Config::new(dir, octoflow);
    config.isolation = Isolation::None;
    let place = Place::Processes(Box::new(config));
    let (controller, _) = Controller::open(Config {
        data_dir: dir.to_owned(),
        capacity: ROOM,
        node: NodeConfig::default(),
        place,
        secrets_key: None,
    })?;
    // The first process of a fresh spawner pays for its preparations; the chain should not.
    controller::to_the_end(&controller, "warm", shape::chain(1))?;
    let admitted = examine(&shape::flow(count, 1), &Everything).map_err(|problems| problems.to_string())?;
    let began = Instant::now();
    controller::to_the_end(&controller, "flow", admitted.manifest)?;
    let took = began.elapsed();
    controller.close()?;
    Ok(took)
}

struct Everything;

impl Catalog for Everything {
    fn has_object(&self, _: &'static kinds::Kind, _: &str, _: &str) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_flow_and_a_few_workflows_come_to_their_end() {
        let dir = tempfile::tempdir().unwrap();
        store(3, 2, dir.path()).unwrap();
        flow(3, 2, dir.path()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        alone(10, dir.path()).unwrap();
    }
}
