//! Says why a task waits, as data: its queue and the queues above with their numbers, its gang, its place, what the nodes
//! lack, when it may start, and the smallest change that would let it go. It only reads.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Mutex, PoisonError},
};

use octoflow_model::{IdMap, Time};

use super::{
    Scheduler, TaskRef,
    amounts::{Amounts, Bounds},
    node::{Misfit, ScheduledNode},
    remedy::Proposal,
    reserve::Reservation,
    shapes::DemandShape,
    spec::Quantities,
    tree::QueueIx,
    trial::Estimate,
    units::UnitIx,
};
use crate::pod::quantity::render;

/// Why a task waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitReason {
    pub task: TaskRef,
    /// Its queue and those above, the root last.
    pub path: Vec<Level>,
    /// False if nobody has created its queue.
    pub queue_exists: bool,
    /// Members of its gang that are present, and how many must be.
    pub gang: Option<(usize, u32)>,
    /// How many units of its queue come before it.
    pub position: usize,
    /// How many units wait in its queue.
    pub waiting: usize,
    /// The queue whose quota leaves no room, and the resource.
    pub quota: Option<(String, String)>,
    /// True if no node, or for a gang no set of nodes, has room for it now.
    pub no_room: bool,
    /// How many nodes fail on what.
    pub nodes: BTreeMap<Misfit, usize>,
    /// When it is expected to start, if it is the first of its queue and anybody knows.
    pub expected: Option<Time>,
    /// True if room is being made for it.
    pub preempting: bool,
    /// True if units before it in its queue hold what it would need.
    pub behind: bool,
    /// The smallest change that lets it go; only where somebody asked for it.
    pub remedy: Option<Proposal>,
}

/// The places of units by queue, where a scheduler is not changed any more.
#[derive(Debug, Default)]
pub(super) struct Lines(Option<Mutex<BTreeMap<QueueIx, IdMap<UnitIx, usize>>>>);

impl Lines {
    fn is_kept(&self) -> bool {
        self.0.is_some()
    }
}

impl Clone for Lines {
    /// Keeps nothing: a copy may be changed.
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// One queue of the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    pub queue: String,
    pub used: Quantities,
    pub deserved: Quantities,
    pub capability: Quantities,
}

impl WaitReason {
    /// Reports whether it waits for members of its gang.
    pub fn gathers(&self) -> bool {
        self.queue_exists && self.gang.is_some() && self.waiting == 0
    }

    /// Reports whether something keeps it from starting now.
    pub fn is_blocked(&self) -> bool {
        !self.queue_exists || self.quota.is_some() || self.no_room || self.behind || self.preempting
    }
}

impl Scheduler {
    /// Explains why a task waits, with the smallest change that lets it go and when it is expected to start. Both are tried
    /// out in copies, so this costs much more than [`Scheduler::why`]; a frozen scheduler leaves it to
    /// [`Scheduler::complete`].
    pub fn explain(&self, task: TaskRef) -> Option<WaitReason> {
        let mut reason = self.why(task)?;
        if !self.lines.is_kept() {
            self.complete(&mut reason);
        }
        Some(reason)
    }

    /// Adds to an explanation when its task is expected to start, and the smallest change that lets it go.
    pub fn complete(&self, reason: &mut WaitReason) {
        if let Estimate::By(at) = self.estimate(reason.task) {
            reason.expected = Some(at);
        }
        reason.remedy = self.propose(reason.task);
    }

    /// Returns a copy that is asked about many tasks and never changed: the line of each queue is computed once.
    pub fn freeze(&self) -> Self {
        let mut copy = self.clone();
        copy.lines = Lines(Some(Mutex::default()));
        copy
    }

    /// Returns how many units of a queue come before one, and how many wait.
    fn place_in_line(&self, leaf: QueueIx, at: UnitIx) -> (usize, usize) {
        let line = || self.tree.get(leaf).leaf.all(self.clock);
        let Some(known) = &self.lines.0 else {
            let line = line();
            return (line.iter().position(|unit| *unit == at).unwrap_or(0), line.len());
        };
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        let places = || line().into_iter().enumerate().map(|(place, unit)| (unit, place)).collect();
        let places = known.entry(leaf).or_insert_with(places);
        (places.get(&at).copied().unwrap_or(0), places.len())
    }

    /// Explains why a task waits; `None` if it does not.
    pub fn why(&self, task: TaskRef) -> Option<WaitReason> {
        let waiting = self.waiting.get(&task)?;
        let leaf = self.tree.find(&waiting.demand.queue)?;
        let queue_exists = self.tree.get(leaf).exists;
        let mut reason = WaitReason {
            task,
            path: self.tree.path(leaf).map(|at| self.level(at)).collect(),
            queue_exists,
            gang: self.gangs.presence(task),
            position: 0,
            waiting: 0,
            quota: None,
            no_room: false,
            nodes: BTreeMap::new(),
            expected: None,
            preempting: false,
            behind: false,
            remedy: None,
        };
        // Members above the least wait for what the first ones wait for.
        let first = || self.gangs.of(task).and_then(|gang| self.gangs.get(gang)?.unit);
        let Some(at) = waiting.unit.or_else(first) else { return Some(reason) };
        let shape = self.units.get(at).map(|unit| self.shapes.get(unit.shape))?;
        (reason.position, reason.waiting) = self.place_in_line(leaf, at);
        reason.preempting = self.nominees.contains_key(&at);
        let total = shape.total();
        let limit = self.tree.limit(leaf, &total);
        reason.quota = limit.map(|limit| {
            (self.tree.get(limit.queue).spec.name.to_string(), self.names.name(limit.resource).to_string())
        });
        for (_, node) in self.room.all() {
            if let Some(misfit) = self.misfit(&shape, node, at) {
                *reason.nodes.entry(misfit).or_default() += 1;
            }
        }
        let active = self.units.get(at).is_some_and(|unit| self.shapes.is_active(unit.shape));
        reason.no_room = !active;
        reason.behind = limit.is_none() && active && reason.position > 0;
        reason.expected = self.expected(leaf, at, &shape, reason.position);
        Some(reason)
    }

    fn level(&self, at: QueueIx) -> Level {
        let queue = self.tree.get(at);
        Level {
            queue: queue.spec.name.to_string(),
            used: self.named(queue.allocated()),
            deserved: self.named(&self.tree.deserved_of(at)),
            capability: self.named_bounds(queue.capability()),
        }
    }

    pub(super) fn named(&self, amounts: &Amounts) -> Quantities {
        amounts.iter().map(|(index, amount)| (self.names.name(index).to_string(), amount)).collect()
    }

    fn named_bounds(&self, bounds: &Bounds) -> Quantities {
        bounds.iter().map(|(index, amount)| (self.names.name(index).to_string(), amount)).collect()
    }

    /// Returns what keeps a unit off a node; for a gang, what keeps its first task.
    fn misfit(&self, shape: &DemandShape, node: &ScheduledNode, unit: UnitIx) -> Option<Misfit> {
        let (task, _) = shape.parts.first()?;
        if let Some(misfit) = node.excludes(&task.amounts, &task.constraints, &self.names) {
            return Some(misfit);
        }
        if node.spec.cordoned {
            return Some(Misfit::Cordoned);
        }
        let lacking = node.shortage(&task.amounts, Some(unit))?;
        Some(Misfit::Full(self.names.name(lacking).to_string()))
    }

    fn expected(&self, leaf: QueueIx, at: UnitIx, shape: &DemandShape, position: usize) -> Option<Time> {
        let known = self.tree.get(leaf).leaf.reservation.as_ref().filter(|known| known.unit == at);
        if let Some(known) = known {
            return known.at;
        }
        (position == 0)
            .then(|| Reservation::find(at, shape, &self.room, &self.names, |task| &self.running[&task].amounts))
            .flatten()?
            .at
    }
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queue = self.path.first().map_or("", |level| level.queue.as_str());
        if !self.queue_exists {
            return write!(f, "waits for queue '{queue}', which does not exist");
        }
        if let Some((present, least)) = self.gang.filter(|_| self.gathers()) {
            return write!(f, "waits for its gang: {present} of {least} members are there");
        }
        write!(f, "waits in queue '{queue}', {} of {}", self.position + 1, self.waiting)?;
        if self.preempting {
            return write!(f, ": room is being made for it");
        }
        if let Some((whose, resource)) = &self.quota {
            write!(f, ": queue '{whose}' has no {resource} left")?;
            if let Some(level) = self.path.iter().find(|level| level.queue == *whose)
                && let Some(most) = level.capability.get(resource)
            {
                let used = level.used.get(resource).copied().unwrap_or(0);
                write!(f, " ({} of {} used)", render(resource, used), render(resource, *most))?;
            }
        } else if self.behind {
            write!(f, ": others come before it")?;
        } else if !self.nodes.is_empty() {
            let nodes = self.nodes.iter().map(|(misfit, count)| {
                let nodes = if *count == 1 { "node" } else { "nodes" };
                format!("{count} {nodes} {misfit}")
            });
            write!(f, ": {}", nodes.collect::<Vec<_>>().join(", "))?;
        }
        if self.no_room && self.quota.is_none() && self.nodes.is_empty() {
            write!(f, ": there is no room for all of its gang at once")?;
        }
        if let Some(expected) = self.expected {
            write!(f, "; expected to start by {expected}")?;
        }
        if let Some(remedy) = &self.remedy {
            write!(f, "; to let it go: {remedy}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cordoned => write!(f, "cordoned"),
            Self::NotSelected => write!(f, "not selected by its labels"),
            Self::Tainted(key) => write!(f, "with the taint {key} that it does not tolerate"),
            Self::TooLarge(resource) => write!(f, "too small in {resource}"),
            Self::Full(resource) => write!(f, "without enough free {resource}"),
        }
    }
}
