//! Change events: what a commit touched, for observers. An event has enough to look the item up but not its content,
//! except for deleted items, which can no longer be looked up.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use octoflow_model::{Revision, RunId};

use crate::{Error, Object, RunRow};

/// One item that one commit touched.
#[derive(Clone, Debug)]
pub struct ChangeEvent {
    /// Revision of the commit.
    pub revision: Revision,
    pub what: ChangedItem,
}

#[derive(Clone, Debug)]
/// The item that a commit touched, and how.
pub enum ChangedItem {
    /// An object was stored; `new` if there was none before.
    Put {
        kind: String,
        namespace: String,
        name: String,
        new: bool,
    },
    /// An object was deleted; holds its last state.
    Deleted(Arc<Object>),
    NewRun {
        run: RunId,
        kind: String,
        namespace: String,
        name: String,
    },
    /// Facts were appended, or the row or the record changed.
    Run(RunId),
    /// A run was deleted; holds its last row.
    DeletedRun(Arc<RunRow>),
}

/// Notification to an observer.
#[derive(Clone, Debug)]
pub enum Notification {
    /// Items touched by one group of commits, in order.
    Commits(Vec<ChangeEvent>),
    /// The database was reopened after a failed write, at this revision. It may contain a commit whose outcome was
    /// unknown and for which there was no notification.
    Reopened(Revision),
}

/// Callback for every commit, in order. Runs on the writer's thread after the commit is durable and before its
/// committers are notified. Nothing is written while it runs, so it must be short.
pub type Observer = Arc<dyn Fn(Notification) + Send + Sync>;

/// Callback for every failed write. Runs on the writer's thread before the affected committers are notified.
pub type OnFailure = Arc<dyn Fn(Error) + Send + Sync>;

/// The registered callbacks for commits and failures.
#[derive(Clone, Default)]
pub(crate) struct Observers {
    pub(crate) commits: Arc<OnceLock<Observer>>,
    pub(crate) failures: Arc<OnceLock<OnFailure>>,
}

impl Observers {
    pub(crate) fn notify(&self, notification: Notification) {
        if let Some(observer) = self.commits.get() {
            observer(notification);
        }
    }

    pub(crate) fn notify_failure(&self, error: &Error) {
        if let Some(on_failure) = self.failures.get() {
            on_failure(error.clone());
        }
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.commits.get().is_some() { "Observers(listening)" } else { "Observers" })
    }
}
