//! The head of a run: the state that runs of every dialect share. Only facts change it, and this is the only place that
//! folds them into it.

use std::sync::Arc;

use octoflow_model::{
    AttemptId, RunFact, RunId, Shutdown, Submission, Time, mark::Ownership, meta::Metadata, task::Labels,
};

/// Dialect-independent state of a run. Two folds of the same facts are equal.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    pub name: Arc<str>,
    pub namespace: Arc<str>,
    pub uid: Arc<str>,
    pub created: Time,
    /// The run that created this one.
    pub parent: Option<RunId>,
    /// The attempt of the parent that ordered it, if the parent waits for it.
    pub ordered_by: Option<AttemptId>,
    /// The manifest's labels and those the dialect added, with all later changes.
    pub labels: Labels,
    pub annotations: Labels,
    /// Owners and finalizers, once they differ from the manifest's.
    pub ownership: Option<Box<Ownership>>,
    /// True while suspended: nothing new starts.
    pub suspended: bool,
    /// Shutdown in progress, if any.
    pub shutdown: Option<Shutdown>,
    pub deadline_passed: bool,
    /// Whom it waits for in a circle, if it does, or did when it ended.
    pub deadlock: Option<Arc<str>>,
    pub deadlock_at: Option<Time>,
    /// Whom its usage is charged to, if that is not its namespace.
    pub submitted_by: Option<Arc<str>>,
    /// Who submitted it, if that is somebody else.
    pub written_by: Option<Arc<str>>,
    /// True if life hooks hear of the run that ordered this one, and not of this one.
    pub quiet: bool,
    /// Microseconds by which the wall clock was ahead of the engine's time on submission.
    pub(crate) skew: i64,
}

impl Head {
    pub(crate) fn new(
        submission: &Submission,
        metadata: &Metadata,
        suspended: Option<bool>,
        shutdown: Option<Shutdown>,
    ) -> Self {
        Self {
            name: submission.name.as_str().into(),
            namespace: submission.namespace.as_str().into(),
            uid: submission.uid.as_str().into(),
            created: submission.at,
            parent: submission.parent,
            ordered_by: submission.ordered_by,
            labels: metadata.labels.clone(),
            annotations: metadata.annotations.clone(),
            ownership: None,
            suspended: suspended.unwrap_or(false),
            shutdown,
            deadline_passed: false,
            deadlock: None,
            deadlock_at: None,
            submitted_by: submission.context.submitted_by.as_deref().map(Into::into),
            written_by: submission.context.written_by.as_deref().map(Into::into),
            quiet: submission.context.quiet,
            skew: submission.context.skew,
        }
    }

    pub(crate) fn apply(&mut self, fact: &RunFact) {
        match fact {
            RunFact::Submitted(_) | RunFact::Ended { .. } => {}
            RunFact::Suspended { .. } => self.suspended = true,
            RunFact::Resumed { .. } => self.suspended = false,
            RunFact::ShuttingDown { how, .. } => self.shutdown = Some(*how),
            RunFact::DeadlinePassed { .. } => self.deadline_passed = true,
            RunFact::Deadlock { at, message } => {
                self.deadlock = message.as_deref().map(Into::into);
                self.deadlock_at = message.as_ref().map(|_| *at);
            }
            RunFact::Marked { marks, .. } => {
                self.labels.clone_from(&marks.labels);
                self.annotations.clone_from(&marks.annotations);
                self.ownership = Some(Box::new(marks.ownership.clone()));
            }
        }
    }

    /// Adds labels and annotations that the dialect computed when the run began.
    pub(crate) fn describe(&mut self, labels: &Labels, annotations: &Labels) {
        self.labels.extend(labels.clone());
        self.annotations.extend(annotations.clone());
    }

    /// Returns the fact that begins a shutdown. A stop may be raised to a termination, never lowered; `None` if nothing
    /// changes.
    pub(crate) fn shut_down(&self, how: Shutdown, at: Time) -> Option<RunFact> {
        let changes = self.shutdown.is_none() || (self.shutdown, how) == (Some(Shutdown::Stop), Shutdown::Terminate);
        changes.then_some(RunFact::ShuttingDown { how, at })
    }

    /// Returns the name of who submitted it; empty if that is not known.
    pub fn author(&self) -> &str {
        self.submitted_by.as_deref().or(self.written_by.as_deref()).unwrap_or_default()
    }

    /// Reports whether the run is being ended, by a command or by its deadline.
    pub fn closing(&self) -> bool {
        self.shutdown.is_some() || self.deadline_passed
    }
}
