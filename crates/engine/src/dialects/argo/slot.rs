//! Counts the slots that parallelism limits are about: those in use, and those that retried calls keep between attempts.
//!
//! A retried call holds its locks from its first attempt to its last. If it gave its slot back in between, a sibling could take
//! the slot and wait inside for those locks, while the call waits for the slot: neither would ever end. So it keeps both.

use octoflow_model::{NodeIx, argo::NodeKind};

use super::{
    call,
    node::{Body, is_counted},
    run::Run,
};

impl Run {
    /// Returns how many slots of a steps or DAG node are taken.
    pub fn slots_taken(&self, boundary: NodeIx) -> u64 {
        let active = self.state.active_children.get(&boundary).copied().unwrap_or(0);
        let kept = self
            .between_attempts()
            .filter(|(at, kind)| is_counted(*kind) && self.state.node(*at).boundary == Some(boundary));
        u64::from(active) + kept.count() as u64
    }

    /// Returns how many of the run's own slots for pods are taken.
    pub fn pod_slots_taken(&self) -> u64 {
        let kept = self.between_attempts().filter(|(_, kind)| *kind == NodeKind::Pod);
        u64::from(self.state.active_pods) + kept.count() as u64
    }

    /// Whether the run's parallelism allows one more pod.
    pub(super) fn has_room(&self) -> bool {
        match self.program.workflow.spec.parallelism {
            // A limit of zero would block the run for ever.
            Some(limit) if limit > 0 => self.pod_slots_taken() < limit,
            Some(_) | None => true,
        }
    }

    /// Whether the boundary's parallelism limit is reached.
    pub(super) fn crowded(&self, boundary: NodeIx) -> bool {
        let template = match self.instances.get(&boundary) {
            Some(instance) => &*instance.template,
            None => &*self.compiled_of(boundary).template,
        };
        let limit = template.parallelism.as_ref().and_then(|limit| limit.0.trim().parse::<u64>().ok());
        !self.state.node(boundary).phase.fulfilled()
            && limit.is_some_and(|limit| limit > 0 && self.slots_taken(boundary) >= limit)
    }

    /// Returns the kind of what takes a slot once a node goes on: a retried call takes one with its first attempt.
    pub(super) fn slot_kind(&self, at: NodeIx) -> NodeKind {
        let kind = self.state.node(at).kind;
        if kind != NodeKind::Retry {
            return kind;
        }
        call::kind_of(&self.compiled_of(at).template).unwrap_or(kind)
    }

    /// Whether a retried call has a slot of its own, which its next attempt takes.
    pub(super) fn keeps_slot(&self, retry: NodeIx) -> bool {
        self.todo.locked_retries.contains(&retry) && !self.last_was_daemon(retry)
    }

    /// Whether the last attempt of a retried call was up as a daemon. It gave its slot back then, and others may have it.
    fn last_was_daemon(&self, retry: NodeIx) -> bool {
        let Body::Retry { attempts } = &self.state.node(retry).body else { return false };
        attempts.last().is_some_and(|last| self.state.node(*last).daemoned)
    }

    /// Iterates over the retried calls that hold locks and have no open attempt, with the kind of their attempts.
    fn between_attempts(&self) -> impl Iterator<Item = (NodeIx, NodeKind)> + '_ {
        let waits = |at: &NodeIx| {
            let Body::Retry { attempts } = &self.state.node(*at).body else { return false };
            attempts.last().is_none_or(|last| self.state.node(*last).phase.fulfilled())
        };
        let kept = self.todo.locked_retries.iter().copied().filter(waits).filter(|at| !self.last_was_daemon(*at));
        kept.map(|at| (at, self.slot_kind(at)))
    }
}
