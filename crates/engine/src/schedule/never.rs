//! Units that could never start, whatever ends: larger than every node, than a queue on their path, or than what guarantees of
//! others leave. They hold up nobody. It only looks.

use super::{Scheduler, shapes::ShapeIx, tree::QueueIx};

impl Scheduler {
    /// Reports whether units of this shape could never start in a queue as nodes and queues are now.
    pub(super) fn can_never_start(&mut self, leaf: QueueIx, shape: ShapeIx) -> bool {
        let versions = (self.tree.version(), self.nodes_version);
        let (of, known) = &mut self.tree.leaf(leaf).never;
        if *of != versions {
            *of = versions;
            known.clear();
        }
        if let Some(never) = known.get(&shape) {
            return *never;
        }
        let never = self.tree.excludes(leaf, &self.shapes.total(shape)) || !self.is_held_by_nodes(shape);
        self.tree.leaf(leaf).never.1.insert(shape, never);
        never
    }

    fn is_held_by_nodes(&self, shape: ShapeIx) -> bool {
        let shape = self.shapes.get(shape);
        self.room.could_hold(&shape, &self.names, false) || self.room.node_for_alone(&shape, &self.names).is_some()
    }
}
