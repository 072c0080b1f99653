//! What a commit touched, told to whoever keeps watch: enough to find the thing, never its content, except for what is
//! gone and can no longer be looked up.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use octoflow_model::{Revision, RunId};

use crate::{Error, Object, RunRow};

/// One thing that one commit touched.
#[derive(Clone, Debug)]
pub struct Note {
    /// The commit.
    pub revision: Revision,
    pub what: What,
}

#[derive(Clone, Debug)]
pub enum What {
    /// An object was stored; `new` when there was none before.
    Put {
        kind: String,
        namespace: String,
        name: String,
        new: bool,
    },
    /// An object was deleted; this is what it was.
    Deleted(Arc<Object>),
    NewRun {
        run: RunId,
        kind: String,
        namespace: String,
        name: String,
    },
    /// Facts were added, or its row or its record changed.
    Run(RunId),
    /// A run was deleted; this is its last row.
    DeletedRun(Arc<RunRow>),
}

/// What an observer is told.
#[derive(Clone, Debug)]
pub enum Told {
    /// What one group of commits touched, in order.
    Commits(Vec<Note>),
    /// The database was opened again after a failed write, and stands here. A commit whose outcome was unknown may be in
    /// it and was never told.
    Reopened(Revision),
}

/// Hears every commit in order, on the writer's thread, after it is durable and before whoever asked for it does.
/// While it runs nothing is written, so it must be short.
pub type Observer = Arc<dyn Fn(Told) + Send + Sync>;

/// Hears of every failed write, on the writer's thread, before those whose write it was.
pub type OnFailure = Arc<dyn Fn(Error) + Send + Sync>;

/// Who hears of commits and of failures, once somebody wants to.
#[derive(Clone, Default)]
pub(crate) struct Ears {
    pub(crate) commits: Arc<OnceLock<Observer>>,
    pub(crate) failures: Arc<OnceLock<OnFailure>>,
}

impl Ears {
    pub(crate) fn tell(&self, told: Told) {
        if let Some(observer) = self.commits.get() {
            observer(told);
        }
    }

    pub(crate) fn failed(&self, error: &Error) {
        if let Some(hear) = self.failures.get() {
            hear(error.clone());
        }
    }
}

impl fmt::Debug for Ears {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.commits.get().is_some() { "Ears(listening)" } else { "Ears" })
    }
}
