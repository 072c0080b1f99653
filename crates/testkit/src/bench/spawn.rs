//! The yardsticks: what the machine itself needs to start a process, and to keep a few bytes.

use std::{
    fs::File,
    io::Write,
    path::Path,
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use super::measure::Outcome;

/// The bare command, by the path a shell would find.
pub(super) const TRUE: &str = "/bin/true";

/// Both outputs are piped and read to their end, then the process is waited for: all on `posix_spawn`.
pub(super) fn once() -> Outcome<()> {
    let output = Command::new(TRUE).stdin(Stdio::null()).output()?;
    if output.status.success() { Ok(()) } else { Err(format!("{TRUE} failed").into()) }
}

/// So many, so many at a time.
pub(super) fn crowd(count: u32, in_flight: u32) -> Outcome<()> {
    let left = AtomicU32::new(count);
    let take = || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..in_flight)
            .map(|_| {
                scope.spawn(|| {
                    while take() {
                        once()?;
                    }
                    Ok(())
                })
            })
            .collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().unwrap_or_else(|_| Err("a spawning thread panicked".into())))
    })
}

/// One after the other, each with a write of 4 KiB that must be on disk.
pub(super) fn hops(count: u32, dir: &Path) -> Outcome<Duration> {
    let mut file = File::create(dir.join("hops"))?;
    let page = [0u8; 4096];
    let began = Instant::now();
    for _ in 0..count {
        once()?;
        file.write_all(&page)?;
        file.sync_data()?;
    }
    Ok(began.elapsed())
}
