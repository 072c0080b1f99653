//! Measures the disk usage of a task: the blocks of everything in its workspace, on the data directory's file system.
//! Links are not followed, other file systems are not entered, and hard-linked files count once.

use std::{
    collections::HashSet,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use octoflow_model::ids::AttemptId;

use super::workers::Key;

/// Disk usage of one task.
pub(crate) struct Usage {
    pub(crate) key: Key,
    pub(crate) attempt: AttemptId,
    pub(crate) bytes: u64,
}

/// Returns the usage of a directory in bytes. What vanishes meanwhile or cannot be inspected does not count.
pub(crate) fn of(dir: &Path) -> u64 {
    let Ok(device) = fs::symlink_metadata(dir).map(|about| about.dev()) else { return 0 };
    let (mut bytes, mut linked): (u64, HashSet<u64>) = (0, HashSet::new());
    let mut left: Vec<PathBuf> = vec![dir.to_owned()];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let Ok(about) = entry.metadata() else { continue };
            if about.dev() != device || (about.nlink() > 1 && !about.is_dir() && !linked.insert(about.ino())) {
                continue;
            }
            bytes = bytes.saturating_add(about.blocks().saturating_mul(512));
            if about.is_dir() {
                left.push(entry.path());
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_below_counts_once_and_holes_do_not() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b");
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("file"), vec![1; 1 << 20]).unwrap();
        let before = of(dir.path());
        assert!((1 << 20..2 << 20).contains(&before), "{before}");
        fs::hard_link(deep.join("file"), dir.path().join("again")).unwrap();
        fs::File::create(dir.path().join("hole")).unwrap().set_len(1 << 30).unwrap();
        std::os::unix::fs::symlink("/", dir.path().join("link")).unwrap();
        let after = of(dir.path());
        assert!(after - before < 1 << 16, "{before} {after}");
        assert_eq!(of(Path::new("/nowhere")), 0);
    }
}
