//! JobFlows through the real binary, as a user drives it: alone, against a server, killed in the middle. Scenarios are named
//! by their numbers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "../wire/wire.rs"]
mod wire;

mod commands;
mod crash;
mod failures;
mod order;
mod probes;
mod refused;
mod remembered;
mod seed;
mod stage;
mod status;
mod templates;
