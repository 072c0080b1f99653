//! Kubernetes' own batch dialect: a Job runs pods until enough of them have succeeded, or until it has failed. Failed pods
//! are replaced by new ones. Visits are level-triggered: a visit looks at the job as it is and decides what is missing,
//! so visiting twice decides nothing twice.

pub mod admit;
pub mod explain;
pub mod fields;
pub mod ident;
pub mod indexes;
pub mod program;
pub mod rerun;
pub mod run;
pub mod status;

mod amend;
mod backoff;
mod command;
mod cron;
mod defaults;
mod demand;
mod dialect;
mod display;
mod effect;
mod ended;
mod failure;
mod fold;
mod kinds;
mod pods;
mod progress;
mod record;
mod scale;
mod task;
mod todo;
mod turn;

pub use dialect::DIALECT;
pub use fold::Folded;
pub use kinds::{CRON_JOB, JOB, ROWS};
pub use run::{Run, State};
pub use turn::Turn;
