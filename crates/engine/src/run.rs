//! A run of any dialect, for callers that must not know which one it is. Only delegates.

pub mod effect;
pub mod explain;
pub mod follow;
pub mod head;
pub(crate) mod life;
pub(crate) mod mark;
pub(crate) mod placement;
pub mod plan;
pub(crate) mod record;
pub mod rerun;
pub mod view;

use std::{
    any::Any,
    fmt,
    ops::{Deref, DerefMut},
};

use octoflow_model::{RunId, Submission, Time, plugin::LifeState};
use serde_json::Value;
use thiserror::Error;

use crate::{
    dialects::dialect::{self, DialectRun, Program},
    kinds::Kind,
};

/// A run of any dialect.
pub struct Run {
    inner: Box<dyn DialectRun>,
    /// The number of states that it has entered (see [`life`]).
    lived: u32,
}

/// Why a run cannot be created of a submission, or restored from a journal. A retry never helps.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum OpenError {
    #[error("the journal of run {0} does not begin with its submission")]
    NoSubmission(RunId),
    /// A newer version may be able to open the run.
    #[error(
        "it is a `{kind}`, a kind of run that this version does not know: a newer version of octoflow has written it; \
         start that version, or a newer one, to go on with this run"
    )]
    UnknownKind { kind: String },
    /// The manifest does not compile; an admitted one always does.
    #[error("{0}")]
    Invalid(String),
}

/// Serializes a manifest. Faster than its `Display`.
pub(crate) fn written(manifest: &Value) -> Box<str> {
    serde_json::to_string(manifest).expect("a value can be written down").into()
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind().noun, self.id())
    }
}

impl Deref for Run {
    type Target = dyn DialectRun;

    fn deref(&self) -> &Self::Target {
        &*self.inner
    }
}

impl DerefMut for Run {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut *self.inner
    }
}

impl Run {
    pub(crate) fn new(run: impl DialectRun) -> Self {
        let mut run = Self { inner: Box::new(run), lived: 0 };
        run.lived = life::at_first(&run).count() as u32;
        run
    }

    /// Returns the states that it enters with its submission, and when.
    pub(crate) fn at_first(&self) -> Vec<(LifeState, Time)> {
        life::at_first(self).map(|state| (state, self.created())).collect()
    }

    /// Returns the number of states that it has entered. Each has a number of its own, from 1, which never changes.
    pub fn lived(&self) -> u32 {
        self.lived
    }

    pub(crate) fn set_lived(&mut self, count: u32) {
        self.lived = count;
    }

    /// Creates a run of a submission; the manifest names its kind.
    pub fn open(id: RunId, submission: &Submission) -> Result<Self, OpenError> {
        let manifest = &submission.manifest;
        if dialect::of(manifest).is_err() {
            return Err(OpenError::UnknownKind { kind: manifest["kind"].as_str().unwrap_or_default().to_owned() });
        }
        let program = Program::compile(manifest, &submission.stored).map_err(OpenError::Invalid)?;
        Ok(Self::with(id, submission, program))
    }

    /// Creates a run of a submission whose manifest was compiled before.
    pub(crate) fn with(id: RunId, submission: &Submission, program: Program) -> Self {
        program.0.open(id, submission)
    }

    /// Returns the run as its dialect's type; for code of that dialect.
    pub fn of<R: DialectRun>(&self) -> Option<&R> {
        let run: &dyn Any = &*self.inner;
        run.downcast_ref()
    }

    pub fn into_inner<R: DialectRun>(self) -> Option<R> {
        let run: Box<dyn Any> = self.inner;
        run.downcast().ok().map(|run| *run)
    }

    pub fn kind(&self) -> &'static Kind {
        self.dialect().kind
    }

    pub fn name(&self) -> &str {
        &self.head().name
    }

    pub fn namespace(&self) -> &str {
        &self.head().namespace
    }

    pub fn uid(&self) -> &str {
        &self.head().uid
    }

    pub fn created(&self) -> Time {
        self.head().created
    }

    pub fn parent(&self) -> Option<RunId> {
        self.head().parent
    }

    /// Renders the object of the run.
    pub fn object(&self) -> Value {
        self.object_of(self.manifest())
    }

    /// Returns when it expires after its end, in the engine's time; `None`: never.
    pub fn expires(&self) -> Option<Time> {
        self.due().map(|due| self.engine_time(due))
    }

    /// Converts the engine's time to the run's local time: the wall clock as of its submission plus elapsed time.
    pub fn local(&self, time: Time) -> Time {
        time.shifted(self.head().skew)
    }

    /// Converts the run's local time to the engine's.
    pub(crate) fn engine_time(&self, local: Time) -> Time {
        local.shifted(self.head().skew.saturating_neg())
    }
}
