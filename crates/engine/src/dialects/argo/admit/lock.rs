//! Checks locks: each has a name, and a semaphore names the source of its limit.

use octoflow_model::argo::{
    Synchronization,
    synchronization::{Mutex, Semaphore},
};

use super::{
    code,
    findings::{At, Findings},
};

/// Checks the locks of a workflow or template. `of` names their place in messages.
pub(super) fn check(report: &mut Findings, at: &At<'_>, of: &str, wanted: &Synchronization) {
    let list = at.key("mutexes");
    for (index, lock) in wanted.mutexes.iter().enumerate() {
        mutex(report, &list.index(index), &format!("{of}.mutexes[{index}]"), lock);
    }
    if let Some(lock) = &wanted.mutex {
        mutex(report, &at.key("mutex"), &format!("{of}.mutex"), lock);
    }
    let list = at.key("semaphores");
    for (index, lock) in wanted.semaphores.iter().enumerate() {
        semaphore(report, &list.index(index), &format!("{of}.semaphores[{index}]"), lock);
    }
    if let Some(lock) = &wanted.semaphore {
        semaphore(report, &at.key("semaphore"), &format!("{of}.semaphore"), lock);
    }
}

fn mutex(report: &mut Findings, at: &At<'_>, of: &str, lock: &Mutex) {
    if lock.name.is_empty() {
        report.error(at, code::REQUIRED, || format!("{of}.name is required"));
    }
}

fn semaphore(report: &mut Findings, at: &At<'_>, of: &str, lock: &Semaphore) {
    match (&lock.config_map_key_ref, &lock.database) {
        (Some(reference), None) => {
            for (field, text) in [("name", &reference.name), ("key", &reference.key)] {
                if text.is_empty() {
                    report.error(&at.key("configMapKeyRef"), code::REQUIRED, || {
                        format!("{of}.configMapKeyRef.{field} is required")
                    });
                }
            }
        }
        (None, Some(database)) => {
            if database.key.is_empty() {
                report.error(&at.key("database"), code::REQUIRED, || format!("{of}.database.key is required"));
            }
        }
        (Some(_), Some(_)) => report.error_with(at, code::MISPLACED, || {
            (
                format!("{of} has both configMapKeyRef and database"),
                Some("keep the one whose limit is meant".to_owned()),
            )
        }),
        (None, None) => report.error_with(at, code::REQUIRED, || {
            (
                format!("{of} has no source for its limit"),
                Some("write `configMapKeyRef: {name: my-config, key: my-limit}`".to_owned()),
            )
        }),
    }
}
