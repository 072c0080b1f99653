//! What has been decided, as the journal keeps it. State is the fold of these, in order.
//! A fact is never changed once released: new ones may be added, new fields must have defaults,
//! so that a newer version folds an older journal to the same state.

use serde::{Deserialize, Serialize};

use crate::{
    RunPhase, Shutdown, argo::WorkflowFact, mark::Marks, submission::Submission, taskset::SetFact, time::Time,
};

mod wire;

/// A decision about a run: one that any run can meet, or one of its dialect.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    Run(RunFact),
    Workflow(WorkflowFact),
    TaskSet(SetFact),
}

/// Decisions about the head that runs of every dialect share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum RunFact {
    /// The run was accepted with this manifest. Always the first fact.
    Submitted(Box<Submission>),
    /// No new work until it is resumed.
    Suspended {
        at: Time,
    },
    Resumed {
        at: Time,
    },
    /// The run is being ended by command.
    ShuttingDown {
        how: Shutdown,
        at: Time,
    },
    /// The run's deadline passed.
    DeadlinePassed {
        at: Time,
    },
    /// Somebody wrote on the run: this is all that stands there now.
    Marked {
        at: Time,
        marks: Box<Marks>,
    },
    /// The run reached its final state. Nothing follows.
    Ended {
        phase: RunPhase,
        message: String,
        at: Time,
    },
}

impl Fact {
    /// After this fact its run holds a lock, until it is over.
    pub fn takes_lock(&self) -> bool {
        matches!(self, Self::Workflow(WorkflowFact::Locked { .. }))
    }
}

impl From<RunFact> for Fact {
    fn from(fact: RunFact) -> Self {
        Self::Run(fact)
    }
}

impl From<WorkflowFact> for Fact {
    fn from(fact: WorkflowFact) -> Self {
        Self::Workflow(fact)
    }
}

impl From<SetFact> for Fact {
    fn from(fact: SetFact) -> Self {
        Self::TaskSet(fact)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
pub(crate) fn is_nothing(number: &u64) -> bool {
    *number == 0
}
