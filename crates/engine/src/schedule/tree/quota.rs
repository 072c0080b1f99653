//! Quotas: what capabilities and guarantees of others leave for a queue, and what it is entitled to. It changes nothing but who
//! waits for whom.

use super::{Amounts, QueueIx, Tree};
use octoflow_model::IdMap;

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

    /// Reports whether a queue on the path may not use so much, or guarantees of other queues leave less than this, however
    /// little is used.
    pub(in crate::schedule) fn excludes(&self, leaf: QueueIx, wanted: &Amounts) -> bool {
        let too_small = |at: QueueIx| {
            let mut most = self.get(at).capability.iter();
            most.any(|(index, most)| wanted.get(index) > most)
        };
        self.path(leaf).any(too_small) || self.guaranteed.keys().any(|index| self.is_kept(leaf, *index, wanted))
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

    /// Iterates over the resources of which guarantees and use would be more than there is: now, or once those are over that
    /// are being ended and everybody has what was promised.
    fn exceeded(&self, leaf: QueueIx, wanted: &Amounts) -> impl Iterator<Item = usize> {
        let freed = self.is_in_flux().then(|| self.ending_quota());
        self.guaranteed.keys().copied().filter(move |&index| {
            let wanted = wanted.get(index);
            self.exceeds_now(leaf, index, wanted)
                || freed.as_ref().is_some_and(|freed| wanted > 0 && self.exceeds_then(leaf, index, wanted, freed))
        })
    }

    fn exceeds_now(&self, leaf: QueueIx, index: usize, mut more: u64) -> bool {
        // How much more each queue on the way reserves: what its guarantee covers is reserved already.
        for at in self.path(leaf) {
            if more == 0 {
                return false;
            }
            let queue = self.get(at);
            let used = if queue.children.is_empty() { &queue.allocated } else { &queue.children_reserved }.get(index);
            let before = queue.reserved.get(index).max(used);
            more = used.saturating_add(more).max(before) - before;
        }
        more > 0 && self.get(Self::ROOT).reserved.get(index).saturating_add(more) > self.total.get(index)
    }

    /// Reports whether guarantees of other queues leave less than this of a resource, however little is used. What guarantees
    /// on the path cover is never kept for others, even if nodes shrank below what is guaranteed.
    fn is_kept(&self, leaf: QueueIx, resource: usize, wanted: &Amounts) -> bool {
        if wanted.get(resource) == 0 {
            return false;
        }
        let (mut reserved, mut below) = (wanted.get(resource), None);
        for at in self.path(leaf) {
            let beside = self.get(at).children.iter().filter(|child| Some(**child) != below);
            let beside: u64 = beside.map(|child| self.guaranteed_below(*child, resource)).sum();
            reserved = reserved.saturating_add(beside).max(self.get(at).guarantee.get(resource).unwrap_or(0));
            below = Some(at);
        }
        reserved > self.total.get(resource) && reserved > self.guaranteed_below(Self::ROOT, resource)
    }

    /// Returns what is guaranteed to the queues below one, in sum.
    pub(in crate::schedule) fn guaranteed_to_children(&self, at: QueueIx, resource: usize) -> u64 {
        self.get(at).children.iter().map(|child| self.guaranteed_below(*child, resource)).fold(0, u64::saturating_add)
    }

    /// Returns what is guaranteed to a queue, or in sum to those below it if that is more.
    fn guaranteed_below(&self, at: QueueIx, resource: usize) -> u64 {
        let mut sums: IdMap<QueueIx, u64> = IdMap::default();
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
}
