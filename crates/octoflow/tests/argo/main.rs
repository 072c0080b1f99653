//! The real server through Argo Server's API: by hand over HTTP, and by Hera.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "../wire/wire.rs"]
mod wire;

mod artifacts;
mod errors;
mod hera;
mod host;
mod objects;
mod steering;
mod streams;
mod workflows;
