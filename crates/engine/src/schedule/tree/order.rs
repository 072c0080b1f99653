//! The order in which leaves are served: level by level from the root. It only reads.

use super::{OrderKey, QueueIx, Tree, work};

impl Tree {
    /// Iterates over the leaves where something waits, in the order of service.
    pub(in crate::schedule) fn leaves(&self) -> Leaves<'_> {
        Leaves { tree: self, open: vec![Visit::Queue(Self::ROOT)] }
    }

    /// Returns the place of a leaf in the order of service; a queue comes before those below it.
    pub(in crate::schedule) fn place_of(&self, leaf: QueueIx) -> Vec<(OrderKey, QueueIx)> {
        let mut place: Vec<_> = self.path(leaf).map(|at| (self.get(at).key.clone(), at)).collect();
        place.reverse();
        place
    }
}

/// Leaves in the order of service.
pub(in crate::schedule) struct Leaves<'t> {
    tree: &'t Tree,
    open: Vec<Visit<'t>>,
}

enum Visit<'t> {
    Queue(QueueIx),
    Children(std::collections::btree_set::Iter<'t, (OrderKey, QueueIx)>),
}

impl Iterator for Leaves<'_> {
    type Item = QueueIx;

    fn next(&mut self) -> Option<QueueIx> {
        loop {
            match self.open.last_mut()? {
                Visit::Children(children) => match children.next() {
                    Some((_, child)) => {
                        let child = *child;
                        self.open.push(Visit::Queue(child));
                    }
                    None => {
                        self.open.pop();
                    }
                },
                Visit::Queue(at) => {
                    work::look();
                    let at = *at;
                    self.open.pop();
                    let queue = self.tree.get(at);
                    self.open.push(Visit::Children(queue.order.iter()));
                    if queue.leaf.waits() {
                        return Some(at);
                    }
                }
            }
        }
    }
}
