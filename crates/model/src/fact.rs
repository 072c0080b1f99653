//! Facts: decisions as the journal keeps them. State is the fold of the facts, in order. A released fact never changes:
//! new facts may be added and new fields must have defaults, so that a newer version folds an older journal to the same
//! state.

use serde::{Deserialize, Serialize};

use crate::{
    RunPhase, Shutdown,
    argo::WorkflowFact,
    jobflow::FlowFact,
    kubejob::KubeJobFact,
    run::{mark::MutableMetadata, submission::Submission},
    submitted::WalkFact,
    taskset::SetFact,
    time::Time,
    volcano::JobFact,
};

mod wire;

/// A decision about a run: common to all dialects, or specific to one.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    Run(RunFact),
    Workflow(WorkflowFact),
    TaskSet(SetFact),
    VolcanoJob(JobFact),
    JobFlow(FlowFact),
    KubeJob(KubeJobFact),
    SubmittedJob(WalkFact),
}

/// Decisions about the state that runs of every dialect share (`engine::head`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum RunFact {
    /// The run was accepted with this manifest. Always the first fact.
    Submitted(Box<Submission>),
    /// The run starts no new work until it is resumed.
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
    /// The run waits in a circle of runs, or behind one, that none of them leaves by itself; without a message it no longer
    /// does.
    Deadlock {
        at: Time,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// A user changed the run's metadata; `marks` is the complete new content.
    Marked {
        at: Time,
        marks: Box<MutableMetadata>,
    },
    /// The run reached its final state. Nothing follows.
    Ended {
        phase: RunPhase,
        message: String,
        at: Time,
    },
}

impl Fact {
    /// Reports whether this fact acquires a lock.
    pub fn takes_lock(&self) -> bool {
        match self {
            Self::Workflow(fact) => matches!(fact, WorkflowFact::Locked { .. }),
            // These have no locks; a dialect that gets some says here which fact takes them.
            Self::Run(_)
            | Self::TaskSet(_)
            | Self::VolcanoJob(_)
            | Self::KubeJob(_)
            | Self::JobFlow(_)
            | Self::SubmittedJob(_) => false,
        }
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

impl From<KubeJobFact> for Fact {
    fn from(fact: KubeJobFact) -> Self {
        Self::KubeJob(fact)
    }
}

impl From<JobFact> for Fact {
    fn from(fact: JobFact) -> Self {
        Self::VolcanoJob(fact)
    }
}

impl From<WalkFact> for Fact {
    fn from(fact: WalkFact) -> Self {
        Self::SubmittedJob(fact)
    }
}

impl From<FlowFact> for Fact {
    fn from(fact: FlowFact) -> Self {
        Self::JobFlow(fact)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
pub(crate) fn is_nothing(number: &u64) -> bool {
    *number == 0
}
