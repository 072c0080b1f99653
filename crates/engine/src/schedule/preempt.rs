//! Finds victims: running tasks whose end makes room for a unit that is entitled to it. It decides only whom to end; nobody
//! is chosen unless the unit then starts.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use octoflow_model::Time;

use super::{
    Running, Scheduler, TaskRef,
    amounts::Amounts,
    gang::GangIx,
    room::NodeIx,
    shapes::Shape,
    tree::{QueueIx, Tree},
    units::{Unit, UnitIx},
};

/// Why a running task is ended for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreemptionReason {
    /// Its queue uses more than it deserves, and the other's less.
    Reclaimed,
    /// The other's class is higher.
    LowerClass,
}

/// A task that is ended so that another can start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preemption {
    pub victim: TaskRef,
    /// Who starts in its place.
    pub by: TaskRef,
    /// The queue of the one who starts.
    pub queue: String,
    pub reason: PreemptionReason,
}

/// Tasks that are ended together: one, or a whole gang.
#[derive(Clone, Debug)]
struct Group {
    tasks: Vec<TaskRef>,
    reason: PreemptionReason,
    harm: Harm,
}

/// How much is lost by ending a group. Less is chosen first: single tasks before gangs, distant queues last, lower classes,
/// younger tasks.
type Harm = (bool, usize, i32, std::cmp::Reverse<Time>);

impl Scheduler {
    /// Returns the victims that make room for a unit, with the nodes it then gets; `None` if there are none.
    pub(super) fn victims(&mut self, at: UnitIx) -> Option<(Vec<Preemption>, Vec<NodeIx>)> {
        let unit = self.units.get(at)?.clone();
        let shape = self.shapes.get(unit.shape);
        let wanted = shape.total();
        if self.tree.limit(unit.leaf, &wanted).is_some_and(|limit| !limit.guarantee) {
            return None;
        }
        let groups = self.groups(&unit, &wanted);
        let (chosen, placement) = self.least_harm(at, &shape, groups)?;
        let queue = self.tree.get(unit.leaf).spec.name.to_string();
        let victims = chosen.into_iter().flat_map(|group| {
            let queue = queue.clone();
            group.tasks.into_iter().map(move |victim| Preemption {
                victim,
                by: unit.task,
                queue: queue.clone(),
                reason: group.reason,
            })
        });
        Some((victims.collect(), placement))
    }

    /// Returns everything that may be ended for a unit, least harm first.
    fn groups(&self, unit: &Unit, wanted: &Amounts) -> Vec<Group> {
        let mut legal: HashMap<TaskRef, (PreemptionReason, usize)> = HashMap::new();
        for (task, running) in &self.running {
            if !running.ending
                && running.demand.preemptable != Some(false)
                && let Some(found) = self.may_end(unit, wanted, running)
            {
                legal.insert(*task, found);
            }
        }
        let harm = |task: &TaskRef, whole: bool, distance: usize| {
            let running = &self.running[task];
            (whole, distance, running.class.unwrap_or(0), std::cmp::Reverse(running.started))
        };
        let mut groups = Vec::new();
        let mut gangs: BTreeSet<GangIx> = BTreeSet::new();
        for (task, (reason, distance)) in &legal {
            match self.gangs.of(*task).filter(|gang| self.gangs.get(*gang).is_some_and(|gang| gang.formed)) {
                Some(gang) => {
                    gangs.insert(gang);
                }
                None => groups.push(Group { tasks: vec![*task], reason: *reason, harm: harm(task, false, *distance) }),
            }
        }
        for gang in gangs.into_iter().filter_map(|gang| self.gangs.get(gang)) {
            let mut members: Vec<TaskRef> = gang.running.iter().copied().collect();
            members.sort_by_key(|task| std::cmp::Reverse(self.running.get(task).map(|running| running.started)));
            // Members above the least go one by one, the rest together or not at all.
            let spare = members.len().saturating_sub(gang.least as usize);
            for task in &members[..spare] {
                if let Some((reason, distance)) = legal.get(task) {
                    groups.push(Group { tasks: vec![*task], reason: *reason, harm: harm(task, false, *distance) });
                }
            }
            if let Some(found) = members.iter().map(|task| legal.get(task)).collect::<Option<Vec<_>>>()
                && let (Some((reason, distance)), Some(first)) = (found.first(), members.first())
            {
                groups.push(Group { reason: *reason, harm: harm(first, true, *distance), tasks: members });
            }
        }
        groups.sort_by(|one, other| (&one.harm, &one.tasks).cmp(&(&other.harm, &other.tasks)));
        groups
    }

    /// Returns why a running task may be ended for a unit, and how distant its queue is.
    fn may_end(&self, unit: &Unit, wanted: &Amounts, running: &Running) -> Option<(PreemptionReason, usize)> {
        let queue = self.tree.get(running.leaf);
        if running.leaf == unit.leaf {
            let lower = unit.preempts && unit.class? > running.class.unwrap_or(0);
            let may = running.demand.preemptable == Some(true) || queue.is_over();
            return (lower && may).then_some((PreemptionReason::LowerClass, 0));
        }
        let (ours, theirs) = below_common(&self.tree, unit.leaf, running.leaf);
        let entitled = ours.iter().all(|at| self.tree.is_entitled(*at, wanted));
        let over = theirs.last().is_some_and(|at| {
            let queue = self.tree.get(*at);
            wanted.iter().any(|(index, _)| queue.allocated().get(index) > queue.deserved().get(index))
        });
        let allowed = theirs.iter().all(|at| self.tree.get(*at).spec.reclaimable);
        (entitled && over && allowed).then_some((PreemptionReason::Reclaimed, ours.len()))
    }

    /// Ends groups one by one, on trial, until the unit fits; then leaves out whoever was not needed. Nothing is changed.
    fn least_harm(&mut self, at: UnitIx, shape: &Shape, groups: Vec<Group>) -> Option<(Vec<Group>, Vec<NodeIx>)> {
        let mut freed: BTreeMap<QueueIx, Amounts> = BTreeMap::new();
        let mut chosen: Vec<Group> = Vec::new();
        let mut placement = None;
        for group in groups {
            if !self.spares_guarantees(&group, &mut freed) {
                continue;
            }
            // A whole gang takes the place of members that were chosen one by one.
            let inside = |one: &Group| group.tasks.len() > 1 && one.tasks.iter().all(|task| group.tasks.contains(task));
            while let Some(place) = chosen.iter().position(inside) {
                let one = chosen.remove(place);
                self.put_back(&one);
            }
            self.lift(&group);
            chosen.push(group);
            placement = self.trial(at, shape);
            if placement.is_some() {
                break;
            }
        }
        if placement.is_some() {
            // Whoever was taken first may not have been needed after all.
            for index in (0..chosen.len()).rev() {
                self.put_back(&chosen[index]);
                match self.trial(at, shape) {
                    Some(found) => {
                        placement = Some(found);
                        chosen.remove(index);
                    }
                    None => self.lift(&chosen[index]),
                }
            }
        }
        chosen.iter().for_each(|group| self.put_back(group));
        placement.filter(|_| !chosen.is_empty()).map(|placement| (chosen, placement))
    }

    fn trial(&mut self, at: UnitIx, shape: &Shape) -> Option<Vec<NodeIx>> {
        self.room.place(shape, Some(at), false, &self.names, &|_, _| true)
    }

    fn lift(&mut self, group: &Group) {
        for running in group.tasks.iter().filter_map(|task| self.running.get(task)) {
            self.room.change(running.node, |node| node.give_back(&running.amounts));
        }
    }

    fn put_back(&mut self, group: &Group) {
        for running in group.tasks.iter().filter_map(|task| self.running.get(task)) {
            self.room.change(running.node, |node| node.take(&running.amounts));
        }
    }

    /// Reports whether every queue keeps its guarantee, and one that is reclaimed from something of what it has above its
    /// share, when the group ends with those chosen before. If so, the group is counted.
    fn spares_guarantees(&self, group: &Group, freed: &mut BTreeMap<QueueIx, Amounts>) -> bool {
        let mut after = freed.clone();
        for running in group.tasks.iter().filter_map(|task| self.running.get(task)) {
            for at in self.tree.path(running.leaf) {
                after.entry(at).or_default().add(&running.amounts);
            }
        }
        let kept = after.iter().all(|(at, gone)| {
            let queue = self.tree.get(*at);
            let above =
                |index: usize, least: u64| queue.allocated().get(index).saturating_sub(gone.get(index)) >= least;
            queue.guarantee().iter().all(|(index, least)| gone.get(index) == 0 || above(index, least))
        });
        let over = group.reason == PreemptionReason::LowerClass
            || group.tasks.iter().filter_map(|task| self.running.get(task)).all(|running| {
                let queue = self.tree.get(running.leaf);
                let gone = freed.get(&running.leaf);
                running.amounts.iter().any(|(index, _)| {
                    let gone = gone.map_or(0, |gone| gone.get(index));
                    queue.allocated().get(index).saturating_sub(gone) > queue.deserved().get(index)
                })
            });
        if kept && over {
            *freed = after;
        }
        kept && over
    }
}

/// Returns the paths from two queues up to, and without, their nearest common ancestor.
fn below_common(tree: &Tree, one: QueueIx, other: QueueIx) -> (Vec<QueueIx>, Vec<QueueIx>) {
    let (mut ours, mut theirs): (Vec<_>, Vec<_>) = (tree.path(one).collect(), tree.path(other).collect());
    while let (Some(above), Some(same)) = (ours.last(), theirs.last())
        && above == same
    {
        ours.pop();
        theirs.pop();
    }
    (ours, theirs)
}
