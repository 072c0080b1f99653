//! Promises: amounts that units get once tasks are over that are being ended, counted along the path to the root. It decides
//! nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::{Amounts, QueueIx, Tree};

/// What would be freed in each queue and those above it.
#[derive(Clone, Debug, Default)]
pub(in crate::schedule) struct FreedQuota(BTreeMap<QueueIx, Amounts>);

impl FreedQuota {
    pub(in crate::schedule) fn get(&self, at: QueueIx, index: usize) -> u64 {
        self.0.get(&at).map_or(0, |freed| freed.get(index))
    }

    /// Counts what a task of a leaf frees, or does not free after all.
    pub(in crate::schedule) fn count(&mut self, tree: &Tree, leaf: QueueIx, amounts: &Amounts, gone: bool) {
        for at in tree.path(leaf) {
            let freed = self.0.entry(at).or_default();
            if gone { freed.add(amounts) } else { freed.sub(amounts) }
        }
    }
}

impl Tree {
    /// Promises amounts to a unit of a leaf, or takes the promise back.
    pub(in crate::schedule) fn nominate(&mut self, leaf: QueueIx, amounts: &Amounts, promised: bool) {
        let path: Vec<QueueIx> = self.path(leaf).collect();
        for at in path {
            let nominated = &mut self.at(at).nominated;
            if promised {
                nominated.add(amounts);
            } else {
                nominated.sub(amounts);
            }
        }
        self.note_flux(leaf);
    }

    /// Notes whether something is promised to units of a leaf, or tasks of it are being ended.
    fn note_flux(&mut self, leaf: QueueIx) {
        let queue = self.get(leaf);
        if queue.nominated.is_zero() && queue.ending.is_zero() {
            self.in_flux.remove(&leaf);
        } else {
            self.in_flux.insert(leaf);
        }
    }

    /// Reports whether something is promised, or tasks are being ended.
    pub(super) fn is_in_flux(&self) -> bool {
        !self.in_flux.is_empty()
    }

    /// Returns what is free once all tasks are over that are being ended.
    pub(super) fn ending_quota(&self) -> FreedQuota {
        let mut freed = FreedQuota::default();
        self.in_flux.iter().for_each(|leaf| freed.count(self, *leaf, &self.get(*leaf).ending, true));
        freed
    }

    /// Counts what a task of a leaf holds as ending, or not any more.
    pub(in crate::schedule) fn count_ending(&mut self, leaf: QueueIx, amounts: &Amounts, ending: bool) {
        let mut next = Some(leaf);
        while let Some(at) = next {
            let queue = self.at(at);
            if ending {
                queue.ending.add(amounts);
            } else {
                queue.ending.sub(amounts);
            }
            next = queue.parent;
        }
        self.note_flux(leaf);
    }

    /// Reports whether these amounts fit within every quota on their path once so much is freed in each queue: within
    /// capabilities, and beside what is guaranteed to others. All that is being ended is part of what is freed.
    pub(in crate::schedule) fn fits_quotas(&self, leaf: QueueIx, wanted: &Amounts, freed: &FreedQuota) -> bool {
        let within = self.path(leaf).all(|at| {
            let queue = self.get(at);
            queue.capability.iter().all(|(index, most)| {
                let left = queue.allocated.get(index).saturating_sub(freed.get(at, index));
                let more = wanted.get(index);
                more == 0 || left.saturating_add(queue.nominated.get(index)).saturating_add(more) <= most
            })
        });
        within && !self.guaranteed.keys().any(|index| self.exceeds_then(leaf, *index, wanted.get(*index), freed))
    }

    /// Reports whether guarantees and use of a resource are more than there is, and more for what a leaf wants, once so much
    /// is freed and everybody has what was promised.
    pub(super) fn exceeds_then(&self, leaf: QueueIx, index: usize, wanted: u64, freed: &FreedQuota) -> bool {
        let with = self.reserved_then(leaf, index, wanted, freed);
        with > i128::from(self.total.get(index)) && with > self.reserved_then(leaf, index, 0, freed)
    }

    /// Returns how much of a resource all queues use or keep for guarantees once so much is freed, everybody has what was
    /// promised, and a leaf uses so much more. Only queues that this concerns are looked at.
    fn reserved_then(&self, leaf: QueueIx, index: usize, more: u64, freed: &FreedQuota) -> i128 {
        let in_flux = self.in_flux.iter().flat_map(|leaf| self.path(*leaf));
        let concerned: BTreeSet<QueueIx> = freed.0.keys().copied().chain(self.path(leaf)).chain(in_flux).collect();
        let mut deepest_first: Vec<(usize, QueueIx)> =
            concerned.into_iter().map(|at| (self.path(at).count(), at)).collect();
        deepest_first.sort_unstable_by(|one, other| other.cmp(one));
        let mut changes: BTreeMap<QueueIx, i128> = BTreeMap::new();
        let mut of_root = 0;
        for (_, at) in deepest_first {
            let queue = self.get(at);
            let used = if queue.children.is_empty() {
                i128::from(queue.allocated.get(index)) + i128::from(queue.nominated.get(index))
                    - i128::from(freed.get(at, index))
            } else {
                i128::from(queue.children_reserved.get(index)) + changes.get(&at).copied().unwrap_or(0)
            };
            let used = used + if at == leaf { i128::from(more) } else { 0 };
            let reserved = used.max(i128::from(queue.guarantee.get(index).unwrap_or(0)));
            match queue.parent {
                Some(parent) => {
                    *changes.entry(parent).or_default() += reserved - i128::from(queue.reserved.get(index));
                }
                None => of_root = reserved,
            }
        }
        of_root
    }

    /// Reports whether tasks are being ended.
    pub(in crate::schedule) fn has_ending(&self) -> bool {
        !self.get(Self::ROOT).ending.is_zero()
    }
}
