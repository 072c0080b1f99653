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
        let (chosen, placement) = self.least_harm(at, &unit, &shape, groups)?;
        // Whoever is kept from starting by guarantees of others would not start then.
        let gone = chosen.iter().flat_map(|group| &group.tasks).filter_map(|task| self.running.get(task));
        let ending = self.running.values().filter(|running| running.ending);
        let freed: Vec<(QueueIx, Amounts)> =
            gone.chain(ending).map(|running| (running.leaf, running.amounts.clone())).collect();
        if self.tree.breaks_guarantees_without(unit.leaf, &wanted, &freed) {
            return None;
        }
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
        let allowed = theirs.iter().all(|at| self.tree.get(*at).spec.reclaimable);
        (entitled && allowed).then_some((PreemptionReason::Reclaimed, ours.len()))
    }

    /// Ends groups one by one, on trial, until the unit fits; then leaves out whoever was not needed. Nothing is changed.
    /// Tasks that are being ended anyway are as good as gone, so it may be that nobody else has to end.
    fn least_harm(
        &mut self,
        at: UnitIx,
        unit: &Unit,
        shape: &Shape,
        groups: Vec<Group>,
    ) -> Option<(Vec<Group>, Vec<NodeIx>)> {
        let ending: Vec<TaskRef> =
            self.running.iter().filter(|(_, running)| running.ending).map(|(task, _)| *task).collect();
        self.lift(&ending);
        let mut chosen: Vec<Group> = Vec::new();
        let mut placement = if ending.is_empty() { None } else { self.trial(at, shape) };
        let wanted = shape.total();
        for group in groups {
            if placement.is_some() {
                break;
            }
            // Members above a gang's least may have been chosen before the whole gang; they end with it.
            let is_part = |one: &Group| one.tasks.iter().all(|task| group.tasks.contains(task));
            let (parts, rest): (Vec<Group>, Vec<Group>) = std::mem::take(&mut chosen).into_iter().partition(is_part);
            let mut after: BTreeMap<QueueIx, Amounts> = BTreeMap::new();
            self.count_freed(&ending, &mut after);
            rest.iter().for_each(|one| self.count_freed(&one.tasks, &mut after));
            chosen = rest;
            if !self.may_free(unit, &wanted, &group, &mut after) {
                chosen.extend(parts);
                continue;
            }
            parts.iter().for_each(|one| self.put_back(&one.tasks));
            self.lift(&group.tasks);
            chosen.push(group);
            placement = self.trial(at, shape);
        }
        if placement.is_some() {
            // Whoever was taken first may not have been needed after all.
            for index in (0..chosen.len()).rev() {
                self.put_back(&chosen[index].tasks);
                match self.trial(at, shape) {
                    Some(found) => {
                        placement = Some(found);
                        chosen.remove(index);
                    }
                    None => self.lift(&chosen[index].tasks),
                }
            }
        }
        chosen.iter().for_each(|group| self.put_back(&group.tasks));
        self.put_back(&ending);
        placement.filter(|_| !(chosen.is_empty() && ending.is_empty())).map(|placement| (chosen, placement))
    }

    fn trial(&mut self, at: UnitIx, shape: &Shape) -> Option<Vec<NodeIx>> {
        self.room.place(shape, Some(at), false, &self.names, &|_, _| true)
    }

    fn lift(&mut self, tasks: &[TaskRef]) {
        for running in tasks.iter().filter_map(|task| self.running.get(task)) {
            self.room.change(running.node, |node| node.give_back(&running.amounts));
        }
    }

    fn put_back(&mut self, tasks: &[TaskRef]) {
        for running in tasks.iter().filter_map(|task| self.running.get(task)) {
            self.room.change(running.node, |node| node.take(&running.amounts));
        }
    }

    fn count_freed(&self, tasks: &[TaskRef], freed: &mut BTreeMap<QueueIx, Amounts>) {
        for running in tasks.iter().filter_map(|task| self.running.get(task)) {
            for at in self.tree.path(running.leaf) {
                freed.entry(at).or_default().add(&running.amounts);
            }
        }
    }

    /// Reports whether every queue keeps its guarantee when the group ends with those chosen before, and whether one that is
    /// reclaimed from has more than its share until then. If so, the group is counted.
    fn may_free(&self, unit: &Unit, wanted: &Amounts, group: &Group, freed: &mut BTreeMap<QueueIx, Amounts>) -> bool {
        let mut after = freed.clone();
        self.count_freed(&group.tasks, &mut after);
        let ours: Vec<QueueIx> = self.tree.path(unit.leaf).collect();
        let kept = after.iter().all(|(at, gone)| {
            let queue = self.tree.get(*at);
            queue.guarantee().iter().all(|(index, least)| {
                // What starts in their place counts for the queues that both are in.
                let comes = if ours.contains(at) { wanted.get(index) } else { 0 };
                let left = queue.allocated().get(index).saturating_sub(gone.get(index));
                gone.get(index) == freed.get(at).map_or(0, |gone| gone.get(index))
                    || left.saturating_add(comes) >= least
            })
        });
        let over = group.reason == PreemptionReason::LowerClass
            || group.tasks.iter().filter_map(|task| self.running.get(task)).all(|running| {
                let (_, theirs) = below_common(&self.tree, unit.leaf, running.leaf);
                theirs.iter().all(|at| self.is_above_share(*at, wanted, running, freed.get(at)))
            });
        if kept && over {
            *freed = after;
        }
        kept && over
    }

    /// Reports whether a queue has more than it deserves of something that is wanted and that a task of it uses, when so
    /// much is gone.
    fn is_above_share(&self, at: QueueIx, wanted: &Amounts, running: &Running, gone: Option<&Amounts>) -> bool {
        let queue = self.tree.get(at);
        running.amounts.iter().any(|(index, _)| {
            let used = queue.allocated().get(index).saturating_sub(gone.map_or(0, |gone| gone.get(index)));
            wanted.get(index) > 0 && used > queue.deserved().get(index)
        })
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
