//! Decides what starts next: queues in their order, in each the first unit that fits and may. Costs as much as there are
//! queues and shapes, never as much as there are waiting tasks.

use std::{cell::Cell, collections::BTreeMap, sync::Arc, time::Duration};

use octoflow_model::{RunId, Time};

use super::{
    Decision, Preemption, Scheduler, TaskRef,
    amounts::Amounts,
    reserve::{Reservation, UNKNOWN},
    room::{NodeIx, Placement},
    shapes::ShapeIx,
    tree::QueueIx,
    units::UnitIx,
    waiting::Order,
};

/// Victims for one queue are looked for this often.
const PREEMPTION_PAUSE: Duration = Duration::from_secs(1);
/// Units that have waited too long and are tried before the others of their queue.
const MAX_OVERDUE: usize = 8;

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
                        Some(stale) => self.spare(preemption, stale),
                        None => return Some(decision),
                    },
                }
            }
            self.tree.refresh();
            self.charge_due(now);
            self.wake_due(now);
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
    fn spare(&mut self, preemption: &Preemption, stale: TaskRef) {
        let by = preemption.by;
        let mut spared = vec![preemption.victim];
        self.decided.retain(|decision| match decision {
            Decision::Preempt(other) if other.by == by => {
                spared.push(other.victim);
                false
            }
            Decision::Preempt(_) | Decision::Start { .. } => true,
        });
        for victim in spared {
            if let Some(running) = self.running.get_mut(&victim) {
                running.ending = false;
            }
        }
        self.dequeue(stale);
    }

    fn stale_member(&self, unit: UnitIx, waits: &mut impl FnMut(TaskRef) -> bool) -> Option<TaskRef> {
        self.members(unit).into_iter().find(|task| !waits(*task))
    }

    /// Returns the tasks of a unit.
    pub(super) fn members(&self, at: UnitIx) -> Vec<TaskRef> {
        let Some(unit) = self.units.get(at) else { return Vec::new() };
        match unit.gang.and_then(|gang| self.gangs.get(gang)) {
            None => vec![unit.task],
            Some(gang) => {
                let of_unit = |task: &TaskRef| self.waiting.get(task).is_some_and(|waiting| waiting.unit == Some(at));
                gang.members().filter(of_unit).collect()
            }
        }
    }

    fn wake_due(&mut self, now: Time) {
        while let Some(&(at, leaf)) = self.wakes.first()
            && at <= now
        {
            self.tree.leaf(leaf).dirty = true;
            self.set_wake(leaf);
        }
    }

    /// Finds the next unit that may start, with its nodes. Decides preemptions only when nobody may.
    fn find(&mut self, now: Time, ready: &impl Fn(RunId) -> bool) -> Option<(UnitIx, Placement)> {
        let nominees: Vec<UnitIx> = self.nominees.keys().copied().collect();
        for unit in nominees {
            if let Some(placement) = self.try_nominee(unit) {
                return Some((unit, placement));
            }
        }
        let leaves: Vec<QueueIx> = self.tree.leaves().filter(|leaf| self.has_news(*leaf)).collect();
        for leaf in &leaves {
            let skipped = Cell::new(false);
            let ready = |run| {
                let is_ready = ready(run);
                skipped.set(skipped.get() || !is_ready);
                is_ready
            };
            if let Some(found) = self.look(*leaf, now, &ready) {
                return Some(found);
            }
            let freed = self.tree.freed(*leaf);
            let queue = self.tree.leaf(*leaf);
            // Whoever was not ready may be so next time, and nobody says when.
            queue.dirty = skipped.get();
            queue.seen_freed = freed;
            self.set_wake(*leaf);
        }
        None
    }

    /// Reports whether something may have become startable in a queue since it was last looked at.
    fn has_news(&self, leaf: QueueIx) -> bool {
        let queue = self.tree.get(leaf);
        queue.exists && (queue.leaf.dirty || queue.leaf.seen_freed != self.tree.freed(leaf))
    }

    /// Finds the first unit of a queue that may start now.
    fn look(&mut self, leaf: QueueIx, now: Time, ready: &impl Fn(RunId) -> bool) -> Option<(UnitIx, Placement)> {
        let candidates = self.candidates(leaf, now, ready);
        let mut candidates = candidates.into_iter();
        let (_, head, shape) = candidates.next()?;
        if self.nominees.contains_key(&head) {
            return None;
        }
        let block = match self.try_unit(leaf, shape, Some(head)) {
            Ok(placement) => return Some((head, placement)),
            Err(block) => block,
        };
        // Whoever can never start holds up nobody, not even in strict order.
        let never = match block {
            Block::Never => true,
            Block::Quota(_) => false,
            Block::Room => self.tree.get(leaf).spec.strict && self.is_too_large(head),
        };
        if never || !self.tree.get(leaf).spec.strict {
            for (_, unit, shape) in candidates {
                if !self.nominees.contains_key(&unit)
                    && let Some(placement) = self.try_behind(leaf, shape, unit, head, &block, now)
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

    /// Returns the first unit of each shape of a queue, in order; all of it that can start next is among them.
    fn candidates(&self, leaf: QueueIx, now: Time, ready: &impl Fn(RunId) -> bool) -> Vec<(Order, UnitIx, ShapeIx)> {
        let queue = &self.tree.get(leaf).leaf;
        let is_ready = |at: UnitIx| match self.units.get(at) {
            Some(unit) if unit.gang.is_none() => ready(unit.run),
            Some(_) => self.members(at).iter().all(|task| ready(task.run)),
            None => false,
        };
        let overdue = queue.overdue(now).filter(|(_, unit)| is_ready(*unit)).take(MAX_OVERDUE);
        let first = queue.shapes().filter_map(|shape| queue.first(shape, &is_ready));
        let mut found: Vec<(Order, UnitIx, ShapeIx)> =
            overdue.chain(first).filter_map(|(order, unit)| Some((order, unit, self.units.get(unit)?.shape))).collect();
        found.sort_unstable();
        found
    }

    /// Finds room for a unit, or says what it lacks.
    fn try_unit(&mut self, leaf: QueueIx, shape: ShapeIx, unit: Option<UnitIx>) -> Result<Placement, Block> {
        let total = self.shapes.total(shape);
        if let Some(limit) = self.tree.limit(leaf, &total) {
            let never = if limit.guarantee {
                self.tree.is_never_free(leaf, limit.resource, &total)
            } else {
                self.tree.is_too_large(&limit, &total)
            };
            return Err(if never { Block::Never } else { Block::Quota(limit.resource) });
        }
        if !self.shapes.is_active(shape) {
            return Err(Block::Room);
        }
        let spread = self.tree.get(leaf).spec.spread;
        let wanted = self.shapes.get(shape);
        let Some(placement) = self.room.place(&wanted, unit, spread, &self.names, &|_, _| true) else {
            self.shapes.deactivate(shape);
            return Err(Block::Room);
        };
        // More may be in use than there is, if nodes shrank: there is room on a node, and none to spare.
        match self.tree.breaks_guarantees(leaf, &total) {
            Some(resource) if self.tree.is_never_free(leaf, resource, &total) => Err(Block::Never),
            Some(resource) => Err(Block::Quota(resource)),
            None => Ok(placement),
        }
    }

    /// Finds room for a unit behind one that is blocked, without taking what that one waits for.
    fn try_behind(
        &mut self,
        leaf: QueueIx,
        shape: ShapeIx,
        unit: UnitIx,
        head: UnitIx,
        block: &Block,
        now: Time,
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
        let spread = self.tree.get(leaf).spec.spread;
        let Some(reservation) = self.tree.get(leaf).leaf.reservation.as_ref() else { return Some(placement) };
        let passes = |node| match wanted.single() {
            Some(task) => reservation.lets_pass(task, wanted.bound, node, now),
            None => !reservation.concerns(node) || reservation.is_after(wanted.bound, now),
        };
        self.room.place(&wanted, Some(unit), spread, &self.names, &|node, _| passes(node))
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
        let valid = |known: &Reservation| known.unit == head && known.at.is_none_or(|at| at > now);
        if self.tree.get(leaf).leaf.reservation.as_ref().is_some_and(valid) {
            return;
        }
        let Some(unit) = self.units.get(head) else { return };
        let shape = self.shapes.get(unit.shape);
        let found = Reservation::find(head, &shape, &self.room, &self.names, |task| &self.running[&task].amounts);
        self.tree.leaf(leaf).reservation = found;
    }

    /// Finds room for a unit whose victims were ended. If they are gone and it does not start, the room is given up.
    fn try_nominee(&mut self, at: UnitIx) -> Option<Placement> {
        let unit = self.units.get(at)?;
        let (leaf, shape) = (unit.leaf, self.shapes.get(unit.shape));
        let total = shape.total();
        self.tree.nominate(leaf, &total, false);
        let limited = self.tree.limit(leaf, &total).is_some() || self.tree.breaks_guarantees(leaf, &total).is_some();
        self.tree.nominate(leaf, &total, true);
        let nodes = self.nominees.get(&at)?.clone();
        let placement = if limited { None } else { self.room.place_nominee(&shape, at, &nodes, &self.names) };
        let ends = |node: &NodeIx| {
            let running = self.room.get(*node).into_iter().flat_map(|node| &node.running);
            running.filter_map(|task| self.running.get(task)).any(|running| running.ending)
        };
        if placement.is_none() && !nodes.iter().any(ends) {
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
            let Some(waiting) = self.waiting.remove(task) else { continue };
            let demand = waiting.demand;
            let wanted = self.names.of_task(&demand.resources);
            let part = nodes
                .iter()
                .position(|(part, left)| *left > 0 && part.amounts == wanted && part.constraints == demand.constraints);
            let Some(part) = part else { continue };
            nodes[part].1 -= 1;
            let node = placement[offsets[part]];
            offsets[part] += 1;
            let end = demand.bound.map_or(UNKNOWN, |bound| now.saturating_add(bound));
            let names = &self.names;
            let occupied = self.room.change(node, |node| {
                let amounts = node.fitted(&wanted);
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
        let Some(unit) = self.units.get(head) else { return };
        let wanted: Arc<_> = self.shapes.total(unit.shape);
        let reclaims =
            self.tree.is_entitled(leaf, &wanted) && self.tree.all().any(|(at, queue)| at != leaf && queue.is_over());
        if !(unit.preempts || reclaims)
            || self.tree.get(leaf).leaf.next_preemption.is_some_and(|(unit, next)| unit == head && next > now)
        {
            return;
        }
        let next = now.saturating_add(PREEMPTION_PAUSE);
        self.tree.leaf(leaf).next_preemption = Some((head, next));
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
        self.nominees.insert(head, kept.keys().copied().collect());
        self.tree.nominate(leaf, &wanted, true);
        for (node, amounts) in kept {
            self.room.change(node, |node| node.nominate(head, amounts));
        }
        for victim in victims {
            if let Some(running) = self.running.get_mut(&victim.victim) {
                running.ending = true;
            }
            self.decided.push_back(Decision::Preempt(victim));
        }
    }

    /// Gives up the room that was kept for a unit.
    pub(super) fn give_up(&mut self, at: UnitIx) {
        let Some(nodes) = self.nominees.remove(&at) else { return };
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
        let queue = self.tree.leaf(leaf);
        queue.dirty = true;
        queue.next_preemption = None;
    }

    /// Gives up all room that is kept: nodes or quotas are not what they were when it was promised.
    pub(super) fn give_up_all(&mut self) {
        let nominees: Vec<UnitIx> = self.nominees.keys().copied().collect();
        nominees.into_iter().for_each(|unit| self.give_up(unit));
    }
}
