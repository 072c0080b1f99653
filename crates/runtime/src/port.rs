//! The port every runtime implements: orders go in and never wait, everything that happens comes back as reports.
//! It knows no process, container or pod.

use std::sync::Arc;

use octoflow_model::{
    ids::{AttemptId, RunId},
    order::{Order, Report},
    task::Task,
    time::Time,
};

/// Where reports go. All reports of one turn of a runtime come in one call; it may come from any thread.
pub type Sink = Box<dyn Fn(Vec<Report>) + Send + Sync>;

/// Asks a runtime for the conditions that hold right now; none means that it is ready. It never waits, and may be asked
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
    /// There is no spawner; starting one is tried again and again.
    SpawnerDown,
    /// The spawner is there and does not answer.
    SpawnerSilent,
    /// The spawner cannot write which attempts it starts, so it starts none.
    LedgerUnwritable,
    /// Tasks cannot be started for want of descriptors, processes or memory.
    StartsDelayed,
    /// The file system of the data directory has less free space than is reserved.
    DiskPressure,
}

impl ConditionKind {
    /// The name under which people and programs know it.
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
    /// Never waits. Orders are idempotent by attempt id.
    fn send(&mut self, orders: Vec<Order>);

    /// After a restart: what the engine believes to be alive. Attempts that run or ended are taken over and reported as
    /// usual; those that certainly never started are started now; those that may have started and cannot be found are
    /// reported lost. Whatever else still runs is ended and forgotten, except in the runs to leave: somebody may take
    /// those up later.
    fn adopt(&mut self, believed: Vec<(AttemptId, Box<Task>)>, leave: &[RunId]);

    /// How to ask whether it can work. The default is for runtimes that depend on nothing that could be down.
    fn health(&self) -> Health {
        Arc::new(Vec::new)
    }

    /// Nothing more will be ordered. What still runs goes on and can be adopted later.
    fn close(self: Box<Self>);
}
