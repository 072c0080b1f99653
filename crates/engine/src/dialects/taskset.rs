//! The TaskSet dialect: roles with replicas, completion policies of roles, retries at two levels, and event policies
//! that end the whole TaskSet. Visits are level-triggered: a visit looks at a role as it is and decides what is
//! missing, so visiting twice decides nothing twice.

pub mod admit;
pub mod explain;
pub mod fields;
pub mod ident;
pub mod program;
pub mod rerun;
pub mod run;
pub mod status;

mod command;
mod demand;
mod dialect;
mod display;
mod effect;
mod ended;
mod fold;
mod judge;
mod kinds;
mod peers;
mod progress;
mod record;
mod replica;
mod role;
mod task;
mod todo;
mod turn;
mod unit;

pub use dialect::DIALECT;
pub use fold::Folded;
pub use kinds::{ROWS, TASK_SET};
pub use run::{Run, State};
pub use turn::Turn;
