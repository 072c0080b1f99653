//! Decides what starts next: queues in their order, in each the first unit that fits and may. Costs as much as there are
//! queues and shapes, never as much as there are waiting tasks.

use std::{
    cell::Cell,
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use octoflow_model::{RunId, Time};

use super::{
    Decision, Nominee, Preemption, Scheduler, TaskRef, Waiting,
    amounts::Amounts,
    gang::Gangs,
    node::Node,
    reserve::{Reservation, UNKNOWN},
    room::{NodeIx, Placement},
    shapes::{Place, ShapeIx},
    tree::QueueIx,
    units::{Unit, UnitIx},
    waiting::{Order, Ranked},
};

/// Victims for one queue are looked for this often.
const PREEMPTION_PAUSE: Duration = Duration::from_secs(1);
/// Units that have waited too long and are tried before the others of their queue.
const MAX_OVERDUE: usize = 8;
/// Freed room is offered to so many queues before it is looked at whether some of it is left.
const OFFERED_TO: usize = 8;

/// What keeps the first unit of a queue from starting.
enum Block {
    /// A resource of which a quota leaves nothing for now.
    Quota(usize),
    /// A quota that is smaller than the unit.
    Never,
    Room,
}

impl Scheduler {
    /// Returns the next decision; `None` if nothing can start now. `waits` drops tasks that no longer wait; runs that are
    /// not `ready` keep their places and block nobody.
    pub fn next(
        &mut self,
        now: Time,
        mut waits: impl FnMut(TaskRef) -> bool,
        ready: impl Fn(RunId) -> bool,
    ) -> Option<Decision> {
        self.clock = now;
        while let Some(task) = self.weightless.pop_front() {
            if waits(task) {
                return Some(Decision::Start { task, assignment: Default::default() });
            }
        }
        loop {
            while let Some(decision) = self.decided.pop_front() {
                match &decision {
                    // A member that started before it may have ended its run.
                    Decision::Start { task, .. } if !waits(*task) => self.release(*task, now),
                    Decision::Start { .. } => return Some(decision),
                    Decision::Preempt(preemption) => match self.pointless(preemption, &mut waits) {
                        Some(stale) => self.call_off(preemption, stale),
                        None => return Some(decision),
                    },
                }
            }
            self.tree.refresh();
            self.charge_due(now);
            self.wake_due(now);
            self.tree.mark_reclaimers();
            match self.find(now, &ready) {
                Some((unit, placement)) => match self.stale_member(unit, &mut waits) {
                    Some(task) => self.dequeue(task),
                    None => self.start(unit, placement, now),
                },
                // Preemptions are decided when nobody can start.
                None if self.decided.is_empty() => return None,
                None => {}
            }
        }
    }

    /// Returns the task that does not wait any more of the unit that somebody is to be ended for.
    fn pointless(&self, preemption: &Preemption, waits: &mut impl FnMut(TaskRef) -> bool) -> Option<TaskRef> {
        match self.waiting.get(&preemption.by).map(|waiting| waiting.unit) {
            Some(Some(unit)) => self.stale_member(unit, waits),
            Some(None) | None => Some(preemption.by),
        }
    }

    /// Takes back that tasks are to be ended for a unit of which a task does not wait any more.
    fn call_off(&mut self, preemption: &Preemption, stale: TaskRef) {
        let by = preemption.by;
        let mut spared = vec![(preemption.victim, preemption.reason.kind())];
        self.decided.retain(|decision| match decision {
            Decision::Preempt(other) if other.by == by => {
                spared.push((other.victim, other.reason.kind()));
                false
            }
            Decision::Preempt(_) | Decision::Start { .. } => true,
        });
        for (victim, kind) in spared {
            self.note_spared(victim, kind);
        }
        self.dequeue(stale);
    }

    fn stale_member(&self, unit: UnitIx, waits: &mut impl FnMut(TaskRef) -> bool) -> Option<TaskRef> {
        self.members(unit).into_iter().find(|task| !waits(*task))
    }

    /// Returns the tasks of a unit.
    pub(super) fn members(&self, at: UnitIx) -> Vec<TaskRef> {
        self.units.get(at).map_or_else(Vec::new, |unit| members(at, unit, &self.gangs, &self.waiting))
    }

    /// Reports whether room is kept for units whose victims are ending.
    pub fn keeps_room(&self) -> bool {
        !self.nominees.is_empty()
    }

    /// Reports whether decisions are left of a unit of which some were returned.
    pub fn has_decided(&self) -> bool {
        !self.decided.is_empty()
    }

    fn wake_due(&mut self, now: Time) {
        while let Some(&(at, leaf)) = self.wakes.first()
            && at <= now
        {
            self.tree.mark(leaf);
            self.set_wake(leaf);
        }
    }

    /// Finds the next unit that may start, with its nodes.
    fn find(&mut self, now: Time, ready: &impl Fn(RunId) -> bool) -> Option<(UnitIx, Placement)> {
        let retried = self.nominees.iter().filter(|(unit, nominee)| nominee.retry && self.is_ready(**unit, ready));
        let nominees: Vec<UnitIx> = retried.map(|(unit, _)| *unit).collect();
        for unit in nominees {
            if let Some(placement) = self.try_nominee(unit) {
                return Some((unit, placement));
            }
        }
        self.prune_offers();
        let mut again = Vec::new();
        let found = self.find_in_queues(now, ready, &mut again);
        // Whoever was not ready may be so next time, and nobody says when.
        again.into_iter().for_each(|leaf| self.tree.mark(leaf));
        found
    }

    fn prune_offers(&mut self) {
        let (room, names) = (&self.room, &self.names);
        self.shapes.prune(|shape, node| room.may_fit(shape, node, names));
    }

    fn find_in_queues(
        &mut self,
        now: Time,
        ready: &impl Fn(RunId) -> bool,
        again: &mut Vec<QueueIx>,
    ) -> Option<(UnitIx, Placement)> {
        loop {
            let leaves = self.leaves_with_news();
            if leaves.is_empty() {
                // Some of what was on offer may be kept for others since.
                self.prune_offers();
                self.shapes.settle_offers();
                return None;
            }
            for leaf in leaves {
                let skipped = Cell::new(false);
                let ready = |run| {
                    let is_ready = ready(run);
                    skipped.set(skipped.get() || !is_ready);
                    is_ready
                };
                if let Some(found) = self.look(leaf, now, &ready) {
                    return Some(found);
                }
                self.tree.unmark(leaf);
                self.tree.leaf(leaf).seen = self.shapes.last_offer();
                if skipped.get() {
                    again.push(leaf);
                }
                self.set_wake(leaf);
            }
        }
    }

    /// Returns queues in which something may have become startable, in the order of service. While room is on offer, those
    /// are all that have not considered it; only the next of them are returned, because it may soon be taken.
    fn leaves_with_news(&mut self) -> Vec<QueueIx> {
        if let Some(offer) = self.shapes.offer_on_the_table() {
            let has_news = |leaf: &QueueIx| {
                let queue = self.tree.get(*leaf);
                queue.exists && (queue.leaf.dirty || queue.leaf.seen < offer)
            };
            return self.tree.leaves().filter(has_news).take(OFFERED_TO).collect();
        }
        let news: Vec<QueueIx> = self.tree.news().iter().copied().collect();
        let (mut leaves, idle): (Vec<QueueIx>, Vec<QueueIx>) = news.into_iter().partition(|leaf| {
            let queue = self.tree.get(*leaf);
            queue.exists && queue.leaf.waits()
        });
        idle.into_iter().for_each(|leaf| self.tree.unmark(leaf));
        if leaves.len() > 1 {
            leaves.sort_by_cached_key(|leaf| self.tree.place_of(*leaf));
        }
        leaves
    }

    /// Finds the first unit of a queue that may start now.
    fn look(&mut self, leaf: QueueIx, now: Time, ready: &impl Fn(RunId) -> bool) -> Option<(UnitIx, Placement)> {
        let ranked = self.ranked(leaf, now, ready);
        let found = self.look_at(leaf, &ranked.units, now);
        self.tree.leaf(leaf).set_ranked(ranked);
        found
    }

    fn look_at(
        &mut self,
        leaf: QueueIx,
        ranked: &[(Order, UnitIx, ShapeIx)],
        now: Time,
    ) -> Option<(UnitIx, Placement)> {
        let &(_, head, shape) = ranked.first()?;
        if self.nominees.contains_key(&head) {
            return None;
        }
        let block = match self.try_unit(leaf, shape, Some(head)) {
            Ok(placement) => return Some((head, placement)),
            Err(Block::Room) if self.is_excluded(leaf, head, shape) => Block::Never,
            Err(block) => block,
        };
        // Whoever can never start holds up nobody, not even in strict order.
        let never = match block {
            Block::Never => true,
            Block::Quota(_) => false,
            Block::Room => self.tree.get(leaf).spec.strict && self.is_too_large(head),
        };
        let queue = self.tree.get(leaf);
        if never || !queue.spec.strict {
            // If nothing has changed here, only room on offer matters.
            let reserved = |known: &Reservation| known.is_for(head, now);
            let offered = !queue.leaf.dirty && queue.leaf.reservation.as_ref().is_none_or(reserved);
            for &(_, unit, shape) in &ranked[1..] {
                if self.shapes.is_active(shape)
                    && !(offered && self.shapes.offered(shape).is_empty())
                    && !self.nominees.contains_key(&unit)
                    && let Some(placement) = self.try_behind(leaf, shape, unit, head, &block, now, offered)
                {
                    return Some((unit, placement));
                }
            }
        }
        if matches!(block, Block::Room) {
            self.preempt_for(leaf, head, now);
        }
        None
    }

    /// Returns the first unit of each shape of a queue, as it is known or computed anew.
    fn ranked(&mut self, leaf: QueueIx, now: Time, ready: &impl Fn(RunId) -> bool) -> Ranked {
        if let Some(ranked) = self.tree.leaf(leaf).take_ranked(now)
            && ranked.units.iter().all(|((.., task), _, _)| ready(task.run))
            && ranked.gangs.iter().all(|unit| self.is_ready(*unit, ready))
        {
            return ranked;
        }
        let skipped = Cell::new(false);
        let ready = |run| {
            let is_ready = ready(run);
            skipped.set(skipped.get() || !is_ready);
            is_ready
        };
        let overdue = self.tree.get(leaf).leaf.overdue(now).filter(|(_, unit)| self.is_ready(*unit, &ready));
        let overdue = overdue.take(MAX_OVERDUE).filter_map(|(at, unit)| Some((at, unit, self.units.get(unit)?.shape)));
        let mut units: Vec<(Order, UnitIx, ShapeIx)> = overdue.collect();
        let (all, gangs, waiting) = (&self.units, &self.gangs, &self.waiting);
        let is_ready = |at| all.get(at).is_some_and(|unit| is_unit_ready(at, unit, gangs, waiting, &ready));
        units.extend(self.tree.leaf(leaf).firsts(&is_ready));
        units.sort_unstable();
        // An order without those who are not ready holds for this moment only.
        let until = if skipped.get() {
            self.tree.leaf(leaf).forget_firsts();
            Some(now)
        } else {
            self.tree.get(leaf).leaf.next_deadline(now)
        };
        let is_gang = |unit: &UnitIx| self.units.get(*unit).is_some_and(|unit| unit.gang.is_some());
        let gangs = units.iter().map(|(_, unit, _)| *unit).filter(is_gang).collect();
        Ranked { units, gangs, until }
    }

    fn is_ready(&self, at: UnitIx, ready: &impl Fn(RunId) -> bool) -> bool {
        self.units.get(at).is_some_and(|unit| is_unit_ready(at, unit, &self.gangs, &self.waiting, ready))
    }

    /// Finds room for a unit, or says what it lacks.
    fn try_unit(&mut self, leaf: QueueIx, shape: ShapeIx, unit: Option<UnitIx>) -> Result<Placement, Block> {
        let total = self.shapes.total(shape);
        if let Some(limit) = self.tree.limit(leaf, &total) {
            if self.tree.is_never_free(leaf, &limit, &total) {
                return Err(Block::Never);
            }
            self.tree.block(leaf, &limit);
            return Err(Block::Quota(limit.resource));
        }
        let spread = self.tree.get(leaf).spec.spread;
        let Some(placement) = self.place_shape(shape, unit, spread, false, &|_, _| true) else {
            if self.shapes.place(shape) == Place::Anywhere {
                self.shapes.deactivate(shape);
            }
            return Err(Block::Room);
        };
        // More may be in use than there is, if nodes shrank: there is room on a node, and none to spare.
        match self.tree.breaks_guarantees(leaf, &total) {
            Some(limit) if self.tree.is_never_free(leaf, &limit, &total) => Err(Block::Never),
            Some(limit) => {
                self.tree.block(leaf, &limit);
                Err(Block::Quota(limit.resource))
            }
            None => Ok(placement),
        }
    }

    /// Finds nodes for a unit of a shape where that may fit at all, or only where room is on `offer`.
    fn place_shape(
        &mut self,
        shape: ShapeIx,
        unit: Option<UnitIx>,
        spread: bool,
        offered: bool,
        allowed: &impl Fn(NodeIx, &Node) -> bool,
    ) -> Option<Placement> {
        let wanted = self.shapes.get(shape);
        match (self.shapes.place(shape), wanted.single()) {
            (Place::Nowhere, _) => None,
            (place, Some(task)) if offered || place == Place::Offered => {
                let nodes = self.shapes.offered(shape);
                self.room.find_among(nodes, task, unit, spread, &self.names, allowed).map(|at| vec![at])
            }
            (Place::Offered | Place::Anywhere, _) => self.room.place(&wanted, unit, spread, &self.names, allowed),
        }
    }

    /// Finds room for a unit behind one that is blocked, without taking what that one waits for.
    #[expect(clippy::too_many_arguments, reason = "who wants to pass whom, and where")]
    fn try_behind(
        &mut self,
        leaf: QueueIx,
        shape: ShapeIx,
        unit: UnitIx,
        head: UnitIx,
        block: &Block,
        now: Time,
        offered: bool,
    ) -> Option<Placement> {
        let placement = self.try_unit(leaf, shape, Some(unit)).ok()?;
        let wanted = self.shapes.get(shape);
        match block {
            Block::Quota(resource) => {
                return wanted.parts.iter().all(|(task, _)| task.amounts.get(*resource) == 0).then_some(placement);
            }
            Block::Never => return Some(placement),
            Block::Room => {}
        }
        self.reserve(leaf, head, now);
        let queue = self.tree.get(leaf);
        let spread = queue.spec.spread;
        let reservation = queue.leaf.reservation.clone()?;
        let passes = |node| match wanted.single() {
            Some(task) => reservation.lets_pass(task, wanted.bound, node, now),
            None => !reservation.concerns(node) || reservation.is_after(wanted.bound, now),
        };
        let found = self.place_shape(shape, Some(unit), spread, offered, &|node, _| passes(node));
        if found.is_none() {
            self.shapes.hold_back(shape);
        }
        found
    }

    /// Reports whether guarantees of others never leave room for a unit, whatever ends.
    fn is_excluded(&mut self, leaf: QueueIx, unit: UnitIx, shape: ShapeIx) -> bool {
        let version = self.tree.version();
        if let Some((at, whose, excluded)) = self.tree.get(leaf).leaf.excluded
            && (at, whose) == (version, unit)
        {
            return excluded;
        }
        let excluded = self.tree.excludes(leaf, &self.shapes.total(shape));
        self.tree.leaf(leaf).excluded = Some((version, unit, excluded));
        excluded
    }

    /// Reports whether not even idle nodes could hold a unit.
    fn is_too_large(&self, unit: UnitIx) -> bool {
        let shape = self.units.get(unit).map(|unit| self.shapes.get(unit.shape));
        shape.is_some_and(|shape| {
            let amounts = |task| &self.running[&task].amounts;
            Reservation::find(unit, &shape, &self.room, &self.names, amounts).is_none()
        })
    }

    /// Makes the reservation of the first unit of a queue, unless it has one that is still to come.
    fn reserve(&mut self, leaf: QueueIx, head: UnitIx, now: Time) {
        if self.tree.get(leaf).leaf.reservation.as_ref().is_some_and(|known| known.is_for(head, now)) {
            return;
        }
        let Some(unit) = self.units.get(head) else { return };
        let shape = self.shapes.get(unit.shape);
        let found = Reservation::find(head, &shape, &self.room, &self.names, |task| &self.running[&task].amounts);
        self.tree.leaf(leaf).reservation = Some(found.unwrap_or_else(|| Reservation::nowhere(head)));
    }

    /// Finds room for a unit whose victims were ended. If they are gone and it does not start, the room is given up.
    fn try_nominee(&mut self, at: UnitIx) -> Option<Placement> {
        let unit = self.units.get(at)?;
        let (leaf, shape) = (unit.leaf, self.shapes.get(unit.shape));
        let total = shape.total();
        self.tree.nominate(leaf, &total, false);
        let limited = self.tree.limit(leaf, &total).is_some() || self.tree.breaks_guarantees(leaf, &total).is_some();
        self.tree.nominate(leaf, &total, true);
        let nominee = self.nominees.get_mut(&at)?;
        // A quota may be free again at any time; room is only where something was freed.
        nominee.retry = limited;
        let nodes = nominee.nodes.clone();
        let placement = if limited { None } else { self.room.place_nominee(&shape, at, &nodes, &self.names) };
        let ends = |node: &NodeIx| {
            let running = self.room.get(*node).into_iter().flat_map(|node| &node.running);
            running.filter_map(|task| self.running.get(task)).any(|running| running.ending)
        };
        // Quotas are freed by tasks on any node.
        let may_start_later = nodes.iter().any(ends) || (limited && self.tree.has_ending());
        if placement.is_none() && !may_start_later {
            self.give_up(at);
        }
        placement
    }

    /// Starts a unit on its nodes.
    fn start(&mut self, at: UnitIx, placement: Placement, now: Time) {
        let members = self.members(at);
        let Some(unit) = self.units.get(at).cloned() else { return };
        let shape = self.shapes.get(unit.shape);
        self.remove_unit(at);
        // Nodes are listed by part; members of equal parts are interchangeable.
        let mut nodes: Vec<_> = shape.parts.iter().map(|(task, count)| (task.clone(), *count as usize)).collect();
        let mut offsets: Vec<usize> = Vec::with_capacity(nodes.len());
        let mut next = 0;
        for (_, count) in &nodes {
            offsets.push(next);
            next += count;
        }
        for task in &members {
            let Some(waiting) = self.take_waiting(*task) else { continue };
            let since = self.requeued.remove(task).unwrap_or(waiting.since).max(waiting.since);
            self.counters.latency.add(now.since(since));
            let demand = waiting.demand;
            let part = if let [_] = nodes[..] {
                Some(0)
            } else {
                let wanted = self.names.of_task(&demand.resources);
                nodes.iter().position(|(part, left)| {
                    *left > 0 && part.amounts == wanted && part.constraints == demand.constraints
                })
            };
            let Some(part) = part else { continue };
            nodes[part].1 -= 1;
            let wanted = &nodes[part].0.amounts;
            let node = placement[offsets[part]];
            offsets[part] += 1;
            let end = demand.bound.map_or(UNKNOWN, |bound| now.saturating_add(bound));
            let names = &self.names;
            let occupied = self.room.change(node, |node| {
                let amounts = node.fitted(wanted);
                let assignment = node.occupy(*task, &amounts, end, names);
                (amounts, assignment)
            });
            let Some((amounts, assignment)) = occupied else { continue };
            if let Some(reservation) = &mut self.tree.leaf(unit.leaf).reservation {
                reservation.passed(&amounts, node, end);
            }
            self.count_running(*task, demand, node, amounts, assignment.clone(), now, end);
            self.decided.push_back(Decision::Start { task: *task, assignment });
        }
        self.charge_due(now);
        self.had_turn(unit.run);
        if let Some(gang) = unit.gang {
            let started = |task: &TaskRef| members.contains(task);
            let later: Vec<TaskRef> = self.gangs.form(gang).into_iter().filter(|task| !started(task)).collect();
            for task in &members {
                self.gangs.runs(*task, true);
            }
            for task in later {
                self.insert_unit(task, None, std::slice::from_ref(&task));
            }
        }
    }

    /// Looks for victims of the first unit of a queue, if it is entitled to any, and keeps their room for it.
    fn preempt_for(&mut self, leaf: QueueIx, head: UnitIx, now: Time) {
        if self.tree.get(leaf).leaf.next_preemption.is_some_and(|(unit, next)| unit == head && next > now) {
            return;
        }
        let Some(unit) = self.units.get(head) else { return };
        let reclaims = self.tree.has_over() && self.tree.is_entitled(leaf, &self.shapes.total(unit.shape));
        if !(unit.preempts || reclaims) {
            return;
        }
        let next = now.saturating_add(PREEMPTION_PAUSE);
        self.tree.leaf(leaf).next_preemption = Some((head, next));
        self.counters.preemption_attempts += 1;
        let Some((victims, placement)) = self.victims(head) else { return };
        let Some(shape) = self.units.get(head).map(|unit| self.shapes.get(unit.shape)) else { return };
        let mut nodes = placement.into_iter();
        let mut kept: BTreeMap<_, Amounts> = BTreeMap::new();
        for (task, count) in &shape.parts {
            for node in nodes.by_ref().take(*count as usize) {
                let amounts = self.room.get(node).map(|node| node.fitted(&task.amounts)).unwrap_or_default();
                kept.entry(node).or_default().add(&amounts);
            }
        }
        self.nominees.insert(head, Nominee { nodes: kept.keys().copied().collect(), retry: false });
        self.tree.nominate(leaf, &shape.total(), true);
        for (node, amounts) in kept {
            self.room.change(node, |node| node.nominate(head, amounts));
        }
        for victim in victims {
            self.note_ending(victim.victim, victim.reason.kind());
            self.decided.push_back(Decision::Preempt(victim));
        }
    }

    /// Gives up the room that was kept for a unit.
    pub(super) fn give_up(&mut self, at: UnitIx) {
        let Some(Nominee { nodes, .. }) = self.nominees.remove(&at) else { return };
        if let Some(unit) = self.units.get(at) {
            let (leaf, total) = (unit.leaf, self.shapes.total(unit.shape));
            self.forget_promise(leaf, &total);
        }
        for node in nodes {
            if self.room.change(node, |node| node.withdraw(at)).flatten().is_some() {
                self.freed(node);
            }
        }
    }

    pub(super) fn forget_promise(&mut self, leaf: QueueIx, total: &Amounts) {
        self.tree.nominate(leaf, total, false);
        self.tree.leaf(leaf).next_preemption = None;
        self.tree.mark(leaf);
    }

    /// Gives up all room that is kept: nodes or quotas are not what they were when it was promised.
    pub(super) fn give_up_all(&mut self) {
        let nominees: Vec<UnitIx> = self.nominees.keys().copied().collect();
        nominees.into_iter().for_each(|unit| self.give_up(unit));
    }
}

/// Returns the tasks of a unit.
fn members(at: UnitIx, unit: &Unit, gangs: &Gangs, waiting: &HashMap<TaskRef, Waiting>) -> Vec<TaskRef> {
    match unit.gang.and_then(|gang| gangs.get(gang)) {
        None => vec![unit.task],
        Some(gang) => {
            let of_unit = |task: &TaskRef| waiting.get(task).is_some_and(|waiting| waiting.unit == Some(at));
            gang.members().filter(of_unit).collect()
        }
    }
}

/// Reports whether the runs of all tasks of a unit are ready.
fn is_unit_ready(
    at: UnitIx,
    unit: &Unit,
    gangs: &Gangs,
    waiting: &HashMap<TaskRef, Waiting>,
    ready: &impl Fn(RunId) -> bool,
) -> bool {
    match unit.gang {
        None => ready(unit.run),
        Some(_) => members(at, unit, gangs, waiting).iter().all(|task| ready(task.run)),
    }
}
