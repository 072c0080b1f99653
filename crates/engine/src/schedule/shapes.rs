//! Shapes: equal demands share one entry, so that thousands of waiting tasks are tens of shapes. A shape that fits on no
//! node is inactive until room that it lacked is freed. Freed room is offered: every queue considers it once, until somebody
//! has taken it.

use octoflow_model::IdMap;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use octoflow_model::task::placement::NodeConstraints;

use super::{amounts::Amounts, room::NodeIx, tree::QueueIx};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ShapeIx(u32);

/// Offers of freed room are numbered; a queue remembers the last that it has considered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Offer(u64);

/// What matters for finding room.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct DemandShape {
    /// Equal tasks and how many of them; a unit of one task has one entry with one.
    pub parts: Vec<(TaskShape, u32)>,
    /// The longest it runs.
    pub bound: Option<Duration>,
    /// The class by which it may end others, so that nobody who may is behind one of its shape who may not.
    pub preempts: Option<i32>,
}

/// One task of a shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct TaskShape {
    pub amounts: Amounts,
    pub constraints: Arc<NodeConstraints>,
}

impl DemandShape {
    pub(super) fn of_task(amounts: Amounts, constraints: Arc<NodeConstraints>, bound: Option<Duration>) -> Self {
        Self { parts: vec![(TaskShape { amounts, constraints }, 1)], bound, preempts: None }
    }

    /// Returns the sum over all tasks.
    pub(super) fn total(&self) -> Amounts {
        let mut total = Amounts::default();
        for (task, count) in &self.parts {
            total.add(&task.amounts.times(u64::from(*count)));
        }
        total
    }

    /// Returns the task of a unit of one.
    pub(super) fn single(&self) -> Option<&TaskShape> {
        match &self.parts[..] {
            [(task, 1)] => Some(task),
            [] | [_] | [_, ..] => None,
        }
    }
}

#[derive(Clone, Debug)]
struct Entry {
    shape: Arc<DemandShape>,
    total: Arc<Amounts>,
    place: Fit,
    /// Nodes where room was freed that is on offer.
    offered: Vec<NodeIx>,
    /// True if a queue left room unused because it is reserved: room elsewhere may be used.
    held_back: bool,
    /// Units of this shape in each queue.
    leaves: BTreeMap<QueueIx, u32>,
}

/// Where a shape may fit now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    Nowhere,
    /// Only on nodes that are on offer.
    Offered,
    Anywhere,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Shapes {
    all: Vec<Option<Entry>>,
    unused: Vec<ShapeIx>,
    index: IdMap<Arc<DemandShape>, ShapeIx>,
    /// Shapes to ask when room is freed: those that fit nowhere or were held back.
    asking: BTreeSet<ShapeIx>,
    /// Shapes with room on offer.
    offers: BTreeSet<ShapeIx>,
    last: Offer,
}

impl Shapes {
    /// Returns the index of a shape and counts one more unit of it.
    pub(super) fn enter(&mut self, shape: DemandShape, leaf: QueueIx) -> ShapeIx {
        let at = match self.index.get(&shape) {
            Some(at) => *at,
            None => self.insert(shape),
        };
        if let Some(entry) = self.entry(at) {
            *entry.leaves.entry(leaf).or_default() += 1;
        }
        at
    }

    fn insert(&mut self, shape: DemandShape) -> ShapeIx {
        let (shape, total) = (Arc::new(shape.clone()), Arc::new(shape.total()));
        let entry = Entry {
            shape: shape.clone(),
            total,
            place: Fit::Anywhere,
            offered: Vec::new(),
            held_back: false,
            leaves: BTreeMap::new(),
        };
        let at = match self.unused.pop() {
            Some(at) => {
                self.all[at.0 as usize] = Some(entry);
                at
            }
            None => {
                self.all.push(Some(entry));
                ShapeIx(u32::try_from(self.all.len() - 1).expect("fewer shapes than bytes of memory"))
            }
        };
        self.index.insert(shape, at);
        at
    }

    /// Counts one unit less; a shape that nobody has any more is forgotten.
    pub(super) fn leave(&mut self, at: ShapeIx, leaf: QueueIx) {
        let Some(entry) = self.entry(at) else { return };
        if let Some(count) = entry.leaves.get_mut(&leaf) {
            *count -= 1;
            if *count == 0 {
                entry.leaves.remove(&leaf);
            }
        }
        if entry.leaves.is_empty() {
            let shape = entry.shape.clone();
            self.index.remove(&shape);
            self.asking.remove(&at);
            self.offers.remove(&at);
            self.all[at.0 as usize] = None;
            self.unused.push(at);
        }
    }

    fn entry(&mut self, at: ShapeIx) -> Option<&mut Entry> {
        self.all.get_mut(at.0 as usize)?.as_mut()
    }

    fn known(&self, at: ShapeIx) -> &Entry {
        self.all[at.0 as usize].as_ref().expect("a shape is there while units have it")
    }

    pub(super) fn get(&self, at: ShapeIx) -> Arc<DemandShape> {
        self.known(at).shape.clone()
    }

    pub(super) fn total(&self, at: ShapeIx) -> Arc<Amounts> {
        self.known(at).total.clone()
    }

    pub(super) fn is_active(&self, at: ShapeIx) -> bool {
        self.known(at).place != Fit::Nowhere
    }

    pub(super) fn place(&self, at: ShapeIx) -> Fit {
        self.known(at).place
    }

    pub(super) fn offered(&self, at: ShapeIx) -> &[NodeIx] {
        &self.known(at).offered
    }

    /// Notes that no node has room for it.
    pub(super) fn deactivate(&mut self, at: ShapeIx) {
        if let Some(entry) = self.entry(at) {
            entry.place = Fit::Nowhere;
            entry.offered.clear();
            entry.held_back = false;
            self.asking.insert(at);
            self.offers.remove(&at);
        }
    }

    /// Notes that a queue leaves room for it unused because it is reserved.
    pub(super) fn hold_back(&mut self, at: ShapeIx) {
        if let Some(entry) = self.entry(at).filter(|entry| !entry.held_back) {
            entry.held_back = true;
            self.asking.insert(at);
        }
    }

    /// Iterates over the shapes to ask when room is freed.
    pub(super) fn asking(&self) -> impl Iterator<Item = (ShapeIx, &Arc<DemandShape>)> {
        self.asking.iter().map(|at| (*at, &self.known(*at).shape))
    }

    /// Offers room on a node to a shape.
    pub(super) fn offer(&mut self, at: ShapeIx, node: NodeIx) {
        self.last.0 += 1;
        if let Some(entry) = self.entry(at) {
            // Units of several tasks need more than one node.
            let single = entry.shape.single().is_some();
            entry.place = match entry.place {
                Fit::Nowhere if single => Fit::Offered,
                Fit::Offered => Fit::Offered,
                Fit::Nowhere | Fit::Anywhere => Fit::Anywhere,
            };
            if !entry.offered.contains(&node) {
                entry.offered.push(node);
            }
            self.offers.insert(at);
        }
    }

    /// Removes offers of nodes that have no room any more.
    pub(super) fn prune(&mut self, fits: impl Fn(&DemandShape, NodeIx) -> bool) {
        let offers: Vec<ShapeIx> = self.offers.iter().copied().collect();
        for at in offers {
            let Some(entry) = self.entry(at) else { continue };
            let shape = entry.shape.clone();
            entry.offered.retain(|node| fits(&shape, *node));
            if entry.offered.is_empty() {
                self.offers.remove(&at);
                if self.known(at).place == Fit::Offered {
                    self.deactivate(at);
                }
            }
        }
    }

    /// Returns the last offer that is not settled.
    pub(super) fn offer_on_the_table(&self) -> Option<Offer> {
        (!self.offers.is_empty()).then_some(self.last)
    }

    pub(super) fn last_offer(&self) -> Offer {
        self.last
    }

    /// Notes that every queue has considered what is on offer: whoever left it has a reason that lasts, or was held back.
    pub(super) fn settle_offers(&mut self) {
        for at in std::mem::take(&mut self.offers) {
            if let Some(entry) = self.entry(at) {
                entry.offered.clear();
                entry.place = Fit::Anywhere;
                if !entry.held_back {
                    self.asking.remove(&at);
                }
            }
        }
    }

    /// Notes that there may be room anywhere, and returns the queues that have units of it.
    pub(super) fn activate(&mut self, at: ShapeIx) -> Vec<QueueIx> {
        self.offers.remove(&at);
        let Some(entry) = self.entry(at) else { return Vec::new() };
        entry.place = Fit::Anywhere;
        entry.offered.clear();
        let leaves = entry.leaves.keys().copied().collect();
        if !entry.held_back {
            self.asking.remove(&at);
        }
        leaves
    }
}
