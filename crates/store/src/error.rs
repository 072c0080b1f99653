//! What can go wrong between us and the disk, in words for the person who has to act on it.
//! Sources are kept behind a shared pointer because one failed sync is told to every waiting caller.

use std::{path::PathBuf, sync::Arc};

use octoflow_model::{RunId, Time};

pub(crate) type Cause = Arc<dyn std::error::Error + Send + Sync>;

#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("there is no octoflow database in `{}`: nothing has been run with this data directory yet", data_dir.display())]
    Missing { data_dir: PathBuf },

    #[error(
        "the data directory `{}` is in use by {}; wait for that process to end, or choose another directory with --data-dir",
        data_dir.display(), holder_text(*holder)
    )]
    Locked { data_dir: PathBuf, holder: Option<u32> },

    #[error(
        "`{}` has format {found}, this version of octoflow understands formats up to {supported}; use a newer octoflow",
        path.display()
    )]
    Newer { path: PathBuf, found: u32, supported: u32 },

    /// Only a writer migrates. A reader that meets an old format says so, and its caller may open a `Store` first.
    #[error(
        "`{}` has format {found} and must be brought to format {supported} before it can be read; any command that writes does it",
        path.display()
    )]
    Older { path: PathBuf, found: u32, supported: u32 },

    #[error("`{}` is not a database of octoflow, and is left as it is; choose another directory with --data-dir", path.display())]
    Foreign { path: PathBuf },

    #[error(
        "the data directory `{}` belongs to uid {owner}, and this is uid {user}; choose one of your own with --data-dir",
        data_dir.display()
    )]
    Owned { data_dir: PathBuf, owner: u32, user: u32 },

    #[error(
        "`{}` (mode {mode:04o}) can be entered by others and holds other things than octoflow's, so it is neither used nor \
         made private; choose a directory of its own with --data-dir, for example `{}`",
        data_dir.display(), data_dir.join("octoflow").display()
    )]
    Shared { data_dir: PathBuf, mode: u32 },

    #[error("the key for Secrets in `{path}` cannot be used: {why}")]
    SecretsKey { path: String, why: String },

    #[error(
        "the Secrets of this data directory are encrypted and no key was given; name its file with --secrets-key-file FILE \
         or OCTOFLOW_SECRETS_KEY_FILE"
    )]
    NoSecretsKey,

    #[error("cannot {doing} `{}`", path.display())]
    File {
        doing: &'static str,
        path: PathBuf,
        #[source]
        source: Arc<std::io::Error>,
    },

    #[error("the database failed to {doing}")]
    Database {
        doing: &'static str,
        #[source]
        source: Cause,
    },

    #[error("{what} in the database is damaged")]
    Damaged {
        what: String,
        #[source]
        source: Cause,
    },

    #[error("a {kind} named `{name}` exists already in namespace `{namespace}` (run {holder})")]
    NameTaken { namespace: String, kind: String, name: String, holder: RunId },

    #[error("run {run} exists already")]
    RunExists { run: RunId },

    #[error("there is no run {run}")]
    UnknownRun { run: RunId },

    #[error("run {run} is finished and takes no more facts")]
    RunFinished { run: RunId },

    #[error("the facts of run {run} must go on with number {expected}, not {found}")]
    Gap { run: RunId, expected: u64, found: u64 },

    /// One time of a schedule is dealt with once.
    #[error("the time {nominal} of the schedule {uid} has been dealt with")]
    TickTaken { uid: String, nominal: Time },

    /// Somebody else was faster.
    #[error("{kind} `{name}` is not what it was when it was read")]
    Stale { kind: String, namespace: String, name: String },

    /// An earlier commit failed, so what callers hold in memory may be ahead of the disk and nobody may go on.
    #[error(
        "nothing more can be written because an earlier write failed: {cause}; restart to go on from what is on disk"
    )]
    Poisoned { cause: String },

    #[error("the store is closed")]
    Closed,
}

impl Error {
    /// True when only the one batch was turned down: nothing of it was written and the store goes on.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::NameTaken { .. }
                | Self::Stale { .. }
                | Self::TickTaken { .. }
                | Self::RunExists { .. }
                | Self::UnknownRun { .. }
                | Self::RunFinished { .. }
                | Self::Gap { .. }
        )
    }

    /// The message with all its sources, for the one place where they cannot travel as values.
    pub(crate) fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut next = std::error::Error::source(self);
        while let Some(source) = next {
            text.push_str(": ");
            text.push_str(&source.to_string());
            next = source.source();
        }
        text
    }
}

/// Attaches what was being done to a database error.
pub(crate) trait Doing<T> {
    fn doing(self, doing: &'static str) -> Result<T, Error>;
}

impl<T> Doing<T> for rusqlite::Result<T> {
    fn doing(self, doing: &'static str) -> Result<T, Error> {
        self.map_err(|source| Error::Database { doing, source: Arc::new(source) })
    }
}

fn holder_text(holder: Option<u32>) -> String {
    match holder {
        Some(pid) => format!("another octoflow process (pid {pid})"),
        None => "another octoflow process".to_owned(),
    }
}
