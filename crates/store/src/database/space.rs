//! Measures the space on the file system of a data directory, and probes whether it can be written. Decides nothing;
//! thresholds are in `octoflow_model::space`.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

use octoflow_model::space::JOURNAL_HEADROOM;
use rustix::fs::statvfs;

/// Size of a file system in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Bytes that this user may still write.
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

/// File that is written to test whether the file system can be written.
const PROBE: &str = "probe";

/// Writes and syncs as much as the journal needs to continue, and removes it. The error is the file system's own, which
/// SQLite does not pass on.
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
    // A probe that stays is overwritten by the next one.
    let _ = fs::remove_file(&path);
    written
}
