//! The pure engine: admits manifests, decides, folds, schedules and explains. It never waits, reads a clock, draws
//! random numbers or does IO: time and randomness are passed in, facts and orders are returned.

pub mod admit;
pub mod argo;
pub mod code;
pub mod cron;
pub mod dialect;
pub mod effect;
pub mod engine;
pub mod explain;
pub mod expr;
mod findings;
pub mod follow;
mod graph;
pub mod head;
pub mod input;
pub mod jsonpath;
pub mod kinds;
pub mod locks;
mod mark;
pub mod meters;
mod pod;
mod record;

pub mod rerun;
mod run;
pub mod schedule;
pub mod shape;
pub mod slice;
pub mod taskset;
pub mod view;

pub use dialect::{Dialect, DialectRun, Program};
pub use effect::{Change, Decided};
pub use engine::{Capacity, Engine, Keyed, Setup};
pub use explain::Explanation;
pub use input::{Command, Input, Outcome, Refusal};
/// Admission results, re-exported for callers that do not read manifests themselves.
pub use octoflow_manifest::{Problem, Problems, Severity};
pub use run::{OpenError, Run};
