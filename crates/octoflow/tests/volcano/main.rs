//! Volcano Jobs as their users meet them: the real binary, the real kubectl. Scenarios are named by their numbers.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test that cannot go on should stop and say so")]

#[path = "../wire/wire.rs"]
mod wire;

mod alone;
mod job;
mod plugins;
mod refused;
mod served;

#[path = "../client/place.rs"]
#[allow(dead_code, unused_imports, reason = "it is shared with the tests of the client")]
mod place;
#[path = "../kubectl/rig.rs"]
#[allow(dead_code, unused_imports, reason = "it is shared with the tests of workflows")]
mod rig;
#[path = "../ts_cli/stage.rs"]
#[allow(dead_code, unused_imports, reason = "it is shared with the tests of TaskSets")]
mod stage;
