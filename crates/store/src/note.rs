//! What a commit touched, told to whoever keeps watch: enough to find the thing, never its content, except for what is
//! gone and can no longer be looked up.

use std::{fmt, sync::Arc};

use octoflow_model::{Revision, RunId};

use crate::{Object, RunRow};

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

/// Hears every commit in order, on the writer's thread, after it is durable and before whoever asked for it does.
/// While it runs nothing is written, so it must be short.
pub type Observer = Arc<dyn Fn(Vec<Note>) + Send + Sync>;

/// Who hears of commits, once somebody wants to.
#[derive(Clone, Default)]
pub(crate) struct Ears(pub(crate) Arc<std::sync::OnceLock<Observer>>);

impl fmt::Debug for Ears {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.get().is_some() { "Ears(listening)" } else { "Ears" })
    }
}
