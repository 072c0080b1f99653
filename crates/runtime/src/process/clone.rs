//! Creates a process by `clone(CLONE_VM | CLONE_VFORK)`: the child shares our memory until it execs, so the cost does
//! not depend on our size. The child runs only raw system calls on data prepared before it exists; it must never
//! allocate, lock, panic or return.
#![expect(
    unsafe_code,
    reason = "the child runs on borrowed memory between clone and exec; only raw calls are sound there"
)]

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    io, mem,
    os::fd::{AsRawFd, BorrowedFd, RawFd},
    ptr, thread,
    time::Duration,
};

use super::sys::{capability, checked, pid};

/// What the child does before it becomes the task.
pub(crate) struct Plan<'a> {
    /// Name that the child gives the machine in a namespace of its own, where the kernel lets it.
    pub(crate) hostname: Option<&'a CStr>,
    /// Mount namespace to enter.
    pub(crate) namespace: Option<BorrowedFd<'a>>,
    /// Init process of the PID namespace to create the child in, and a process of our own namespace to return to, if we
    /// may.
    pub(crate) processes: Option<(BorrowedFd<'a>, Option<BorrowedFd<'a>>)>,
    pub(crate) stdin: BorrowedFd<'a>,
    pub(crate) stdout: BorrowedFd<'a>,
    pub(crate) stderr: BorrowedFd<'a>,
    /// True if standard input is a terminal and becomes the controlling one.
    pub(crate) terminal: bool,
    /// Descriptor through which a cgroup is joined.
    pub(crate) group: Option<RawFd>,
    /// Descriptors that the child keeps under their numbers.
    pub(crate) inherited: &'a [RawFd],
    /// Limit of private writable memory in bytes, for the child and each of its children.
    pub(crate) data_limit: Option<u64>,
    /// True if the child gives up the capabilities that lead out of its namespaces.
    pub(crate) confined: bool,
    pub(crate) dir: &'a CStr,
    /// Paths tried in order; the first that exists and may be executed wins.
    pub(crate) programs: &'a [CString],
    pub(crate) args: &'a [CString],
    pub(crate) env: &'a [CString],
}

/// Step at which the child failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Namespace,
    Terminal,
    Streams,
    Directory,
    Memory,
    Privileges,
    Exec,
}

#[derive(Debug)]
pub(crate) enum Failure {
    /// No process could be created.
    Clone(io::Error),
    /// The process was created, failed at a step, and was reaped.
    Child(Step, io::Error),
}

/// Stack of the child's few calls. One per spawning thread, used for one child at a time.
pub(crate) struct Stack(*mut c_void);

/// Room for a handful of small frames, with a wide margin for unoptimised builds.
const STACK_BYTES: usize = 256 * 1024;

impl Stack {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: a fresh anonymous mapping.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                STACK_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(Self(base)) }
    }
}

// SAFETY: the mapping belongs to the owner of the value; nothing about it is tied to a thread.
unsafe impl Send for Stack {}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no child runs on it: `spawn` returns only after the child left our memory.
        unsafe { libc::munmap(self.0, STACK_BYTES) };
    }
}

/// Everything the child reads, as plain pointers, and the two words it writes when it fails.
struct Shared {
    hostname: *const c_char,
    hostname_length: usize,
    namespace: c_int,
    streams: [c_int; 3],
    terminal: bool,
    group: c_int,
    inherited: *const c_int,
    inherited_count: usize,
    data_limit: Option<u64>,
    confined: bool,
    dir: *const c_char,
    programs: *const *const c_char,
    args: *const *const c_char,
    env: *const *const c_char,
    failed: Option<Step>,
    errno: c_int,
}

/// Starts the plan's program in its own session and returns its pid.
///
/// Signals must be blocked in this thread, so that no handler of ours runs inside the child.
pub(crate) fn spawn(plan: &Plan<'_>, stack: &mut Stack) -> Result<i32, Failure> {
    let pointers = |list: &[CString]| -> Vec<*const c_char> {
        list.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
    };
    let (programs, args, env) = (pointers(plan.programs), pointers(plan.args), pointers(plan.env));
    let mut shared = Shared {
        hostname: plan.hostname.map_or(ptr::null(), CStr::as_ptr),
        hostname_length: plan.hostname.map_or(0, |name| name.count_bytes()),
        namespace: plan.namespace.map_or(-1, |fd| fd.as_raw_fd()),
        streams: [plan.stdin.as_raw_fd(), plan.stdout.as_raw_fd(), plan.stderr.as_raw_fd()],
        terminal: plan.terminal,
        group: plan.group.unwrap_or(-1),
        inherited: plan.inherited.as_ptr(),
        inherited_count: plan.inherited.len(),
        data_limit: plan.data_limit,
        confined: plan.confined,
        dir: plan.dir.as_ptr(),
        programs: programs.as_ptr(),
        args: args.as_ptr(),
        env: env.as_ptr(),
        failed: None,
        errno: 0,
    };
    // The exit signal is zero on purpose: a child that dies before exec is invisible to the event loop's wait for
    // any child, so only we collect it, below. Exec turns it into an ordinary child with SIGCHLD.
    let flags = libc::CLONE_VM | libc::CLONE_VFORK;
    if let Some((init, _)) = plan.processes {
        pid::enter(init).map_err(Failure::Clone)?;
    }
    // SAFETY: the stack is ours alone and this thread is suspended until the child execs or exits, so `shared` and
    // everything it points to stay alive and are not touched by two at once.
    let pid = unsafe {
        // One past the end of the mapping, which is where a stack that grows down begins.
        let top = stack.0.add(STACK_BYTES);
        libc::clone(child, top, flags, (&raw mut shared).cast())
    };
    let pid = checked(pid);
    if let Some((_, Some(home))) = plan.processes {
        // This needs a little kernel memory and nothing else; until then this thread must not create a process.
        while pid::enter(home).is_err() {
            thread::sleep(Duration::from_millis(1));
        }
    }
    let pid = pid.map_err(Failure::Clone)?;
    // SAFETY: `shared` is a live local; the child may have written to it behind the compiler's back.
    let (failed, errno) = unsafe { (ptr::read_volatile(&raw const shared.failed), shared.errno) };
    match failed {
        None => Ok(pid),
        Some(step) => {
            // SAFETY: collects exactly the child made above.
            unsafe { libc::waitpid(pid, ptr::null_mut(), libc::__WALL) };
            Err(Failure::Child(step, io::Error::from_raw_os_error(errno)))
        }
    }
}

extern "C" fn child(shared: *mut c_void) -> c_int {
    let shared = shared.cast::<Shared>();
    // SAFETY: called by `clone` with the pointer to `Shared` that `spawn` keeps alive; only raw calls follow.
    unsafe {
        let (step, errno) = become_task(&*shared);
        (*shared).errno = errno;
        ptr::write_volatile(&raw mut (*shared).failed, Some(step));
        libc::_exit(127)
    }
}

/// Turns the child into the task. Returns only on failure.
///
/// # Safety
/// Runs in the child; every pointer in `shared` must be valid and null-terminated.
unsafe fn become_task(shared: &Shared) -> (Step, c_int) {
    // SAFETY: raw calls on prepared data, as promised by the caller.
    unsafe {
        libc::setsid();
        // When the spawner dies, its tasks must not continue unsupervised.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // Joined before the task has any memory of its own.
        if shared.group >= 0 && libc::write(shared.group, c"0".as_ptr().cast(), 1) < 0 {
            return (Step::Memory, errno());
        }
        for index in 0..shared.inherited_count {
            if libc::fcntl(*shared.inherited.add(index), libc::F_SETFD, 0) < 0 {
                return (Step::Streams, errno());
            }
        }
        if shared.namespace >= 0 && libc::setns(shared.namespace, libc::CLONE_NEWNS) < 0 {
            return (Step::Namespace, errno());
        }
        // A name is a convenience: a task that cannot have one of its own sees the machine's.
        if shared.hostname_length > 0 && libc::unshare(libc::CLONE_NEWUTS) == 0 {
            libc::sethostname(shared.hostname, shared.hostname_length);
        }
        for (target, source) in shared.streams.iter().enumerate() {
            if libc::dup2(*source, target as c_int) < 0 {
                return (Step::Streams, errno());
            }
        }
        if shared.terminal && libc::ioctl(0, libc::TIOCSCTTY, 0) < 0 {
            return (Step::Terminal, errno());
        }
        if libc::chdir(shared.dir) < 0 {
            return (Step::Directory, errno());
        }
        if let Some(bytes) = shared.data_limit
            && limit_data(bytes) < 0
        {
            return (Step::Memory, errno());
        }
        // Everything above needs them.
        if shared.confined && capability::give_up() < 0 {
            return (Step::Privileges, errno());
        }
        let mut none: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());

        let mut worst = libc::ENOENT;
        let mut program = shared.programs;
        while !(*program).is_null() {
            libc::execve(*program, shared.args, shared.env);
            match errno() {
                libc::ENOENT | libc::ENOTDIR => {}
                // Keep looking, but remember if something was there (and not merely a directory we may not enter).
                libc::EACCES => {
                    if libc::access(*program, libc::F_OK) == 0 {
                        worst = libc::EACCES;
                    }
                }
                other => return (Step::Exec, other),
            }
            program = program.add(1);
        }
        (Step::Exec, worst)
    }
}

/// Sets the limit of data memory. Limits belong to a process and not to its memory, so ours stay as they are although
/// the child still shares our memory.
///
/// # Safety
/// Runs in the child.
unsafe fn limit_data(bytes: u64) -> c_int {
    // SAFETY: raw calls on a local.
    unsafe {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        if libc::getrlimit(libc::RLIMIT_DATA, &raw mut limit) < 0 {
            return -1;
        }
        // We may have a lower limit ourselves, and only the privileged may raise one.
        limit.rlim_max = limit.rlim_max.min(bytes);
        limit.rlim_cur = limit.rlim_cur.min(limit.rlim_max);
        libc::setrlimit(libc::RLIMIT_DATA, &raw const limit)
    }
}

/// # Safety
/// The location of `errno` is always valid for the running thread.
unsafe fn errno() -> c_int {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, os::fd::AsFd};

    use super::*;

    fn texts(list: &[&str]) -> Vec<CString> {
        list.iter().map(|text| CString::new(*text).unwrap()).collect()
    }

    fn try_spawn(programs: &[&str], dir: &CStr) -> Result<i32, Failure> {
        let null = File::options().read(true).write(true).open("/dev/null").unwrap();
        let plan = Plan {
            hostname: None,
            namespace: None,
            processes: None,
            stdin: null.as_fd(),
            stdout: null.as_fd(),
            stderr: null.as_fd(),
            terminal: false,
            group: None,
            inherited: &[],
            data_limit: None,
            confined: false,
            dir,
            programs: &texts(programs),
            args: &texts(&["true"]),
            env: &[],
        };
        spawn(&plan, &mut Stack::new().unwrap())
    }

    #[test]
    fn the_first_program_that_exists_is_run() {
        let pid = try_spawn(&["/nowhere/true", "/bin/true"], c"/").unwrap();
        // SAFETY: collects the child made above.
        let (collected, status) = unsafe {
            let mut status = 0;
            (libc::waitpid(pid, &raw mut status, 0), status)
        };
        assert_eq!((collected, status), (pid, 0));
    }

    #[test]
    fn a_child_that_cannot_exec_says_where_and_why_and_leaves_nothing_behind() {
        let failure = try_spawn(&["/nowhere/true"], c"/").unwrap_err();
        assert!(matches!(&failure, Failure::Child(Step::Exec, why) if why.raw_os_error() == Some(libc::ENOENT)));
        let failure = try_spawn(&["/bin/true"], c"/nowhere").unwrap_err();
        assert!(matches!(&failure, Failure::Child(Step::Directory, why) if why.raw_os_error() == Some(libc::ENOENT)));
        // SAFETY: asks for any child at all; there must be none.
        assert_eq!(unsafe { libc::waitpid(-1, ptr::null_mut(), libc::WNOHANG | libc::__WALL) }, -1);
    }
}
