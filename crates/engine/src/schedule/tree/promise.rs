//! Promises: amounts that units get once tasks are over that are being ended, counted along the path to the root. It decides
//! nothing.

use super::{Amounts, QueueIx, Tree};

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
    }

    /// Reports whether these amounts would leave less than is guaranteed to other queues once leaves have freed others.
    pub(in crate::schedule) fn breaks_guarantees_without(
        &mut self,
        leaf: QueueIx,
        wanted: &Amounts,
        freed: &[(QueueIx, Amounts)],
    ) -> bool {
        if self.guaranteed.is_empty() {
            return false;
        }
        for (at, amounts) in freed {
            self.change(*at, |queue| queue.allocated.sub(amounts));
        }
        // Nothing is left then that is being ended.
        let ending = std::mem::take(&mut self.at(Self::ROOT).ending);
        let breaks = self.breaks_guarantees(leaf, wanted).is_some();
        self.at(Self::ROOT).ending = ending;
        for (at, amounts) in freed {
            self.change(*at, |queue| queue.allocated.add(amounts));
        }
        breaks
    }

    /// Reports whether tasks are being ended.
    pub(in crate::schedule) fn has_ending(&self) -> bool {
        !self.get(Self::ROOT).ending.is_zero()
    }
}
