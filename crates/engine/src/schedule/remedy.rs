//! The smallest change that lets a waiting task go: what is lacking is turned into changes, small ones first, and each is
//! tried out in a copy until one is enough. It only reads.

use std::{collections::BTreeSet, fmt};

use octoflow_model::task::Labels;

use super::{
    Scheduler, TaskRef,
    amounts::Amounts,
    node::{Misfit, Node},
    shapes::{Shape, TaskShape},
    spec::Quantities,
    tree::{QueueIx, QuotaLimit},
    units::UnitIx,
};
use crate::pod::quantity::render;

/// A change that somebody could make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    CreateQueue {
        queue: String,
    },
    /// So many more members of its gang.
    AddMembers {
        missing: usize,
    },
    RaiseCapability {
        queue: String,
        to: Quantities,
    },
    LowerGuarantee {
        queue: String,
        to: Quantities,
    },
    /// Tasks of a queue and those below it end.
    FreeQuota {
        queue: String,
        lacking: Quantities,
    },
    Uncordon {
        node: String,
    },
    RemoveTaint {
        node: String,
        key: String,
    },
    LabelNode {
        node: String,
        labels: Labels,
    },
    /// The node is declared to have more.
    RaiseCapacity {
        node: String,
        to: Quantities,
    },
    /// Tasks on a node end, or wherever the members of a gang can be.
    FreeRoom {
        node: Option<String>,
        lacking: Quantities,
    },
    AddNode {
        capacity: Quantities,
    },
}

/// A change, and whether it is enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    pub change: Remedy,
    /// False if more is needed, which the next explanation tells. `None`: so much waits that it was not tried out.
    pub suffices: Option<bool>,
}

/// What a change does for a task.
enum Trial {
    Enough(Remedy),
    /// Others start with it.
    Helps,
    Useless,
}

/// Nodes of which a change is tried out.
const MAX_NODES: usize = 4;
/// How often a change is made larger because others before the task take what it frees.
const MAX_GROWTHS: usize = 6;

impl Scheduler {
    /// Proposes the smallest change that lets a task go; `None` if it does not wait, or will start without one.
    pub fn propose(&self, task: TaskRef) -> Option<Proposal> {
        let candidates = self.candidates_for(task);
        let first = candidates.first()?.clone();
        if !self.may_try() {
            return Some(Proposal { change: first, suffices: None });
        }
        let mut helps = None;
        for change in candidates {
            match self.enough(task, &change) {
                Trial::Enough(change) => return Some(Proposal { change, suffices: Some(true) }),
                Trial::Helps if helps.is_none() => helps = Some(change),
                Trial::Helps | Trial::Useless => {}
            }
        }
        // Whoever lets one before it go brings it nearer.
        Some(Proposal { change: helps.unwrap_or(first), suffices: Some(false) })
    }

    /// Tries a change, made larger where others take what it frees.
    fn enough(&self, task: TaskRef, base: &Remedy) -> Trial {
        let mut change = base.clone();
        let mut helps = false;
        for _ in 0..=MAX_GROWTHS {
            let mut copy = self.with_change(task, &change);
            let started = copy.start_all();
            if started.contains(&task) {
                return Trial::Enough(change);
            }
            helps |= copy.obstacle(task) != self.obstacle(task) || self.starts_before(task, &started, &copy);
            let mut taken = Amounts::default();
            for other in started.iter().filter_map(|other| copy.running.get(other)) {
                taken.add(&other.amounts);
            }
            match base.grown(&copy.named(&taken)) {
                Some(grown) if grown != change => change = grown,
                Some(_) | None => break,
            }
        }
        if helps { Trial::Helps } else { Trial::Useless }
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

    /// Returns the unit that a task starts with, or that it follows: members above the least wait for what the first ones
    /// wait for.
    fn unit_of(&self, task: TaskRef) -> Option<UnitIx> {
        let first = || self.gangs.of(task).and_then(|gang| self.gangs.get(gang)?.unit);
        self.waiting.get(&task)?.unit.or_else(first)
    }

    fn candidates_for(&self, task: TaskRef) -> Vec<Remedy> {
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
            Some(limit) if limit.guarantee => self.around_guarantees(leaf, &limit, &total),
            Some(limit) => self.within_capability(&limit, &total, &shape),
            None => self.room_for(&shape, at),
        }
    }

    fn within_capability(&self, limit: &QuotaLimit, total: &Amounts, shape: &Shape) -> Vec<Remedy> {
        let queue = self.tree.get(limit.queue);
        let name = queue.spec.name.to_string();
        let (mut to, mut lacking, mut never) = (Quantities::new(), Quantities::new(), false);
        for (index, most) in queue.capability().iter().filter(|(index, _)| total.get(*index) > 0) {
            let wanted = queue.allocated().get(index).saturating_add(total.get(index));
            if wanted > most {
                to.insert(self.names.name(index).to_string(), wanted);
                lacking.insert(self.names.name(index).to_string(), wanted - most);
                never |= total.get(index) > most;
            }
        }
        let mut changes = vec![Remedy::RaiseCapability { queue: name.clone(), to }];
        if !never {
            changes.push(Remedy::FreeQuota { queue: name, lacking });
        }
        changes.push(Remedy::FreeRoom { node: None, lacking: self.lacking_for_all(shape) });
        changes
    }

    /// Guarantees of other queues keep the room: one of them is lowered, or there is more.
    fn around_guarantees(&self, leaf: QueueIx, limit: &QuotaLimit, total: &Amounts) -> Vec<Remedy> {
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
            .collect();
        changes.push(Remedy::FreeRoom { node: None, lacking: [(resource, wanted)].into() });
        changes.push(Remedy::AddNode { capacity: self.named(total) });
        changes
    }

    fn room_for(&self, shape: &Shape, unit: UnitIx) -> Vec<Remedy> {
        let mut ranked: Vec<(u8, u64, Remedy)> = Vec::new();
        for (_, node) in self.room.all() {
            for (task, _) in &shape.parts {
                ranked.extend(self.change_of(node, task, shape, unit));
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
            changes.push(Remedy::FreeRoom { node: None, lacking: self.lacking_for_all(shape) });
        }
        changes.push(Remedy::AddNode { capacity: self.named(&shape.total()) });
        changes.sort_by_key(Remedy::rank);
        changes
    }

    /// Returns the change of one node that makes room there for a task of a unit, and for all of a unit that would fit
    /// nowhere else.
    fn change_of(&self, node: &Node, task: &TaskShape, shape: &Shape, unit: UnitIx) -> Option<(u8, u64, Remedy)> {
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
                Remedy::FreeRoom { node: Some(name()), lacking: self.lacking_on(node, &wanted) }
            }
        };
        let size = if let Remedy::FreeRoom { lacking, .. } = &change { self.relative(node, lacking) } else { 0 };
        Some((change.rank(), size, change))
    }

    /// Returns what is lacking on a node, in the most that it has of anything: millionths, summed.
    fn relative(&self, node: &Node, lacking: &Quantities) -> u64 {
        let part = |(index, amount): (usize, u64)| {
            let has = node.capacity(index).map_or(u64::MAX, |has| has.amount.max(1));
            u64::try_from(u128::from(amount) * 1_000_000 / u128::from(has)).unwrap_or(u64::MAX)
        };
        let indexed = lacking.iter().filter_map(|(name, amount)| Some((self.names.find(name)?, *amount)));
        indexed.map(part).fold(0, u64::saturating_add)
    }

    fn lacking_on(&self, node: &Node, wanted: &Amounts) -> Quantities {
        let fitted = node.fitted(wanted);
        let short = fitted.iter().filter_map(|(index, amount)| {
            let lacks = amount.saturating_sub(node.free(index));
            (lacks > 0).then(|| (self.names.name(index).to_string(), lacks))
        });
        short.collect()
    }

    /// Returns what all nodes together lack for a unit; all that it wants if only the pieces are too small.
    fn lacking_for_all(&self, shape: &Shape) -> Quantities {
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

    fn capacity_for(&self, node: &Node, task: &TaskShape) -> Quantities {
        let larger = task.amounts.iter().filter_map(|(index, amount)| {
            let has = node.capacity(index).filter(|has| has.declared || has.amount == 0)?;
            let wanted = node.used().get(index).saturating_add(amount);
            (wanted > has.amount).then(|| (self.names.name(index).to_string(), wanted))
        });
        larger.collect()
    }
}

/// Returns the labels that a node lacks for a task; `None` if labels alone are not enough.
fn missing_labels(node: &Node, task: &TaskShape) -> Option<Labels> {
    let lacks = |(key, value): &(&String, &String)| node.spec.labels.get(*key) != Some(*value);
    let missing: Labels =
        task.constraints.selector.iter().filter(lacks).map(|(key, value)| (key.clone(), value.clone())).collect();
    let mut labels = node.spec.labels.clone();
    labels.extend(missing.clone());
    (!missing.is_empty() && task.constraints.selects(&node.spec.name, &labels)).then_some(missing)
}

impl Remedy {
    /// Orders changes: what costs nobody anything comes first.
    fn rank(&self) -> u8 {
        match self {
            Self::CreateQueue { .. } | Self::AddMembers { .. } => 0,
            Self::Uncordon { .. } => 1,
            Self::RaiseCapability { .. } => 2,
            Self::FreeRoom { .. } | Self::FreeQuota { .. } => 3,
            Self::LowerGuarantee { .. } => 4,
            Self::LabelNode { .. } => 5,
            Self::RemoveTaint { .. } => 6,
            Self::RaiseCapacity { .. } => 7,
            Self::AddNode { .. } => 8,
        }
    }

    /// Returns the change with so much more, for others that come before; `None` if it has no size.
    fn grown(&self, taken: &Quantities) -> Option<Self> {
        let mut grown = self.clone();
        let amounts = match &mut grown {
            Self::CreateQueue { .. }
            | Self::AddMembers { .. }
            | Self::Uncordon { .. }
            | Self::RemoveTaint { .. }
            | Self::LabelNode { .. }
            | Self::LowerGuarantee { .. } => return None,
            Self::RaiseCapability { to, .. } | Self::RaiseCapacity { to, .. } => to,
            Self::FreeQuota { lacking, .. } | Self::FreeRoom { lacking, .. } => lacking,
            Self::AddNode { capacity } => capacity,
        };
        // The number of tasks is lacking wherever it is a limit, and a new node needs it.
        let names: Vec<String> = amounts.keys().cloned().collect();
        for name in names {
            if let Some(more) = taken.get(&name) {
                amounts.entry(name).and_modify(|amount| *amount = amount.saturating_add(*more));
            }
        }
        Some(grown)
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CreateQueue { queue } => write!(f, "create queue '{queue}'"),
            Self::AddMembers { missing } => write!(f, "submit {missing} more of its gang"),
            Self::RaiseCapability { queue, to } => {
                write!(f, "raise the capability of queue '{queue}' to {}", listed(to))
            }
            Self::LowerGuarantee { queue, to } => write!(f, "lower the guarantee of queue '{queue}' to {}", listed(to)),
            Self::FreeQuota { queue, lacking } => write!(f, "free {} in queue '{queue}'", listed(lacking)),
            Self::Uncordon { node } => write!(f, "uncordon node {node}"),
            Self::RemoveTaint { node, key } => write!(f, "remove the taint {key} from node {node}"),
            Self::LabelNode { node, labels } => {
                let labels = labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>();
                write!(f, "label node {node} with {}", labels.join(", "))
            }
            Self::RaiseCapacity { node, to } => write!(f, "give node {node} {}", listed(to)),
            Self::FreeRoom { node: Some(node), lacking } => write!(f, "free {} on node {node}", listed(lacking)),
            Self::FreeRoom { node: None, lacking } => write!(f, "free {}", listed(lacking)),
            Self::AddNode { capacity } => write!(f, "add a node with {}", listed(capacity)),
        }
    }
}

impl fmt::Display for Proposal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.suffices {
            Some(true) | None => write!(f, "{}", self.change),
            Some(false) => write!(f, "{}, which alone is not enough", self.change),
        }
    }
}

/// Writes amounts as people do.
pub(super) fn listed(amounts: &Quantities) -> String {
    let listed = amounts.iter().map(|(name, much)| match name.as_str() {
        "pods" if *much == 1 => "1 place for a task".to_owned(),
        "pods" => format!("{much} places for tasks"),
        _ => format!("{} {name}", render(name, *much)),
    });
    listed.collect::<Vec<_>>().join(", ")
}
