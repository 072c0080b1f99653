//! The port every runtime implements: orders go in and never wait, everything that happens comes back as reports.
//! It knows no process, container or pod.

use octoflow_model::{
    ids::{AttemptId, RunId},
    order::{Order, Report},
    task::Task,
};

/// Where reports go. All reports of one turn of a runtime come in one call; it may come from any thread.
pub type Sink = Box<dyn Fn(Vec<Report>) + Send + Sync>;

pub trait Runtime: Send {
    /// Never waits. Orders are idempotent by attempt id.
    fn send(&mut self, orders: Vec<Order>);

    /// After a restart: what the engine believes to be alive. Attempts that run or ended are taken over and reported as
    /// usual; those that certainly never started are started now; those that may have started and cannot be found are
    /// reported lost. Whatever else still runs is ended and forgotten, except in the runs to leave: somebody may take
    /// those up later.
    fn adopt(&mut self, believed: Vec<(AttemptId, Box<Task>)>, leave: &[RunId]);

    /// Nothing more will be ordered. What still runs goes on and can be adopted later.
    fn close(self: Box<Self>);
}
