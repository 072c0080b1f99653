//! The head of a run: what runs of every dialect have in common. Only facts change it, and each is folded here once.

use std::sync::Arc;

use octoflow_model::{RunFact, RunId, Shutdown, Submission, Time, mark::Ties, meta::Metadata, task::Labels};

/// What the facts say about a run whatever its dialect. Two folds of the same facts are equal.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    pub name: Arc<str>,
    pub namespace: Arc<str>,
    pub uid: Arc<str>,
    pub created: Time,
    /// The run that made this one.
    pub parent: Option<RunId>,
    /// The manifest's own, with what the dialect added, as people have changed them since.
    pub labels: Labels,
    pub annotations: Labels,
    /// Owners and finalizers, once they are not what the manifest says.
    pub ties: Option<Box<Ties>>,
    /// Starts nothing new until it is resumed.
    pub suspended: bool,
    /// How it is being ended before its time.
    pub shutdown: Option<Shutdown>,
    pub deadline_passed: bool,
    /// How far the wall clock was ahead of the engine's time when it was submitted, in microseconds.
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
            labels: metadata.labels.clone(),
            annotations: metadata.annotations.clone(),
            ties: None,
            suspended: suspended.unwrap_or(false),
            shutdown,
            deadline_passed: false,
            skew: submission.known.skew,
        }
    }

    pub(crate) fn apply(&mut self, fact: &RunFact) {
        match fact {
            RunFact::Submitted(_) | RunFact::Ended { .. } => {}
            RunFact::Suspended { .. } => self.suspended = true,
            RunFact::Resumed { .. } => self.suspended = false,
            RunFact::ShuttingDown { how, .. } => self.shutdown = Some(*how),
            RunFact::DeadlinePassed { .. } => self.deadline_passed = true,
            RunFact::Marked { marks, .. } => {
                self.labels.clone_from(&marks.labels);
                self.annotations.clone_from(&marks.annotations);
                self.ties = Some(Box::new(marks.ties.clone()));
            }
        }
    }

    /// Adds what the dialect computed when the run began.
    pub(crate) fn describe(&mut self, labels: &Labels, annotations: &Labels) {
        self.labels.extend(labels.clone());
        self.annotations.extend(annotations.clone());
    }

    /// Reports that the run is being ended, by somebody or by its deadline.
    pub fn closing(&self) -> bool {
        self.shutdown.is_some() || self.deadline_passed
    }
}
