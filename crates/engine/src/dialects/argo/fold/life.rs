//! Folds facts beside the plain life cycle of a node: hooks, daemons, memoization, supplied values and expired
//! attempts.

use octoflow_model::{
    NodeIx, Time,
    argo::{NodeKind, Phase},
};

use super::Fold;
use crate::dialects::argo::{
    node::{Body, Leaf, Memo},
    todo::Note,
};

impl Fold<'_> {
    /// Folds that a daemon was ordered to stop.
    pub(super) fn dismiss(&mut self, node: NodeIx) {
        let slot = &mut self.state.nodes[node.at()];
        slot.move_to(Leaf::Stopping);
        slot.dismissed = true;
        slot.wake = None;
    }

    /// Folds values or a message that a user supplied to a suspended node.
    pub(super) fn supply(&mut self, node: NodeIx, parameters: &[(String, String)], message: &str) {
        let slot = &mut self.state.nodes[node.at()];
        if !message.is_empty() {
            slot.message = Some(message.into());
        }
        let outputs = slot.outputs.get_or_insert_default();
        outputs.parameters.retain(|(name, _)| !parameters.iter().any(|(given, _)| given == name));
        outputs.parameters.extend(parameters.iter().cloned());
        if outputs.is_empty() {
            slot.outputs = None;
        }
    }

    /// Folds that the deadline of an attempt, and of everything in it, has passed.
    pub(super) fn expire(&mut self, node: NodeIx) {
        self.state.expired.insert(node);
        self.state.nodes[node.at()].wake = None;
        self.note(Note::RulesChanged);
    }

    /// Folds a runtime's report that a task runs.
    pub(super) fn start(&mut self, node: NodeIx, at: Time) {
        let slot = &mut self.state.nodes[node.at()];
        slot.enter(Phase::Running);
        slot.started = at;
        slot.ran = true;
        if slot.body == Body::Leaf(Leaf::Launched) {
            slot.move_to(Leaf::Running);
        }
        if slot.hooked {
            self.note(Note::Changed(node));
        }
        self.look_at_watchers();
    }

    pub(super) fn fire(&mut self, owner: Option<NodeIx>, name: &str, hook: NodeIx) {
        self.state.fired.entry(owner).or_default().push(hook);
        if let Some(due) = self.state.due.get_mut(&owner) {
            due.retain(|other| other != name);
            if due.is_empty() {
                self.state.due.remove(&owner);
            }
        }
    }

    /// Notes a change that hooks of other nodes, or of the run, may depend on.
    pub(super) fn look_at_watchers(&mut self) {
        self.note(Note::Watched);
        if crate::dialects::argo::hook::run_watches(&self.program.workflow.spec) {
            self.note(Note::RunChanged);
        }
    }

    pub(super) fn recall(&mut self, at: NodeIx, cache: &str, key: &str, hit: bool) {
        let kind = if hit { crate::dialects::argo::call::kind_of(&self.compiled_of(at).template) } else { None };
        let node = &mut self.state.nodes[at.at()];
        node.memo = Some(Box::new(Memo { cache: cache.to_owned(), key: key.to_owned(), hit }));
        // A cache hit is not run, so the node stands for no attempts.
        if let (NodeKind::Retry, Some(kind)) = (node.kind, kind) {
            self.count(at, -1);
            self.state.nodes[at.at()].kind = kind;
            self.count(at, 1);
            self.state.progress.1 += u64::from(kind.executable());
        }
    }
}
