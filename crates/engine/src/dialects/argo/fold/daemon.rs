//! Folds facts about daemons. A daemon that is up counts as over for those that wait for it.

use octoflow_model::{NodeIx, argo::Role};

use super::Fold;
use crate::dialects::argo::todo::Note;

impl Fold<'_> {
    /// Folds that a daemon is up: whatever waits for it goes on.
    pub(super) fn daemon_up(&mut self, at: NodeIx) {
        self.count(at, -1);
        self.state.nodes[at.at()].daemoned = true;
        let node = self.state.node(at);
        // Of a retried call the node above the attempts is the one others wait for, and they waited only once.
        let site = match (&node.role, node.parent) {
            (Role::Attempt(_), Some(retry)) if self.state.node(retry).daemoned => return,
            (Role::Attempt(_), Some(retry)) => retry,
            (Role::Attempt(_), None)
            | (Role::Entry | Role::Exit | Role::Group(_) | Role::Step { .. } | Role::Task(_) | Role::Item(_), _)
            | (Role::Hook(_) | Role::RunHook(_) | Role::Container(_), _) => at,
        };
        self.state.nodes[site.at()].daemoned = true;
        if let Some(boundary) = self.state.node(site).boundary {
            self.state.daemons.entry(boundary).or_default().push(site);
        }
        self.notify_parent(site);
    }

    /// Folds that a daemon has settled, and lets its boundary check whether it can end.
    pub(super) fn daemon_settled(&mut self, site: NodeIx) {
        let Some(boundary) = self.state.node(site).boundary else { return };
        if let Some(daemons) = self.state.daemons.get_mut(&boundary) {
            daemons.retain(|other| *other != site);
            if daemons.is_empty() {
                self.state.daemons.remove(&boundary);
            }
        }
        self.note(Note::Changed(boundary));
    }
}
