//! Operating system resources: free disk space and the limit of open files.

use std::path::Path;

use rustix::{
    fs::statvfs,
    process::{Resource, Rlimit, getrlimit, setrlimit},
};

/// Returns the free and total bytes of the file system of a path.
pub(crate) fn of(path: &Path) -> Option<(u64, u64)> {
    let about = statvfs(path).ok()?;
    Some((about.f_bavail.saturating_mul(about.f_frsize), about.f_blocks.saturating_mul(about.f_frsize)))
}

/// Raises the limit of open files to the maximum, since every connection needs one, and returns it.
pub(crate) fn open_files() -> Option<u64> {
    let now = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: now.maximum, maximum: now.maximum });
    getrlimit(Resource::Nofile).current
}
