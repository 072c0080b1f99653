//! Errors of the store, worded for the person who has to act on them. Sources are kept behind a shared pointer because
//! one failed sync is reported to every waiting committer.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use octoflow_model::{RunId, Time};
use rusqlite::ErrorCode;

pub(crate) type Cause = Arc<dyn std::error::Error + Send + Sync>;

#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("there is no octoflow database in `{}`: nothing has been run with this data directory yet", data_dir.display())]
    Missing { data_dir: PathBuf },

    /// The directory had a database, and it is missing or empty.
    #[error(
        "the database of the data directory `{}` is lost: {what}, but {proof} [OF1110]. Nothing was changed. Put the file \
         back from a backup, together with its `-wal` file if there is one; or, to begin anew on purpose, move the whole \
         directory away",
        data_dir.display()
    )]
    Lost { data_dir: PathBuf, what: &'static str, proof: String },

    /// The database file itself is damaged: its content cannot be trusted.
    #[error(
        "the database `{}` is damaged: {why} [OF1111]. Nothing more is written to it. Stop octoflow, keep a copy of the \
         file and of its `-wal`, and restore both from a backup; `sqlite3 FILE .recover` may save parts of it; or, to begin \
         anew on purpose, move the whole directory away",
        path.display()
    )]
    Broken { path: PathBuf, why: String },

    /// A write failed. Nothing is written until the database has been reopened, which is retried periodically.
    #[error("{}", unwritable(data_dir, cause, *full))]
    Unwritable { data_dir: PathBuf, cause: String, full: bool },

    /// There is too little free space to accept new runs. Existing ones continue.
    #[error(
        "nothing new is accepted: the file system of the data directory `{}` has only {} MiB left, and the last {} MiB are \
         kept for what is running [OF1113]. Free some space there, or delete finished runs, and try again",
        data_dir.display(), free >> 20, (floor >> 20).max(1)
    )]
    LowSpace { data_dir: PathBuf, free: u64, floor: u64 },

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

    /// Only a writer migrates. A reader that finds an old format reports it, and its caller may open a `Store` first.
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
        source: Arc<io::Error>,
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

    /// The run was deleted or the database reopened while its final record was being written in parts.
    #[error("the parts of the final record of run {run} were discarded; it must be written again")]
    RecordDropped { run: RunId },

    #[error("the facts of run {run} must continue with number {expected}, not {found}")]
    Gap { run: RunId, expected: u64, found: u64 },

    /// Each tick of a schedule is handled once.
    #[error("the time {nominal} of the schedule {uid} was handled before")]
    TickTaken { uid: String, nominal: Time },

    /// The object was changed since it was read: an optimistic concurrency conflict.
    #[error("{kind} `{name}` was changed since it was read")]
    Stale { kind: String, namespace: String, name: String },

    /// The writer has ended because of a bug. Callers may hold state in memory that is ahead of the disk, so none may
    /// continue.
    #[error(
        "nothing more can be written because the writer has failed: {cause}; restart to continue from what is on disk"
    )]
    Poisoned { cause: String },

    #[error("the store is closed")]
    Closed,
}

impl Error {
    /// True if only this batch was refused: nothing of it was written, and the store continues.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::NameTaken { .. }
                | Self::Stale { .. }
                | Self::TickTaken { .. }
                | Self::RunExists { .. }
                | Self::UnknownRun { .. }
                | Self::RunFinished { .. }
                | Self::RecordDropped { .. }
                | Self::Gap { .. }
        )
    }

    /// True if the disk, its file system or the machine prevents writing or reading, so that a retry may help; the
    /// request itself is fine.
    pub fn is_outage(&self) -> bool {
        match self {
            Self::Unwritable { .. } | Self::LowSpace { .. } | Self::File { .. } => true,
            Self::Database { source, .. } => sqlite_code(source).is_some_and(|code| {
                use ErrorCode as Code;
                matches!(
                    code,
                    Code::DiskFull
                        | Code::SystemIoFailure
                        | Code::CannotOpen
                        | Code::ReadOnly
                        | Code::PermissionDenied
                        | Code::OutOfMemory
                        | Code::DatabaseBusy
                        | Code::DatabaseLocked
                        | Code::FileLockingProtocolFailed
                )
            }),
            _ => false,
        }
    }

    /// True if the cause is missing disk space.
    pub fn is_full(&self) -> bool {
        match self {
            Self::Unwritable { full, .. } => *full,
            Self::LowSpace { .. } => true,
            Self::File { source, .. } => is_full(source),
            Self::Database { source, .. } => sqlite_code(source) == Some(ErrorCode::DiskFull),
            _ => false,
        }
    }

    /// True if the database reported that its own structure is damaged.
    pub(crate) fn is_corruption(&self) -> bool {
        match self {
            Self::Broken { .. } => true,
            Self::Database { source, .. } => {
                matches!(sqlite_code(source), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
            }
            _ => false,
        }
    }

    /// Joins the message with those of all its sources, for the one place where sources cannot be passed as values.
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

/// Returns whether the file system or the quota has no space left.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn sqlite_code(source: &Cause) -> Option<ErrorCode> {
    source.downcast_ref::<rusqlite::Error>()?.sqlite_error_code()
}

fn unwritable(data_dir: &Path, cause: &str, full: bool) -> String {
    let advice = if full {
        "free some space there, or raise the quota, and it continues by itself within seconds"
    } else {
        "look at the disk and at the system's log; it is retried every few seconds and continues by itself"
    };
    let dir = data_dir.display();
    format!("the data directory `{dir}` cannot be written: {cause} [OF1112]. What was acknowledged is safe; {advice}")
}

/// Adds what was being done to a database error.
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
