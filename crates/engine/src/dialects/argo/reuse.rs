//! Reuses results of a previous run, which were submitted with this one: the nodes do not run again.
//! A node takes its result over when it would have been added; nothing is ordered for it.

use std::sync::Arc;

use octoflow_model::{
    AttemptId, NodeIx, Time,
    argo::{InputValues, NodeKind, Phase},
    previous::NodeResult,
};

use super::{call::NewNode, program::CompiledTemplate, run::Run, turn::Turn, view::View};

impl Run {
    /// Returns the node's name without that of the run.
    pub(super) fn suffix_of(&self, at: NodeIx) -> &str {
        self.state.suffix(&self.state.node(at).name)
    }

    /// Returns the reused result of a node.
    pub(super) fn reused_result(&self, name: &str) -> Option<&NodeResult> {
        self.state.before.results.get(self.state.suffix(name)).filter(|done| done.kind != NodeKind::Retry)
    }

    pub(super) fn is_reused(&self, name: &str) -> bool {
        self.resumes && self.reused_result(name).is_some()
    }

    /// Whether the node, or something below it, has a reused result.
    pub(super) fn has_reused_part(&self, name: &str) -> bool {
        self.resumes && self.state.before.touches(self.state.suffix(name))
    }

    /// Whether something below the node has a reused result, from which the node's own is made.
    pub(super) fn has_reused_child(&self, at: NodeIx) -> bool {
        self.resumes && self.state.before.reaches_below(self.suffix_of(at))
    }

    /// Returns the attempt whose log belongs to a node.
    pub fn attempt_of(&self, at: NodeIx) -> Option<AttemptId> {
        let node = self.state.node(at);
        match node.reuse.as_ref().filter(|reuse| reuse.own) {
            Some(reuse) => reuse.attempt,
            None => {
                let attempt = self.state.attempt_number(at);
                node.kind.tasked().then_some(AttemptId { run: self.id, task: at, attempt })
            }
        }
    }

    /// Returns the runs that this one replaced, oldest first.
    pub fn replaced_runs(&self) -> &[octoflow_model::RunId] {
        &self.state.before.runs
    }
}

impl Turn<'_> {
    /// Adds a call with a reused result as a node that is over.
    pub(super) fn add_reused(
        &mut self,
        new_node: NewNode,
        compiled: &Arc<CompiledTemplate>,
        inputs: InputValues,
    ) -> NodeIx {
        let Some(done) = self.run.reused_result(&new_node.name).cloned() else {
            unreachable!("it was asked for a moment ago")
        };
        let mut added = self.view().added(new_node, done.kind, done.phase, Some(compiled), inputs);
        added.message = done.message;
        added.reused = true;
        let at = self.add_node(added);
        if done.phase == Phase::Succeeded {
            self.export(at, &done.outputs);
        }
        self.add_containers(at);
        // An instance is not needed for a node that is over.
        self.run.instances.remove(&at);
        at
    }
}

impl View<'_> {
    /// Returns the end time of a node that ends now: earlier than now if nothing in it ran again.
    pub(super) fn over_at(&self, at: NodeIx) -> Time {
        let reuse = self.run.state.node(at).reuse.as_ref().filter(|reuse| !reuse.fresh);
        reuse.and_then(|reuse| reuse.until).unwrap_or(self.now)
    }

    /// Whether the attempt with this number is reused and all earlier ones are too, so that it follows at once.
    pub(super) fn attempted_before(&self, retry: NodeIx, number: u32) -> bool {
        let node = self.run.state.node(retry);
        let anew = || node.reuse.as_ref().is_some_and(|reuse| reuse.fresh);
        self.run.resumes && !anew() && self.run.has_reused_part(&format!("{}({number})", node.name))
    }

    /// Returns the reused end of a retry node whose attempts are all reused and failed.
    pub(super) fn gave_up_before(&self, retry: NodeIx, last: NodeIx, number: u32) -> Option<(Phase, String)> {
        let node = self.run.state.node(retry);
        if !self.run.resumes || !self.run.state.node(last).untouched() || self.attempted_before(retry, number) {
            return None;
        }
        let done = self.run.state.before.results.get(self.run.state.suffix(&node.name))?;
        (done.kind == NodeKind::Retry).then(|| (done.phase, done.message.clone()))
    }
}
