//! Nodes that need not run because they were done before: their results were submitted with the run.
//! A node takes its result over at the moment it would have been made; nothing is ordered for it.

use std::sync::Arc;

use octoflow_model::{
    AttemptId, NodeIx, Time,
    argo::{InputValues, NodeKind, Phase},
    previous::NodeResult,
};

use super::{call::Birth, program::Recipe, run::Run, turn::Turn, view::View};

impl Run {
    /// The node's name without the run's.
    pub(super) fn suffix_of(&self, at: NodeIx) -> &str {
        self.state.suffix(&self.state.node(at).name)
    }

    /// The result of a node that is not to be made again.
    pub(super) fn done_before(&self, name: &str) -> Option<&NodeResult> {
        self.state.before.results.get(self.state.suffix(name)).filter(|done| done.kind != NodeKind::Retry)
    }

    pub(super) fn was_done(&self, name: &str) -> bool {
        self.resumes && self.done_before(name).is_some()
    }

    /// Something of it was done before, if not all.
    pub(super) fn was_begun(&self, name: &str) -> bool {
        self.resumes && self.state.before.touches(self.state.suffix(name))
    }

    /// Something in it was done before: what it gives is made from that.
    pub(super) fn was_made_before(&self, at: NodeIx) -> bool {
        self.resumes && self.state.before.reaches_below(self.suffix_of(at))
    }

    /// The attempt whose log belongs to a node.
    pub fn attempt_of(&self, at: NodeIx) -> Option<AttemptId> {
        let node = self.state.node(at);
        match node.past.as_ref().filter(|past| past.own) {
            Some(past) => past.attempt,
            None => node.kind.tasked().then_some(AttemptId { run: self.id, task: at, attempt: 0 }),
        }
    }

    /// The runs whose place this one took, oldest first.
    pub fn replaced_runs(&self) -> &[octoflow_model::RunId] {
        &self.state.before.runs
    }
}

impl Turn<'_> {
    /// A call that was done before becomes a node that is over.
    pub(super) fn born_done(&mut self, birth: Birth, recipe: &Arc<Recipe>, inputs: InputValues) -> NodeIx {
        let Some(done) = self.run.done_before(&birth.name).cloned() else {
            unreachable!("it was asked for a moment ago")
        };
        let mut added = self.view().added(birth, done.kind, done.phase, Some(recipe), inputs);
        added.message = done.message;
        added.reused = true;
        let at = self.born(added);
        if done.phase == Phase::Succeeded {
            self.export(at, &done.outputs);
        }
        self.add_containers(at);
        // Nobody asks for the template of a node that is over.
        self.run.instances.remove(&at);
        at
    }
}

impl View<'_> {
    /// When a node that ends now was over: earlier than now if nothing in it was done anew.
    pub(super) fn over_at(&self, at: NodeIx) -> Time {
        let past = self.run.state.node(at).past.as_ref().filter(|past| !past.fresh);
        past.and_then(|past| past.until).unwrap_or(self.now)
    }

    /// The attempt with this number was made before, and those in front of it were not made again: it follows at once.
    pub(super) fn attempted_before(&self, retry: NodeIx, number: u32) -> bool {
        let node = self.run.state.node(retry);
        let anew = || node.past.as_ref().is_some_and(|past| past.fresh);
        self.run.resumes && !anew() && self.run.was_begun(&format!("{}({number})", node.name))
    }

    /// All attempts were made before and it ended badly by that: it ends as it did then.
    pub(super) fn gave_up_before(&self, retry: NodeIx, last: NodeIx, number: u32) -> Option<(Phase, String)> {
        let node = self.run.state.node(retry);
        if !self.run.resumes || !self.run.state.node(last).untouched() || self.attempted_before(retry, number) {
            return None;
        }
        let done = self.run.state.before.results.get(self.run.state.suffix(&node.name))?;
        (done.kind == NodeKind::Retry).then(|| (done.phase, done.message.clone()))
    }
}
