//! A file that reserves disk space for the journal. It is deleted when the disk is full, so that running tasks can
//! still be recorded and deletions can free space, and created again when there is space. It is never read.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use octoflow_model::space::{journal_reserve, submission_floor};
use rustix::fs::{FallocateFlags, fallocate};

use crate::Space;

const FILE: &str = "reserve";

/// Interval between attempts to create the file again.
const PAUSE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Reserve {
    data_dir: PathBuf,
    path: PathBuf,
    /// Time of the next attempt to create the file; `None` while it exists.
    due: Option<Instant>,
}

impl Reserve {
    pub(crate) fn new(data_dir: &Path) -> Self {
        let path = data_dir.join(FILE);
        let due = (!path.exists()).then(Instant::now);
        Self { data_dir: data_dir.to_owned(), path, due }
    }

    /// Gives the space back to the file system. Returns whether there was any.
    pub(crate) fn release(&mut self) -> bool {
        self.due = Some(Instant::now() + PAUSE);
        fs::remove_file(&self.path).is_ok()
    }

    /// Returns the time until `keep` is due; `None` if it is not.
    pub(crate) fn wanted_in(&self) -> Option<Duration> {
        self.due.map(|due| due.saturating_duration_since(Instant::now()))
    }

    /// Creates the file if there is enough room.
    pub(crate) fn keep(&mut self) {
        self.due = if self.allocate() { None } else { Some(Instant::now() + PAUSE) };
    }

    /// Returns whether no further attempt is needed.
    fn allocate(&self) -> bool {
        let Ok(space) = Space::of(&self.data_dir) else { return false };
        let size = journal_reserve(space.total);
        if space.free < submission_floor(space.total) + size {
            return false;
        }
        let Ok(file) = File::create(&self.path) else { return false };
        match fallocate(&file, FallocateFlags::empty(), 0, size) {
            Ok(()) => true,
            // A file system that cannot reserve space has no reserve; the thresholds still apply.
            Err(rustix::io::Errno::OPNOTSUPP) => {
                let _ = fs::remove_file(&self.path);
                true
            }
            Err(_) => {
                let _ = fs::remove_file(&self.path);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_is_made_given_back_and_made_again_later() {
        let dir = tempfile::tempdir().unwrap();
        let mut reserve = Reserve::new(dir.path());
        assert_eq!(reserve.wanted_in(), Some(Duration::ZERO));
        reserve.keep();
        assert_eq!(reserve.wanted_in(), None);
        assert!(reserve.release());
        assert!(!dir.path().join(FILE).exists());
        assert!(reserve.wanted_in().is_some());
        assert!(!reserve.release(), "there is nothing left to give back");
        reserve.keep();
        assert_eq!(Reserve::new(dir.path()).wanted_in(), None, "it is found again");
    }
}
