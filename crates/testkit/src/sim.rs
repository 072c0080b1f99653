//! The simulator: a world of workflows and TaskSets, people, a runtime and a disk, all made from one number, without threads and
//! without real time. It drives the real driver and engine, crashes them, and checks the guarantees after every step.
//! The same number always gives the same story.

mod audit;
mod calendar;
mod check;
mod cluster;
mod company;
mod disk;
mod draw;
mod drive;
mod explore;
mod fact_watch;
mod failure;
mod flow;
mod hooks;
mod kubejob;
mod life;
mod maker;
mod manifest;
pub(crate) mod runtime;
mod taskset;
mod tree;
mod volcano;
mod walk;
mod watch;
mod world;

/// A TaskSet of no world in particular.
pub(crate) fn random_task_set(draw: &mut Draw) -> serde_json::Value {
    taskset::manifest(draw, "t", 100)
}

/// A Volcano Job of no world in particular.
pub(crate) fn random_job(draw: &mut Draw) -> serde_json::Value {
    volcano::manifest(draw, "j", 100)
}

/// A Job of Kubernetes of no world in particular.
pub(crate) fn random_kube_job(draw: &mut Draw) -> serde_json::Value {
    kubejob::manifest(draw, "k")
}

pub use cluster::Seen;
pub use disk::Point;
pub use draw::Draw;
pub use drive::{Ending, run};
pub use explore::{Effort, Report, compare, explore};
pub use failure::{Failure, Guarantee};
pub use watch::Watch;
pub use world::{
    CLUSTERS, COMPANIES, Crashes, FAMILIES, FLOWS, Flavour, JOBS, KUBE_JOBS, MIXED, PARENTS, WALKS, World,
};
