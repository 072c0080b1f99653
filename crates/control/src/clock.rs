//! The clocks, and the one place where they are read. [`now`] is the wall clock: people see it, and schedules follow it.
//! It can be set at any moment. [`steady`] is the engine's time: deadlines, pauses and back-off are counted in it. It goes
//! with the clock that runs since the machine booted, so setting the date neither moves nor stops it, and it goes on
//! across restarts. It never goes back.

use std::{
    fs, io,
    path::Path,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use octoflow_model::Time;
pub use octoflow_runtime::clock::now;
use octoflow_runtime::clock::since_boot;

mod timeline;

use timeline::{Reading, Timeline};

/// What is known of the engine's time is kept under this name in the data directory.
const FILE: &str = "clock";

/// Two looks at two clocks that take longer than this were interrupted, and say nothing about how the clocks differ.
const AT_ONCE: Duration = Duration::from_millis(5);

/// A process has one engine's time: several directories that it opens share it.
static TIMELINE: Mutex<Option<Timeline>> = Mutex::new(None);

/// The engine's time.
pub(crate) fn steady() -> Time {
    with(|timeline| timeline.at(micros(since_boot())))
}

/// How many microseconds the wall clock is ahead of the engine's time. It changes only when the clock is set.
pub(crate) fn skew() -> i64 {
    with(|timeline| {
        timeline.observe(&read());
        timeline.ahead()
    })
}

/// How long before this moment of the engine's time something was that carries this date. Of several answers, because the
/// clock was set in between, the shortest: nothing is ever taken to be older than it is.
pub(crate) fn age(stamp: Time, steady: Time) -> Duration {
    with(|timeline| timeline.age(stamp, steady))
}

/// The engine's time goes on where it was when this directory was used last.
pub(crate) fn resume(data_dir: &Path) -> io::Result<()> {
    let path = data_dir.join(FILE);
    let (kept, trouble) = match fs::read(&path) {
        Ok(bytes) => match serde_json::from_slice(&bytes) {
            Ok(kept) => (Some(kept), None),
            Err(error) => (None, Some(io::Error::new(io::ErrorKind::InvalidData, error))),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => (None, None),
        Err(error) => (None, Some(error)),
    };
    {
        let mut own = lock();
        let reading = read();
        let next = Timeline::resume(kept, &reading);
        *own = Some(match own.take() {
            Some(before) => before.joined(next, &reading),
            None => next,
        });
    }
    keep(data_dir)?;
    trouble.map_or(Ok(()), Err)
}

/// Writes the engine's time down. What happens after the last time this was done is missing only when the machine restarts
/// and its wall clock has gone back by then: the engine's time then goes on from here.
pub(crate) fn keep(data_dir: &Path) -> io::Result<()> {
    let text = with(|timeline| {
        timeline.observe(&read());
        serde_json::to_vec(timeline)
    })
    .map_err(io::Error::other)?;
    // Renamed into its place, so that nobody reads half of it.
    let fresh = data_dir.join(format!("{FILE}.new"));
    fs::write(&fresh, text)?;
    fs::rename(fresh, data_dir.join(FILE))
}

fn with<T>(work: impl FnOnce(&mut Timeline) -> T) -> T {
    work(lock().get_or_insert_with(|| Timeline::resume(None, &read())))
}

fn lock() -> MutexGuard<'static, Option<Timeline>> {
    TIMELINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Both clocks at one moment.
fn read() -> Reading {
    const TRIES: usize = 8;
    let boot = boot_id().to_owned();
    let mut since = since_boot();
    for _ in 1..TRIES {
        let wall = now();
        let after = since_boot();
        if after.saturating_sub(since) <= AT_ONCE {
            return Reading { boot, since_boot: micros(since), wall: wall.0 };
        }
        since = after;
    }
    Reading { boot, since_boot: micros(since), wall: now().0 }
}

/// Which start of the machine this is. Nothing when nobody says; then every start of the program counts as another.
fn boot_id() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| {
        let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        id.trim().to_owned()
    })
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}
