//! The Kubernetes-style face as its users meet it: the real binary, the real kubectl, and requests no good client sends.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test that cannot go on should stop and say so")]

#[path = "../wire/wire.rs"]
mod wire;

mod bad_input;
mod draining;
mod finding;
mod flows;
mod forms;
mod jobs;
mod objects;
mod rig;
mod scheduling;
mod warnings;
mod watching;
mod workflows;
