//! The pure engine: admits manifests, decides, folds, schedules and explains. It never waits, reads a clock, draws
//! random numbers or does IO: time and randomness are passed in, facts and orders are returned.

// A new variant of an enum is a compile error wherever it has to be thought of.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod admit;
pub mod cron;
pub mod dialects;
pub mod engine;
pub mod expr;
mod graph;
pub mod kinds;
pub mod meters;
pub mod plugins;
mod pod;

mod run;
pub mod schedule;

pub use dialects::dialect::{Dialect, DialectRun, Program};
pub use engine::input::{Command, Input, Outcome, Refusal};
pub use engine::{Capacity, Engine, Keyed, Setup};
/// Admission results, re-exported for callers that do not read manifests themselves.
pub use octoflow_manifest::{Problem, Problems, Severity};
pub use run::effect::{Change, Decided};
pub use run::explain::Explanation;
pub use run::{OpenError, Run};

pub use admit::{code, shape};
pub use dialects::{argo, dialect, jobflow, kubejob, submission, taskset, volcano};
pub use engine::{input, locks, slice};
pub use expr::jsonpath;
pub use run::{effect, explain, follow, head, plan, rerun, view};
