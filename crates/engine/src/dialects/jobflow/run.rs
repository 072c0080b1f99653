//! A run of a flow: the state folded from facts, and the work list that is dropped on restart. Only the fold can write a
//! state that belongs to a run: see [`Folded`].

use std::sync::Arc;

use octoflow_model::{AttemptId, NodeIx, RunId, Time, jobflow::FlowPhase};

use super::{
    decide::Conditions,
    fold::Folded,
    index::Index,
    program::{NodeRole, Program},
    state::{Removal, Stage, State},
    todo::{Note, Todo},
};
use crate::{dialects::dialect::TaskState, run::head::Head};

/// State folded from the facts. Two folds of the same facts are equal.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowState {
    pub head: Head,
    pub flow: State,
    /// Counts that follow from program and entries.
    pub index: Index,
    /// Why it ended as it did.
    pub message: String,
    pub finished: Option<Time>,
}

pub struct Run {
    pub id: RunId,
    /// State folded from the facts, read-only.
    pub state: Folded,
    pub program: Arc<Program>,
    /// The manifest as it was given, kept as text: a tree of values would be several times as large.
    pub(super) manifest: Box<str>,
    /// The runs it replaced.
    pub(super) replaced: Vec<RunId>,
    pub(super) todo: Todo,
    /// Notes of the current fold for the work list; empty between facts.
    pub(super) notes: Vec<Note>,
}

impl Run {
    /// Returns the manifest as it was given.
    pub fn manifest(&self) -> serde_json::Value {
        serde_json::from_str(&self.manifest).expect("a manifest survives being written down")
    }

    pub fn replaced_runs(&self) -> &[RunId] {
        &self.replaced
    }

    /// Returns what the flow as a whole was told.
    pub fn told(&self) -> Conditions {
        let head = &self.state.head;
        Conditions {
            suspended: head.suspended,
            closing: head.closing(),
            deleted: head.ownership.as_ref().is_some_and(|ownership| ownership.deleted.is_some()),
        }
    }

    pub fn flow_phase(&self) -> FlowPhase {
        self.state.index.phase(self.told())
    }

    /// Returns when its first job was made.
    pub fn began(&self) -> Option<Time> {
        self.state.index.started()
    }

    /// Returns the name of the job of an entry's current try, or of its next one if there was none.
    pub fn job_name(&self, entry: usize) -> String {
        let state = &self.state.flow.entries[entry];
        match &state.job {
            Some(job) => job.name.clone(),
            None if state.tries == 0 => self.program.job_name(&self.state.head.name, entry, state.earlier),
            None => self.program.job_name(&self.state.head.name, entry, state.number()),
        }
    }

    /// Returns the current attempt of a node, if a runtime has it.
    pub fn attempt_of(&self, node: NodeIx) -> Option<AttemptId> {
        let flow = &self.state.flow;
        let attempt = match self.program.role(node)? {
            NodeRole::Entry(at) => {
                let entry = &flow.entries[at];
                entry.is_active().then(|| entry.tries.checked_sub(1))??
            }
            NodeRole::Test(at, condition) => {
                let test = flow.entries[at].tests.get(&condition).filter(|test| !test.addresses.is_empty())?;
                test.attempts.checked_sub(1)?
            }
            NodeRole::Removal => (flow.removal == Removal::UnderWay).then_some(0)?,
        };
        Some(AttemptId { run: self.id, task: node, attempt })
    }

    /// Returns the run that an entry has ordered and waits for, once it was made.
    pub(super) fn child(&self, node: NodeIx) -> Option<RunId> {
        let entry = self.state.flow.entries.get(node.at()).filter(|entry| entry.stage == Stage::Active)?;
        entry.job.as_ref()?.run
    }

    /// Returns the nodes that a runtime has.
    pub(super) fn open_nodes(&self) -> Vec<(NodeIx, TaskState)> {
        let all = (0..=self.program.removal_node().0).map(NodeIx);
        let open = all.filter(|node| self.attempt_of(*node).is_some());
        let closing = self.told().closing;
        open.map(|node| {
            let ending = closing && self.child(node).is_none() && self.program.role(node) != Some(NodeRole::Removal);
            (node, if ending { TaskState::Ending } else { TaskState::Placed })
        })
        .collect()
    }

    /// Reports whether an entry that nobody has ordered yet waits for conditions on the jobs of this one.
    pub(super) fn is_probed(&self, entry: usize) -> bool {
        let waits = |after: &u32| {
            let (plan, state) = (&self.program.entries[*after as usize], &self.state.flow.entries[*after as usize]);
            state.stage == Stage::Waiting && state.met.len() < plan.conditions
        };
        self.program.after[entry].iter().any(waits)
    }

    /// Returns the number of entries that are completed, and of all.
    pub fn progress(&self) -> (u64, u64) {
        (self.state.index.done() as u64, self.program.entries.len() as u64)
    }
}
