//! Volcano's batch dialect: jobs of tasks with equal pods, which start together; policies about events of the pods; a phase
//! machine for the whole. Visits are level-triggered: a visit looks at the job as it is and decides what is missing, so
//! visiting twice decides nothing twice. Events are raised in the turn in which they happen, and nowhere else.

pub mod admit;
pub mod explain;
pub mod fields;
pub mod ident;
pub mod program;
pub mod rerun;
pub mod run;
pub mod status;

mod bus;
mod claims;
mod command;
mod defaults;
mod demand;
mod dialect;
mod display;
mod effect;
mod ended;
mod fold;
mod kinds;
mod left;
mod objects;
mod phase;
mod plugin;
mod pods;
mod policy;
pub(crate) mod probe;
mod progress;
mod record;
mod resize;
mod task;
mod todo;
mod turn;

pub use dialect::DIALECT;
pub use fold::Folded;
pub use kinds::{JOB, ROWS};
pub use run::{Run, State};
pub use turn::Turn;
