//! The run of a submitted job: the state folded from facts, and the work list that is dropped on restart. Only the fold
//! can write a state that belongs to a run: see [`Folded`].

use std::sync::Arc;

use octoflow_model::{
    AttemptId, NodeIx, RunId, Time,
    submitted::{WalkEnd, WalkState},
};
use serde_json::Value;

use super::{
    fold::Folded,
    program::Program,
    state::{State, WalkStep},
    todo::{Note, Todo},
};
use crate::{dialects::dialect::TaskState, run::head::Head};

/// The node that calls plugins: each call is an attempt of it.
pub(super) const CALL: NodeIx = NodeIx(0);
/// The node that has the run that came out.
pub(super) const CHILD: NodeIx = NodeIx(1);

/// State folded from the facts. Two folds of the same facts are equal.
#[derive(Clone, Debug, PartialEq)]
pub struct SubmittedState {
    pub head: Head,
    /// The header that plugins see, which never changes.
    pub header: Value,
    pub walk: State,
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
    pub fn manifest(&self) -> Value {
        serde_json::from_str(&self.manifest).expect("a manifest survives being written down")
    }

    pub fn replaced_runs(&self) -> &[RunId] {
        &self.replaced
    }

    /// Returns where the job is.
    pub fn walk_state(&self) -> WalkState {
        let walk = &self.state.walk;
        let held = self.state.head.suspended || walk.gated;
        match walk.step {
            WalkStep::Over(WalkEnd::Succeeded) | WalkStep::Ending(WalkEnd::Succeeded) => WalkState::Succeeded,
            WalkStep::Over(WalkEnd::Failed) | WalkStep::Ending(WalkEnd::Failed) => WalkState::Failed,
            WalkStep::Over(WalkEnd::Stopped) | WalkStep::Ending(WalkEnd::Stopped) => WalkState::Stopped,
            WalkStep::Ready
            | WalkStep::Calling
            | WalkStep::Pausing(_)
            | WalkStep::Gated(_)
            | WalkStep::HandingOver
            | WalkStep::Following
                if held =>
            {
                WalkState::Suspended
            }
            WalkStep::Following if self.began().is_some() => WalkState::Running,
            WalkStep::HandingOver | WalkStep::Following => WalkState::Pending,
            WalkStep::Ready | WalkStep::Calling | WalkStep::Pausing(_) | WalkStep::Gated(_) => WalkState::Preparing,
        }
    }

    /// Returns when the run that came out began to run.
    pub fn began(&self) -> Option<Time> {
        self.state.walk.child.as_ref()?.began
    }

    /// Returns the current attempt of a node, if a runtime has it.
    pub fn attempt_of(&self, node: NodeIx) -> Option<AttemptId> {
        let walk = &self.state.walk;
        let attempt = match (node, walk.step) {
            (CALL, WalkStep::Calling) => walk.calls.checked_sub(1)?,
            (CHILD, WalkStep::HandingOver | WalkStep::Following) => 0,
            _ => return None,
        };
        Some(AttemptId { run: self.id, task: node, attempt })
    }

    /// Returns the run that came out and is followed.
    pub(super) fn child(&self, node: NodeIx) -> Option<RunId> {
        let walk = &self.state.walk;
        let child = walk.child.as_ref().filter(|_| node == CHILD && walk.step == WalkStep::Following)?;
        Some(child.run)
    }

    /// Returns the nodes that a runtime has.
    pub(super) fn open_nodes(&self) -> Vec<(NodeIx, TaskState)> {
        let open = [CALL, CHILD].into_iter().filter(|node| self.attempt_of(*node).is_some());
        open.map(|node| (node, TaskState::Placed)).collect()
    }

    /// Returns the number of steps that are done, and of all: the stages, and the run that came out.
    pub fn progress(&self) -> (u64, u64) {
        let walk = &self.state.walk;
        let all = octoflow_model::plugin::PluginType::STAGES.len() as u64 + 1;
        let done = match (walk.step, walk.stage) {
            (WalkStep::Over(WalkEnd::Succeeded), _) => all,
            (_, None) if walk.handed_over.is_some() => all - 1,
            (_, None) => 0,
            (_, Some(stage)) => octoflow_model::plugin::PluginType::STAGES
                .into_iter()
                .position(|known| known == stage)
                .unwrap_or_default() as u64,
        };
        (done, all)
    }
}
