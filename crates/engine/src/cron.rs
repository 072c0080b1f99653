//! Schedules: when a CronWorkflow is due, and what is to be done about it.
//! Everything is computed from what is handed in, the time too; who keeps the books is not its business.

pub mod child;
pub mod decide;
pub mod schedule;
pub mod timetable;

mod judge;
#[cfg(test)]
mod tests;

pub use child::child;
pub use decide::{Act, Circumstances, Ledger, Skip, decide, wake_at};
pub use schedule::Schedule;
pub use timetable::{CatchUp, Concurrency, Timetable};

/// The name of a child is that of the schedule, a dash and ten digits, and names have at most 63 characters.
pub const LONGEST_NAME: usize = 52;

/// Which CronWorkflow a run comes from.
pub const LABEL: &str = "workflows.argoproj.io/cron-workflow";

/// The time a run was meant for, as an annotation of it.
pub const SCHEDULED_TIME: &str = "workflows.argoproj.io/scheduled-time";

/// A CronWorkflow that has met its stop condition says so in this label.
pub const COMPLETED: &str = "workflows.argoproj.io/completed";
