//! By which resources a queue is judged: of which of them it may take something back, and of which it has more than it deserves.
//! It only reads.

use super::{Amounts, Queue, QueueIx, Share, Tree, WHOLE};
use crate::schedule::amounts::PODS;

/// A set of resources by index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Judged(Vec<bool>);

impl Judged {
    fn insert(&mut self, index: usize) {
        if self.0.len() <= index {
            self.0.resize(index + 1, false);
        }
        self.0[index] = true;
    }

    fn contains(&self, index: usize) -> bool {
        self.0.get(index).copied().unwrap_or(false)
    }
}

impl Tree {
    /// Returns the resources of which a queue, or one above it, states what it deserves. The root has everything and states
    /// nothing. What is stated above must be up to date.
    pub(super) fn named_by(&self, at: QueueIx) -> Judged {
        let queue = self.get(at);
        let Some(parent) = queue.parent else { return Judged::default() };
        let mut named = self.get(parent).named.clone();
        queue.declared.iter().for_each(|(index, _)| named.insert(index));
        named
    }

    /// Returns the resources by which a queue is judged for which these are named: those, or, where nothing is, all that
    /// weights divide. How many tasks run is nobody's due unless somebody says so. What no node counts, such as what an
    /// unlimited node has, is never a reason to end somebody.
    pub(super) fn judged_by(&self, named: &Judged) -> Judged {
        let mut judged = Judged::default();
        let by_weight = !named.0.contains(&true);
        for (index, _) in self.total.iter() {
            if named.contains(index) || (by_weight && index != PODS) {
                judged.insert(index);
            }
        }
        judged
    }

    /// Reports whether the queue, with these amounts more, uses no more than it deserves of any of them that it is judged by.
    pub(in crate::schedule) fn is_entitled(&self, at: QueueIx, more: &Amounts) -> bool {
        let queue = self.get(at);
        more.iter().all(|(index, amount)| {
            !queue.judged.contains(index) || queue.used(index).saturating_add(amount) <= queue.deserved.get(index)
        })
    }

    /// Reports whether a unit of a leaf with these amounts may take something back: it stays within what its queue deserves,
    /// and wants something of that.
    pub(in crate::schedule) fn may_reclaim(&self, leaf: QueueIx, wanted: &Amounts) -> bool {
        let queue = self.get(leaf);
        self.has_over()
            && wanted.iter().any(|(index, _)| queue.judged.contains(index))
            && self.is_entitled(leaf, wanted)
    }
}

impl Queue {
    /// Reports whether it is judged by a resource, and would have more than it deserves of it without so much.
    pub(in crate::schedule) fn is_above_without(&self, index: usize, gone: u64) -> bool {
        self.judged.contains(index) && self.allocated.get(index).saturating_sub(gone) > self.deserved.get(index)
    }

    /// Reports whether it uses more than it deserves of something that it is judged by.
    pub(in crate::schedule) fn is_over(&self) -> bool {
        self.allocated.iter().any(|(index, _)| self.is_above_without(index, 0))
    }

    /// Returns the largest part that it uses of what it deserves: of what it is judged by, or, if it uses nothing of that, of
    /// everything, so that nobody is always first.
    pub(in crate::schedule) fn share(&self) -> Share {
        let part = |(index, used): (usize, u64)| {
            let part = u128::from(used) * u128::from(WHOLE.0) / u128::from(self.deserved.get(index).max(1));
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        let judged = self.allocated.iter().filter(|(index, _)| self.judged.contains(*index)).map(part).max();
        let any = || self.allocated.iter().filter(|(index, _)| self.deserved.get(*index) > 0).map(part).max();
        Share(judged.or_else(any).unwrap_or(0))
    }
}
