//! The submission pipeline through the real binary: `/v1` as its clients speak it, and HTTP plugins that the tests start.
//! Scenarios are named by their numbers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "../wire/wire.rs"]
mod wire;

mod bad_input;
mod commands;
mod crash;
mod detail;
mod edits;
mod faults;
mod gates;
mod lists;
mod plugins;
mod stage;
mod translate;
