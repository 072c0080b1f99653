//! The least of one kind of change that is enough: made larger while others before the task take what it frees, then smaller
//! again as far as the task still starts. Everything is tried out in copies.

use std::{collections::BTreeSet, mem};

use super::{Remedy, ends::EndScope};
use crate::schedule::{Scheduler, TaskRef, amounts::Amounts, spec::Quantities, tree::QuotaLimit, trial::new_node_name};

/// What a change does for a task.
pub(super) enum Trial {
    Enough(Remedy),
    /// Others start with it.
    Helps,
    Useless,
}

/// How often a change is made larger because others before the task take what it frees.
const MAX_GROWTHS: usize = 6;
/// How often it is tried whether less is enough.
const MAX_TRIALS: usize = 64;

impl Scheduler {
    /// Tries a change, made larger where others take what it frees, and returns the least that is enough.
    pub(super) fn enough(&self, task: TaskRef, base: &Remedy) -> Trial {
        let mut change = base.clone();
        let mut helps = false;
        for _ in 0..=MAX_GROWTHS {
            let mut copy = self.with_change(task, &change);
            let started = copy.start_all();
            if started.contains(&task) {
                return Trial::Enough(self.least(task, change));
            }
            helps |= copy.obstacle(task) != self.obstacle(task) || self.starts_before(task, &started, &copy);
            match self.grown(base, &copy, &started) {
                Some(grown) if grown != change => change = grown,
                Some(_) | None => break,
            }
        }
        let all = |scope: &EndScope| Some(self.with_ends(base, self.all_ends(scope, base.freed()?)));
        match self.scope(base).as_ref().and_then(all) {
            Some(all) if all != change && self.lets_go(task, &all) => Trial::Enough(self.least(task, all)),
            Some(_) | None if helps => Trial::Helps,
            Some(_) | None => Trial::Useless,
        }
    }

    fn lets_go(&self, task: TaskRef, change: &Remedy) -> bool {
        self.with_change(task, change).start_all().contains(&task)
    }

    /// Returns the change with so much more as others took that come before; `None` if it has no size.
    fn grown(&self, base: &Remedy, copy: &Self, started: &BTreeSet<TaskRef>) -> Option<Remedy> {
        let mut taken = Amounts::default();
        for other in started.iter().filter(|other| copy.takes_from(base, **other)) {
            taken.add(&copy.running[other].amounts);
        }
        let taken = self.named(&taken);
        if let Some(scope) = self.scope(base) {
            let wanted = more(base.freed()?, &taken);
            return Some(self.with_ends(base, self.choose_ends(&scope, &wanted)?.0));
        }
        let mut grown = base.clone();
        let amounts = grown.amounts_mut()?;
        if let Remedy::LowerGuarantee { .. } = base {
            amounts.iter_mut().for_each(|(name, to)| *to = to.saturating_sub(taken.get(name).copied().unwrap_or(0)));
        } else {
            *amounts = more(amounts, &taken);
        }
        let bounded = self.bounded(&mut grown);
        bounded.then_some(grown)
    }

    /// Cuts a change to what is possible; false if nothing is left of it.
    pub(super) fn bounded(&self, change: &mut Remedy) -> bool {
        match change {
            Remedy::RaiseCapability { queue, to } => {
                let Some(at) = self.tree.find(queue) else { return false };
                for above in self.tree.path(at).skip(1) {
                    // No queue may use more than those above it.
                    let most = self.tree.get(above).capability();
                    let most = |name: &str| self.names.find(name).and_then(|index| most.get(index));
                    to.iter_mut().for_each(|(name, to)| *to = most(name).map_or(*to, |most| most.min(*to)));
                }
            }
            Remedy::LowerGuarantee { queue, to } => {
                let Some(at) = self.tree.find(queue) else { return false };
                // Its queues keep theirs.
                to.iter_mut().for_each(|(name, to)| {
                    *to =
                        self.names.find(name).map_or(*to, |index| self.tree.guaranteed_to_children(at, index).max(*to));
                });
            }
            Remedy::CreateQueue { .. }
            | Remedy::AddMembers { .. }
            | Remedy::FreeQuota { .. }
            | Remedy::Uncordon { .. }
            | Remedy::RemoveTaint { .. }
            | Remedy::LabelNode { .. }
            | Remedy::RaiseCapacity { .. }
            | Remedy::FreeRoom { .. }
            | Remedy::AddNode { .. } => return true,
        }
        let changes: Vec<String> = change.amounts_mut().into_iter().flat_map(|to| to.keys().cloned()).collect();
        for name in changes {
            let now = self.amount_now(change, &name);
            if let Some(to) = change.amounts_mut() {
                to.retain(|key, to| *key != name || Some(*to) != now);
            }
        }
        change.amounts_mut().is_some_and(|to| !to.is_empty())
    }

    /// Returns where tasks end with a change that ends some.
    fn scope(&self, change: &Remedy) -> Option<EndScope> {
        match change {
            Remedy::FreeRoom { node: Some(node), .. } => Some(EndScope::Nodes(vec![self.room.find(node)?])),
            Remedy::FreeRoom { node: None, .. } => Some(EndScope::Nodes(self.room.all().map(|(at, _)| at).collect())),
            Remedy::FreeQuota { queue, .. } => Some(EndScope::Queue(self.tree.find(queue)?)),
            Remedy::CreateQueue { .. }
            | Remedy::AddMembers { .. }
            | Remedy::RaiseCapability { .. }
            | Remedy::LowerGuarantee { .. }
            | Remedy::Uncordon { .. }
            | Remedy::RemoveTaint { .. }
            | Remedy::LabelNode { .. }
            | Remedy::RaiseCapacity { .. }
            | Remedy::AddNode { .. } => None,
        }
    }

    /// Reports whether a task that started uses what a change made free.
    fn takes_from(&self, change: &Remedy, other: TaskRef) -> bool {
        let on =
            |name: &str| self.running.get(&other).is_some_and(|running| self.room.find(name) == Some(running.node));
        match change {
            Remedy::RaiseCapability { queue, .. } | Remedy::FreeQuota { queue, .. } => {
                self.running.contains_key(&other) && self.tree.find(queue).is_some_and(|at| self.is_of_queue(other, at))
            }
            Remedy::RaiseCapacity { node, .. } | Remedy::FreeRoom { node: Some(node), .. } => on(node),
            Remedy::AddNode { .. } => on(&new_node_name(self.room.all().count() - 1)),
            Remedy::FreeRoom { node: None, .. } | Remedy::LowerGuarantee { .. } => self.running.contains_key(&other),
            Remedy::CreateQueue { .. }
            | Remedy::AddMembers { .. }
            | Remedy::Uncordon { .. }
            | Remedy::RemoveTaint { .. }
            | Remedy::LabelNode { .. } => false,
        }
    }

    /// Makes a change that is enough smaller while it still is.
    fn least(&self, task: TaskRef, mut change: Remedy) -> Remedy {
        let mut trials = MAX_TRIALS;
        let mut goes = |change: &Remedy| {
            let may = trials > 0;
            trials = trials.saturating_sub(1);
            may && self.lets_go(task, change)
        };
        if self.scope(&change).is_some() {
            return self.fewest(change, goes);
        }
        loop {
            let names: Vec<String> = change.amounts_mut().into_iter().flat_map(|to| to.keys().cloned()).collect();
            let before = change.clone();
            for name in names {
                change = self.least_amount(change, &name, &mut goes);
            }
            // With less of one resource others may take less of another.
            if change == before {
                return change;
            }
        }
    }

    /// Brings an amount as near as possible to what it is now.
    fn least_amount(&self, mut change: Remedy, name: &str, mut goes: impl FnMut(&Remedy) -> bool) -> Remedy {
        let now = self.amount_now(&change, name).unwrap_or(0);
        let enough = change.amounts_mut().and_then(|amounts| amounts.get(name).copied()).unwrap_or(now);
        let at_distance = |far: u64| {
            let mut other = change.clone();
            if let Some(amounts) = other.amounts_mut() {
                match far {
                    0 => drop(amounts.remove(name)),
                    _ if enough > now => drop(amounts.insert(name.to_owned(), now + far)),
                    _ => drop(amounts.insert(name.to_owned(), now - far)),
                }
            }
            other
        };
        let mut far = enough.abs_diff(now);
        // In most cases it is the least already.
        if far == 0 || !goes(&at_distance(far - 1)) {
            return change;
        }
        far -= 1;
        if far > 0 && goes(&at_distance(0)) {
            far = 0;
        }
        let mut too_near = 0;
        while far > too_near + 1 {
            let middle = too_near + (far - too_near) / 2;
            if goes(&at_distance(middle)) { far = middle } else { too_near = middle }
        }
        at_distance(far)
    }

    /// Leaves out tasks that need not end: many at a time first, then each, again as long as one was left out: with fewer
    /// ends others may take less.
    fn fewest(&self, change: Remedy, mut goes: impl FnMut(&Remedy) -> bool) -> Remedy {
        let mut ends = change.ends().to_vec();
        let mut piece = ends.len().div_ceil(2);
        loop {
            let before = ends.len();
            let mut at = 0;
            while at < ends.len() && ends.len() > 1 {
                let until = (at + piece).min(ends.len());
                let mut fewer = ends.clone();
                fewer.drain(at..until);
                if !fewer.is_empty() && goes(&self.with_ends(&change, fewer.clone())) {
                    ends = fewer;
                } else {
                    at = until;
                }
            }
            if piece <= 1 && ends.len() == before {
                return self.with_ends(&change, ends);
            }
            piece = piece.div_ceil(2);
        }
    }

    /// Returns the amount that a change would change, as it is now.
    fn amount_now(&self, change: &Remedy, name: &str) -> Option<u64> {
        let index = self.names.find(name)?;
        match change {
            Remedy::RaiseCapability { queue, .. } => self.tree.get(self.tree.find(queue)?).capability().get(index),
            Remedy::LowerGuarantee { queue, .. } => self.tree.get(self.tree.find(queue)?).guarantee().get(index),
            Remedy::RaiseCapacity { node, .. } => {
                self.room.get(self.room.find(node)?)?.capacity(index).map(|has| has.amount)
            }
            Remedy::CreateQueue { .. }
            | Remedy::AddMembers { .. }
            | Remedy::FreeQuota { .. }
            | Remedy::Uncordon { .. }
            | Remedy::RemoveTaint { .. }
            | Remedy::LabelNode { .. }
            | Remedy::FreeRoom { .. }
            | Remedy::AddNode { .. } => None,
        }
    }

    /// Returns how large a change is, in parts of all nodes: millionths, summed.
    pub(super) fn size(&self, change: &Remedy) -> u64 {
        let mut change = change.clone();
        let amounts = match change.amounts_mut() {
            Some(amounts) => mem::take(amounts),
            None => change.freed().cloned().unwrap_or_default(),
        };
        let part = |(name, amount): (&String, &u64)| {
            let amount = amount.abs_diff(self.amount_now(&change, name).unwrap_or(0));
            let all = self.names.find(name).map_or(1, |index| self.tree.total().get(index).max(1));
            u64::try_from(u128::from(amount) * 1_000_000 / u128::from(all)).unwrap_or(u64::MAX)
        };
        amounts.iter().map(part).fold(0, u64::saturating_add)
    }

    /// Returns what keeps a task: the quota that is used up, and whether there is room.
    fn obstacle(&self, task: TaskRef) -> Option<(Option<QuotaLimit>, bool)> {
        let unit = self.units.get(self.unit_of(task)?)?;
        let limit = self.tree.limit(unit.leaf, &self.shapes.total(unit.shape));
        Some((limit, self.shapes.is_active(unit.shape)))
    }

    /// Reports whether some of these started in the queue of a task.
    fn starts_before(&self, task: TaskRef, started: &BTreeSet<TaskRef>, copy: &Self) -> bool {
        let queue = self.waiting.get(&task).and_then(|waiting| self.tree.find(&waiting.demand.queue));
        started.iter().any(|other| copy.running.get(other).map(|other| other.leaf) == queue)
    }
}

/// Adds what others take; the resources stay those that are lacking.
fn more(amounts: &Quantities, taken: &Quantities) -> Quantities {
    let sum =
        |(name, amount): (&String, &u64)| (name.clone(), amount.saturating_add(taken.get(name).copied().unwrap_or(0)));
    amounts.iter().map(sum).collect()
}
