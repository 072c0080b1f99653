//! TaskSets as their users meet them: the real binary, the real kubectl, and the requests of the seed's sixth chapter.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test that cannot go on should stop and say so")]

#[path = "../wire/wire.rs"]
mod wire;

mod kubectl;
mod pods;
mod rest;
#[path = "../kubectl/rig.rs"]
#[allow(dead_code, reason = "it is shared with the tests of workflows")]
mod rig;
