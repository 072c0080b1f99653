//! Orphans: processes that outlived their parent inside a task. The kernel reparents them to the spawner, which
//! determines their owner, so that no process outlives its task.

use std::{
    fs,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
};

use octoflow_model::ids::AttemptId;

use super::MARK;
use crate::process::sys;

/// Evidence for the owner of an orphan, strongest first.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Traits {
    /// Pid of the main process that leads its session.
    pub(crate) session: Option<i32>,
    /// Number of its mount namespace.
    pub(crate) namespace: Option<u64>,
    /// Attempt named in its environment, with the spawner that started it.
    pub(crate) marked: Option<(String, AttemptId)>,
}

/// Returns the children that the kernel reparented to the event loop's thread.
pub(crate) fn adopted() -> Vec<i32> {
    let own = std::process::id();
    let children = fs::read_to_string(format!("/proc/self/task/{own}/children"));
    match children {
        Ok(list) => list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect(),
        // A kernel without that list: check every process's parent. That includes children of the spawning threads,
        // which is harmless: their owner is known by their pid.
        Err(_) => processes().filter(|pid| parent_of(*pid) == i32::try_from(own).ok()).collect(),
    }
}

fn processes() -> impl Iterator<Item = i32> {
    let list = fs::read_dir("/proc").ok();
    list.into_iter().flatten().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain anything, so count from its end.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

pub(crate) fn traits_of(pid: i32) -> Traits {
    let namespace = fs::metadata(format!("/proc/{pid}/ns/mnt")).ok().map(|about| about.ino());
    Traits { session: sys::session_of(pid), namespace, marked: mark_of(pid) }
}

fn mark_of(pid: i32) -> Option<(String, AttemptId)> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    environment.split(|byte| *byte == 0).find_map(parse_mark)
}

fn parse_mark(variable: &[u8]) -> Option<(String, AttemptId)> {
    let value = variable.strip_prefix(MARK.as_bytes())?.strip_prefix(b"=")?;
    let (instance, attempt) = std::str::from_utf8(value).ok()?.split_once(':')?;
    Some((instance.to_owned(), attempt.parse().ok()?))
}

/// Kills the processes that a dead spawner left. Its tasks died with it; what they had started may not have.
pub(crate) fn sweep(instance: &str) {
    let own = std::process::id();
    for pid in processes() {
        if u32::try_from(pid) != Ok(own) && mark_of(pid).is_some_and(|(of, _)| of == instance) {
            sys::signal_process(pid, libc::SIGKILL);
        }
    }
}

/// Returns the directories below the work directory that no living or kept attempt needs.
pub(crate) fn abandoned_dirs(work: &std::path::Path, needed: &[std::path::PathBuf]) -> Vec<std::path::PathBuf> {
    let list = fs::read_dir(work).ok();
    list.into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| !needed.iter().any(|kept| kept.as_os_str().as_bytes() == path.as_os_str().as_bytes()))
        .collect()
}

#[cfg(test)]
mod tests {
    use octoflow_model::ids::{NodeIx, RunId};

    use super::*;

    #[test]
    fn a_mark_names_spawner_and_attempt() {
        let attempt = AttemptId { run: RunId(1), task: NodeIx(2), attempt: 3 };
        assert_eq!(parse_mark(b"OCTOFLOW_ATTEMPT=abc:1-2-3"), Some(("abc".to_owned(), attempt)));
        assert_eq!(parse_mark(b"OCTOFLOW_ATTEMPT=abc"), None);
        assert_eq!(parse_mark(b"PATH=/bin"), None);
    }

    #[test]
    fn the_parent_is_found_behind_any_process_name() {
        let own = i32::try_from(std::process::id()).unwrap();
        // Compared with the standard library's own view.
        assert_eq!(parent_of(own), i32::try_from(std::os::unix::process::parent_id()).ok());
    }
}
