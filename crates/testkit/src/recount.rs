//! The rule of the scheduler as full passes over everything that is declared, runs and waits: no counters, no indexes, no
//! order of events. It is written from `docs/scheduling.md` and knows nothing of how the scheduler works; tests compare both.

pub mod due;
pub mod gang;
mod order;
pub mod victims;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use octoflow_engine::schedule::{
    Scheduler, TaskRef,
    spec::{ClassSpec, Demand, NodeSpec, Quantities, QueueSpec, ROOT},
};
use octoflow_model::{Time, task::placement::Assignment};

/// Nodes, queues and classes as they were declared.
#[derive(Clone, Debug, Default)]
pub struct Declared {
    pub nodes: BTreeMap<String, NodeSpec>,
    /// `root` and `default` exist whether they are listed here or not.
    pub queues: BTreeMap<String, QueueSpec>,
    pub classes: BTreeMap<String, ClassSpec>,
}

/// A task that runs, or one that is being ended and has not given its room back.
#[derive(Clone, Debug)]
pub struct Holder {
    pub demand: Arc<Demand>,
    pub assignment: Assignment,
    pub started: Time,
    /// True if it is being ended for another.
    pub ending: bool,
}

/// Everything that holds room, and what is declared.
#[derive(Clone, Debug, Default)]
pub struct Recount {
    pub declared: Declared,
    pub holders: BTreeMap<TaskRef, Holder>,
}

/// Returns how much of a resource a task asks for.
pub fn wants(demand: &Demand, resource: &str) -> u64 {
    match resource {
        "pods" => 1,
        _ => demand.resources.iter().find(|(name, _)| *name == resource).map_or(0, |(_, amount)| amount),
    }
}

fn resources_of(demand: &Demand) -> impl Iterator<Item = &str> {
    std::iter::once("pods").chain(demand.resources.iter().map(|(name, _)| name))
}

impl Declared {
    pub fn queue(&self, name: &str) -> Option<QueueSpec> {
        let always = matches!(name, ROOT | octoflow_engine::schedule::spec::DEFAULT).then(|| QueueSpec::new(name));
        self.queues.get(name).cloned().or(always)
    }

    pub fn queue_names(&self) -> BTreeSet<String> {
        let always = [ROOT, octoflow_engine::schedule::spec::DEFAULT].map(str::to_owned);
        self.queues.keys().cloned().chain(always).collect()
    }

    fn parent(&self, name: &str) -> Option<String> {
        let spec = self.queue(name)?;
        (name != ROOT).then(|| spec.parent.as_deref().unwrap_or(ROOT).to_owned())
    }

    /// Returns a queue and those above it, the root last. Nothing is above a queue that does not exist but the root.
    pub fn path(&self, name: &str) -> Vec<String> {
        let mut path = vec![name.to_owned()];
        while let Some(parent) = path.last().and_then(|last| self.parent(last)) {
            path.push(parent);
        }
        if path.last().is_some_and(|last| last != ROOT) {
            path.push(ROOT.to_owned());
        }
        path
    }

    pub fn children(&self, name: &str) -> Vec<String> {
        self.queue_names().into_iter().filter(|child| self.parent(child).as_deref() == Some(name)).collect()
    }

    /// Returns how much all nodes have of a resource.
    pub fn total(&self, resource: &str) -> u64 {
        self.nodes.values().filter_map(|node| node.capacity.get(resource)).map(|has| has.amount).sum()
    }

    /// Returns what a queue deserves of a resource: as declared, else by weight among the queues beside it.
    pub fn deserved(&self, name: &str, resource: &str) -> u64 {
        if name == ROOT {
            return self.total(resource);
        }
        let Some(spec) = self.queue(name) else { return 0 };
        if let Some(stated) = spec.deserved.get(resource) {
            return *stated;
        }
        let Some(parent) = self.parent(name) else { return 0 };
        let weights = self.children(&parent).into_iter().filter_map(|child| self.queue(&child));
        let weights: u64 = weights.map(|child| u64::from(child.weight)).sum();
        let whole = self.deserved(&parent, resource);
        (u128::from(whole) * u128::from(spec.weight) / u128::from(weights.max(1))) as u64
    }

    /// Reports whether a queue is judged by a resource: it, or a queue above it, states what it deserves of that; where nobody
    /// states anything, by all that nodes count but the number of tasks.
    pub fn is_judged(&self, name: &str, resource: &str) -> bool {
        let path = self.path(name);
        let stated: Vec<Quantities> = path
            .iter()
            .filter(|one| *one != ROOT)
            .filter_map(|one| self.queue(one))
            .map(|spec| spec.deserved)
            .filter(|deserved| !deserved.is_empty())
            .collect();
        let says = stated.iter().any(|deserved| deserved.contains_key(resource));
        self.total(resource) > 0 && (says || (stated.is_empty() && resource != "pods"))
    }

    pub fn class(&self, demand: &Demand) -> Option<ClassSpec> {
        self.classes.get(&**demand.class.as_ref()?).copied()
    }

    fn resources(&self) -> BTreeSet<String> {
        let of_nodes = self.nodes.values().flat_map(|node| node.capacity.keys().cloned());
        let named = |spec: &QueueSpec| {
            let all = [&spec.guarantee, &spec.deserved, &spec.capability];
            all.into_iter().flat_map(Quantities::keys).cloned().collect::<Vec<_>>()
        };
        of_nodes.chain(self.queues.values().flat_map(named)).collect()
    }
}

/// Returns why a task may never start on a node, however empty that is.
pub fn excluded(demand: &Demand, node: &NodeSpec) -> Option<String> {
    if node.cordoned {
        return Some("it is cordoned".to_owned());
    }
    if node.labels_declared && !demand.constraints.selects(&node.name, &node.labels) {
        return Some("its labels are not selected".to_owned());
    }
    if let Some(taint) = node.taints.iter().find(|taint| !demand.constraints.tolerates(taint)) {
        return Some(format!("its taint {} is not tolerated", taint.key));
    }
    let lacks = |resource: &&str| match node.capacity.get(*resource) {
        Some(has) => has.declared && has.amount < wants(demand, resource) || has.amount == 0,
        None => !node.open_ended,
    };
    resources_of(demand).find(lacks).map(|resource| format!("it has too little {resource}"))
}

/// Returns what a task takes of a resource on a node: never more than was only measured.
fn taken(demand: &Demand, node: Option<&NodeSpec>, resource: &str) -> u64 {
    let amount = wants(demand, resource);
    match node.map(|node| (node.capacity.get(resource), node.open_ended)) {
        Some((Some(has), _)) if !has.declared => amount.min(has.amount),
        Some((None, true)) => 0,
        Some((Some(_), _) | (None, false)) | None => amount,
    }
}

impl Recount {
    fn takes(&self, holder: &Holder, resource: &str) -> u64 {
        taken(&holder.demand, self.declared.nodes.get(&holder.assignment.node), resource)
    }

    pub fn used_on(&self, node: &str, resource: &str) -> u64 {
        let here = |holder: &&Holder| holder.assignment.node == node;
        self.holders.values().filter(here).map(|holder| self.takes(holder, resource)).sum()
    }

    /// Returns what tasks of a queue and below use of a resource.
    pub fn used_by(&self, queue: &str, resource: &str) -> u64 {
        let below = |holder: &&Holder| self.declared.path(&holder.demand.queue).iter().any(|one| one == queue);
        self.holders.values().filter(below).map(|holder| self.takes(holder, resource)).sum()
    }

    /// Reports whether a task fits on a node now.
    pub fn fits(&self, demand: &Demand, node: &NodeSpec) -> bool {
        excluded(demand, node).is_none() && resources_of(demand).all(|resource| self.has_free(demand, node, resource))
    }

    fn has_free(&self, demand: &Demand, node: &NodeSpec, resource: &str) -> bool {
        let Some(has) = node.capacity.get(resource) else { return node.open_ended };
        self.used_on(&node.name, resource) + taken(demand, Some(node), resource) <= has.amount
    }

    /// Returns the quota that leaves no room for tasks that start at once in one queue.
    pub fn quota(&self, demands: &[&Demand]) -> Option<String> {
        let queue = &demands.first()?.queue;
        if self.declared.queue(queue).is_none() {
            return Some(format!("queue {queue} does not exist"));
        }
        let resources: BTreeSet<&str> = demands.iter().flat_map(|demand| resources_of(demand)).collect();
        for resource in resources {
            let more: u64 = demands.iter().map(|demand| wants(demand, resource)).sum();
            for name in self.declared.path(queue) {
                let most = self.declared.queue(&name).and_then(|spec| spec.capability.get(resource).copied());
                if most.is_some_and(|most| self.used_by(&name, resource) + more > most) {
                    return Some(format!("the capability of {name} in {resource}"));
                }
            }
            let guarantees = self.declared.queues.values().filter_map(|spec| spec.guarantee.get(resource));
            let guaranteed = guarantees.max().is_some_and(|least| *least > 0);
            let before = self.reserved(ROOT, resource, None);
            let after = self.reserved(ROOT, resource, Some((queue, more)));
            if guaranteed && after > before && after > self.declared.total(resource) {
                return Some(format!("guarantees of other queues in {resource}"));
            }
        }
        None
    }

    /// Returns how much of a resource is used by a queue or kept for its guarantee and those below, if so much more is
    /// used by a leaf.
    fn reserved(&self, name: &str, resource: &str, more: Option<(&str, u64)>) -> u64 {
        let children = self.declared.children(name);
        let own = self.holders.values().filter(|holder| &*holder.demand.queue == name);
        let mut used: u64 = own.map(|holder| self.takes(holder, resource)).sum();
        if name == ROOT {
            // Tasks of queues that do not exist count for the root alone.
            let lost = self.holders.values().filter(|holder| self.declared.queue(&holder.demand.queue).is_none());
            used += lost.map(|holder| self.takes(holder, resource)).sum::<u64>();
        }
        used += more.filter(|(leaf, _)| *leaf == name).map_or(0, |(_, more)| more);
        used += children.iter().map(|child| self.reserved(child, resource, more)).sum::<u64>();
        let guarantee = self.declared.queue(name).and_then(|spec| spec.guarantee.get(resource).copied());
        used.max(guarantee.unwrap_or(0))
    }

    /// Returns what is wrong with a start on these nodes and devices.
    pub fn start_problem(&self, demand: &Demand, assignment: &Assignment) -> Option<String> {
        let Some(node) = self.declared.nodes.get(&assignment.node) else {
            return Some(format!("there is no node {}", assignment.node));
        };
        if let Some(why) = excluded(demand, node) {
            return Some(format!("node {} may not be used: {why}", node.name));
        }
        if let Some(resource) = resources_of(demand).find(|resource| !self.has_free(demand, node, resource)) {
            let (used, has) = (self.used_on(&node.name, resource), node.capacity.get(resource));
            return Some(format!(
                "node {} has {has:?} {resource}, {used} is in use and {} more is wanted",
                node.name,
                wants(demand, resource)
            ));
        }
        if let Some(limit) = self.quota(&[demand]) {
            return Some(format!("{limit} leave no room"));
        }
        let devices = |resource: &str| assignment.devices.get(resource).map_or(0, Vec::len) as u64;
        let other = demand.resources.others.iter().find(|(resource, amount)| devices(resource) != **amount);
        if let Some((resource, amount)) = other {
            return Some(format!("it asked for {amount} {resource} and was handed {:?}", assignment.devices));
        }
        for (resource, numbers) in &assignment.devices {
            let has = node.capacity.get(resource).map_or(0, |has| has.amount);
            let held = self.holders.values().filter(|other| other.assignment.node == assignment.node);
            let held: BTreeSet<u32> =
                held.filter_map(|other| other.assignment.devices.get(resource)).flatten().copied().collect();
            if let Some(number) = numbers.iter().find(|number| held.contains(number) || u64::from(**number) >= has) {
                return Some(format!("{resource} {number} of {} is held by another, or does not exist", node.name));
            }
        }
        None
    }

    /// Returns the first sum of the scheduler that is not that of the live holders.
    pub fn sums_problem(&self, scheduler: &Scheduler) -> Option<String> {
        let asked = self.holders.values().flat_map(|holder| resources_of(&holder.demand)).map(str::to_owned);
        let resources: BTreeSet<String> = self.declared.resources().into_iter().chain(asked).collect();
        let nodes = scheduler.nodes();
        for name in self.declared.nodes.keys() {
            let Some(kept) = nodes.iter().find(|kept| *kept.spec.name == **name) else {
                return Some(format!("the scheduler does not know node {name}"));
            };
            for resource in &resources {
                let (kept, counted) =
                    (kept.allocated.get(resource).copied().unwrap_or(0), self.used_on(name, resource));
                if kept != counted {
                    return Some(format!("{kept} {resource} of node {name} is in use where holders have {counted}"));
                }
            }
        }
        let known = |node: &str| self.declared.nodes.contains_key(node);
        if let Some(odd) = nodes.iter().find(|node| !known(&node.spec.name) && node.running == 0) {
            return Some(format!("node {} is gone and the scheduler keeps it", odd.spec.name));
        }
        for name in self.declared.queue_names() {
            let Some(kept) = scheduler.queue(&name) else { return Some(format!("queue {name} is unknown")) };
            for resource in &resources {
                let (kept, counted) =
                    (kept.allocated.get(resource).copied().unwrap_or(0), self.used_by(&name, resource));
                if kept != counted {
                    return Some(format!("{kept} {resource} of queue {name} is in use where holders have {counted}"));
                }
            }
            for resource in &resources {
                let (kept, counted) =
                    (kept.deserved.get(resource).copied().unwrap_or(0), self.declared.deserved(&name, resource));
                if kept != counted {
                    return Some(format!("queue {name} deserves {counted} {resource} and the scheduler says {kept}"));
                }
            }
        }
        (scheduler.running() != self.holders.len())
            .then(|| format!("the scheduler counts {} running tasks of {}", scheduler.running(), self.holders.len()))
    }
}
