//! A file that holds some space for the journal: it is deleted when the disk is full, so that what runs can still be
//! recorded and deletions can make room, and made again when there is space. It is never read.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use octoflow_model::space::{journal_reserve, submission_floor};
use rustix::fs::{FallocateFlags, fallocate};

use crate::Space;

const FILE: &str = "reserve";

/// How often it is tried to make the file again.
const PAUSE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Reserve {
    data_dir: PathBuf,
    path: PathBuf,
    /// When it is tried next to make the file; `None` when it is there.
    due: Option<Instant>,
}

impl Reserve {
    pub(crate) fn new(data_dir: &Path) -> Self {
        let path = data_dir.join(FILE);
        let due = (!path.exists()).then(Instant::now);
        Self { data_dir: data_dir.to_owned(), path, due }
    }

    /// Gives the space back to the file system. Whether there was any.
    pub(crate) fn release(&mut self) -> bool {
        self.due = Some(Instant::now() + PAUSE);
        fs::remove_file(&self.path).is_ok()
    }

    /// How long until `keep` is to be called, if it is.
    pub(crate) fn wanted_in(&self) -> Option<Duration> {
        self.due.map(|due| due.saturating_duration_since(Instant::now()))
    }

    /// Makes the file when there is room for it beside everything else.
    pub(crate) fn keep(&mut self) {
        self.due = if self.allocate() { None } else { Some(Instant::now() + PAUSE) };
    }

    /// Whether there is nothing left to do.
    fn allocate(&self) -> bool {
        let Ok(space) = Space::of(&self.data_dir) else { return false };
        let size = journal_reserve(space.total);
        if space.free < submission_floor(space.total) + size {
            return false;
        }
        let Ok(file) = File::create(&self.path) else { return false };
        match fallocate(&file, FallocateFlags::empty(), 0, size) {
            Ok(()) => true,
            // A file system that cannot set space aside has no reserve; the thresholds still hold.
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
