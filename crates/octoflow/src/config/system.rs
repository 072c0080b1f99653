//! Operating system calls: signals, free space, file permissions. The one file of this crate with unsafe code.
#![expect(
    unsafe_code,
    reason = "signal handlers, statvfs, umask and mallopt have no safe form in the standard library"
)]

use std::{
    ffi::CString,
    io::{self, Read},
    os::{
        fd::{AsRawFd, RawFd},
        unix::{ffi::OsStrExt, net::UnixStream},
    },
    path::Path,
    sync::atomic::{AtomicI32, Ordering},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// Request to exit, by a service manager or `kill`.
    Terminate,
}

/// Descriptor to which the handler writes the number of a signal. Must be a plain atomic: nothing else is safe in a
/// handler.
static PIPE: AtomicI32 = AtomicI32::new(-1);

/// Returns an iterator over signals, from now on, until the process ends. Call it once.
pub(crate) fn signals() -> io::Result<Signals> {
    let (reader, writer) = UnixStream::pair()?;
    writer.set_nonblocking(true)?;
    // The handler needs the descriptor for as long as the process lives.
    let descriptor: RawFd = writer.as_raw_fd();
    std::mem::forget(writer);
    PIPE.store(descriptor, Ordering::SeqCst);
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: a zeroed sigaction is valid; the handler only loads an atomic and calls `write`, both allowed in a handler.
        let outcome = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_signal as *const () as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigemptyset(&raw mut action.sa_mask);
            libc::sigaction(signal, &raw const action, std::ptr::null_mut())
        };
        if outcome != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(Signals { reader })
}

extern "C" fn on_signal(number: libc::c_int) {
    let byte = [u8::try_from(number).unwrap_or(0)];
    // SAFETY: the buffer lives across the call; the descriptor is never closed. A full pipe loses a signal that says
    // nothing new. `errno` is restored because the interrupted code may be about to read it.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(PIPE.load(Ordering::SeqCst), byte.as_ptr().cast(), 1);
        *libc::__errno_location() = errno;
    }
}

#[derive(Debug)]
pub(crate) struct Signals {
    reader: UnixStream,
}

impl Iterator for Signals {
    type Item = Signal;

    /// Blocks until the next signal.
    fn next(&mut self) -> Option<Signal> {
        let mut byte = [0];
        self.reader.read_exact(&mut byte).ok()?;
        Some(if i32::from(byte[0]) == libc::SIGINT { Signal::Interrupt } else { Signal::Terminate })
    }
}

/// Makes files that this process creates from now on private to their owner. Tasks have the usual mask, which the
/// spawner restores.
pub(crate) fn keep_files_private() {
    // SAFETY: no memory involved, and it cannot fail.
    unsafe { libc::umask(0o077) };
}

/// Limits malloc to one arena per processor; glibc makes up to eight. Every arena keeps its peak size, so a burst of
/// large answers, served by many threads in turn, would be kept several times over. Call it before threads start:
/// existing arenas stay.
pub(crate) fn limit_malloc_arenas() {
    #[cfg(target_env = "gnu")]
    {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let arenas = libc::c_int::try_from(processors).unwrap_or(libc::c_int::MAX).max(2);
        // SAFETY: no memory involved; a value malloc does not accept leaves it as it is.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, arenas) };
    }
}

/// Returns the bytes a user may still write on the file system of a path.
pub(crate) fn free_space(path: &Path) -> io::Result<u64> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the path is a valid C string and the result is only read after the call succeeded.
    let about = unsafe {
        let mut about: libc::statvfs = std::mem::zeroed();
        if libc::statvfs(path.as_ptr(), &raw mut about) != 0 {
            return Err(io::Error::last_os_error());
        }
        about
    };
    Ok(about.f_bavail.saturating_mul(about.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_comes_out_of_the_iterator() {
        let mut signals = signals().unwrap();
        // SAFETY: the handlers are installed, so raising ends nothing.
        unsafe {
            libc::raise(libc::SIGINT);
            libc::raise(libc::SIGTERM);
        }
        assert_eq!(signals.next(), Some(Signal::Interrupt));
        assert_eq!(signals.next(), Some(Signal::Terminate));
    }

    #[test]
    fn there_is_space_somewhere() {
        assert!(free_space(Path::new("/")).unwrap() > 0);
        assert!(free_space(Path::new("/does/not/exist")).is_err());
    }
}
