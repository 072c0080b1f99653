//! The part of the fold that is about locks: who wants them, waits for them and has them.

use octoflow_model::{
    NodeIx, Time,
    argo::{Phase, WorkflowFact},
};

use crate::argo::{
    node::{Body, Leaf, Lock},
    run::Run,
};

impl Run {
    pub(super) fn apply_to_lock(&mut self, fact: &WorkflowFact) {
        match fact {
            WorkflowFact::Wanted { node, locks } => {
                *self.lock_mut(*node) = Some(Box::new(Lock::wanted(locks)));
                self.todo.wants.push(*node);
            }
            WorkflowFact::Waiting { node, lock, holders, message, .. } => {
                if let Some(slot) = self.lock_mut(*node) {
                    slot.waits = Some((lock.clone(), holders.clone()));
                }
                match node {
                    Some(node) => self.state.nodes[node.at()].message = Some(message.as_str().into()),
                    None => self.state.message.clone_from(message),
                }
            }
            WorkflowFact::Locked { node, wake, .. } => self.unbar(*node, *wake),
            _ => unreachable!("the fold hands on only these"),
        }
    }

    fn lock_mut(&mut self, node: Option<NodeIx>) -> &mut Option<Box<Lock>> {
        match node {
            Some(node) => &mut self.state.nodes[node.at()].lock,
            None => &mut self.state.lock,
        }
    }

    /// It holds its locks: a task goes to the scheduler, everything else begins.
    fn unbar(&mut self, node: Option<NodeIx>, wake: Option<Time>) {
        if let Some(lock) = self.lock_mut(node) {
            lock.held = true;
            lock.waits = None;
        }
        let Some(at) = node else {
            self.state.message.clear();
            self.todo.run = true;
            return;
        };
        let slot = &mut self.state.nodes[at.at()];
        slot.barred = false;
        slot.message = None;
        if let (Some(until), true) = (wake, slot.wake != wake) {
            self.todo.wakes.push((until, Some(at)));
        }
        slot.wake = wake;
        if slot.kind.tasked() {
            slot.body = Body::Leaf(Leaf::Queued);
            self.todo.queued.push(at);
        } else {
            slot.phase = Phase::Running;
        }
        self.count(at, 1);
        self.todo.agenda.push_back(at);
    }
}
