//! One run of any dialect: what the engine and its owners need to know of a run without asking which dialect it speaks.
//! It only hands on.

use std::{
    any::Any,
    fmt,
    ops::{Deref, DerefMut},
};

use octoflow_model::{RunId, Submission, Time};
use serde_json::Value;

use crate::{
    dialect::{self, DialectRun, Program},
    kinds::Kind,
};

/// A run, whatever its dialect.
pub struct Run(Box<dyn DialectRun>);

/// A manifest as text. Faster than to display it.
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
        &*self.0
    }
}

impl DerefMut for Run {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut *self.0
    }
}

impl Run {
    pub(crate) fn new(run: impl DialectRun) -> Self {
        Self(Box::new(run))
    }

    /// A run begins with what was submitted; what kind it is, its manifest says.
    pub fn open(id: RunId, submission: &Submission) -> Result<Self, String> {
        let manifest = &submission.manifest;
        if dialect::of(manifest).is_err() {
            let kind = manifest["kind"].as_str().unwrap_or_default();
            return Err(format!(
                "it is a `{kind}`, a kind of run that this version does not know: a newer version of octoflow has written it; \
                 start that version, or a newer one, to go on with this run"
            ));
        }
        Ok(Self::with(id, submission, Program::compile(&submission.manifest, &submission.stored)?))
    }

    /// The same when its manifest was made ready before.
    pub(crate) fn with(id: RunId, submission: &Submission, program: Program) -> Self {
        program.0.open(id, submission)
    }

    /// The run as its dialect has it, for those who belong to that dialect.
    pub fn of<R: DialectRun>(&self) -> Option<&R> {
        let run: &dyn Any = &*self.0;
        run.downcast_ref()
    }

    pub fn into_inner<R: DialectRun>(self) -> Option<R> {
        let run: Box<dyn Any> = self.0;
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

    /// The run as people see it.
    pub fn object(&self) -> Value {
        self.object_of(self.manifest())
    }

    /// When it is to be deleted after its end; never when nobody says.
    pub fn expires(&self) -> Option<Time> {
        self.due().map(|due| self.engine_time(due))
    }

    /// The engine's time as this run tells it: by the wall clock as it was when the run was submitted.
    pub fn local(&self, time: Time) -> Time {
        time.shifted(self.head().skew)
    }

    /// The other way round.
    pub(crate) fn engine_time(&self, local: Time) -> Time {
        local.shifted(self.head().skew.saturating_neg())
    }
}
