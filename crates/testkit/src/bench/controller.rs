//! Controllers inside this program: one whose tasks run nowhere, and one that runs a chain of processes.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use octoflow_control::{Capacity, Config, Controller, NodeConfig, Place, Submit};
use octoflow_model::{Fact, RunFact, RunId, RunPhase, submission::Stored};
use octoflow_runtime::process::{self, Isolation};
use serde_json::Value;

use super::{measure::Outcome, role::Crowd, shape};

/// Room for everything: what is measured is never the limit.
pub(super) const ROOM: Capacity = Capacity { slots: 1 << 20, cpu_milli: 1 << 40, memory_bytes: 1 << 60 };

/// Opens a controller whose tasks run nowhere.
pub(super) fn open(dir: &Path) -> Outcome<Controller> {
    open_with(dir, ROOM)
}

pub(super) fn open_with(dir: &Path, capacity: Capacity) -> Outcome<Controller> {
    let config = Config {
        data_dir: dir.to_owned(),
        capacity,
        node: NodeConfig::default(),
        place: Place::Nowhere,
        secrets_key: None,
    };
    Ok(Controller::open(config)?.0)
}

pub(super) fn null(groups: u32, steps: u32, dir: &Path) -> Outcome<()> {
    let controller = open(dir)?;
    to_the_end(&controller, "layers", shape::layers(groups, steps))?;
    controller.close()?;
    Ok(())
}

pub(super) fn chain(count: u32, isolated: bool, dir: &Path, octoflow: &Path) -> Outcome<Duration> {
    let mut config = process::Config::new(dir, octoflow);
    config.isolation = if isolated { Isolation::Overlay } else { Isolation::None };
    let place = Place::Processes(Box::new(config));
    let (controller, _) = Controller::open(Config {
        data_dir: dir.to_owned(),
        capacity: ROOM,
        node: NodeConfig::default(),
        place,
        secrets_key: None,
    })?;
    // The first process of a fresh spawner pays for its preparations; the chain should not.
    to_the_end(&controller, "warm", shape::chain(1))?;
    let began = Instant::now();
    to_the_end(&controller, "chain", shape::chain(count))?;
    let took = began.elapsed();
    controller.close()?;
    Ok(took)
}

/// The same processes as replicas of a TaskSet, as pods of a Volcano Job or as steps of a workflow.
pub(super) fn crowd(of: Crowd, count: u32, in_flight: u32, dir: &Path, octoflow: &Path) -> Outcome<()> {
    let mut config = process::Config::new(dir, octoflow);
    config.isolation = Isolation::None;
    let capacity = Capacity { slots: in_flight as usize, ..ROOM };
    let place = Place::Processes(Box::new(config));
    let (controller, _) = Controller::open(Config {
        data_dir: dir.to_owned(),
        capacity,
        node: NodeConfig::default(),
        place,
        secrets_key: None,
    })?;
    let manifest = match of {
        Crowd::Steps => shape::layers(1, count),
        Crowd::Replicas => shape::replicas(count),
        Crowd::Pods => shape::pods(count),
    };
    to_the_end(&controller, "crowd", manifest)?;
    controller.close()?;
    Ok(())
}

pub(super) fn submit(controller: &Controller, name: &str, manifest: Value) -> Outcome<RunId> {
    Ok(controller.submit(Submit {
        namespace: String::new(),
        name: name.to_owned(),
        manifest,
        stored: Stored::default(),
        claim: None,
    })?)
}

/// Submits a run and waits until it has succeeded.
pub(super) fn to_the_end(controller: &Controller, name: &str, manifest: Value) -> Outcome<()> {
    let run = submit(controller, name, manifest)?;
    let watch = controller.watch(run);
    let last = watch.into_iter().flatten().filter(|fact| matches!(fact, Fact::Run(RunFact::Ended { .. }))).last();
    let phase = match last {
        Some(Fact::Run(RunFact::Ended { phase, .. })) => phase.word().to_owned(),
        // It was over before the watch began.
        _ => {
            let status = &controller.object(run)?["status"];
            // A TaskSet says it as its state, Jobs and JobFlows inside of it and in words of their own.
            let phase = status["state"].as_str().or(status["state"]["phase"].as_str()).or(status["phase"].as_str());
            let phase = phase
                .map(|phase| if matches!(phase, "Completed" | "Succeed") { RunPhase::Succeeded.word() } else { phase });
            phase.unwrap_or_default().to_owned()
        }
    };
    if phase == RunPhase::Succeeded.word() { Ok(()) } else { Err(format!("the run `{name}` ended {phase}").into()) }
}
