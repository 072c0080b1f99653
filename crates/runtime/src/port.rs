//! The port that every runtime implements: orders go in without blocking, everything that happens comes back as
//! reports. It knows no process, container or pod.

use std::sync::Arc;

use octoflow_model::{
    ids::{AttemptId, RunId},
    order::{Order, Report},
    task::Task,
    time::Time,
};

/// Callback for reports. All reports of one turn of a runtime come in one call, from any thread.
pub type Sink = Box<dyn Fn(Vec<Report>) + Send + Sync>;

/// Returns the conditions that hold right now; none means that the runtime is ready. Never blocks, and may be called
/// from any thread, also while the runtime is busy.
pub type Health = Arc<dyn Fn() -> Vec<Condition> + Send + Sync>;

/// A condition that keeps a runtime from doing all of its work. Work waits while it lasts; nothing fails because of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub kind: ConditionKind,
    pub since: Time,
    /// What is wrong and what to do about it, for people.
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConditionKind {
    /// There is no spawner; starting one is retried.
    SpawnerDown,
    /// The spawner runs but does not answer.
    SpawnerSilent,
    /// The spawner cannot record which attempts it starts, so it starts none.
    LedgerUnwritable,
    /// Tasks cannot be started for lack of descriptors, processes or memory.
    StartsDelayed,
    /// The file system of the data directory has less free space than is reserved.
    DiskPressure,
}

impl ConditionKind {
    /// Returns the name in messages and in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::SpawnerDown => "SpawnerDown",
            Self::SpawnerSilent => "SpawnerSilent",
            Self::LedgerUnwritable => "LedgerUnwritable",
            Self::StartsDelayed => "StartsDelayed",
            Self::DiskPressure => "DiskPressure",
        }
    }
}

pub trait Runtime: Send {
    /// Sends orders without blocking. Orders are idempotent by attempt id.
    fn send(&mut self, orders: Vec<Order>);

    /// Takes over attempts after a restart: those that the engine believes to be alive. Attempts that run or ended are
    /// adopted and reported as usual; those that certainly never started are started now; those that may have started
    /// and cannot be found are reported lost. All other attempts are ended and forgotten, except those of the runs in
    /// `leave`, which may be adopted later.
    fn adopt(&mut self, believed: Vec<(AttemptId, Box<Task>)>, leave: &[RunId]);

    /// Returns how to query the runtime's health. The default is for runtimes that depend on nothing that could be
    /// down.
    fn health(&self) -> Health {
        Arc::new(Vec::new)
    }

    /// Ends the connection: no more orders will follow. What still runs continues and can be adopted later.
    fn close(self: Box<Self>);
}
