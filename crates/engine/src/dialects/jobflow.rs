//! Volcano's flow dialect: a graph of jobs, each made from a template once those it waits for have come so far. Here are
//! the pure parts: what a manifest means, the state as the fold of facts, and the functions that decide. What happened is
//! remembered in facts and never inferred from what exists.

pub mod admit;
pub mod decide;
pub mod fields;
pub mod patch;
pub mod program;
pub mod state;

#[cfg(test)]
mod tests;
