//! The real binary as server and as client, on a free port of this machine: every client command with its good case and
//! its main failure.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "../wire/wire.rs"]
mod wire;

mod carrying;
mod kept;
mod looking;
mod neighbours;
mod place;
mod reaching;
mod rerun;
mod scheduling;
mod steering;
mod streams;
mod submitting;
mod tasksets;
