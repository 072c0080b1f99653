//! Submitted jobs: the walk of a job through the stages of the submission pipeline, and the run that comes out of it. It
//! calls no plugin itself, and knows no more of the run that comes out than every parent does.

pub mod admit;
pub mod answer;
pub mod decide;
pub mod edit;
pub mod explain;
pub mod fields;
pub mod program;
pub mod rerun;
pub mod run;
pub mod state;
pub mod status;

mod child;
mod command;
mod dialect;
mod display;
mod effect;
mod feature;
mod fold;
mod kinds;
mod progress;
mod record;
mod request;
mod todo;
mod turn;

pub use dialect::DIALECT;
pub use fold::Folded;
pub use kinds::{FEATURE, ROWS, SUBMITTED_JOB};
pub use program::header;
pub use run::Run;
pub use turn::Turn;

#[cfg(test)]
mod tests;
