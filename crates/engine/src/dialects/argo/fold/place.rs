//! Folds where tasks run: their launch, and their preemption by others.

use octoflow_model::{
    NodeIx, Time,
    argo::{NodeKind, Phase},
    task::placement::Assignment,
};

use super::Fold;
use crate::dialects::argo::{
    node::{HostIx, Leaf, Node, Placed, Preemptions},
    todo::Note,
};

impl Fold<'_> {
    /// Folds that a task was handed to a runtime.
    pub(super) fn launch(&mut self, node: NodeIx, at: Time, deadline: Option<Time>, on: Option<&Assignment>) {
        let host = on.and_then(|on| self.host(&on.node));
        let again = self.state.attempt_number(node) > 0;
        let slot = &mut self.state.nodes[node.at()];
        slot.move_to(Leaf::Launched);
        slot.wake = deadline;
        slot.host = host;
        if again {
            slot.message = None;
        }
        let devices = on.map(|on| on.devices.clone()).unwrap_or_default();
        self.state.placed.insert(node, Placed { at, devices });
        if let Some(deadline) = deadline {
            self.note(Note::Wake(deadline, Some(node)));
        }
    }

    /// Returns the index of a node's name; `None` for the machine that the run was submitted on.
    fn host(&mut self, name: &str) -> Option<HostIx> {
        if name.is_empty() {
            return None;
        }
        let hosts = &mut self.state.hosts;
        let at = hosts.iter().rposition(|known| **known == *name).unwrap_or_else(|| {
            hosts.push(name.into());
            hosts.len() - 1
        });
        std::num::NonZeroU32::new(at as u32 + 1).map(HostIx)
    }

    /// Folds that a task was ordered to stop for another. Its timers stay: whatever ends it first counts.
    pub(super) fn preempt(&mut self, node: NodeIx, at: Time, message: &str) {
        let slot = &mut self.state.nodes[node.at()];
        slot.move_to(Leaf::Preempting);
        slot.message = Some(message.into());
        let count = self.state.attempt_number(node);
        self.state.preempted.insert(node, Preemptions { count, at, why: message.into() });
    }

    /// Folds that a preempted task is over and its node waits again, as it did when it was added. It keeps its place: the
    /// time since when it waits is that of its addition.
    pub(super) fn requeue(&mut self, node: NodeIx, at: Time, attempt: u32, wake: Option<Time>, log_bytes: u64) {
        if log_bytes > 0 {
            self.state.logs.push((node, self.state.attempt_number(node), log_bytes));
        }
        self.state.placed.remove(&node);
        if let Some(preempted) = self.state.preempted.get_mut(&node) {
            preempted.count = attempt;
        }
        self.state.nodes[node.at()].move_to(Leaf::Queued);
        self.reset(node, at);
        self.state.nodes[node.at()].wake = wake;
        if let Some(wake) = wake {
            self.note(Note::Wake(wake, Some(node)));
        }
        self.reset_containers(node, at);
        self.look_at_watchers();
        self.note(Note::Queued(node));
    }

    /// Resets the containers of a pod. They were added in one sequence, so they are contiguous in the list of nodes.
    fn reset_containers(&mut self, pod: NodeIx, at: Time) {
        let is_container = |child: &&NodeIx| self.state.node(**child).kind == NodeKind::Container;
        let Some(mut next) = self.state.node(pod).children.iter().find(is_container).copied() else { return };
        while let Some(node) = self.state.nodes.get(next.at())
            && node.kind == NodeKind::Container
            && node.parent == Some(pod)
        {
            self.reset(next, at);
            self.state.nodes[next.at()].message = None;
            next = NodeIx(next.0 + 1);
        }
    }

    /// Makes a node pending again. A container may have ended; it runs again with its pod.
    fn reset(&mut self, at: NodeIx, since: Time) {
        self.change_share(at, |node: &mut Node| {
            node.phase = Phase::Pending;
            node.progress = None;
        });
        let slot = &mut self.state.nodes[at.at()];
        slot.started = since;
        slot.ran = false;
        slot.finished = None;
        slot.settled = false;
        slot.outputs = None;
        slot.host = None;
    }
}
