//! Shapes: equal demands share one entry, so that thousands of waiting tasks are tens of shapes. A shape that fits on no
//! node is inactive until room that it lacked is freed.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use octoflow_model::task::placement::NodeConstraints;

use super::{amounts::Amounts, tree::QueueIx};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ShapeIx(u32);

/// What matters for finding room.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    /// Equal tasks and how many of them; a unit of one task has one entry with one.
    pub parts: Vec<(TaskShape, u32)>,
    /// The longest it runs.
    pub bound: Option<Duration>,
}

/// One task of a shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct TaskShape {
    pub amounts: Amounts,
    pub constraints: Arc<NodeConstraints>,
}

impl Shape {
    pub(super) fn of_task(amounts: Amounts, constraints: Arc<NodeConstraints>, bound: Option<Duration>) -> Self {
        Self { parts: vec![(TaskShape { amounts, constraints }, 1)], bound }
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
    shape: Arc<Shape>,
    total: Arc<Amounts>,
    active: bool,
    /// Units of this shape in each queue.
    leaves: BTreeMap<QueueIx, u32>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Shapes {
    all: Vec<Option<Entry>>,
    unused: Vec<ShapeIx>,
    index: HashMap<Arc<Shape>, ShapeIx>,
    inactive: BTreeSet<ShapeIx>,
}

impl Shapes {
    /// Returns the index of a shape and counts one more unit of it.
    pub(super) fn enter(&mut self, shape: Shape, leaf: QueueIx) -> ShapeIx {
        let at = match self.index.get(&shape) {
            Some(at) => *at,
            None => self.insert(shape),
        };
        if let Some(entry) = self.entry(at) {
            *entry.leaves.entry(leaf).or_default() += 1;
        }
        at
    }

    fn insert(&mut self, shape: Shape) -> ShapeIx {
        let (shape, total) = (Arc::new(shape.clone()), Arc::new(shape.total()));
        let entry = Entry { shape: shape.clone(), total, active: true, leaves: BTreeMap::new() };
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
            self.inactive.remove(&at);
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

    pub(super) fn get(&self, at: ShapeIx) -> Arc<Shape> {
        self.known(at).shape.clone()
    }

    pub(super) fn total(&self, at: ShapeIx) -> Arc<Amounts> {
        self.known(at).total.clone()
    }

    pub(super) fn is_active(&self, at: ShapeIx) -> bool {
        self.known(at).active
    }

    /// Notes that no node has room for it.
    pub(super) fn deactivate(&mut self, at: ShapeIx) {
        if let Some(entry) = self.entry(at) {
            entry.active = false;
            self.inactive.insert(at);
        }
    }

    pub(super) fn inactive(&self) -> impl Iterator<Item = (ShapeIx, &Arc<Shape>, &Amounts)> {
        self.inactive.iter().map(|at| {
            let entry = self.known(*at);
            (*at, &entry.shape, &*entry.total)
        })
    }

    /// Notes that there may be room for it again; returns the queues that have units of it.
    pub(super) fn activate(&mut self, at: ShapeIx) -> Vec<QueueIx> {
        self.inactive.remove(&at);
        self.entry(at).map_or_else(Vec::new, |entry| {
            entry.active = true;
            entry.leaves.keys().copied().collect()
        })
    }
}
