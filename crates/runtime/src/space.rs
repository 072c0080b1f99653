//! The free space of a file system, compared with the floor that is reserved for the engine's own records. Logs,
//! artifacts and tasks stop at the floor, so that the journal can still be written.

use std::{fs::File, io, os::fd::AsFd, path::Path};

use octoflow_model::space::task_floor;

use crate::process::sys;

/// A file system, held open so that a check needs no descriptor.
#[derive(Debug)]
pub(crate) struct Space {
    dir: File,
    /// Bytes kept free; by default a share of the file system.
    floor: Option<u64>,
}

/// Result of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Free {
    pub(crate) free: u64,
    pub(crate) floor: u64,
}

impl Space {
    pub(crate) fn of(dir: &Path, floor: Option<u64>) -> io::Result<Self> {
        Ok(Self { dir: File::open(dir)?, floor })
    }

    pub(crate) fn set_floor(&mut self, floor: Option<u64>) {
        self.floor = floor;
    }

    /// Measures the free space; `None` if the file system does not tell, in which case nothing is held back.
    pub(crate) fn measure(&self) -> Option<Free> {
        let (free, total) = sys::space(self.dir.as_fd()).ok()?;
        Some(Free { free, floor: self.floor.unwrap_or_else(|| task_floor(total)) })
    }
}

impl Free {
    pub(crate) fn is_low(self) -> bool {
        self.free < self.floor
    }

    /// Returns whether the free space is well above the floor. Work that was stopped resumes only then: otherwise it
    /// would start and stop with every block.
    pub(crate) fn is_ample(self) -> bool {
        self.free >= self.floor + self.floor / 8
    }

    pub(crate) fn describe(self) -> String {
        let Self { free, floor } = self;
        format!(
            "{} of the data directory's file system are free, {} are kept for the engine's records",
            size(free),
            size(floor)
        )
    }
}

/// Formats a number of bytes for people.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..10_240 => format!("{bytes} B"),
        10_240..10_485_760 => format!("{} KiB", bytes >> 10),
        10_485_760..10_737_418_240 => format!("{} MiB", bytes >> 20),
        _ => format!("{} GiB", bytes >> 30),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_floor_above_what_is_free_is_low_and_one_far_below_is_ample() {
        let dir = tempfile::tempdir().unwrap();
        let look = |floor| Space::of(dir.path(), Some(floor)).unwrap().measure().unwrap();
        assert!(look(u64::MAX / 2).is_low());
        assert!(!look(1).is_low() && look(1).is_ample());
        let by_itself = Space::of(dir.path(), None).unwrap().measure().unwrap();
        assert!(by_itself.floor > 0 && by_itself.floor <= 256 << 20);
        assert_eq!(size(20 << 20), "20 MiB");
    }
}
