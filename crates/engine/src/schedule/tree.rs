//! The tree of queues: what each uses, deserves and may use, kept along the path to the root; and the order in which
//! queues are served, level by level. It knows neither nodes nor tasks.

mod count;
mod judged;
mod order;
mod promise;
mod quota;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use super::{
    amounts::{Amounts, Bounds, ResourceNames},
    spec::{DEFAULT, QueueSpec, ROOT},
    waiting::Leaf,
    work,
};

use judged::Judged;
pub(super) use promise::FreedQuota;
pub(super) use quota::QuotaLimit;

/// A queue by its place in the tree's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct QueueIx(u32);

/// Deeper trees are refused at admission; whatever gets here all the same is cut off, so that no walk is endless.
pub const MAX_DEPTH: usize = 8;

/// The place of a queue among its siblings: those below their guarantee first, then by priority, then by the smaller share
/// of what they deserve.
pub(super) type OrderKey = (bool, Reverse<i32>, Share, Arc<str>);

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
    children: BTreeSet<QueueIx>,
    guarantee: Bounds,
    capability: Bounds,
    declared: Bounds,
    /// What it deserves of each resource: as declared, else by weight. Up to date where something waits or runs.
    deserved: Amounts,
    /// Resources of which it, or a queue above it, states what it deserves.
    named: Judged,
    /// Resources by which it is judged.
    judged: Judged,
    allocated: Amounts,
    /// What is promised to units whose victims are ending.
    nominated: Amounts,
    /// What its tasks hold that are being ended.
    ending: Amounts,
    /// The larger of guarantee and use, for an inner queue the larger of guarantee and the sum of its children's.
    reserved: Amounts,
    /// What its children reserve together.
    children_reserved: Amounts,
    /// The weights of its children together.
    weights: u64,
    /// The state of the tree that `deserved` was computed from.
    version: u64,
    /// Units that wait here or below.
    pub pending: usize,
    /// Tasks that wait here or below, members of incomplete gangs included.
    pub tasks_waiting: usize,
    /// Children where something waits.
    order: BTreeSet<(OrderKey, QueueIx)>,
    key: OrderKey,
    /// Children where something waits or runs.
    live: BTreeSet<QueueIx>,
    /// True if it uses more than it deserves.
    over: bool,
    /// Leaves where somebody waits until something here or below is freed.
    blocked: BTreeSet<QueueIx>,
    /// Tasks that have ended here or below, of their own or stopped by their run.
    pub completed: u64,
    pub leaf: Leaf,
}

#[derive(Clone, Debug)]
pub(super) struct Tree {
    queues: Vec<Queue>,
    /// Places in the list that no queue has any more.
    unused: BTreeSet<QueueIx>,
    by_name: HashMap<Arc<str>, QueueIx>,
    /// True if the places of live queues have to be computed again.
    stale: bool,
    /// Counts changes of queues and nodes. What a queue deserves is computed when it is asked for and outdated.
    version: u64,
    /// Resources of which queues have guarantees, and how many.
    guaranteed: BTreeMap<usize, usize>,
    /// Leaves with units to which something is promised, or with tasks that are being ended.
    in_flux: BTreeSet<QueueIx>,
    /// Everything that all nodes have.
    total: Amounts,
    /// Leaves in which something may have become startable.
    news: BTreeSet<QueueIx>,
    /// How many queues use more than they deserve.
    over: usize,
    /// True since the first of them did, until everybody who waits has been looked at.
    first_over: bool,
}

impl Tree {
    pub(super) fn new(names: &mut ResourceNames) -> Self {
        let mut tree = Self {
            queues: Vec::new(),
            unused: BTreeSet::new(),
            by_name: HashMap::new(),
            stale: true,
            version: 1,
            guaranteed: BTreeMap::new(),
            in_flux: BTreeSet::new(),
            total: Amounts::default(),
            news: BTreeSet::new(),
            over: 0,
            first_over: false,
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
        let all = self.queues.iter().enumerate().map(|(index, queue)| (QueueIx(index as u32), queue));
        all.filter(|(at, _)| !self.unused.contains(at))
    }

    /// Returns the queue of this name. One that does not exist is remembered; nothing starts in it.
    pub(super) fn find_or_remember(&mut self, name: &Arc<str>) -> QueueIx {
        if let Some(at) = self.by_name.get(name) {
            return *at;
        }
        let parent = (!self.queues.is_empty()).then_some(Self::ROOT);
        let queue = Queue {
            spec: QueueSpec::new(name.clone()),
            exists: false,
            parent,
            children: BTreeSet::new(),
            guarantee: Bounds::default(),
            capability: Bounds::default(),
            declared: Bounds::default(),
            deserved: Amounts::default(),
            named: Judged::default(),
            judged: Judged::default(),
            allocated: Amounts::default(),
            nominated: Amounts::default(),
            ending: Amounts::default(),
            reserved: Amounts::default(),
            children_reserved: Amounts::default(),
            weights: 0,
            version: 0,
            pending: 0,
            tasks_waiting: 0,
            order: BTreeSet::new(),
            key: (false, Reverse(0), Share(0), name.clone()),
            live: BTreeSet::new(),
            over: false,
            blocked: BTreeSet::new(),
            completed: 0,
            leaf: Leaf::default(),
        };
        let at = match self.unused.pop_first() {
            Some(at) => {
                self.queues[at.0 as usize] = queue;
                at
            }
            None => {
                self.queues.push(queue);
                QueueIx(u32::try_from(self.queues.len() - 1).expect("fewer queues than bytes of memory"))
            }
        };
        self.by_name.insert(name.clone(), at);
        if let Some(parent) = parent {
            self.at(parent).children.insert(at);
            self.recount_path(parent);
        }
        at
    }

    /// Creates or changes a queue. Costs as much as the tree is deep; what others deserve is computed later.
    pub(super) fn put(&mut self, spec: QueueSpec, names: &mut ResourceNames) {
        let at = self.find_or_remember(&spec.name);
        let parent = match (&spec.parent, at == Self::ROOT) {
            (_, true) => None,
            (None, false) => Some(Self::ROOT),
            (Some(parent), false) => Some(self.find_or_remember(parent)),
        };
        let parent = parent.map(|parent| if self.is_below(parent, at) { Self::ROOT } else { parent });
        self.describe(at, spec, true, names);
        if self.get(at).parent != parent {
            self.move_below(at, parent);
        }
        self.mark(at);
    }

    /// Removes a queue. What still waits in it keeps its place and does not start.
    pub(super) fn remove(&mut self, name: &str, names: &mut ResourceNames) {
        if let Some(at) = self.find(name) {
            let spec = QueueSpec::new(self.get(at).spec.name.clone());
            self.describe(at, spec, false, names);
            // Nothing is above a queue that does not exist but the root, so what waits in it keeps nobody else's queue.
            if at != Self::ROOT && self.get(at).parent != Some(Self::ROOT) {
                self.move_below(at, Some(Self::ROOT));
            }
        }
    }

    /// Reports whether nobody has created a queue and nothing is in it.
    pub(super) fn is_unused(&self, at: QueueIx) -> bool {
        let queue = self.get(at);
        let idle = queue.leaf.tasks == 0 && queue.pending == 0 && queue.children.is_empty();
        let counts = queue.allocated.is_zero() && queue.nominated.is_zero() && queue.ending.is_zero();
        !queue.exists && idle && counts && !self.unused.contains(&at) && at != Self::ROOT
    }

    /// Forgets a queue that is unused; another may get its place in the list.
    pub(super) fn forget(&mut self, at: QueueIx) {
        self.place(at);
        let (name, parent) = (self.get(at).spec.name.clone(), self.get(at).parent);
        self.by_name.remove(&name);
        self.news.remove(&at);
        if let Some(parent) = parent {
            self.at(parent).children.remove(&at);
        }
        self.unused.insert(at);
    }

    fn describe(&mut self, at: QueueIx, spec: QueueSpec, exists: bool, names: &mut ResourceNames) {
        let guarantee = names.bounds(&spec.guarantee);
        // A guarantee of nothing is none.
        for (index, _) in self.get(at).guarantee.clone().iter().filter(|(_, least)| *least > 0) {
            if let Some(count) = self.guaranteed.get_mut(&index) {
                *count -= 1;
                if *count == 0 {
                    self.guaranteed.remove(&index);
                }
            }
        }
        for (index, _) in guarantee.iter().filter(|(_, least)| *least > 0) {
            *self.guaranteed.entry(index).or_default() += 1;
        }
        let before = self.get(at).weight();
        let queue = self.at(at);
        queue.exists = exists;
        queue.guarantee = guarantee;
        queue.capability = names.bounds(&spec.capability);
        queue.declared = names.bounds(&spec.deserved);
        queue.spec = spec;
        let weight = queue.weight();
        if let Some(parent) = queue.parent {
            let above = self.at(parent);
            above.weights = above.weights - before + weight;
        }
        self.recount_path(at);
        self.outdate();
    }

    /// Notes that what queues deserve, and with it their places, has to be computed again.
    fn outdate(&mut self) {
        self.version += 1;
        self.stale = true;
    }

    /// Notes that something may have become startable in a leaf.
    pub(super) fn mark(&mut self, leaf: QueueIx) {
        self.at(leaf).leaf.dirty = true;
        self.news.insert(leaf);
    }

    /// Notes that a leaf has been looked at.
    pub(super) fn unmark(&mut self, leaf: QueueIx) {
        self.at(leaf).leaf.dirty = false;
        self.news.remove(&leaf);
    }

    /// Reports whether some queue uses more than it deserves: only then others can take something back.
    pub(super) fn has_over(&self) -> bool {
        self.over > 0
    }

    /// Marks everybody who waits if the first queue has begun to use more than it deserves.
    pub(super) fn mark_reclaimers(&mut self) {
        if std::mem::take(&mut self.first_over) {
            let leaves: Vec<QueueIx> = self.leaves().collect();
            leaves.into_iter().for_each(|leaf| self.mark(leaf));
        }
    }

    /// Returns the leaves in which something may have become startable, in no particular order.
    pub(super) fn news(&self) -> &BTreeSet<QueueIx> {
        &self.news
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
        let (reserved, weight) = (self.get(at).reserved.clone(), self.get(at).weight());
        let (ending, tasks_waiting) = (self.get(at).ending.clone(), self.get(at).tasks_waiting);
        if let Some(before) = self.get(at).parent {
            let key = self.get(at).key.clone();
            let queue = self.at(before);
            queue.children.remove(&at);
            queue.order.remove(&(key, at));
            queue.live.remove(&at);
            queue.weights -= weight;
            queue.children_reserved.sub(&reserved);
            let mut above = Some(before);
            while let Some(queue) = above {
                self.at(queue).allocated.sub(&allocated);
                self.at(queue).ending.sub(&ending);
                self.at(queue).pending -= pending;
                self.at(queue).tasks_waiting -= tasks_waiting;
                self.place(queue);
                above = self.get(queue).parent;
            }
            self.recount_path(before);
        }
        self.at(at).parent = parent;
        if let Some(parent) = parent {
            let queue = self.at(parent);
            queue.children.insert(at);
            queue.weights += weight;
            queue.children_reserved.add(&reserved);
            let mut above = Some(parent);
            while let Some(queue) = above {
                self.at(queue).allocated.add(&allocated);
                self.at(queue).ending.add(&ending);
                self.at(queue).pending += pending;
                self.at(queue).tasks_waiting += tasks_waiting;
                above = self.get(queue).parent;
            }
            self.recount_path(parent);
        }
        self.outdate();
        let path: Vec<QueueIx> = self.path(at).collect();
        path.into_iter().for_each(|at| self.place(at));
    }

    /// Returns a number that changes with queues and nodes.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn set_total(&mut self, total: Amounts) {
        if self.total != total {
            self.total = total;
            self.outdate();
        }
    }

    pub(super) fn total(&self) -> &Amounts {
        &self.total
    }

    /// Computes the places of live queues again after a change of queues or nodes. Queues where nothing waits and nothing
    /// runs are not looked at.
    pub(super) fn refresh(&mut self) {
        if !std::mem::take(&mut self.stale) {
            return;
        }
        // From the root down, without recursion: a parent comes before its children.
        let mut down = vec![Self::ROOT];
        let mut next = 0;
        while let Some(&at) = down.get(next) {
            next += 1;
            work::look();
            self.place(at);
            if self.get(at).leaf.waits() {
                self.mark(at);
            }
            down.extend(self.get(at).live.iter().copied());
        }
    }

    /// Computes what a queue deserves, if that is outdated.
    fn renew(&mut self, at: QueueIx) {
        if self.get(at).version == self.version {
            return;
        }
        if let Some(parent) = self.get(at).parent {
            self.renew(parent);
        }
        let deserved = self.deserved_of(at);
        let named = self.named_by(at);
        let judged = self.judged_by(&named);
        let version = self.version;
        let queue = self.at(at);
        (queue.deserved, queue.named, queue.judged) = (deserved, named, judged);
        queue.version = version;
    }

    /// Returns what a queue deserves: as declared, else its part of what its parent deserves.
    pub(super) fn deserved_of(&self, at: QueueIx) -> Amounts {
        let queue = self.get(at);
        if queue.version == self.version {
            return queue.deserved.clone();
        }
        let Some(parent) = queue.parent else { return self.total.clone() };
        let mut deserved = Amounts::default();
        let weights = u128::from(self.get(parent).weights.max(1));
        for (index, amount) in self.deserved_of(parent).iter() {
            let part = u128::from(amount) * u128::from(queue.weight()) / weights;
            deserved.set(index, u64::try_from(part).unwrap_or(u64::MAX));
        }
        for (index, amount) in queue.declared.iter() {
            deserved.set(index, amount);
        }
        deserved
    }

    /// Computes what a queue reserves from its own use or from its children. Returns whether that has changed.
    fn recount(&mut self, at: QueueIx) -> bool {
        let queue = self.at(at);
        let used = if queue.children.is_empty() { &queue.allocated } else { &queue.children_reserved };
        let mut reserved = used.clone();
        for (index, least) in queue.guarantee.iter() {
            reserved.set(index, reserved.get(index).max(least));
        }
        if reserved == queue.reserved {
            return false;
        }
        let before = std::mem::replace(&mut queue.reserved, reserved.clone());
        if let Some(parent) = queue.parent {
            let sum = &mut self.at(parent).children_reserved;
            sum.sub(&before);
            sum.add(&reserved);
        }
        true
    }

    /// Computes what a queue and those above reserve.
    fn recount_path(&mut self, at: QueueIx) {
        let mut next = Some(at);
        while let Some(at) = next.filter(|at| self.recount(*at)) {
            next = self.get(at).parent;
        }
    }

    /// Enters a queue into its parent's order, at its present place.
    fn place(&mut self, at: QueueIx) {
        self.renew(at);
        let queue = self.get(at);
        let Some(parent) = queue.parent else { return };
        let (below, share, waits) = (!queue.is_below_guarantee(), queue.share(), queue.pending > 0);
        let live = waits || !queue.allocated.is_zero();
        let (over, was_over) = (queue.is_over(), queue.over);
        let same = queue.key.0 == below && queue.key.1.0 == queue.spec.priority && queue.key.2 == share;
        let (key, before) = ((below, Reverse(queue.spec.priority), share, queue.spec.name.clone()), queue.key.clone());
        if over != was_over {
            self.at(at).over = over;
            self.over = if over { self.over + 1 } else { self.over - 1 };
            self.first_over |= over && self.over == 1;
        }
        let above = self.at(parent);
        if live {
            above.live.insert(at);
        } else {
            above.live.remove(&at);
        }
        match (waits, same) {
            (true, true) => {
                above.order.insert((before, at));
                return;
            }
            (true, false) => {
                above.order.remove(&(before, at));
                above.order.insert((key.clone(), at));
            }
            (false, _) => {
                above.order.remove(&(before, at));
            }
        }
        self.at(at).key = key;
    }

    /// Iterates over a queue and its ancestors, the root last.
    pub(super) fn path(&self, at: QueueIx) -> impl Iterator<Item = QueueIx> + '_ {
        std::iter::successors(Some(at), |at| self.get(*at).parent)
    }

    pub(super) fn allocate(&mut self, leaf: QueueIx, amounts: &Amounts) {
        self.change(leaf, |queue| queue.allocated.add(amounts));
    }

    /// Counts a task that is over.
    pub(super) fn complete(&mut self, leaf: QueueIx) {
        let mut next = Some(leaf);
        while let Some(at) = next {
            self.at(at).completed += 1;
            next = self.get(at).parent;
        }
    }

    /// Counts what is freed, and marks the leaves that waited for it.
    pub(super) fn free(&mut self, leaf: QueueIx, amounts: &Amounts) {
        self.change(leaf, |queue| queue.allocated.sub(amounts));
        self.mark_blocked(leaf);
    }

    /// Marks the leaves that wait until something is freed in a queue of this path.
    pub(super) fn mark_blocked(&mut self, leaf: QueueIx) {
        let mut next = Some(leaf);
        while let Some(at) = next {
            for blocked in std::mem::take(&mut self.at(at).blocked) {
                self.mark(blocked);
            }
            next = self.get(at).parent;
        }
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
}

impl Queue {
    /// A queue that nobody has created takes nothing from its siblings.
    fn weight(&self) -> u64 {
        if self.exists { u64::from(self.spec.weight) } else { 0 }
    }

    fn is_below_guarantee(&self) -> bool {
        self.guarantee.iter().any(|(index, least)| self.allocated.get(index) < least)
    }

    /// Returns what it uses, with what was promised to its tasks.
    pub(super) fn used(&self, index: usize) -> u64 {
        self.allocated.get(index).saturating_add(self.promised(index))
    }

    /// Returns what was promised to its tasks beyond what those leave that are being ended.
    fn promised(&self, index: usize) -> u64 {
        self.nominated.get(index).saturating_sub(self.ending.get(index))
    }

    pub(super) fn allocated(&self) -> &Amounts {
        &self.allocated
    }

    pub(super) fn live(&self) -> impl Iterator<Item = QueueIx> + '_ {
        self.live.iter().copied()
    }

    pub(super) fn capability(&self) -> &Bounds {
        &self.capability
    }

    pub(super) fn guarantee(&self) -> &Bounds {
        &self.guarantee
    }
}
