//! Hosts files of tasks: the machine's own lines followed by the task's, one file for all tasks with the same text.
//! Owns the directory `hosts` of the data directory and never touches the machine's own file.

use std::{
    collections::HashSet,
    fs, io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use octoflow_model::{ids::AttemptId, task::Task};
use sha2::{Digest, Sha256};

/// Path of the hosts file on the machine and in every isolated task.
pub(crate) const MACHINE: &str = "/etc/hosts";

/// Environment variable with the path of the task's hosts file.
pub(crate) const VARIABLE: &str = "OCTOFLOW_HOSTS_FILE";

pub(crate) struct Hosts {
    dir: PathBuf,
    machine: PathBuf,
    /// Hosts files in use. Few, and mostly looked up with the very text they have: comparing is cheaper than hashing
    /// long texts.
    known: Mutex<Vec<HostsFile>>,
}

struct HostsFile {
    text: Arc<str>,
    path: PathBuf,
    /// Version of the machine's file that it was made from.
    from: Option<Stamp>,
    users: HashSet<AttemptId>,
}

/// Identity of a file's version: changes when the file is replaced or written to.
type Stamp = (u64, u64, i64, i64);

impl Hosts {
    pub(crate) fn new(data: &Path) -> Self {
        Self { dir: data.join("hosts"), machine: MACHINE.into(), known: Mutex::default() }
    }

    /// Returns the hosts file of a task, written if it is missing or the machine's lines have changed; `None` if the
    /// task wants none.
    pub(crate) fn acquire(&self, attempt: AttemptId, task: &Task) -> Result<Option<PathBuf>, String> {
        let Some(text) = &task.hosts else { return Ok(None) };
        let mut known = self.lock();
        let from = stamp(&self.machine);
        let place = known.iter().position(|kept| Arc::ptr_eq(&kept.text, text) || kept.text == *text);
        let place = place.unwrap_or_else(|| {
            let path = self.dir.join(name(text));
            known.push(HostsFile { text: Arc::clone(text), path, from: None, users: HashSet::new() });
            known.len() - 1
        });
        let kept = &mut known[place];
        if kept.users.is_empty() || kept.from != from {
            self.write(&kept.path, text).map_err(|error| format!("its hosts file could not be written: {error}"))?;
            kept.from = from;
        }
        kept.users.insert(attempt);
        Ok(Some(kept.path.clone()))
    }

    /// Claims files for attempts of an earlier engine, and removes unused ones if no other engine may use them.
    pub(crate) fn adopt(&self, believed: &[(AttemptId, Box<Task>)], alone: bool) {
        for (attempt, task) in believed {
            // A file that cannot be written now may exist already, or the task fails when it starts.
            let _ = self.acquire(*attempt, task);
        }
        if !alone {
            return;
        }
        let known = self.lock();
        let used: HashSet<&Path> = known.iter().map(|kept| kept.path.as_path()).collect();
        for entry in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            if !used.contains(entry.path().as_path()) {
                // A file that stays is found again by the next engine.
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Releases the file of an ended attempt. A file without users is deleted.
    pub(crate) fn release(&self, attempt: AttemptId) {
        let mut known = self.lock();
        if known.is_empty() {
            return;
        }
        known.retain_mut(|kept| {
            if kept.users.remove(&attempt) && kept.users.is_empty() {
                let _ = fs::remove_file(&kept.path);
            }
            !kept.users.is_empty()
        });
    }

    /// Writes the file atomically under its old name: a task that has the old one mounted keeps it.
    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        let mut whole = match fs::read(&self.machine) {
            Ok(own) => own,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        if whole.last().is_some_and(|last| *last != b'\n') {
            whole.push(b'\n');
        }
        whole.extend_from_slice(text.as_bytes());
        if !text.ends_with('\n') {
            whole.push(b'\n');
        }
        fs::create_dir_all(&self.dir)?;
        let fresh = path.with_extension("new");
        fs::write(&fresh, whole)?;
        fs::set_permissions(&fresh, fs::Permissions::from_mode(0o444))?;
        fs::rename(fresh, path)
    }

    /// Locks the table even if it is poisoned: our critical sections leave it whole.
    fn lock(&self) -> MutexGuard<'_, Vec<HostsFile>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the file name by content, so that a later engine finds what an earlier one wrote.
fn name(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn stamp(path: &Path) -> Option<Stamp> {
    let about = fs::metadata(path).ok()?;
    Some((about.ino(), about.len(), about.mtime(), about.mtime_nsec()))
}

#[cfg(test)]
mod tests {
    use octoflow_model::ids::{NodeIx, RunId};

    use super::*;

    fn attempt(task: u32) -> AttemptId {
        AttemptId { run: RunId(1), task: NodeIx(task), attempt: 0 }
    }

    fn task(text: &str) -> Task {
        Task { hosts: Some(text.into()), ..Task::default() }
    }

    fn hosts(dir: &Path) -> Hosts {
        fs::write(dir.join("machine"), "127.0.0.1 localhost").unwrap();
        Hosts { machine: dir.join("machine"), ..Hosts::new(dir) }
    }

    #[test]
    fn one_text_is_one_file_until_nobody_uses_it() {
        let dir = tempfile::tempdir().unwrap();
        let hosts = hosts(dir.path());
        assert_eq!(hosts.acquire(attempt(0), &Task::default()).unwrap(), None);
        let path = hosts.acquire(attempt(1), &task("127.1.0.2 a")).unwrap().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "127.0.0.1 localhost\n127.1.0.2 a\n");
        let first = fs::metadata(&path).unwrap().ino();
        assert_eq!(hosts.acquire(attempt(2), &task("127.1.0.2 a")).unwrap().as_ref(), Some(&path));
        assert_eq!(fs::metadata(&path).unwrap().ino(), first, "it is written once");
        let other = hosts.acquire(attempt(3), &task("127.1.0.2 b")).unwrap().unwrap();
        assert_ne!(path, other);
        hosts.release(attempt(1));
        assert!(path.exists());
        hosts.release(attempt(2));
        assert!(!path.exists() && other.exists());
    }

    #[test]
    fn a_change_of_the_machines_own_lines_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let hosts = hosts(dir.path());
        let path = hosts.acquire(attempt(1), &task("127.1.0.2 a")).unwrap().unwrap();
        fs::write(dir.path().join("machine"), "127.0.0.1 localhost\n10.0.0.1 new\n").unwrap();
        assert_eq!(hosts.acquire(attempt(2), &task("127.1.0.2 a")).unwrap().as_ref(), Some(&path));
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, "127.0.0.1 localhost\n10.0.0.1 new\n127.1.0.2 a\n");
    }

    #[test]
    fn what_an_earlier_engine_left_is_kept_for_its_tasks_and_removed_without_them() {
        let dir = tempfile::tempdir().unwrap();
        let before = hosts(dir.path());
        let used = before.acquire(attempt(1), &task("127.1.0.2 a")).unwrap().unwrap();
        let unused = before.acquire(attempt(2), &task("127.1.0.2 b")).unwrap().unwrap();
        let after = hosts(dir.path());
        let believed = [(attempt(1), Box::new(task("127.1.0.2 a")))];
        after.adopt(&believed, false);
        assert!(used.exists() && unused.exists(), "runs of others may use it");
        after.adopt(&believed, true);
        assert!(used.exists() && !unused.exists());
    }
}
