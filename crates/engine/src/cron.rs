//! Schedules: when a CronWorkflow is due, and what to do about it. Everything is computed from the arguments, including
//! the time; the caller persists the ledger.

pub mod child;
pub mod decide;
pub mod row;
pub mod schedule;
pub mod timetable;

mod judge;
#[cfg(test)]
mod tests;

pub use child::child;
pub use decide::{Act, CronState, Ledger, Skip, decide, wake_at};
pub use row::{CronRow, CronStatus};
pub use schedule::Schedule;
pub use timetable::{CatchUp, Concurrency, Timetable};

/// The name of a child is that of the schedule, a dash and ten digits, and names have at most 63 characters.
pub const MAX_NAME_LENGTH: usize = 52;

/// Label that names the CronWorkflow of a run.
pub const LABEL: &str = "workflows.argoproj.io/cron-workflow";

/// Annotation with the scheduled time of a run.
pub const SCHEDULED_TIME: &str = "workflows.argoproj.io/scheduled-time";

/// Label of a CronWorkflow that has met its stop condition.
pub const COMPLETED: &str = "workflows.argoproj.io/completed";
