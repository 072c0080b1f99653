//! Errors of the controller. Refused commands are included, because callers handle them at the same place.

use octoflow_engine::Refusal;
use octoflow_model::RunId;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("the store failed")]
    Store(#[from] octoflow_store::Error),

    #[error("the process runtime could not be opened")]
    Runtime(#[from] octoflow_runtime::process::Error),

    #[error("no random numbers could be drawn from the system")]
    Chance(#[source] std::io::Error),

    #[error("a {kind} named `{name}` exists already in namespace `{namespace}`")]
    NameTaken { namespace: String, kind: String, name: String },

    #[error("the idempotency key `{key}` was used for something else; send another key for another request")]
    KeyTaken { key: String },

    /// Not a failure: the run was made before, for the same idempotency key.
    #[error("this was made before, as run {run}")]
    Made { run: RunId },

    #[error(transparent)]
    Refused(#[from] Refusal),

    /// A run cannot be retried or resubmitted as requested.
    #[error(transparent)]
    Rerun(#[from] octoflow_engine::rerun::RerunRefusal),

    #[error("there is no run {0}")]
    UnknownRun(RunId),

    #[error("the journal of run {run} cannot be read: {why}")]
    Journal { run: RunId, why: String },

    #[error("{what} cannot be used: {why}")]
    Object { what: String, why: String },

    /// A plugin of the feature would have the key of another feature's.
    #[error("Feature `{feature}` cannot be used: {why}")]
    PluginKey { feature: String, why: String },

    #[error("what the run wanted deleted could not be struck out")]
    Garbage(#[source] std::io::Error),

    #[error(transparent)]
    Log(#[from] octoflow_runtime::logs::Error),

    #[error("a thread could not be started")]
    Thread(#[source] std::io::Error),

    /// A thread that must not end has ended; the text says which and why.
    #[error("{0}; what was acknowledged is safe on disk, start again to go on")]
    Broken(String),

    /// A thread of the controller is gone. Durable data is safe, but nothing more can be done in this process.
    #[error("the engine has stopped; what was acknowledged is safe on disk, start again to go on")]
    Gone,
}

impl Error {
    /// Returns true if storage is temporarily unavailable: the request itself is fine and may work later.
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_outage())
    }

    /// Returns true if storage is full.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_full())
    }
}
