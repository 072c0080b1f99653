//! What could be changed for a waiting task: each thing that it lacks, as a change that somebody could make. It tries nothing.

use octoflow_model::task::{
    Labels,
    placement::{NodeConstraints, NodeTerm, Operator},
};

use super::{Remedy, ends::EndScope};
use crate::schedule::{
    Scheduler, TaskRef,
    amounts::Amounts,
    node::{Misfit, ScheduledNode},
    room::NodeIx,
    shapes::{DemandShape, TaskShape},
    spec::Quantities,
    tree::{QueueIx, QuotaLimit},
    units::UnitIx,
};

/// Nodes of which a change is tried out.
const MAX_NODES: usize = 4;

impl Scheduler {
    pub(in crate::schedule) fn candidates_for(&self, task: TaskRef) -> Vec<Remedy> {
        let Some(waiting) = self.waiting.get(&task) else { return Vec::new() };
        let Some(leaf) = self.tree.find(&waiting.demand.queue) else { return Vec::new() };
        let queue = self.tree.get(leaf);
        if !queue.exists {
            return vec![Remedy::CreateQueue { queue: queue.spec.name.to_string() }];
        }
        let Some(at) = self.unit_of(task) else {
            let missing = self.gangs.missing(task);
            return vec![Remedy::AddMembers { missing }];
        };
        let line = queue.leaf.all(self.clock);
        let mut candidates = self.changes_for(leaf, at);
        // Whoever would fit waits for what those before it lack.
        let before: Vec<Remedy> = line
            .into_iter()
            .take_while(|unit| *unit != at)
            .take(MAX_NODES)
            .flat_map(|unit| self.changes_for(leaf, unit))
            .collect();
        let fits = self.units.get(at).is_some_and(|unit| {
            self.shapes.is_active(unit.shape) && self.tree.limit(leaf, &self.shapes.total(unit.shape)).is_none()
        });
        if fits {
            candidates.splice(0..0, before);
        } else {
            candidates.extend(before);
        }
        candidates
    }

    /// Returns changes that would make room for a unit, small ones first.
    fn changes_for(&self, leaf: QueueIx, at: UnitIx) -> Vec<Remedy> {
        let Some(shape) = self.units.get(at).map(|unit| self.shapes.get(unit.shape)) else { return Vec::new() };
        let total = shape.total();
        match self.tree.limit(leaf, &total) {
            Some(limit) if limit.guarantee => self.around_guarantees(leaf, &limit, &shape),
            Some(limit) => self.within_capability(&limit, &total, &shape),
            None => self.room_for(&shape, at),
        }
    }

    fn within_capability(&self, limit: &QuotaLimit, total: &Amounts, shape: &DemandShape) -> Vec<Remedy> {
        // Those above are raised first: no queue may use more than they.
        let exceeds = |at: &QueueIx| {
            let queue = self.tree.get(*at);
            let wants = |(index, most): (usize, u64)| {
                total.get(index) > 0 && queue.used(index).saturating_add(total.get(index)) > most
            };
            queue.capability().iter().any(wants)
        };
        let at = self.tree.path(limit.queue).filter(exceeds).last().unwrap_or(limit.queue);
        let queue = self.tree.get(at);
        let name = queue.spec.name.to_string();
        let (mut to, mut lacking, mut never) = (Quantities::new(), Quantities::new(), false);
        for (index, most) in queue.capability().iter().filter(|(index, _)| total.get(*index) > 0) {
            let wanted = queue.used(index).saturating_add(total.get(index));
            if wanted > most {
                to.insert(self.names.name(index).to_string(), wanted);
                lacking.insert(self.names.name(index).to_string(), wanted - most);
                never |= total.get(index) > most;
            }
        }
        let mut changes = vec![Remedy::RaiseCapability { queue: name.clone(), to }];
        if let Some((ends, amounts)) = self.choose_ends(&EndScope::Queue(at), &lacking).filter(|_| !never) {
            changes.push(Remedy::FreeQuota { queue: name, amounts, ends });
        }
        changes.extend(self.free_for_all(shape));
        changes
    }

    /// Guarantees of other queues keep the room: one of them is lowered, or there is more.
    fn around_guarantees(&self, leaf: QueueIx, limit: &QuotaLimit, shape: &DemandShape) -> Vec<Remedy> {
        let total = shape.total();
        let resource = self.names.name(limit.resource).to_string();
        let wanted = total.get(limit.resource);
        let path: Vec<QueueIx> = self.tree.path(leaf).collect();
        let mut unused: Vec<(u64, String, u64)> = Vec::new();
        for (_, queue) in self.tree.all().filter(|(at, queue)| queue.exists && !path.contains(at)) {
            let Some(least) = queue.guarantee().get(limit.resource) else { continue };
            let free = least.saturating_sub(queue.allocated().get(limit.resource));
            if free > 0 {
                unused.push((free, queue.spec.name.to_string(), least.saturating_sub(free.min(wanted))));
            }
        }
        unused.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(&other.1)));
        let mut changes: Vec<Remedy> = unused
            .into_iter()
            .take(MAX_NODES)
            .map(|(_, queue, to)| Remedy::LowerGuarantee { queue, to: [(resource.clone(), to)].into() })
            .filter_map(|mut change| self.bounded(&mut change).then_some(change))
            .collect();
        changes.extend(self.free_anywhere(&[(resource, wanted)].into()));
        changes.extend(self.new_node(shape));
        changes
    }

    fn room_for(&self, shape: &DemandShape, unit: UnitIx) -> Vec<Remedy> {
        let mut ranked: Vec<(u8, u64, Remedy)> = Vec::new();
        for (at, node) in self.room.all() {
            for (task, _) in &shape.parts {
                ranked.extend(self.change_of(at, node, task, shape, unit));
            }
        }
        ranked.sort_by_key(|(rank, size, _)| (*rank, *size));
        let mut changes: Vec<Remedy> = Vec::new();
        for (rank, _, change) in ranked {
            let alike = changes.iter().filter(|known| known.rank() == rank).count();
            if alike < MAX_NODES && !changes.contains(&change) {
                changes.push(change);
            }
        }
        if shape.single().is_none() {
            changes.extend(self.free_for_all(shape));
        }
        changes.extend(self.new_node(shape));
        changes.sort_by_key(Remedy::rank);
        changes
    }

    /// Returns the change of one node that makes room there for a task of a unit, and for all of a unit that would fit
    /// nowhere else.
    fn change_of(
        &self,
        at: NodeIx,
        node: &ScheduledNode,
        task: &TaskShape,
        shape: &DemandShape,
        unit: UnitIx,
    ) -> Option<(u8, u64, Remedy)> {
        let name = || node.spec.name.to_string();
        let change = match node.excludes(&task.amounts, &task.constraints, &self.names) {
            Some(Misfit::NotSelected) => Remedy::LabelNode { node: name(), labels: missing_labels(node, task)? },
            Some(Misfit::Tainted(key)) => Remedy::RemoveTaint { node: name(), key },
            Some(Misfit::TooLarge(_)) => Remedy::RaiseCapacity { node: name(), to: self.capacity_for(node, task) },
            // No empty node is full or cordoned by what it has.
            Some(Misfit::Cordoned | Misfit::Full(_)) => return None,
            None if node.spec.cordoned => Remedy::Uncordon { node: name() },
            None => {
                node.shortage(&task.amounts, Some(unit))?;
                let wanted = if shape.single().is_some() { task.amounts.clone() } else { shape.total() };
                let (ends, amounts) = self.choose_ends(&EndScope::Nodes(vec![at]), &self.lacking_on(node, &wanted))?;
                Remedy::FreeRoom { node: Some(name()), amounts, ends }
            }
        };
        let size = if let Remedy::FreeRoom { amounts, .. } = &change { self.relative(node, amounts) } else { 0 };
        Some((change.rank(), size, change))
    }

    /// Returns what is lacking on a node, in the most that it has of anything: millionths, summed.
    fn relative(&self, node: &ScheduledNode, lacking: &Quantities) -> u64 {
        let part = |(index, amount): (usize, u64)| {
            let has = node.capacity(index).map_or(u64::MAX, |has| has.amount.max(1));
            u64::try_from(u128::from(amount) * 1_000_000 / u128::from(has)).unwrap_or(u64::MAX)
        };
        let indexed = lacking.iter().filter_map(|(name, amount)| Some((self.names.find(name)?, *amount)));
        indexed.map(part).fold(0, u64::saturating_add)
    }

    fn lacking_on(&self, node: &ScheduledNode, wanted: &Amounts) -> Quantities {
        let fitted = node.fitted(wanted);
        let short = fitted.iter().filter_map(|(index, amount)| {
            let lacks = amount.saturating_sub(node.free(index));
            (lacks > 0).then(|| (self.names.name(index).to_string(), lacks))
        });
        short.collect()
    }

    /// Ends tasks wherever members of a unit can be.
    fn free_for_all(&self, shape: &DemandShape) -> Option<Remedy> {
        self.free_anywhere(&self.lacking_for_all(shape))
    }

    /// Ends tasks that hold so much; all of them if that is less, because what is free beside them may be enough.
    fn free_anywhere(&self, lacking: &Quantities) -> Option<Remedy> {
        let scope = EndScope::Nodes(self.room.all().map(|(at, _)| at).collect());
        let none = Remedy::FreeRoom { node: None, amounts: lacking.clone(), ends: Vec::new() };
        let ends = self.choose_ends(&scope, lacking).map_or_else(|| self.all_ends(&scope, lacking), |(ends, _)| ends);
        let change = self.with_ends(&none, ends);
        (!change.ends().is_empty()).then_some(change)
    }

    /// Returns a node that would hold a unit, with the labels that it asks for; `None` if there is none for all of it.
    fn new_node(&self, shape: &DemandShape) -> Option<Remedy> {
        let capacity = self.named(&shape.total());
        if !self.room.all().any(|(_, node)| node.spec.labels_declared) {
            return Some(Remedy::AddNode { capacity, labels: Labels::new() });
        }
        let mut labels = Labels::new();
        for (task, _) in &shape.parts {
            labels.extend(wanted_labels(&task.constraints)?);
        }
        let selected = |(task, _): &(TaskShape, u32)| task.constraints.selects("", &labels);
        shape.parts.iter().all(selected).then_some(Remedy::AddNode { capacity, labels })
    }

    /// Returns what all nodes together lack for a unit; all that it wants if only the pieces are too small.
    fn lacking_for_all(&self, shape: &DemandShape) -> Quantities {
        let open = || self.room.all().map(|(_, node)| node).filter(|node| !node.spec.cordoned);
        let total = shape.total();
        let short = total.iter().filter_map(|(index, amount)| {
            let free = open().map(|node| node.free(index)).fold(0, u64::saturating_add);
            let lacks = amount.saturating_sub(free);
            (lacks > 0).then(|| (self.names.name(index).to_string(), lacks))
        });
        let short: Quantities = short.collect();
        if short.is_empty() { self.named(&total) } else { short }
    }

    fn capacity_for(&self, node: &ScheduledNode, task: &TaskShape) -> Quantities {
        let larger = task.amounts.iter().filter_map(|(index, amount)| {
            let has = node.capacity(index).filter(|has| has.declared || has.amount == 0)?;
            let wanted = node.used().get(index).saturating_add(amount);
            (wanted > has.amount).then(|| (self.names.name(index).to_string(), wanted))
        });
        larger.collect()
    }
}

/// Returns the labels that a node lacks for a task; `None` if labels alone are not enough.
fn missing_labels(node: &ScheduledNode, task: &TaskShape) -> Option<Labels> {
    let lacks = |(key, value): &(&String, &String)| node.spec.labels.get(*key) != Some(*value);
    let missing: Labels =
        task.constraints.selector.iter().filter(lacks).map(|(key, value)| (key.clone(), value.clone())).collect();
    let mut labels = node.spec.labels.clone();
    labels.extend(missing.clone());
    (!missing.is_empty() && task.constraints.selects(&node.spec.name, &labels)).then_some(missing)
}

/// Returns labels that satisfy selector and affinity; `None` if no labels alone do.
fn wanted_labels(constraints: &NodeConstraints) -> Option<Labels> {
    let mut terms: Vec<Option<&NodeTerm>> = constraints.affinity.iter().map(Some).collect();
    if terms.is_empty() {
        terms.push(None);
    }
    terms.into_iter().find_map(|term| {
        let mut labels = constraints.selector.clone();
        for one in term.into_iter().flat_map(|term| &term.labels) {
            let number =
                |by: i64| one.values.first()?.parse::<i64>().ok()?.checked_add(by).map(|wanted| wanted.to_string());
            let value = match one.operator {
                Operator::In => one.values.first().cloned(),
                Operator::Exists => Some(String::new()),
                Operator::Gt => number(1),
                Operator::Lt => number(-1),
                Operator::NotIn | Operator::DoesNotExist => None,
            };
            if let Some(value) = value {
                labels.entry(one.key.clone()).or_insert(value);
            }
        }
        constraints.selects("", &labels).then_some(labels)
    })
}
