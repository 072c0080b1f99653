//! Decides what starts next: queues in their order, in each the first unit that fits and may. Costs as much as there are
//! queues and shapes, never as much as there are waiting tasks.

use std::cell::Cell;

use octoflow_model::{IdMap, RunId, Time};

use super::{
    Decision, Preemption, Scheduler, TaskRef, Waiting,
    gang::Gangs,
    node::ScheduledNode,
    reserve::{Reservation, UNKNOWN},
    room::{NodeIx, Placement},
    shapes::{Fit, ShapeIx},
    tree::{QueueIx, QuotaLimit},
    units::{Unit, UnitIx},
    waiting::{Order, Overdue, Ranked},
};

/// Units that have waited too long and are tried before the others of their queue.
const MAX_OVERDUE: usize = 8;
/// Freed room is offered to so many queues first.
const OFFERED_TO: usize = 8;

/// Why nobody is to be ended for a unit after all.
enum Pointless {
    /// This task of it does not wait any more.
    Stale(TaskRef),
    /// Its gang has lost members since, and it waits for them again.
    Gathers,
}

/// What keeps the first unit of a queue from starting.
pub(super) enum Block {
    Quota(QuotaLimit),
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
                        Some(pointless) => self.call_off(preemption, pointless),
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

    /// Returns why nobody is to be ended for a unit after all.
    fn pointless(&self, preemption: &Preemption, waits: &mut impl FnMut(TaskRef) -> bool) -> Option<Pointless> {
        match self.waiting.get(&preemption.by).map(|waiting| waiting.unit) {
            Some(Some(unit)) => self.stale_member(unit, waits).map(Pointless::Stale),
            Some(None) => Some(Pointless::Gathers),
            None => Some(Pointless::Stale(preemption.by)),
        }
    }

    /// Takes back that tasks are to be ended for a unit.
    fn call_off(&mut self, preemption: &Preemption, pointless: Pointless) {
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
        match pointless {
            Pointless::Stale(task) => self.dequeue(task),
            Pointless::Gathers => {}
        }
    }

    fn stale_member(&self, unit: UnitIx, waits: &mut impl FnMut(TaskRef) -> bool) -> Option<TaskRef> {
        self.members(unit).into_iter().find(|task| !waits(*task))
    }

    /// Returns the tasks of a unit.
    pub(super) fn members(&self, at: UnitIx) -> Vec<TaskRef> {
        self.units.get(at).map_or_else(Vec::new, |unit| members(at, unit, &self.gangs, &self.waiting))
    }

    /// Iterates over the first tasks of units for which room is kept until tasks that are being ended are gone.
    pub fn promised(&self) -> impl Iterator<Item = TaskRef> {
        self.nominees.keys().filter_map(|unit| Some(self.units.get(*unit)?.task))
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
        let mut most = OFFERED_TO;
        loop {
            let leaves = self.leaves_with_news(most);
            // Those who have seen it are passed again each time, so more at a time are asked the longer nobody takes it.
            most = most.saturating_mul(2);
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
    fn leaves_with_news(&mut self, most: usize) -> Vec<QueueIx> {
        if let Some(offer) = self.shapes.offer_on_the_table() {
            let has_news = |leaf: &QueueIx| {
                let queue = self.tree.get(*leaf);
                queue.exists && (queue.leaf.dirty || queue.leaf.seen < offer)
            };
            return self.tree.leaves().filter(has_news).take(most).collect();
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
        let mut first = None;
        for (place, &(_, unit, shape)) in ranked.iter().enumerate() {
            if self.nominees.contains_key(&unit) {
                return None;
            }
            match self.try_unit(leaf, shape, Some(unit)) {
                Ok(placement) => return Some((unit, placement)),
                // Whoever can never start holds up nobody, not even in strict order.
                Err(_) if self.can_never_start(leaf, shape) => {}
                Err(block) => {
                    first = Some((place, block));
                    break;
                }
            }
        }
        let (place, block) = first?;
        let (order, head, _) = ranked[place];
        let behind = &ranked[place + 1..];
        let queue = self.tree.get(leaf);
        let strict = queue.spec.strict;
        if !strict {
            // If nothing has changed here, only room on offer matters.
            let reserved = |known: &Reservation| known.is_for(head, now);
            let offered = !queue.leaf.dirty && queue.leaf.reservation.as_ref().is_none_or(reserved);
            for &(_, unit, shape) in behind {
                if self.shapes.is_active(shape)
                    && !(offered && self.shapes.offered(shape).is_empty())
                    && !self.nominees.contains_key(&unit)
                    && let Some(placement) = self.try_behind(leaf, shape, unit, head, &block, now, offered)
                {
                    return Some((unit, placement));
                }
            }
        }
        // Whoever is not entitled to what it lacks, or for whom nobody can be ended, does not keep others from it, unless it has
        // waited too long.
        let keeps_others = strict || matches!(order.0, Overdue::Since(_));
        let preemptors = if keeps_others { &ranked[place..=place] } else { &ranked[place..] };
        for &(_, unit, shape) in preemptors {
            if self.preempt_for(leaf, unit, shape, now) {
                break;
            }
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
    pub(super) fn try_unit(&mut self, leaf: QueueIx, shape: ShapeIx, unit: Option<UnitIx>) -> Result<Placement, Block> {
        let total = self.shapes.total(shape);
        if let Some(limit) = self.tree.limit(leaf, &total) {
            self.tree.block(leaf, &limit);
            return Err(Block::Quota(limit));
        }
        let spread = self.tree.get(leaf).spec.spread;
        let Some(placement) = self.place_shape(shape, unit, spread, false, &|_, _| true) else {
            if self.shapes.place(shape) == Fit::Anywhere {
                self.shapes.deactivate(shape);
            }
            return Err(Block::Room);
        };
        // More may be in use than there is, if nodes shrank: there is room on a node, and none to spare.
        match self.tree.breaks_guarantees(leaf, &total) {
            Some(limit) => {
                self.tree.block(leaf, &limit);
                Err(Block::Quota(limit))
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
        allowed: &impl Fn(NodeIx, &ScheduledNode) -> bool,
    ) -> Option<Placement> {
        let wanted = self.shapes.get(shape);
        match (self.shapes.place(shape), wanted.single()) {
            (Fit::Nowhere, _) => None,
            (place, Some(task)) if offered || place == Fit::Offered => {
                let nodes = self.shapes.offered(shape);
                self.room.find_among(nodes, task, unit, spread, &self.names, allowed).map(|at| vec![at])
            }
            (Fit::Offered | Fit::Anywhere, _) => self.room.place(&wanted, unit, spread, &self.names, allowed),
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
            Block::Quota(limit) => {
                let passes = self.passes_quota(leaf, head, limit, &wanted, now);
                return passes.then_some(placement);
            }
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
            let queue = self.tree.leaf(unit.leaf);
            if let Some(reservation) = &mut queue.reservation {
                reservation.passed(&amounts, node, end);
            }
            if let Some(reservation) = &mut queue.quota_reservation {
                reservation.passed(&amounts, end);
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
}

/// Returns the tasks of a unit.
fn members(at: UnitIx, unit: &Unit, gangs: &Gangs, waiting: &IdMap<TaskRef, Waiting>) -> Vec<TaskRef> {
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
    waiting: &IdMap<TaskRef, Waiting>,
    ready: &impl Fn(RunId) -> bool,
) -> bool {
    match unit.gang {
        None => ready(unit.run),
        Some(_) => members(at, unit, gangs, waiting).iter().all(|task| ready(task.run)),
    }
}
