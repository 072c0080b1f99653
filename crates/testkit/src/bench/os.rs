//! The few calls to the system that the standard library does not have. All unsafe code of the testkit is here.
#![expect(unsafe_code, reason = "processor time and orphans of children can only be had from the system itself")]

use std::{
    io,
    time::{Duration, Instant},
};

/// Orphans below this process become its children instead of the machine's.
pub(super) fn adopt_orphans() -> io::Result<()> {
    // SAFETY: prctl with this option takes one number and touches no memory of ours.
    match unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Waits until no child is left. False when some still run after the limit.
pub(super) fn outlive_children(limit: Duration) -> bool {
    let give_up = Instant::now() + limit;
    loop {
        let mut status = 0;
        // SAFETY: waitpid writes to the one number it is given.
        match unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) } {
            -1 => return true,
            0 if Instant::now() > give_up => return false,
            0 => std::thread::sleep(Duration::from_millis(2)),
            _ => {}
        }
    }
}

/// What all children that were waited for have used, and theirs in turn.
pub(super) struct Usage {
    pub cpu: Duration,
    /// The largest of them.
    pub peak_kib: u64,
}

pub(super) fn children() -> io::Result<Usage> {
    // SAFETY: an all-zero rusage is a valid one, and getrusage only writes to it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        if libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage) != 0 {
            return Err(io::Error::last_os_error());
        }
        usage
    };
    let peak_kib = u64::try_from(usage.ru_maxrss).unwrap_or(0);
    Ok(Usage { cpu: span(usage.ru_utime) + span(usage.ru_stime), peak_kib })
}

/// What this thread has used so far.
pub(super) fn thread_cpu() -> io::Result<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime only writes to the one time it is given.
    match unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) } {
        0 => {
            let part = |number: i64| u64::try_from(number).unwrap_or(0);
            Ok(Duration::from_secs(part(time.tv_sec)) + Duration::from_nanos(part(time.tv_nsec)))
        }
        _ => Err(io::Error::last_os_error()),
    }
}

fn span(time: libc::timeval) -> Duration {
    let part = |number: i64| u64::try_from(number).unwrap_or(0);
    Duration::from_secs(part(time.tv_sec)) + Duration::from_micros(part(time.tv_usec))
}
