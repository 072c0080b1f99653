//! The room on the file system of a data directory: how much there is, whether it can be written at all.
//! It decides nothing; thresholds are in `octoflow_model::space`.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

use octoflow_model::space::JOURNAL_HEADROOM;
use rustix::fs::statvfs;

/// What a file system has, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// What this user may still write.
    pub free: u64,
    pub total: u64,
}

impl Space {
    pub fn of(path: &Path) -> io::Result<Self> {
        let about = statvfs(path)?;
        Ok(Self {
            free: about.f_bavail.saturating_mul(about.f_frsize),
            total: about.f_blocks.saturating_mul(about.f_frsize),
        })
    }
}

/// The file that is written to find out whether anything can be.
const PROBE: &str = "probe";

/// Writes and syncs as much as the journal needs to go on, and removes it. The error says what the file system says,
/// which the database does not pass on.
pub(crate) fn probe(data_dir: &Path) -> io::Result<()> {
    let path = data_dir.join(PROBE);
    let write = || {
        let mut file = File::create(&path)?;
        let block = [0xa5; 16 << 10];
        for _ in 0..JOURNAL_HEADROOM / block.len() as u64 {
            file.write_all(&block)?;
        }
        file.sync_all()
    };
    let written = write();
    // A probe that stays is written over by the next.
    let _ = fs::remove_file(&path);
    written
}
