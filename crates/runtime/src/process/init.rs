//! The process that makes PID namespaces, and the first process of each (its init).
//!
//! A PID namespace lives as long as its first process, which adopts the orphans in it and must collect them. That first
//! process is not the task: the kernel drops signals to it that it does not handle, so a task in its place would not
//! end by SIGTERM. It is forked from a process of its own rather than from the spawner, because that one holds what
//! tasks must not see: this one has no environment, no descriptors but one socket, and as root no file system. That
//! process is a fork of the spawner from before it knew anything, or the program started anew.
//!
//! It speaks with the spawner alone, and both kinds of process end when the spawner does.

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

/// The hidden first argument on which the program must call [`init_main`].
pub const INIT_ARGUMENT: &str = "__init";

/// An answer is this many bytes: zero, or the number of the error that kept the namespace from being made. With a zero
/// two descriptors ride: the mount of `/proc` and the first process.
pub(crate) const ANSWER: usize = 4;

/// The whole life of the process. Each byte on standard input asks for one namespace.
pub fn init_main(_arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    pid::close_others();
    serve()
}

/// The same in a fork of the spawner, which must know nothing yet that tasks must not see.
pub(crate) fn forked_main(socket: BorrowedFd<'_>) -> ! {
    // Nobody must take it for a spawner, and the engine's environment is not for tasks.
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

/// As root, a task could follow this process to its files; so it has none. An ordinary user's task may not look at a
/// process that has a privilege it lacks, and there the kernel wants to see the machine's `/proc` before it makes one.
fn hide_machine() -> io::Result<()> {
    if sys::effective_uid() != 0 {
        return Ok(());
    }
    ns::leave(libc::CLONE_NEWNS)?;
    ns::mount(c"none", c"/", None, libc::MS_REC | libc::MS_PRIVATE, c"")?;
    // Any directory will do; what it hides is dropped with everything else.
    ns::mount(c"octoflow", c"/proc", Some(c"tmpfs"), libc::MS_RDONLY, c"size=4k,mode=0555")?;
    ns::change_dir(c"/proc")?;
    ns::pivot_here()
}

/// The first process of a namespace: hands out what the spawner needs, then waits for the spawner's end.
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

fn answer(socket: BorrowedFd<'_>, number: i32, riders: &[i32]) -> io::Result<()> {
    let sent = sys::send_with(socket, &number.to_le_bytes(), riders)?;
    if sent == ANSWER { Ok(()) } else { Err(io::Error::other("the answer did not fit")) }
}

fn number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}
