//! TaskSets through the real binary, as a user drives it: the seed's own examples, what replicas see, what is refused, and
//! what becomes of a run that is interrupted. Scenarios are named by their numbers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "../wire/wire.rs"]
mod wire;

mod commands;
mod interrupted;
mod policies;
mod refused;
mod seed;
mod seen;
mod stage;
