//! Quotas: what capabilities and guarantees of others leave for a queue, and what it is entitled to. It changes nothing but who
//! waits for whom.

use super::{Amounts, QueueIx, Tree};

/// A quota that leaves no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::schedule) struct QuotaLimit {
    pub queue: QueueIx,
    pub resource: usize,
    /// True if the room is there, and kept for guarantees of other queues.
    pub guarantee: bool,
}

impl Tree {
    /// Notes that somebody in a leaf waits until something in a queue is freed.
    pub(in crate::schedule) fn block(&mut self, leaf: QueueIx, limit: &QuotaLimit) {
        // What is kept for others depends on everything that runs.
        let at = if limit.guarantee { Self::ROOT } else { limit.queue };
        self.at(at).blocked.insert(leaf);
    }

    /// Returns the queue whose capability, or the resource whose guarantees to others, leave no room for these amounts.
    pub(in crate::schedule) fn limit(&self, leaf: QueueIx, wanted: &Amounts) -> Option<QuotaLimit> {
        for at in self.path(leaf) {
            let queue = self.get(at);
            for (index, most) in queue.capability.iter() {
                let amount = wanted.get(index);
                if amount > 0 && queue.allocated.get(index).saturating_add(amount) > most {
                    return Some(QuotaLimit { queue: at, resource: index, guarantee: false });
                }
            }
        }
        self.guaranteed_elsewhere(leaf, wanted)
    }

    /// Reports whether the quota is smaller than these amounts, however little is used of it.
    pub(in crate::schedule) fn is_too_large(&self, limit: &QuotaLimit, wanted: &Amounts) -> bool {
        let most = self.get(limit.queue).capability.get(limit.resource);
        !limit.guarantee && most.is_some_and(|most| wanted.get(limit.resource) > most)
    }

    /// Returns the resource that must stay free for guarantees of other queues.
    fn guaranteed_elsewhere(&self, leaf: QueueIx, wanted: &Amounts) -> Option<QuotaLimit> {
        for &index in self.guaranteed.keys() {
            let amount = wanted.get(index);
            if amount == 0 {
                continue;
            }
            // How much more each queue on the way reserves: what its guarantee covers is reserved already.
            let mut more = amount;
            for at in self.path(leaf) {
                let queue = self.get(at);
                let within = if queue.children.is_empty() {
                    queue.allocated.get(index)
                } else {
                    queue.children_reserved.get(index)
                };
                let before = queue.reserved.get(index);
                more = within.saturating_add(more).max(before) - before;
                if more == 0 {
                    break;
                }
            }
            let root = self.get(Self::ROOT);
            let (total, used) = (self.total.get(index), root.allocated.get(index));
            // Without room nobody's guarantee is in the way.
            let is_free = used.saturating_add(amount) <= total;
            if more > 0 && is_free && root.reserved.get(index).saturating_add(more) > total {
                return Some(QuotaLimit { queue: leaf, resource: index, guarantee: true });
            }
        }
        None
    }

    /// Reports whether the queue, with these amounts more, uses no more than it deserves of any of them.
    pub(in crate::schedule) fn is_entitled(&self, at: QueueIx, more: &Amounts) -> bool {
        let queue = self.get(at);
        more.iter().all(|(index, amount)| {
            !self.matters(index) || queue.allocated.get(index).saturating_add(amount) <= queue.deserved.get(index)
        })
    }

    /// A resource that no node counts, such as one of an unlimited node, is never a reason to end somebody.
    fn matters(&self, index: usize) -> bool {
        self.total.get(index) > 0
    }
}
