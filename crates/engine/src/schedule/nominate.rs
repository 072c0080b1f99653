//! Units whose victims are ending: finds victims for whoever may have some, keeps their room and quota for it, and tries it again
//! as they end. It decides neither the order nor who may be a victim.

use std::{collections::BTreeMap, time::Duration};

use octoflow_model::Time;

use super::{
    Decision, Nominee, Scheduler,
    amounts::Amounts,
    room::{NodeIx, Placement},
    shapes::ShapeIx,
    tree::QueueIx,
    units::UnitIx,
};

/// Victims for one unit are looked for this often.
const PREEMPTION_PAUSE: Duration = Duration::from_secs(1);

impl Scheduler {
    /// Looks for victims of a unit that lacks room or quota, if it may have any, and keeps what they leave for it. Returns
    /// whether some are ended for it.
    pub(super) fn preempt_for(&mut self, leaf: QueueIx, at: UnitIx, shape: ShapeIx, now: Time) -> bool {
        let Some(unit) = self.units.get(at) else { return false };
        let total = self.shapes.total(shape);
        if !(unit.preempts || self.tree.may_reclaim(leaf, &total)) {
            return false;
        }
        let paused = self.tree.get(leaf).leaf.next_preemptions.get(&at).is_some_and(|next| *next > now);
        // Whoever would fit waits for those before it, and nobody is ended for that.
        let lacks = |scheduler: &mut Self| scheduler.try_unit(leaf, shape, Some(at)).is_err();
        if paused || self.nominees.contains_key(&at) || self.can_never_start(leaf, shape) || !lacks(self) {
            return false;
        }
        let pauses = &mut self.tree.leaf(leaf).next_preemptions;
        pauses.retain(|_, next| *next > now);
        pauses.insert(at, now.saturating_add(PREEMPTION_PAUSE));
        self.counters.preemption_attempts += 1;
        let Some((victims, placement)) = self.victims(at) else { return false };
        let shape = self.shapes.get(shape);
        let mut nodes = placement.into_iter();
        let mut kept: BTreeMap<_, Amounts> = BTreeMap::new();
        for (task, count) in &shape.parts {
            for node in nodes.by_ref().take(*count as usize) {
                let amounts = self.room.get(node).map(|node| node.fitted(&task.amounts)).unwrap_or_default();
                kept.entry(node).or_default().add(&amounts);
            }
        }
        // Quota is freed by tasks on any node.
        let retry = self.tree.limit(leaf, &total).is_some() || self.tree.breaks_guarantees(leaf, &total).is_some();
        self.nominees.insert(at, Nominee { nodes: kept.keys().copied().collect(), retry });
        self.tree.nominate(leaf, &total, true);
        for (node, amounts) in kept {
            self.room.change(node, |node| node.nominate(at, amounts));
        }
        for victim in victims {
            self.note_ending(victim.victim, victim.reason.kind());
            self.decided.push_back(Decision::Preempt(victim));
        }
        true
    }

    /// Finds room for a unit whose victims were ended. If they are gone and it does not start, the room is given up.
    pub(super) fn try_nominee(&mut self, at: UnitIx) -> Option<Placement> {
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
        self.tree.leaf(leaf).next_preemptions.clear();
        self.tree.mark(leaf);
        self.tree.mark_blocked(leaf);
    }

    /// Gives up all room that is kept: nodes or quotas are not what they were when it was promised.
    pub(super) fn give_up_all(&mut self) {
        let nominees: Vec<UnitIx> = self.nominees.keys().copied().collect();
        nominees.into_iter().for_each(|unit| self.give_up(unit));
    }
}
