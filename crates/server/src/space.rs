//! What the operating system gives this process: room on the disk, and how many files may be open.

use std::path::Path;

use rustix::{
    fs::statvfs,
    process::{Resource, Rlimit, getrlimit, setrlimit},
};

/// Bytes that are free where the path is, and bytes there are.
pub(crate) fn of(path: &Path) -> Option<(u64, u64)> {
    let about = statvfs(path).ok()?;
    Some((about.f_bavail.saturating_mul(about.f_frsize), about.f_blocks.saturating_mul(about.f_frsize)))
}

/// Every connection is an open file: asks for as many as this process may have, and says how many that is.
pub(crate) fn open_files() -> Option<u64> {
    let now = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: now.maximum, maximum: now.maximum });
    getrlimit(Resource::Nofile).current
}
