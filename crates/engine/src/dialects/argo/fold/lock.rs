//! Folds facts about locks: wanted, waited for, and held.

use octoflow_model::{
    Claim, NodeIx, Time,
    argo::{NodeKind, Phase},
};

use super::Fold;
use crate::dialects::argo::{
    node::{Leaf, Lock},
    todo::Note,
};

impl Fold<'_> {
    pub(super) fn want(&mut self, node: Option<NodeIx>, locks: &[Claim]) {
        *self.lock_mut(node) = Some(Box::new(Lock::wanted(locks)));
        self.note(Note::Wants(node));
    }

    pub(super) fn wait(&mut self, node: Option<NodeIx>, lock: &str, holders: &[String], message: &str) {
        if let Some(slot) = self.lock_mut(node) {
            slot.waits = Some((lock.to_owned(), holders.to_vec()));
        }
        match node {
            Some(node) => self.state.nodes[node.at()].message = Some(message.into()),
            None => message.clone_into(&mut self.state.message),
        }
    }

    fn lock_mut(&mut self, node: Option<NodeIx>) -> &mut Option<Box<Lock>> {
        match node {
            Some(node) => &mut self.state.nodes[node.at()].lock,
            None => &mut self.state.lock,
        }
    }

    /// Folds that all locks are held: a task goes to the scheduler's queue, every other node begins.
    pub(super) fn unbar(&mut self, node: Option<NodeIx>, wake: Option<Time>) {
        if let Some(lock) = self.lock_mut(node) {
            lock.held = true;
            lock.waits = None;
        }
        let Some(at) = node else {
            self.state.message.clear();
            self.note(Note::RunChanged);
            return;
        };
        let slot = &mut self.state.nodes[at.at()];
        slot.barred = false;
        slot.message = None;
        if let (Some(until), true) = (wake, slot.wake != wake) {
            self.notes.push(Note::Wake(until, Some(at)));
        }
        slot.wake = wake;
        if slot.kind.tasked() {
            slot.move_to(Leaf::Queued);
            self.note(Note::Queued(at));
        } else {
            slot.enter(Phase::Running);
            if slot.kind == NodeKind::Retry {
                self.note(Note::RetryLocked(at));
            }
        }
        self.count(at, 1);
        self.note(Note::Changed(at));
    }
}
