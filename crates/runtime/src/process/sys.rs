//! System calls that the process runtime needs and the standard library does not offer, each behind a safe function.
//! Nothing here decides anything; every function is one call, its arguments checked by types.
#![expect(unsafe_code, reason = "this file is the border to the kernel; every call states why it is sound")]

pub(crate) mod capability;
pub(crate) mod dir;
pub(crate) mod pid;
mod socket;

use std::{
    ffi::{CStr, OsString, c_int, c_long},
    io, mem,
    os::{
        fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
        unix::ffi::OsStringExt,
    },
    path::PathBuf,
    ptr,
    time::Duration,
};

pub(crate) use crate::clock::now;

pub(crate) use self::socket::{has_hung_up, peer_pid, receive_with, send_with, wait_for_room};

/// Turns -1 and `errno` into a `Result`.
pub(crate) fn checked(answer: c_int) -> io::Result<c_int> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

fn checked_long(answer: c_long) -> io::Result<c_long> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

fn owned(answer: c_long) -> io::Result<OwnedFd> {
    let fd = RawFd::try_from(checked_long(answer)?).expect("a file descriptor fits its type");
    // SAFETY: the kernel just made this descriptor for us; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Returns the time since boot, including suspend. This clock cannot be set.
pub(crate) fn since_boot() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` has room for what the kernel writes, and this clock exists since Linux 2.6.39.
    let read = unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut time) };
    assert_eq!(read, 0, "this kernel has no boot clock");
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Returns a pipe whose reading end is non-blocking; the task gets the writing end, which behaves as usual.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for the two descriptors the kernel writes.
    checked(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    // SAFETY: both descriptors are new and ours.
    let (read, write) = unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };
    set_nonblocking(&read)?;
    Ok((read, write))
}

pub(crate) fn set_nonblocking(fd: &OwnedFd) -> io::Result<()> {
    // SAFETY: plain flag change on a descriptor we hold.
    checked(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) }).map(drop)
}

/// Requests a larger pipe; a refusal only costs speed, so it is not an error.
pub(crate) fn widen_pipe(fd: &OwnedFd, bytes: c_int) {
    // SAFETY: changes the size of a pipe we hold.
    unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETPIPE_SZ, bytes) };
}

pub(crate) fn read(fd: &OwnedFd, into: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the buffer is valid for the length given.
    let got = unsafe { libc::read(fd.as_raw_fd(), into.as_mut_ptr().cast(), into.len()) };
    usize::try_from(got).map_err(|_| io::Error::last_os_error())
}

/// Returns the two ends of a terminal: the one we read, and the one for the task's standard streams.
pub(crate) fn terminal() -> io::Result<(OwnedFd, OwnedFd)> {
    // SAFETY: opens the multiplexer; the flags are constants.
    let ours = owned(c_long::from(unsafe {
        libc::open(c"/dev/ptmx".as_ptr(), libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC | libc::O_NONBLOCK)
    }))?;
    let unlock: c_int = 0;
    // SAFETY: the ioctl reads one int.
    checked(unsafe { libc::ioctl(ours.as_raw_fd(), libc::TIOCSPTLCK, &unlock) })?;
    // SAFETY: the ioctl takes open flags by value and answers with a new descriptor.
    let theirs = owned(c_long::from(unsafe {
        libc::ioctl(ours.as_raw_fd(), libc::TIOCGPTPEER, libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC)
    }))?;
    Ok((ours, theirs))
}

/// A set of descriptors to wait on, each with a token chosen by the caller.
pub(crate) struct Epoll(OwnedFd);

pub(crate) const NO_EVENT: libc::epoll_event = libc::epoll_event { events: 0, u64: 0 };

impl Epoll {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: makes a new descriptor.
        Ok(Self(owned(c_long::from(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }))?))
    }

    fn control(&self, verb: c_int, fd: RawFd, interest: c_int, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: interest.cast_unsigned(), u64: token };
        // SAFETY: the event outlives the call.
        checked(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), verb, fd, &raw mut event) }).map(drop)
    }

    pub(crate) fn add(&self, fd: &impl AsRawFd, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd.as_raw_fd(), libc::EPOLLIN, token)
    }

    /// Removes a descriptor. Must be called before it is closed: a process that is just being created may hold a copy
    /// for a moment longer, and until then the kernel would continue to report it.
    pub(crate) fn remove(&self, fd: &impl AsRawFd) {
        // Fails only if the descriptor was never added, which is fine.
        let _ = self.control(libc::EPOLL_CTL_DEL, fd.as_raw_fd(), 0, 0);
    }

    pub(crate) fn also_writable(&self, fd: &impl AsRawFd, token: u64, wanted: bool) -> io::Result<()> {
        let interest = if wanted { libc::EPOLLIN | libc::EPOLLOUT } else { libc::EPOLLIN };
        self.control(libc::EPOLL_CTL_MOD, fd.as_raw_fd(), interest, token)
    }

    pub(crate) fn wait<'a>(
        &self,
        events: &'a mut [libc::epoll_event],
        timeout: Option<Duration>,
    ) -> io::Result<&'a [libc::epoll_event]> {
        // Rounded up, so that a timer that is due is really due after the wait.
        let millis = timeout.map_or(-1, |span| c_int::try_from(span.as_micros().div_ceil(1000)).unwrap_or(c_int::MAX));
        let room = c_int::try_from(events.len()).unwrap_or(c_int::MAX);
        // SAFETY: `events` has `room` entries.
        match checked(unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), room, millis) }) {
            Ok(count) => Ok(&events[..usize::try_from(count).expect("a count is not negative")]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(&[]),
            Err(error) => Err(error),
        }
    }
}

/// An eventfd with which other threads wake the event loop.
pub(crate) struct Waker(OwnedFd);

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: makes a new descriptor.
        Ok(Self(owned(c_long::from(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) }))?))
    }

    pub(crate) fn wake(&self) {
        let one: u64 = 1;
        // SAFETY: an eventfd takes exactly eight bytes. It can only fail if it is signalled already.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    pub(crate) fn clear(&self) {
        let mut count: u64 = 0;
        // SAFETY: an eventfd gives exactly eight bytes.
        unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), 8) };
    }
}

impl AsRawFd for Waker {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Blocks every signal in this thread (and threads created later) and returns the two relevant ones as a descriptor.
pub(crate) fn signals_as_descriptor() -> io::Result<OwnedFd> {
    // SAFETY: signal sets are plain data which `sigemptyset`/`sigfillset` initialise.
    unsafe {
        let mut all: libc::sigset_t = mem::zeroed();
        libc::sigfillset(&raw mut all);
        checked(libc::sigprocmask(libc::SIG_SETMASK, &raw const all, ptr::null_mut()))?;
        let mut ours: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut ours);
        libc::sigaddset(&raw mut ours, libc::SIGCHLD);
        libc::sigaddset(&raw mut ours, libc::SIGTERM);
        owned(c_long::from(libc::signalfd(-1, &raw const ours, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)))
    }
}

/// Returns the next pending signal, if there is one.
pub(crate) fn next_signal(signals: &OwnedFd) -> Option<c_int> {
    let size = size_of::<libc::signalfd_siginfo>();
    let mut info = mem::MaybeUninit::<libc::signalfd_siginfo>::zeroed();
    // SAFETY: the buffer has the size of the record the kernel writes, and zeroes are a valid record.
    unsafe {
        let got = libc::read(signals.as_raw_fd(), info.as_mut_ptr().cast(), size);
        (usize::try_from(got) == Ok(size)).then(|| info.assume_init().ssi_signo.cast_signed())
    }
}

/// Resets every signal that a task could inherit as ignored to its default, including `SIGPIPE` of the Rust runtime.
pub(crate) fn reset_dispositions() {
    for signal in 1..=64 {
        // SAFETY: setting the default disposition is always allowed or refused without effect.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Makes this process inherit the orphans of its descendants.
pub(crate) fn become_subreaper() -> io::Result<()> {
    // SAFETY: a flag of this process.
    checked(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }).map(drop)
}

/// Sets the usual umask, so that files of tasks get the expected modes, whatever mask the engine uses for its own
/// files.
pub(crate) fn set_usual_umask() {
    // SAFETY: no memory involved, and it cannot fail.
    unsafe { libc::umask(0o022) };
}

pub(crate) fn new_session() {
    // SAFETY: no memory involved. It fails only when we already lead a group, which is just as good.
    unsafe { libc::setsid() };
}

/// Creates an unnamed file in memory that exists as long as it is open.
pub(crate) fn memory_file(name: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: the name outlives the call, which makes a new descriptor.
    owned(c_long::from(unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) }))
}

/// Replaces standard input by `/dev/null`.
pub(crate) fn close_stdin() -> io::Result<()> {
    let null = std::fs::File::open("/dev/null")?;
    // SAFETY: both descriptors are open; whatever was standard input is closed by it.
    checked(unsafe { libc::dup2(null.as_raw_fd(), 0) }).map(drop)
}

pub(crate) fn effective_uid() -> u32 {
    // SAFETY: always succeeds.
    unsafe { libc::geteuid() }
}

pub(crate) fn effective_gid() -> u32 {
    // SAFETY: always succeeds.
    unsafe { libc::getegid() }
}

/// An ended child that was not reaped yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dead {
    pub(crate) pid: i32,
    pub(crate) how: How,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Exited(i32),
    Signalled(i32),
}

/// Returns the next dead child of any thread without reaping it.
pub(crate) fn peek_dead() -> Option<Dead> {
    // SAFETY: zeroes are a valid record, and the kernel fills it.
    let info = unsafe {
        let mut info: libc::siginfo_t = mem::zeroed();
        checked(libc::waitid(libc::P_ALL, 0, &raw mut info, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT)).ok()?;
        info
    };
    // SAFETY: for a child's record these fields are the ones the kernel wrote (or zero when there was no child).
    let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
    if pid == 0 {
        return None;
    }
    let how = if info.si_code == libc::CLD_EXITED { How::Exited(status) } else { How::Signalled(status) };
    Some(Dead { pid, how })
}

pub(crate) fn reap(pid: i32) {
    // SAFETY: collects one child; no status is written.
    unsafe { libc::waitpid(pid, ptr::null_mut(), libc::WNOHANG) };
}

/// Returns whether this very thread is the parent of any process. The event loop never creates children itself, so they
/// are orphans of a task that the kernel reparented to us.
pub(crate) fn has_adopted_children() -> bool {
    // SAFETY: zeroes are a valid record.
    unsafe {
        let mut info: libc::siginfo_t = mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WNOTHREAD;
        libc::waitid(libc::P_ALL, 0, &raw mut info, flags) == 0
    }
}

pub(crate) fn signal_process(pid: i32, signal: c_int) {
    assert!(pid > 1, "a signal to pid {pid} would hit more than one process");
    // SAFETY: no memory involved; a process that is gone is not an error for us.
    unsafe { libc::kill(pid, signal) };
}

pub(crate) fn signal_group(group: i32, signal: c_int) {
    assert!(group > 1, "a signal to group {group} would hit every process");
    // SAFETY: as above.
    unsafe { libc::kill(-group, signal) };
}

pub(crate) fn session_of(pid: i32) -> Option<i32> {
    // SAFETY: no memory involved.
    checked(unsafe { libc::getsid(pid) }).ok()
}

/// Takes an exclusive lock on the open file description, which ends with it.
pub(crate) fn try_lock(file: &impl AsRawFd) -> io::Result<bool> {
    // SAFETY: no memory involved.
    match checked(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    }
}

/// Restrictions of `openat2`; without these a link inside the tree could lead out of it.
pub(crate) const INSIDE: u64 = libc::RESOLVE_IN_ROOT | libc::RESOLVE_NO_MAGICLINKS;

pub(crate) fn open_inside(root: BorrowedFd<'_>, path: &CStr, flags: c_int, mode: u32) -> io::Result<OwnedFd> {
    // SAFETY: zeroes are a valid `open_how`; the struct and the path outlive the call.
    unsafe {
        let mut how: libc::open_how = mem::zeroed();
        how.flags = u64::from((flags | libc::O_CLOEXEC).cast_unsigned());
        how.mode = u64::from(mode);
        how.resolve = INSIDE;
        owned(libc::syscall(
            libc::SYS_openat2,
            root.as_raw_fd(),
            path.as_ptr(),
            &raw const how,
            size_of::<libc::open_how>(),
        ))
    }
}

pub(crate) fn open_at(dir: BorrowedFd<'_>, name: &CStr, flags: c_int, mode: u32) -> io::Result<OwnedFd> {
    // SAFETY: the path outlives the call.
    owned(c_long::from(unsafe { libc::openat(dir.as_raw_fd(), name.as_ptr(), flags | libc::O_CLOEXEC, mode) }))
}

pub(crate) fn make_dir_at(dir: BorrowedFd<'_>, name: &CStr, mode: u32) -> io::Result<()> {
    // SAFETY: the path outlives the call.
    checked(unsafe { libc::mkdirat(dir.as_raw_fd(), name.as_ptr(), mode) }).map(drop)
}

pub(crate) fn link_at(dir: BorrowedFd<'_>, name: &CStr, target: &CStr) -> io::Result<()> {
    // SAFETY: both paths outlive the call.
    checked(unsafe { libc::symlinkat(target.as_ptr(), dir.as_raw_fd(), name.as_ptr()) }).map(drop)
}

/// Returns the target of a link that is open as a path.
pub(crate) fn read_link(link: BorrowedFd<'_>) -> io::Result<PathBuf> {
    let mut target = vec![0; libc::PATH_MAX as usize];
    // SAFETY: the buffer is valid for the length given; an empty path means the descriptor itself.
    let got = unsafe { libc::readlinkat(link.as_raw_fd(), c"".as_ptr(), target.as_mut_ptr().cast(), target.len()) };
    target.truncate(usize::try_from(got).map_err(|_| io::Error::last_os_error())?);
    Ok(PathBuf::from(OsString::from_vec(target)))
}

pub(crate) fn remove_at(dir: BorrowedFd<'_>, name: &CStr, directory: bool) -> io::Result<()> {
    let flags = if directory { libc::AT_REMOVEDIR } else { 0 };
    // SAFETY: the path outlives the call.
    checked(unsafe { libc::unlinkat(dir.as_raw_fd(), name.as_ptr(), flags) }).map(drop)
}

/// Returns the type of the file system that an open file is on, as the kernel's magic number.
pub(crate) fn file_system(fd: BorrowedFd<'_>) -> io::Result<i64> {
    // SAFETY: zeroes are a valid record the kernel fills.
    unsafe {
        let mut about: libc::statfs = mem::zeroed();
        checked(libc::fstatfs(fd.as_raw_fd(), &raw mut about))?;
        Ok(about.f_type)
    }
}

/// Returns the free and total bytes of a file system, as an ordinary user may use them.
pub(crate) fn space(fd: BorrowedFd<'_>) -> io::Result<(u64, u64)> {
    // SAFETY: the kernel fills a local.
    unsafe {
        let mut about: libc::statvfs = mem::zeroed();
        checked(libc::fstatvfs(fd.as_raw_fd(), &raw mut about))?;
        Ok((about.f_bavail.saturating_mul(about.f_frsize), about.f_blocks.saturating_mul(about.f_frsize)))
    }
}

/// Returns the limit of descriptors of this process. Read once; it does not change later.
pub(crate) fn descriptor_limit() -> u64 {
    static LIMIT: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    *LIMIT.get_or_init(|| {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the kernel fills a local.
        match checked(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) }) {
            Ok(_) => limit.rlim_cur,
            Err(_) => u64::MAX,
        }
    })
}

/// Namespaces and mounts.
pub(crate) mod ns {
    use super::{AsRawFd, BorrowedFd, CStr, OwnedFd, c_int, checked, checked_long, io, mem, owned, ptr};

    pub(crate) fn unshare(flags: c_int) -> io::Result<()> {
        // SAFETY: changes what this thread shares; no memory involved.
        checked(unsafe { libc::unshare(flags) }).map(drop)
    }

    pub(crate) fn enter_mounts(namespace: BorrowedFd<'_>) -> io::Result<()> {
        // SAFETY: as above.
        checked(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNS) }).map(drop)
    }

    pub(crate) fn mount(
        source: &CStr,
        target: &CStr,
        kind: Option<&CStr>,
        flags: u64,
        options: &CStr,
    ) -> io::Result<()> {
        let kind = kind.map_or(ptr::null(), CStr::as_ptr);
        // SAFETY: all strings outlive the call.
        checked(unsafe { libc::mount(source.as_ptr(), target.as_ptr(), kind, flags, options.as_ptr().cast()) })
            .map(drop)
    }

    /// Returns a detached mount of a new file system.
    pub(crate) fn new_mount(kind: &CStr, attributes: u64) -> io::Result<OwnedFd> {
        const FSOPEN_CLOEXEC: c_int = 1;
        const FSCONFIG_CMD_CREATE: c_int = 6;
        const FSMOUNT_CLOEXEC: c_int = 1;
        let nothing = ptr::null::<libc::c_char>();
        // SAFETY: the name outlives the call; unused arguments are null as the command wants; answers are new
        // descriptors.
        unsafe {
            let context = owned(libc::syscall(libc::SYS_fsopen, kind.as_ptr(), FSOPEN_CLOEXEC))?;
            let raw = context.as_raw_fd();
            checked_long(libc::syscall(libc::SYS_fsconfig, raw, FSCONFIG_CMD_CREATE, nothing, nothing, 0))?;
            owned(libc::syscall(libc::SYS_fsmount, raw, FSMOUNT_CLOEXEC, attributes))
        }
    }

    /// Returns a detached copy of the mount below `path`, to be attached elsewhere, perhaps in another namespace.
    pub(crate) fn detached_copy(dir: BorrowedFd<'_>, path: &CStr, recursive: bool) -> io::Result<OwnedFd> {
        let flags = libc::OPEN_TREE_CLONE
            | libc::OPEN_TREE_CLOEXEC
            | libc::AT_EMPTY_PATH.cast_unsigned()
            | if recursive { libc::AT_RECURSIVE.cast_unsigned() } else { 0 };
        // SAFETY: the path outlives the call; the answer is a new descriptor.
        owned(unsafe { libc::syscall(libc::SYS_open_tree, dir.as_raw_fd(), path.as_ptr(), flags) })
    }

    pub(crate) fn make_read_only(mount: BorrowedFd<'_>, recursive: bool) -> io::Result<()> {
        let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
        // SAFETY: zeroes are a valid record; it and the empty path outlive the call.
        unsafe {
            let mut wanted: libc::mount_attr = mem::zeroed();
            wanted.attr_set = libc::MOUNT_ATTR_RDONLY;
            checked_long(libc::syscall(
                libc::SYS_mount_setattr,
                mount.as_raw_fd(),
                c"".as_ptr(),
                flags,
                &raw const wanted,
                size_of::<libc::mount_attr>(),
            ))
            .map(drop)
        }
    }

    /// Attaches a detached mount on top of the file or directory `target`.
    pub(crate) fn attach(mount: BorrowedFd<'_>, target: BorrowedFd<'_>) -> io::Result<()> {
        /// `MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH`
        const BOTH_BY_DESCRIPTOR: c_int = 0x4 | 0x40;
        // SAFETY: empty paths, both ends named by descriptor.
        checked_long(unsafe {
            libc::syscall(
                libc::SYS_move_mount,
                mount.as_raw_fd(),
                c"".as_ptr(),
                target.as_raw_fd(),
                c"".as_ptr(),
                BOTH_BY_DESCRIPTOR,
            )
        })
        .map(drop)
    }

    /// Makes the current directory the root of this namespace and drops the old root with everything on it.
    pub(crate) fn pivot_here() -> io::Result<()> {
        // SAFETY: constant paths; affects this thread's namespace only.
        unsafe {
            checked_long(libc::syscall(libc::SYS_pivot_root, c".".as_ptr(), c".".as_ptr()))?;
            checked(libc::umount2(c".".as_ptr(), libc::MNT_DETACH))?;
            checked(libc::chdir(c"/".as_ptr())).map(drop)
        }
    }

    pub(crate) fn change_dir(path: &CStr) -> io::Result<()> {
        // SAFETY: the path outlives the call.
        checked(unsafe { libc::chdir(path.as_ptr()) }).map(drop)
    }

    /// Makes an open directory this thread's root and current directory.
    pub(crate) fn root_at(dir: BorrowedFd<'_>) -> io::Result<()> {
        // SAFETY: constant path, descriptor we hold.
        unsafe {
            checked(libc::fchdir(dir.as_raw_fd()))?;
            checked(libc::chroot(c".".as_ptr())).map(drop)
        }
    }

    pub(crate) fn set_attribute(path: &CStr, name: &CStr, value: &[u8]) -> io::Result<()> {
        // SAFETY: strings and value outlive the call.
        checked(unsafe { libc::lsetxattr(path.as_ptr(), name.as_ptr(), value.as_ptr().cast(), value.len(), 0) })
            .map(drop)
    }

    /// Returns whether the mount table behind an open `mountinfo` changed since the last call.
    pub(crate) fn mounts_changed(mountinfo: BorrowedFd<'_>) -> bool {
        let mut entry = libc::pollfd { fd: mountinfo.as_raw_fd(), events: libc::POLLPRI, revents: 0 };
        // SAFETY: one valid entry.
        unsafe { libc::poll(&raw mut entry, 1, 0) != 0 }
    }
}
