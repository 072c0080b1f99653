//! Quotas: what capabilities and guarantees of others leave for a queue, and what it is entitled to. It changes nothing but who
//! waits for whom.

use std::collections::HashMap;

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
                if amount > 0 && queue.used(index).saturating_add(amount) > most {
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

    /// Returns the resource that must stay free for guarantees of other queues. Without room nobody's guarantee is in the
    /// way.
    fn guaranteed_elsewhere(&self, leaf: QueueIx, wanted: &Amounts) -> Option<QuotaLimit> {
        let root = self.get(Self::ROOT);
        let is_free =
            |index: usize| root.allocated.get(index).saturating_add(wanted.get(index)) <= self.total.get(index);
        let resource = self.exceeded(leaf, wanted).find(|index| is_free(*index))?;
        Some(QuotaLimit { queue: leaf, resource, guarantee: true })
    }

    /// Returns the limit by which these amounts would leave less than is guaranteed to other queues.
    pub(in crate::schedule) fn breaks_guarantees(&self, leaf: QueueIx, wanted: &Amounts) -> Option<QuotaLimit> {
        let resource = self.exceeded(leaf, wanted).next()?;
        Some(QuotaLimit { queue: leaf, resource, guarantee: true })
    }

    /// Iterates over the resources of which guarantees and use would be more than there is.
    fn exceeded(&self, leaf: QueueIx, wanted: &Amounts) -> impl Iterator<Item = usize> {
        self.guaranteed.keys().copied().filter(move |&index| {
            let mut more = wanted.get(index);
            // How much more each queue on the way reserves: what its guarantee covers is reserved already.
            for at in self.path(leaf) {
                if more == 0 {
                    break;
                }
                let queue = self.get(at);
                let within = if queue.children.is_empty() {
                    queue.allocated.get(index)
                } else {
                    queue.children_reserved.get(index)
                };
                let before = queue.reserved.get(index);
                more = within.saturating_add(more).max(before) - before;
            }
            // What was promised to others is theirs, beyond what those leave who are being ended for them.
            let root = self.get(Self::ROOT);
            let taken = root.reserved.get(index).saturating_add(root.promised(index));
            more > 0 && taken.saturating_add(more) > self.total.get(index)
        })
    }

    /// Reports whether a limit leaves less than this, however little is used.
    pub(in crate::schedule) fn is_never_free(&self, leaf: QueueIx, limit: &QuotaLimit, wanted: &Amounts) -> bool {
        if !limit.guarantee {
            return self.is_too_large(limit, wanted);
        }
        let resource = limit.resource;
        let path: Vec<QueueIx> = self.path(leaf).collect();
        // What is guaranteed to queues beside the path is never free for this one.
        let beside = path.iter().skip(1).flat_map(|at| &self.get(*at).children).filter(|child| !path.contains(child));
        let kept: u64 = beside.map(|child| self.guaranteed_below(*child, resource)).sum();
        kept.saturating_add(wanted.get(resource)) > self.total.get(resource)
    }

    /// Reports whether guarantees of other queues leave less than this, however little is used.
    pub(in crate::schedule) fn excludes(&self, leaf: QueueIx, wanted: &Amounts) -> bool {
        self.guaranteed.keys().filter(|resource| wanted.get(**resource) > 0).any(|resource| {
            let limit = QuotaLimit { queue: leaf, resource: *resource, guarantee: true };
            self.is_never_free(leaf, &limit, wanted)
        })
    }

    /// Returns what is guaranteed to a queue, or in sum to those below it if that is more.
    fn guaranteed_below(&self, at: QueueIx, resource: usize) -> u64 {
        let mut sums: HashMap<QueueIx, u64> = HashMap::new();
        // Children come after their parents in this list.
        let mut down = vec![at];
        let mut next = 0;
        while let Some(&at) = down.get(next) {
            next += 1;
            down.extend(&self.get(at).children);
        }
        for &at in down.iter().rev() {
            let queue = self.get(at);
            let below: u64 = queue.children.iter().filter_map(|child| sums.get(child)).sum();
            sums.insert(at, below.max(queue.guarantee.get(resource).unwrap_or(0)));
        }
        sums.get(&at).copied().unwrap_or(0)
    }

    /// Reports whether the queue, with these amounts more, uses no more than it deserves of any of them.
    pub(in crate::schedule) fn is_entitled(&self, at: QueueIx, more: &Amounts) -> bool {
        let queue = self.get(at);
        more.iter().all(|(index, amount)| {
            !self.matters(index) || queue.used(index).saturating_add(amount) <= queue.deserved.get(index)
        })
    }

    /// A resource that no node counts, such as one of an unlimited node, is never a reason to end somebody.
    fn matters(&self, index: usize) -> bool {
        self.total.get(index) > 0
    }
}
