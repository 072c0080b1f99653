//! The tree of queues: what each uses, deserves and may use, kept along the path to the root; and the order in which
//! queues are served, level by level. It knows neither nodes nor tasks.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use super::{
    amounts::{Amounts, Bounds, ResourceNames},
    spec::{DEFAULT, QueueSpec, ROOT},
    waiting::Leaf,
};

/// A queue by its place in the tree's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct QueueIx(u32);

/// Deeper trees are refused at admission; whatever gets here all the same is cut off, so that no walk is endless.
pub const MAX_DEPTH: usize = 8;

/// The place of a queue among its siblings: those below their guarantee first, then by priority, then by the smaller share
/// of what they deserve.
type OrderKey = (bool, Reverse<i32>, Share, Arc<str>);

/// A dominant share in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Share(pub u64);

pub(super) const WHOLE: Share = Share(1_000_000);

#[derive(Clone, Debug)]
pub(super) struct Queue {
    pub spec: QueueSpec,
    /// False if tasks name it and nobody has created it, or it was deleted under them.
    pub exists: bool,
    pub parent: Option<QueueIx>,
    children: Vec<QueueIx>,
    guarantee: Bounds,
    capability: Bounds,
    declared: Bounds,
    /// What it deserves of each resource: as declared, else by weight.
    deserved: Amounts,
    allocated: Amounts,
    /// The larger of guarantee and use, for an inner queue the larger of guarantee and the sum of its children's.
    reserved: Amounts,
    /// Units that wait here or below.
    pub pending: usize,
    /// Children where something waits.
    order: BTreeSet<(OrderKey, QueueIx)>,
    key: OrderKey,
    /// Counts how often something here or below was freed.
    freed: u64,
    pub leaf: Leaf,
}

#[derive(Clone, Debug)]
pub(super) struct Tree {
    queues: Vec<Queue>,
    by_name: HashMap<Arc<str>, QueueIx>,
    /// True if what queues deserve has to be computed again.
    stale: bool,
    /// Resources of which some queue has a guarantee.
    guaranteed: BTreeSet<usize>,
    /// Everything that all nodes have.
    total: Amounts,
}

impl Tree {
    pub(super) fn new(names: &mut ResourceNames) -> Self {
        let mut tree = Self {
            queues: Vec::new(),
            by_name: HashMap::new(),
            stale: true,
            guaranteed: BTreeSet::new(),
            total: Amounts::default(),
        };
        tree.put(QueueSpec::new(ROOT), names);
        tree.put(QueueSpec::new(DEFAULT), names);
        tree
    }

    pub(super) const ROOT: QueueIx = QueueIx(0);

    pub(super) fn get(&self, at: QueueIx) -> &Queue {
        &self.queues[at.0 as usize]
    }

    fn at(&mut self, at: QueueIx) -> &mut Queue {
        &mut self.queues[at.0 as usize]
    }

    pub(super) fn leaf(&mut self, at: QueueIx) -> &mut Leaf {
        &mut self.at(at).leaf
    }

    pub(super) fn find(&self, name: &str) -> Option<QueueIx> {
        self.by_name.get(name).copied()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (QueueIx, &Queue)> {
        self.queues.iter().enumerate().map(|(index, queue)| (QueueIx(index as u32), queue))
    }

    /// Returns the queue of this name. One that does not exist is remembered; nothing starts in it.
    pub(super) fn find_or_remember(&mut self, name: &Arc<str>) -> QueueIx {
        if let Some(at) = self.by_name.get(name) {
            return *at;
        }
        let parent = (!self.queues.is_empty()).then_some(Self::ROOT);
        let at = QueueIx(u32::try_from(self.queues.len()).expect("fewer queues than bytes of memory"));
        self.queues.push(Queue {
            spec: QueueSpec::new(name.clone()),
            exists: false,
            parent,
            children: Vec::new(),
            guarantee: Bounds::default(),
            capability: Bounds::default(),
            declared: Bounds::default(),
            deserved: Amounts::default(),
            allocated: Amounts::default(),
            reserved: Amounts::default(),
            pending: 0,
            order: BTreeSet::new(),
            key: (false, Reverse(0), Share(0), name.clone()),
            freed: 0,
            leaf: Leaf::default(),
        });
        self.by_name.insert(name.clone(), at);
        if let Some(parent) = parent {
            self.at(parent).children.push(at);
        }
        self.stale = true;
        at
    }

    /// Creates or changes a queue.
    pub(super) fn put(&mut self, spec: QueueSpec, names: &mut ResourceNames) {
        let at = self.find_or_remember(&spec.name);
        let parent = match (&spec.parent, at == Self::ROOT) {
            (_, true) => None,
            (None, false) => Some(Self::ROOT),
            (Some(parent), false) => Some(self.find_or_remember(parent)),
        };
        let parent = parent.map(|parent| if self.is_below(parent, at) { Self::ROOT } else { parent });
        let queue = self.at(at);
        queue.exists = true;
        queue.guarantee = names.bounds(&spec.guarantee);
        queue.capability = names.bounds(&spec.capability);
        queue.declared = names.bounds(&spec.deserved);
        queue.spec = spec;
        queue.leaf.dirty = true;
        if queue.parent != parent {
            self.move_below(at, parent);
        }
        self.stale = true;
    }

    /// Removes a queue. What still waits in it keeps its place and does not start.
    pub(super) fn remove(&mut self, name: &str) {
        if let Some(at) = self.find(name) {
            let queue = self.at(at);
            let spec = QueueSpec { parent: queue.spec.parent.clone(), ..QueueSpec::new(queue.spec.name.clone()) };
            queue.exists = false;
            queue.spec = spec;
            queue.guarantee = Bounds::default();
            queue.capability = Bounds::default();
            queue.declared = Bounds::default();
            self.stale = true;
        }
    }

    fn is_below(&self, mut at: QueueIx, above: QueueIx) -> bool {
        for _ in 0..MAX_DEPTH {
            if at == above {
                return true;
            }
            let Some(parent) = self.get(at).parent else { return false };
            at = parent;
        }
        true
    }

    fn move_below(&mut self, at: QueueIx, parent: Option<QueueIx>) {
        let (allocated, pending) = (self.get(at).allocated.clone(), self.get(at).pending);
        let mut above = self.get(at).parent;
        while let Some(queue) = above {
            self.at(queue).allocated.sub(&allocated);
            self.at(queue).pending -= pending;
            above = self.get(queue).parent;
        }
        if let Some(before) = self.get(at).parent {
            let key = self.get(at).key.clone();
            self.at(before).children.retain(|child| *child != at);
            self.at(before).order.remove(&(key, at));
        }
        self.at(at).parent = parent;
        let mut above = parent;
        if let Some(parent) = parent {
            self.at(parent).children.push(at);
        }
        while let Some(queue) = above {
            self.at(queue).allocated.add(&allocated);
            self.at(queue).pending += pending;
            above = self.get(queue).parent;
        }
    }

    pub(super) fn set_total(&mut self, total: Amounts) {
        if self.total != total {
            self.total = total;
            self.stale = true;
        }
    }

    pub(super) fn total(&self) -> &Amounts {
        &self.total
    }

    /// Computes again what queues deserve, reserve and where they stand, after a change of queues or nodes.
    pub(super) fn refresh(&mut self) {
        if !std::mem::take(&mut self.stale) {
            return;
        }
        self.guaranteed = self.queues.iter().flat_map(|queue| queue.guarantee.iter().map(|(index, _)| index)).collect();
        self.at(Self::ROOT).deserved = self.total.clone();
        // From the root down, without recursion: a parent comes before its children.
        let mut down = vec![Self::ROOT];
        let mut next = 0;
        while let Some(&at) = down.get(next) {
            next += 1;
            let children = self.get(at).children.clone();
            let weights: u64 = children.iter().map(|child| u64::from(self.get(*child).spec.weight)).sum();
            let whole = self.get(at).deserved.clone();
            for child in children {
                let queue = self.at(child);
                let mut deserved = Amounts::default();
                for (index, amount) in whole.iter() {
                    let part = u128::from(amount) * u128::from(queue.spec.weight) / u128::from(weights.max(1));
                    deserved.set(index, u64::try_from(part).unwrap_or(u64::MAX));
                }
                for (index, amount) in queue.declared.iter() {
                    deserved.set(index, amount);
                }
                queue.deserved = deserved;
                queue.leaf.dirty = true;
                down.push(child);
            }
        }
        for &at in down.iter().rev() {
            self.at(at).order.clear();
            self.recount(at);
        }
        for &at in &down {
            self.place(at);
        }
    }

    /// Computes what a queue reserves from its own use or from its children.
    fn recount(&mut self, at: QueueIx) {
        if self.guaranteed.is_empty() {
            return;
        }
        let queue = self.get(at);
        let mut reserved = if queue.children.is_empty() { queue.allocated.clone() } else { Amounts::default() };
        for child in &queue.children {
            reserved.add(&self.get(*child).reserved);
        }
        for (index, least) in queue.guarantee.iter() {
            reserved.set(index, reserved.get(index).max(least));
        }
        self.at(at).reserved = reserved;
    }

    /// Enters a queue into its parent's order, at its present place.
    fn place(&mut self, at: QueueIx) {
        let queue = self.get(at);
        let key = (!queue.is_below_guarantee(), Reverse(queue.spec.priority), queue.share(), queue.spec.name.clone());
        let (before, waits) = (queue.key.clone(), queue.pending > 0);
        let Some(parent) = queue.parent else { return };
        let order = &mut self.at(parent).order;
        order.remove(&(before, at));
        if waits {
            order.insert((key.clone(), at));
        }
        self.at(at).key = key;
    }

    /// Iterates over a queue and its ancestors, the root last.
    pub(super) fn path(&self, at: QueueIx) -> impl Iterator<Item = QueueIx> + '_ {
        std::iter::successors(Some(at), |at| self.get(*at).parent)
    }

    /// Counts a unit that begins or ceases to wait in a leaf.
    pub(super) fn count(&mut self, leaf: QueueIx, begins: bool) {
        let mut next = Some(leaf);
        while let Some(at) = next {
            let queue = self.at(at);
            queue.pending = if begins { queue.pending + 1 } else { queue.pending - 1 };
            next = queue.parent;
            // The place depends on whether something waits only where that changes.
            if (begins && self.get(at).pending == 1) || self.get(at).pending == 0 {
                self.place(at);
            }
        }
    }

    pub(super) fn allocate(&mut self, leaf: QueueIx, amounts: &Amounts) {
        self.change(leaf, |queue| queue.allocated.add(amounts));
    }

    pub(super) fn free(&mut self, leaf: QueueIx, amounts: &Amounts) {
        self.change(leaf, |queue| {
            queue.allocated.sub(amounts);
            queue.freed += 1;
        });
    }

    fn change(&mut self, leaf: QueueIx, apply: impl Fn(&mut Queue)) {
        let mut next = Some(leaf);
        while let Some(at) = next {
            apply(self.at(at));
            self.recount(at);
            self.place(at);
            next = self.get(at).parent;
        }
    }

    /// Counts how often something was freed in the queues that limit this one.
    pub(super) fn freed(&self, leaf: QueueIx) -> u64 {
        self.path(leaf).map(|at| self.get(at).freed).sum()
    }

    /// Returns the queue whose capability, or the resource whose guarantees to others, leave no room for these amounts.
    pub(super) fn limit(&self, leaf: QueueIx, wanted: &Amounts) -> Option<QuotaLimit> {
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
    pub(super) fn is_too_large(&self, limit: &QuotaLimit, wanted: &Amounts) -> bool {
        let most = self.get(limit.queue).capability.get(limit.resource);
        !limit.guarantee && most.is_some_and(|most| wanted.get(limit.resource) > most)
    }

    /// Returns the resource that must stay free for guarantees of other queues.
    fn guaranteed_elsewhere(&self, leaf: QueueIx, wanted: &Amounts) -> Option<QuotaLimit> {
        for &index in &self.guaranteed {
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
                    queue.children.iter().map(|child| self.get(*child).reserved.get(index)).sum()
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

    /// Returns the next leaf in the order of service, after those that `skip` excludes. Costs as many steps as there are
    /// queues before it.
    pub(super) fn leaves(&self) -> Leaves<'_> {
        Leaves { tree: self, open: vec![Visit::Queue(Self::ROOT)] }
    }

    /// Reports whether the queue, with these amounts more, uses no more than it deserves of any of them.
    pub(super) fn is_entitled(&self, at: QueueIx, more: &Amounts) -> bool {
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

/// A quota that leaves no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QuotaLimit {
    pub queue: QueueIx,
    pub resource: usize,
    /// True if the room is there, and kept for guarantees of other queues.
    pub guarantee: bool,
}

impl Queue {
    fn is_below_guarantee(&self) -> bool {
        self.guarantee.iter().any(|(index, least)| self.allocated.get(index) < least)
    }

    /// Returns the largest part that it uses of what it deserves.
    pub(super) fn share(&self) -> Share {
        let of = |(index, used): (usize, u64)| match self.deserved.get(index) {
            0 => u64::MAX,
            deserved => {
                u64::try_from(u128::from(used) * u128::from(WHOLE.0) / u128::from(deserved)).unwrap_or(u64::MAX)
            }
        };
        // A resource that nobody counts says nothing about fairness.
        let counted =
            self.allocated.iter().filter(|(index, _)| !self.deserved.is_zero() && self.deserved.get(*index) > 0);
        Share(counted.map(of).max().unwrap_or(0))
    }

    /// Returns the resources of which it uses more than it deserves.
    pub(super) fn is_over(&self) -> bool {
        self.share() > WHOLE
    }

    pub(super) fn allocated(&self) -> &Amounts {
        &self.allocated
    }

    pub(super) fn deserved(&self) -> &Amounts {
        &self.deserved
    }

    pub(super) fn capability(&self) -> &Bounds {
        &self.capability
    }

    pub(super) fn guarantee(&self) -> &Bounds {
        &self.guarantee
    }
}

/// Leaves in the order of service.
pub(super) struct Leaves<'t> {
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
