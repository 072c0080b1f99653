//! System calls for PID namespaces and process descriptors, each behind a safe function. Nothing here decides anything;
//! every function is one or two calls, its arguments checked by types.
#![expect(unsafe_code, reason = "this file is a border to the kernel; every call states why it is sound")]

use std::{
    ffi::{CStr, c_int, c_long, c_uint},
    fs::{self, File},
    io, mem,
    os::fd::{AsRawFd, BorrowedFd, OwnedFd},
    ptr,
    time::Duration,
};

use super::{
    capability::{Header, Sets, VERSION_3},
    checked, checked_long,
    dir::read_entries,
    ns, owned,
};

/// Returns a descriptor of a process, which never refers to another one that got the same pid later.
pub(crate) fn descriptor(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: no memory involved; the answer is a new descriptor.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })
}

pub(crate) fn kill(process: BorrowedFd<'_>) {
    // SAFETY: no signal record is given. A process that is gone is not an error for us.
    unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            process.as_raw_fd(),
            libc::SIGKILL,
            ptr::null::<libc::siginfo_t>(),
            0,
        )
    };
}

/// Returns whether the process is dead. The init process of a PID namespace counts as dead only when all others in it
/// are.
pub(crate) fn is_dead(process: BorrowedFd<'_>) -> bool {
    let mut entry = libc::pollfd { fd: process.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid entry.
    unsafe { libc::poll(&raw mut entry, 1, 0) > 0 }
}

/// Waits for the end of a process with a timeout. Does not reap it.
pub(crate) fn wait_for_end(process: BorrowedFd<'_>, within: Duration) {
    let mut entry = libc::pollfd { fd: process.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let millis = c_int::try_from(within.as_millis()).unwrap_or(c_int::MAX);
    // SAFETY: one valid entry. A signal ends the wait early.
    unsafe { libc::poll(&raw mut entry, 1, millis) };
}

/// Makes this thread create its children in the PID namespace of the given process.
pub(crate) fn enter(process: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: changes a property of this thread; no memory involved.
    checked(unsafe { libc::setns(process.as_raw_fd(), libc::CLONE_NEWPID) }).map(drop)
}

/// Returns a detached mount of `/proc` for this process's PID namespace.
pub(crate) fn mount_proc() -> io::Result<OwnedFd> {
    ns::new_mount(c"proc", libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOEXEC)
}

/// Forks a child that is the init process of a new PID namespace. Returns `true` in the child.
///
/// Only for processes with a single thread: the child has no other.
pub(crate) fn fork_into_new() -> io::Result<bool> {
    let flags = c_long::from(libc::CLONE_NEWPID | libc::SIGCHLD);
    // SAFETY: without a stack and without shared memory this is a fork; the process has one thread, so no lock is
    // held by a thread the child lacks.
    Ok(checked_long(unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) })? == 0)
}

/// Forks. Returns the child's pid, and `None` in the child.
///
/// Only while the other threads of the process wait for this one: the child has no other, and whatever they lock would
/// stay locked in it.
pub(crate) fn fork() -> io::Result<Option<i32>> {
    // SAFETY: as promised by the caller; the library's own locks are taken care of by its fork.
    let pid = checked(unsafe { libc::fork() })?;
    Ok((pid != 0).then_some(pid))
}

/// Waits for the end of a child and reaps it.
pub(crate) fn reap(child: i32) {
    // SAFETY: no status is requested. If a signal interrupts it, or the child was reaped already, there is nothing to
    // do.
    unsafe { libc::waitpid(child, ptr::null_mut(), 0) };
}

/// Makes the descriptor standard input, redirects the other two standard streams to `/dev/null`, and closes all others.
///
/// Only for a process that ends by [`exit_now`]: values that own descriptors are invalid afterwards.
pub(crate) fn keep_only(descriptor: BorrowedFd<'_>) -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    for (from, to) in [(descriptor.as_raw_fd(), 0), (null.as_raw_fd(), 1), (null.as_raw_fd(), 2)] {
        // SAFETY: both numbers are valid; no value owns the standard streams.
        checked(unsafe { libc::dup2(from, to) })?;
    }
    mem::forget(null);
    close_others();
    Ok(())
}

/// Replaces the command line of this process and wipes its environment, from memory too.
///
/// Only for a forked child that reads neither any more.
pub(crate) fn replace_arguments(words: &[&str]) -> io::Result<()> {
    // The kernel tells their addresses, counted from after the name, which may contain anything.
    let stat = fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let places: Vec<usize> =
        fields.split_ascii_whitespace().skip(ARGUMENTS_BEGIN).take(4).filter_map(|field| field.parse().ok()).collect();
    let [arguments, arguments_end, environment, environment_end] = places[..] else {
        return Err(io::Error::other("the kernel does not tell where the arguments are"));
    };
    let mut line = words.join("\0").into_bytes();
    for (start, end) in [(arguments, arguments_end), (environment, environment_end)] {
        if start == 0 || end < start {
            return Err(io::Error::other("the kernel does not tell where the arguments are"));
        }
        line.resize(end - start, 0);
        // The kernel reads beyond the command line if its last byte is not zero.
        if let Some(last) = line.last_mut() {
            *last = 0;
        }
        // SAFETY: the kernel put the strings there, in memory that is writable and owned by no value.
        unsafe { ptr::copy_nonoverlapping(line.as_ptr(), ptr::with_exposed_provenance_mut::<u8>(start), line.len()) };
        line.clear();
    }
    Ok(())
}

/// Index of the field after the name in `/proc/self/stat` with the start of the arguments; their end follows, and the
/// environment's start and end.
const ARGUMENTS_BEGIN: usize = 45;

/// Makes the kernel reap dead children, including orphans that are reparented to us.
pub(crate) fn ignore_children() {
    // SAFETY: sets a disposition that is always allowed.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
}

/// Closes every descriptor but the standard streams.
pub(crate) fn close_others() {
    // SAFETY: the caller owns none of them. A kernel that cannot do it leaves them open.
    unsafe { libc::close_range(3, c_uint::MAX, 0) };
}

/// Marks inherited descriptors close-on-exec, so that children do not inherit them.
pub(crate) fn set_inherited_cloexec() {
    // SAFETY: only a flag of descriptors changes. A kernel that cannot do it leaves them as they are.
    unsafe { libc::close_range(3, c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC.cast_signed()) };
}

/// Blocks every signal that can be blocked.
pub(crate) fn block_signals() {
    // SAFETY: a signal set is plain data which `sigfillset` initialises.
    unsafe {
        let mut all: libc::sigset_t = mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, ptr::null_mut());
    }
}

/// Waits until the other end of the socket is closed.
pub(crate) fn wait_for_hangup(socket: BorrowedFd<'_>) {
    loop {
        // Without requested events only a hang-up or an error is reported, not incoming data.
        let mut entry = libc::pollfd { fd: socket.as_raw_fd(), events: 0, revents: 0 };
        // SAFETY: one valid entry.
        if unsafe { libc::poll(&raw mut entry, 1, -1) } > 0 {
            return;
        }
    }
}

/// Ends the process without running any code of the program.
pub(crate) fn exit_now() -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(0) }
}

/// Makes programs that this thread executes keep `CAP_SYS_ADMIN` of its user namespace, although their user is not
/// root.
pub(crate) fn keep_administration() -> io::Result<()> {
    const CAP_SYS_ADMIN: u32 = 21;
    let mut header = Header { version: VERSION_3, pid: 0 };
    let mut sets = [Sets::default(); 2];
    // SAFETY: header and sets have the layout of version 3, which is two sets; both outlive the calls.
    unsafe {
        checked_long(libc::syscall(libc::SYS_capget, &raw mut header, sets.as_mut_ptr()))?;
        sets[0].inheritable |= 1 << CAP_SYS_ADMIN;
        checked_long(libc::syscall(libc::SYS_capset, &raw mut header, sets.as_ptr()))?;
        checked(libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0)).map(drop)
    }
}

/// Returns the position of an entry in an open directory, for [`has_others`]. It must not be the first entry.
pub(crate) fn position_of(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<Option<i64>> {
    let mut bytes = [0_u64; 512];
    // An entry contains the position of the one after it.
    let mut place = None;
    loop {
        let filled = read_entries(dir, &mut bytes)?;
        if filled == 0 {
            return Ok(None);
        }
        let mut at = 0;
        while at < filled {
            // SAFETY: the kernel filled the buffer up to `filled` with whole records; names end with a NUL.
            unsafe {
                let entry = bytes.as_ptr().cast::<u8>().add(at).cast::<libc::dirent64>();
                let found = CStr::from_ptr((&raw const (*entry).d_name).cast()) == name;
                if found {
                    return Ok(place);
                }
                place = Some((*entry).d_off);
                at += usize::from((*entry).d_reclen);
            }
        }
    }
}

/// Returns whether an open directory has entries after the one at a position.
pub(crate) fn has_others(dir: BorrowedFd<'_>, place: i64) -> io::Result<bool> {
    // Room for two entries with short names at least.
    let mut bytes = [0_u64; 16];
    // SAFETY: moves the position of a directory we hold open.
    if unsafe { libc::lseek64(dir.as_raw_fd(), place, libc::SEEK_SET) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let filled = read_entries(dir, &mut bytes)?;
    if filled == 0 {
        return Ok(false);
    }
    // SAFETY: the kernel filled the buffer with whole records, at least one.
    let first = unsafe { usize::from((*bytes.as_ptr().cast::<libc::dirent64>()).d_reclen) };
    Ok(filled > first)
}
