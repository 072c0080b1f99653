//! Shortages of resources: space, a disk that answers, descriptors, processes, memory. They are temporary, so work that meets one waits and
//! is retried; a task never fails because of one. Knows which errors mean a shortage and how long to wait.

use std::time::Duration;

/// Resource that is exhausted right now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shortage {
    Space,
    /// The disk does not read or write: EIO, as from a path that is being repaired or a volume that is gone.
    Disk,
    Descriptors,
    Processes,
    Memory,
}

impl Shortage {
    fn of_code(code: i32) -> Option<Self> {
        Some(match code {
            libc::ENOSPC | libc::EDQUOT => Self::Space,
            libc::EIO => Self::Disk,
            libc::EMFILE | libc::ENFILE => Self::Descriptors,
            // From clone and from new threads; non-blocking reads handle `WouldBlock` themselves.
            libc::EAGAIN => Self::Processes,
            libc::ENOMEM => Self::Memory,
            _ => return None,
        })
    }

    /// Finds the shortage that a message is about. System errors end with their number when they become text, and many
    /// of ours are passed on as text.
    pub(crate) fn in_text(text: &str) -> Option<Self> {
        let (_, rest) = text.rsplit_once("(os error ")?;
        rest.split_once(')')?.0.parse().ok().and_then(Self::of_code)
    }

    /// Does the same for work with files, and ignores codes that network errors have too.
    pub(crate) fn of_files(text: &str) -> Option<Self> {
        Self::in_text(text).filter(|shortage| matches!(shortage, Self::Space | Self::Disk | Self::Descriptors))
    }

    /// Returns whether it is a shortage of the disk itself, which outputs are marked with.
    pub(crate) fn is_of_the_disk(self) -> bool {
        match self {
            Self::Space | Self::Disk => true,
            Self::Descriptors | Self::Processes | Self::Memory => false,
        }
    }

    /// Returns what to do about it.
    pub(crate) fn advice(self) -> &'static str {
        match self {
            Self::Space => "no space is left on the disk: free some, tasks continue by themselves",
            Self::Disk => {
                "the disk does not read or write: look at it and at the kernel's log, tasks continue by themselves"
            }
            Self::Descriptors => "no file descriptors are left: raise `ulimit -n`, or run fewer tasks at once",
            Self::Processes => "no more processes can be made: raise `ulimit -u` or the pids limit of the cgroup",
            Self::Memory => "the machine has no memory left: free some, tasks continue by themselves",
        }
    }
}

/// Delays that grow from one attempt to the next.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
}

/// First delay, hardly noticeable.
const MIN_PAUSE: Duration = Duration::from_millis(100);
/// Longest delay: work continues within seconds after the cause is gone.
const MAX_PAUSE: Duration = Duration::from_secs(5);

impl Default for Backoff {
    fn default() -> Self {
        Self { next: MIN_PAUSE }
    }
}

impl Backoff {
    pub(crate) fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(MAX_PAUSE);
        pause
    }

    /// Resets the delay after a success.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn shortages_are_told_from_other_errors() {
        let of = |code| Shortage::in_text(&io::Error::from_raw_os_error(code).to_string());
        assert_eq!(of(libc::ENOSPC), Some(Shortage::Space));
        assert_eq!(of(libc::EIO), Some(Shortage::Disk));
        assert_eq!(of(libc::EMFILE), Some(Shortage::Descriptors));
        assert_eq!(of(libc::EACCES), None);
        let text = format!("`/x`: opening it: {}", io::Error::from_raw_os_error(libc::ENFILE));
        assert_eq!(Shortage::in_text(&text), Some(Shortage::Descriptors));
        assert_eq!(Shortage::in_text("no such file (os error 2)"), None);
        assert_eq!(Shortage::in_text("all is well"), None);
    }

    #[test]
    fn pauses_grow_to_a_limit_and_start_again() {
        let mut backoff = Backoff::default();
        let pauses: Vec<Duration> = (0..8).map(|_| backoff.pause()).collect();
        assert!(pauses.is_sorted() && pauses[0] == MIN_PAUSE && pauses[7] == MAX_PAUSE);
        backoff.reset();
        assert_eq!(backoff.pause(), MIN_PAUSE);
    }
}
