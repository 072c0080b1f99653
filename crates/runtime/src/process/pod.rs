//! The supervisor of a task with several containers: a small process of the same binary inside the task's own file
//! system. For the spawner it is the task; for the containers it is the parent, whose death ends them. Reads its plan
//! from standard input and writes frames to standard output. Knows nothing of engines or reports.

mod probe;
mod run;

use std::{
    ffi::OsString,
    io::{self, Read, Write},
    process::ExitCode,
};

use super::{
    sys,
    wire::{PodPlan, Wire as _},
};

/// Hidden first argument on which the program must call [`pod_main`].
pub const POD_ARGUMENT: &str = "__pod";

/// Name of the supervisor in a list of processes.
pub(crate) const NAME: &str = "octoflow";

/// Runs a supervisor. Must run on the main thread of its process, whose end ends the containers.
pub fn pod_main(_arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    match read_plan().and_then(run::run) {
        Ok(code) => code,
        Err(error) => {
            // Standard error goes into the task's log; there is no other place to report to.
            let _ = writeln!(io::stderr(), "the containers could not be supervised: {error}");
            ExitCode::FAILURE
        }
    }
}

fn read_plan() -> io::Result<PodPlan> {
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes)?;
    // The plan may hold secrets, and is not needed any more.
    sys::close_stdin()?;
    PodPlan::get(&mut &bytes[..]).map_err(io::Error::other)
}
