//! The dialects, a folder each: what a kind of manifest means, how its runs are decided and how they look.
//! A dialect knows the engine's traits and no other dialect.

pub mod argo;
pub mod dialect;
pub mod jobflow;
pub mod kubejob;
pub mod submission;
pub mod taskset;
pub mod volcano;
