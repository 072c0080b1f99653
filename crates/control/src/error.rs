//! What the controller could not do. A refused command is in here too, because callers meet it at the same place.

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

    /// Not a failure: what was asked for was made before.
    #[error("this was made before, as run {run}")]
    Made { run: RunId },

    #[error(transparent)]
    Refused(#[from] Refusal),

    /// A run cannot be retried or resubmitted as it was asked for.
    #[error(transparent)]
    Again(#[from] octoflow_engine::rerun::Refusal),

    #[error("there is no run {0}")]
    UnknownRun(RunId),

    #[error("the journal of run {run} cannot be read: {why}")]
    Journal { run: RunId, why: String },

    #[error("{what} cannot be used: {why}")]
    Object { what: String, why: String },

    #[error("what the run wanted deleted could not be struck out")]
    Garbage(#[source] std::io::Error),

    #[error(transparent)]
    Log(#[from] octoflow_runtime::logs::Error),

    #[error("a thread could not be started")]
    Thread(#[source] std::io::Error),

    /// A thread of this process ended that must not end; says which and why.
    #[error("{0}; what was acknowledged is safe on disk, start again to go on")]
    Broken(String),

    /// A thread of the controller is gone; what is durable is safe, nothing more can be done here.
    #[error("the engine has stopped; what was acknowledged is safe on disk, start again to go on")]
    Gone,
}

impl Error {
    /// Storage cannot be written or read at present. Nothing is wrong with what was asked for, and it may work later.
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_outage())
    }

    /// Storage has no room left.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_full())
    }
}
