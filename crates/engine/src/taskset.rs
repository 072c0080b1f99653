//! The TaskSet dialect: roles with replicas, rules for when a role has succeeded or failed, retries at two levels, and
//! events that end the whole. A visit looks at a role as it is and decides what is missing, so visiting twice decides
//! nothing twice.

pub mod admit;
pub mod again;
pub mod explain;
pub mod fields;
pub mod ident;
pub mod program;
pub mod run;
pub mod status;

mod command;
mod dialect;
mod effect;
mod ended;
mod fold;
mod judge;
mod mark;
mod peers;
mod record;
mod replica;
mod role;
mod task;
mod turn;

pub use dialect::DIALECT;
pub use mark::marks;
pub use run::{Run, State};
pub use turn::Turn;
