//! Folds reused results of a previous run: a reused node takes its result over, and the nodes above it learn whether
//! anything in them runs again.

use octoflow_model::{
    NodeIx,
    argo::{NodeKind, Phase, Role},
};

use super::Fold;
use crate::dialects::argo::{
    node::{Memo, ReuseState},
    room,
};

impl Fold<'_> {
    /// Folds the addition of a node to a rerun.
    pub(super) fn compare_with_before(&mut self, at: NodeIx, reused: bool) {
        let node = self.state.node(at);
        if reused {
            self.take_over(at);
        } else if matches!(node.kind, NodeKind::Pod | NodeKind::Http | NodeKind::Suspend)
            || node.phase == Phase::Error && node.kind == NodeKind::Skipped
        {
            self.freshen(at);
        }
    }

    fn take_over(&mut self, at: NodeIx) {
        let suffix = self.state.suffix(&self.state.node(at).name).to_owned();
        let Some(done) = self.state.before.results.remove(&suffix) else {
            unreachable!("a node is only taken for done when the run was submitted with its result")
        };
        self.state.weight += room::of_outputs(&done.outputs);
        let node = &mut self.state.nodes[at.at()];
        node.started = done.started;
        node.finished = Some(done.finished);
        node.ran = done.ran;
        node.progress = done.progress.map(Box::new);
        node.outputs = (!done.outputs.is_empty()).then(|| Box::new(done.outputs));
        node.memo = done.memo.map(|memo| Box::new(Memo { cache: memo.cache, key: memo.key, hit: memo.hit }));
        node.reuse = Some(Box::new(ReuseState {
            own: true,
            skipped: done.skipped,
            host: done.host.map(Into::into),
            attempt: done.attempt,
            until: Some(done.finished),
            fresh: false,
        }));
        let called = matches!(node.role, Role::Step { .. } | Role::Task(_) | Role::Item(_));
        if let (true, true, Some(boundary)) = (node.phase.bad(), called, node.boundary) {
            *self.state.failed_children.entry(boundary).or_insert(0) += 1;
        }
        self.look_at_watchers();
        if done.kind == NodeKind::Container || done.skipped {
            return;
        }
        let mut above = self.state.node(at).parent;
        while let Some(up) = above {
            let node = &mut self.state.nodes[up.at()];
            let reuse = node.reuse.get_or_insert_default();
            reuse.until = reuse.until.max(Some(done.finished));
            node.started = node.started.min(done.started);
            above = node.parent;
        }
    }

    /// Marks all nodes above this one as having work that runs again.
    fn freshen(&mut self, at: NodeIx) {
        let mut above = self.state.node(at).parent;
        while let Some(up) = above {
            let node = &mut self.state.nodes[up.at()];
            if std::mem::replace(&mut node.reuse.get_or_insert_default().fresh, true) {
                return;
            }
            above = node.parent;
        }
    }
}
