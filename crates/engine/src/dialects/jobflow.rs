//! Volcano's flow dialect: a graph of jobs, each made from a template once those it waits for have come so far. What happened
//! is remembered in facts and never inferred from what exists. Who makes jobs is not known here.

pub mod admit;
pub mod decide;
pub mod explain;
pub mod fields;
pub mod index;
pub mod patch;
pub mod program;
pub mod rerun;
pub mod run;
pub mod state;
pub mod status;
pub mod template;

mod child;
mod command;
mod dialect;
mod display;
mod effect;
mod fold;
mod kinds;
mod probe;
mod progress;
mod record;
mod request;
mod todo;
mod turn;

pub use dialect::DIALECT;
pub use fold::Folded;
pub use kinds::{JOB_FLOW, JOB_TEMPLATE, ROWS};
pub use run::Run;
pub use turn::Turn;

#[cfg(test)]
mod tests;
