//! The part of the fold that is about what happens beside the plain course of a node: hooks, daemons, memory, and
//! attempts whose time is up.

use octoflow_model::{
    NodeIx, Time,
    argo::{NodeKind, Phase, WorkflowFact},
};

use crate::argo::{
    node::{Body, Leaf, Memo},
    run::Run,
};

impl Run {
    pub(super) fn apply_to_life(&mut self, fact: &WorkflowFact) {
        match fact {
            WorkflowFact::Daemoned { node } => self.stand(*node),
            WorkflowFact::Dismissed { node } => {
                let slot = &mut self.state.nodes[node.at()];
                slot.body = Body::Leaf(Leaf::Stopping);
                slot.dismissed = true;
                slot.wake = None;
            }
            WorkflowFact::Due { node, hook } => self.state.due.entry(*node).or_default().push(hook.clone()),
            WorkflowFact::Recalled { node, cache, key, hit } => self.recall(*node, cache, key, *hit),
            WorkflowFact::Supplied { node, parameters, message } => {
                let slot = &mut self.state.nodes[node.at()];
                if !message.is_empty() {
                    slot.message = Some(message.as_str().into());
                }
                let outputs = slot.outputs.get_or_insert_default();
                outputs.parameters.retain(|(name, _)| !parameters.iter().any(|(given, _)| given == name));
                outputs.parameters.extend(parameters.iter().cloned());
                if outputs.is_empty() {
                    slot.outputs = None;
                }
            }
            // The cache is not the run's.
            WorkflowFact::Memoized { .. } => {}
            WorkflowFact::Expired { node, .. } => {
                self.state.expired.insert(*node);
                self.state.nodes[node.at()].wake = None;
                self.look_everywhere();
            }
            _ => unreachable!("the fold hands on only these"),
        }
    }

    /// The runtime says that a task runs.
    pub(super) fn start(&mut self, node: NodeIx, at: Time) {
        let slot = &mut self.state.nodes[node.at()];
        slot.phase = Phase::Running;
        slot.started = at;
        slot.ran = true;
        if slot.body == Body::Leaf(Leaf::Launched) {
            slot.body = Body::Leaf(Leaf::Running);
        }
        if slot.hooked {
            self.todo.agenda.push_back(node);
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

    /// Something changed that a hook may look at though it is not its own node.
    pub(super) fn look_at_watchers(&mut self) {
        self.todo.agenda.extend(&self.todo.watchers);
        self.todo.run |= crate::argo::hook::run_watches(&self.program.workflow.spec);
    }

    fn recall(&mut self, at: NodeIx, cache: &str, key: &str, hit: bool) {
        let kind = if hit { crate::argo::call::kind_of(&self.recipe_of(at).template) } else { None };
        let node = &mut self.state.nodes[at.at()];
        node.memo = Some(Box::new(Memo { cache: cache.to_owned(), key: key.to_owned(), hit }));
        // What has been found is not tried, so there are no attempts to stand for.
        if let (NodeKind::Retry, Some(kind)) = (node.kind, kind) {
            self.count(at, -1);
            self.state.nodes[at.at()].kind = kind;
            self.count(at, 1);
            self.state.progress.1 += u64::from(kind.executable());
        }
    }
}
