//! The real binary, driven as a user drives it, each test in a data directory of its own.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "../wire/wire.rs"]
mod wire;

#[path = "../wire/samples.rs"]
mod samples;

mod artifacts;
mod bad_input;
mod calls;
mod clock;
mod contract;
mod crowd;
mod elsewhere;
mod followers;
mod full_disk;
mod hostile;
mod inspect;
mod interrupt;
mod journals;
mod kubejob;
mod large;
mod lint;
mod linted_corpus;
mod lists;
mod logic;
mod marked;
mod metrics;
mod pace;
mod panics;
mod plan;
mod pods;
mod referred;
mod resources;
mod restart;
mod run;
mod server;
mod shortage;
mod stage;
mod standin;
mod surface;
mod terminal;
mod turns;
mod watchers;
