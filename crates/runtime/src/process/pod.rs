//! The supervisor of a task with several containers: a small process of the same binary inside the task's own file
//! system. To the spawner it is the task; to the containers it is the parent, whose death ends them.
//! It reads its plan from standard input and speaks frames on standard output. It knows nothing of engines or reports.

mod run;

use std::{
    ffi::OsString,
    io::{self, Read, Write},
    process::ExitCode,
};

use super::{
    sys,
    wire::{Crew, Wire as _},
};

/// The hidden first argument on which the program must call [`pod_main`].
pub const POD_ARGUMENT: &str = "__pod";

/// How the supervisor names itself in a list of processes.
pub(crate) const NAME: &str = "octoflow";

/// The whole life of a supervisor. It must run on the main thread of its process, whose end ends the containers.
pub fn pod_main(_arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    match read_plan().and_then(run::run) {
        Ok(code) => code,
        Err(error) => {
            // Standard error goes into the task's log; there is nobody else to tell.
            let _ = writeln!(io::stderr(), "the containers could not be looked after: {error}");
            ExitCode::FAILURE
        }
    }
}

fn read_plan() -> io::Result<Crew> {
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes)?;
    // It may hold secrets, and is of no use any more.
    sys::close_stdin()?;
    Crew::get(&mut &bytes[..]).map_err(io::Error::other)
}
