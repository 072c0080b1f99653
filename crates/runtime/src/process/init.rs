//! The process that creates PID namespaces, and the init process of each.
//!
//! A PID namespace lives as long as its init, which inherits the orphans in it and must reap them. That init is not the
//! task: the kernel drops signals to it that it does not handle, so a task in its place would not end by SIGTERM. It is
//! forked from a separate process rather than from the spawner, because the spawner holds what tasks must not see: this
//! process has no environment, no descriptors but one socket, and as root no file system. It is a fork of the spawner
//! from before that knew anything, or the program started anew.
//!
//! It talks to the spawner only, and both kinds of process end when the spawner does.

use std::{
    ffi::OsString,
    io::{self, Read},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd},
        unix::net::UnixStream,
    },
    process::ExitCode,
};

use super::{
    pod::NAME,
    sys::{self, ns, pid},
};

/// Hidden first argument on which the program must call [`init_main`].
pub const INIT_ARGUMENT: &str = "__init";

/// Bytes of an answer: zero, or the errno that prevented the namespace. A zero comes with two descriptors: the mount of
/// `/proc` and the init process.
pub(crate) const ANSWER: usize = 4;

/// Runs the process. Each byte on standard input requests one namespace.
pub fn init_main(_arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    pid::close_others();
    serve()
}

/// Runs the process in a fork of the spawner, which must not know anything yet that tasks must not see.
pub(crate) fn forked_main(socket: BorrowedFd<'_>) -> ! {
    // It must not look like a spawner, and the engine's environment is not for tasks.
    if pid::keep_only(socket).and_then(|()| pid::replace_arguments(&[NAME, INIT_ARGUMENT])).is_ok() {
        serve();
    }
    pid::exit_now()
}

fn serve() -> ExitCode {
    pid::block_signals();
    pid::ignore_children();
    let Ok(mut socket) = io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from) else {
        return ExitCode::FAILURE;
    };
    let hidden = hide_machine();
    let mut request = [0];
    while let Ok(1) = socket.read(&mut request) {
        let made = hidden.as_ref().map_err(number).and_then(|()| pid::fork_into_new().map_err(|error| number(&error)));
        match made {
            Ok(true) => be_init(socket.as_fd()),
            // The child answers.
            Ok(false) => {}
            Err(number) => {
                if answer(socket.as_fd(), number, &[]).is_err() {
                    break;
                }
            }
        }
    }
    ExitCode::SUCCESS
}

/// Drops the file system as root, because a task of root could reach it through this process. An ordinary user's task
/// may not inspect a process that has a privilege it lacks, and in that case the kernel requires the machine's `/proc`
/// to be visible before it mounts a new one.
fn hide_machine() -> io::Result<()> {
    if sys::effective_uid() != 0 {
        return Ok(());
    }
    ns::unshare(libc::CLONE_NEWNS)?;
    ns::mount(c"none", c"/", None, libc::MS_REC | libc::MS_PRIVATE, c"")?;
    // Any directory will do; what it hides is dropped with everything else.
    ns::mount(c"octoflow", c"/proc", Some(c"tmpfs"), libc::MS_RDONLY, c"size=4k,mode=0555")?;
    ns::change_dir(c"/proc")?;
    ns::pivot_here()
}

/// Runs the init of a namespace: passes the descriptors to the spawner, then waits for the spawner's end.
fn be_init(socket: BorrowedFd<'_>) -> ! {
    let handed = pid::mount_proc().and_then(|proc| Ok((proc, pid::descriptor(1)?)));
    let answered = match &handed {
        Ok((proc, own)) => answer(socket, 0, &[proc.as_raw_fd(), own.as_raw_fd()]),
        Err(error) => answer(socket, number(error), &[]),
    };
    if handed.is_ok() && answered.is_ok() {
        drop(handed);
        pid::wait_for_hangup(socket);
    }
    pid::exit_now()
}

fn answer(socket: BorrowedFd<'_>, number: i32, descriptors: &[i32]) -> io::Result<()> {
    let sent = sys::send_with(socket, &number.to_le_bytes(), descriptors)?;
    if sent == ANSWER { Ok(()) } else { Err(io::Error::other("the answer did not fit")) }
}

fn number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}
