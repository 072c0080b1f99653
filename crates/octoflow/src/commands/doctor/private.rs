//! The check of permissions for `octoflow doctor`: owner and mode of the data directory and its files.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use octoflow_store::foreign_owner;

use super::Finding;

const ABOUT: &str = "permissions";

/// Files with private content.
const PRIVATE: [&str; 6] = ["octoflow.db", "octoflow.db-wal", "octoflow.db-shm", "admin.token", "server.sock", "audit"];

pub(super) fn finding(dir: &Path) -> Finding {
    let Ok(about) = fs::metadata(dir) else {
        return Finding::ok(ABOUT, "the data directory will be its owner's only");
    };
    if let Some(owner) = foreign_owner(dir) {
        let found = format!("the data directory belongs to uid {owner}, who can read and change everything in it");
        return Finding::warn(ABOUT, found, "choose one of your own with --data-dir");
    }
    let mode = about.mode() & 0o7777;
    if mode & 0o077 == 0 {
        return Finding::ok(ABOUT, format!("only its owner (uid {}) can enter the data directory", about.uid()));
    }
    let open = PRIVATE.iter().filter_map(|name| {
        let mode = fs::symlink_metadata(dir.join(name)).ok()?.mode() & 0o7777;
        (mode & 0o077 != 0).then(|| format!("{name} {mode:04o}"))
    });
    let open: Vec<String> = open.collect();
    let files = if open.is_empty() { String::new() } else { format!(" and read what is in it ({})", open.join(", ")) };
    let found = format!("others can enter the data directory (mode {mode:04o}){files}");
    Finding::warn(ABOUT, found, "the next `octoflow run` or `octoflow server` makes it private, or: chmod -R go= DIR")
}

#[cfg(test)]
mod tests {
    use std::{fs::Permissions, os::unix::fs::PermissionsExt};

    use super::{super::CheckStatus, *};

    #[test]
    fn a_directory_that_others_can_enter_is_told_with_the_files_they_can_read() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o700)).unwrap();
        assert_eq!(finding(dir.path()).status, CheckStatus::Ok);
        assert_eq!(finding(&dir.path().join("not yet")).status, CheckStatus::Ok);
        fs::write(dir.path().join("octoflow.db"), "").unwrap();
        fs::set_permissions(dir.path().join("octoflow.db"), Permissions::from_mode(0o644)).unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        let found = finding(dir.path());
        assert_eq!(found.status, CheckStatus::Warn);
        assert!(found.found.contains("0755") && found.found.contains("octoflow.db 0644"), "{found:?}");
    }
}
