//! Finds room for units among all nodes. It changes nothing for good: a trial placement is always taken back.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use super::{
    amounts::{Amounts, CPU, ResourceNames},
    node::ScheduledNode,
    shapes::{DemandShape, TaskShape},
    spec::NodeSpec,
    units::UnitIx,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct NodeIx(u32);

/// Gangs of more tasks than this are only tried in one way.
const MAX_SEARCHED: u32 = 16;
/// Nodes that are tried for the tasks of one gang.
const MAX_TRIALS: usize = 400;

/// A node for each task of a unit, in the order of the shape's parts.
pub(super) type Placement = Vec<NodeIx>;

#[derive(Clone, Debug, Default)]
pub(super) struct Room {
    nodes: Vec<Option<ScheduledNode>>,
    by_name: HashMap<Arc<str>, NodeIx>,
    /// Nodes where something may start: by free cpu, then by free places.
    open: BTreeSet<(u64, u64, NodeIx)>,
    /// Nodes that are gone or unknown, and on which tasks still run.
    absent: BTreeSet<NodeIx>,
    /// The least cpu of a node that was only measured: a larger task gets all of it.
    smallest_measured: Option<u64>,
}

impl Room {
    pub(super) fn get(&self, at: NodeIx) -> Option<&ScheduledNode> {
        self.nodes.get(at.0 as usize)?.as_ref()
    }

    pub(super) fn find(&self, name: &str) -> Option<NodeIx> {
        self.by_name.get(name).copied()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (NodeIx, &ScheduledNode)> {
        self.nodes.iter().enumerate().filter_map(|(index, node)| Some((NodeIx(index as u32), node.as_ref()?)))
    }

    /// Changes a node, and keeps its place among those to try.
    pub(super) fn change<T>(&mut self, at: NodeIx, change: impl FnOnce(&mut ScheduledNode) -> T) -> Option<T> {
        let node = self.nodes.get_mut(at.0 as usize)?.as_mut()?;
        if let Some((cpu, pods)) = node.free_key() {
            self.open.remove(&(cpu, pods, at));
        }
        let result = change(node);
        if let Some((cpu, pods)) = node.free_key() {
            self.open.insert((cpu, pods, at));
        }
        Some(result)
    }

    pub(super) fn insert(&mut self, spec: NodeSpec, names: &mut ResourceNames) -> NodeIx {
        let at = NodeIx(u32::try_from(self.nodes.len()).expect("fewer nodes than bytes of memory"));
        self.by_name.insert(spec.name.clone(), at);
        self.nodes.push(Some(ScheduledNode::new(spec, names)));
        self.change(at, |_| ());
        self.measure();
        at
    }

    pub(super) fn remove(&mut self, at: NodeIx) -> Option<ScheduledNode> {
        let node = self.nodes.get_mut(at.0 as usize)?.take()?;
        if let Some((cpu, pods)) = node.free_key() {
            self.open.remove(&(cpu, pods, at));
        }
        self.by_name.remove(&node.spec.name);
        self.measure();
        Some(node)
    }

    /// Inserts a node that tasks run on and that nobody has heard of.
    pub(super) fn insert_absent(&mut self, spec: NodeSpec, names: &mut ResourceNames) -> NodeIx {
        let at = self.insert(spec, names);
        self.absent.insert(at);
        at
    }

    /// Notes that a node is gone whose tasks have not been released.
    pub(super) fn set_absent(&mut self, at: NodeIx, spec: NodeSpec, names: &mut ResourceNames) {
        self.change(at, |node| node.update(spec, std::iter::empty(), names));
        self.absent.insert(at);
        self.measure();
    }

    pub(super) fn set_present(&mut self, at: NodeIx) {
        self.absent.remove(&at);
    }

    /// Removes a node that is gone, once nothing is left on it.
    pub(super) fn drop_absent(&mut self, at: NodeIx) {
        if self.absent.contains(&at) && self.get(at).is_some_and(|node| node.running.is_empty()) {
            self.absent.remove(&at);
            self.remove(at);
        }
    }

    pub(super) fn measure(&mut self) {
        let measured = self.all().filter_map(|(_, node)| node.capacity(CPU).filter(|has| !has.declared));
        self.smallest_measured = measured.map(|has| has.amount).min();
    }

    /// Returns everything that all nodes have. A resource of which a node has as much as anybody wants is not counted.
    pub(super) fn total(&self, names: &ResourceNames) -> Amounts {
        let mut total = Amounts::default();
        for index in 0..names.len() {
            let of = |node: &ScheduledNode| node.capacity(index).map_or(0, |has| has.amount.min(1 << 60));
            total.set(index, self.all().map(|(_, node)| of(node)).fold(0, u64::saturating_add));
        }
        total
    }

    /// Returns the first node, the fullest or the emptiest, where a task fits now and which is `allowed`.
    pub(super) fn find_node(
        &self,
        task: &TaskShape,
        unit: Option<UnitIx>,
        spread: bool,
        names: &ResourceNames,
        allowed: &impl Fn(NodeIx, &ScheduledNode) -> bool,
    ) -> Option<NodeIx> {
        let fits = |&&(_, _, at): &&(u64, u64, NodeIx)| {
            self.get(at).is_some_and(|node| {
                node.shortage(&task.amounts, unit).is_none()
                    && node.excludes(&task.amounts, &task.constraints, names).is_none()
                    && allowed(at, node)
            })
        };
        let cpu = task.amounts.get(CPU);
        let least = self.smallest_measured.map_or(cpu, |smallest| smallest.min(cpu));
        let open = self.open.range((least, 0, NodeIx(0))..);
        let found = if spread { open.rev().find(fits) } else { { open }.find(fits) };
        // A unit may use room that is kept for it on a node that has none for others.
        found.map(|(_, _, at)| *at)
    }

    /// Returns the node among these, the fullest or the emptiest, where a task fits now and which is `allowed`.
    pub(super) fn find_among(
        &self,
        nodes: &[NodeIx],
        task: &TaskShape,
        unit: Option<UnitIx>,
        spread: bool,
        names: &ResourceNames,
        allowed: &impl Fn(NodeIx, &ScheduledNode) -> bool,
    ) -> Option<NodeIx> {
        let fitting = nodes.iter().filter_map(|at| {
            let node = self.get(*at)?;
            let (cpu, pods) = node.free_key()?;
            let fits = node.shortage(&task.amounts, unit).is_none()
                && node.excludes(&task.amounts, &task.constraints, names).is_none()
                && allowed(*at, node);
            fits.then_some((cpu, pods, *at))
        });
        let found = if spread { fitting.max() } else { fitting.min() };
        found.map(|(_, _, at)| at)
    }

    /// Finds a node for every task of a unit at once.
    pub(super) fn place(
        &mut self,
        shape: &DemandShape,
        unit: Option<UnitIx>,
        spread: bool,
        names: &ResourceNames,
        allowed: &impl Fn(NodeIx, &ScheduledNode) -> bool,
    ) -> Option<Placement> {
        if let Some(task) = shape.single() {
            return self.find_node(task, unit, spread, names, allowed).map(|at| vec![at]);
        }
        let mut placed: Vec<(NodeIx, Amounts)> = Vec::new();
        let mut complete = true;
        'parts: for (task, count) in &shape.parts {
            for _ in 0..*count {
                let Some(at) = self.find_node(task, unit, spread, names, allowed) else {
                    complete = false;
                    break 'parts;
                };
                let amounts = self.get(at).map(|node| node.fitted(&task.amounts)).unwrap_or_default();
                self.change(at, |node| node.take(&amounts));
                placed.push((at, amounts));
            }
        }
        for (at, amounts) in &placed {
            self.change(*at, |node| node.give_back(amounts));
        }
        if complete {
            return Some(placed.into_iter().map(|(at, _)| at).collect());
        }
        let tasks: u32 = shape.parts.iter().map(|(_, count)| *count).sum();
        let searched = if shape.parts.len() > 1 && tasks <= MAX_SEARCHED {
            self.search(shape, unit, names, allowed)
        } else {
            None
        };
        searched.or_else(|| self.alone(shape, names, allowed))
    }

    /// Finds nodes for tasks that differ, where taking the first node that fits for each has failed: those that fit on the
    /// fewest nodes choose first, and other nodes are tried for them, within a limit.
    fn search(
        &mut self,
        shape: &DemandShape,
        unit: Option<UnitIx>,
        names: &ResourceNames,
        allowed: &impl Fn(NodeIx, &ScheduledNode) -> bool,
    ) -> Option<Placement> {
        let mut order: Vec<(usize, usize)> = shape
            .parts
            .iter()
            .enumerate()
            .map(|(part, (task, _))| (self.fitting(task, unit, names, allowed).len(), part))
            .collect();
        order.sort_unstable();
        let count = |part: usize| shape.parts[part].1 as usize;
        let tasks: Vec<usize> = order.into_iter().flat_map(|(_, part)| vec![part; count(part)]).collect();
        let mut placed: Vec<(NodeIx, Amounts)> = Vec::with_capacity(tasks.len());
        let mut tried: Vec<std::vec::IntoIter<NodeIx>> = Vec::with_capacity(tasks.len());
        for _ in 0..MAX_TRIALS {
            if placed.len() == tasks.len() {
                break;
            }
            let task = &shape.parts[tasks[placed.len()]].0;
            if tried.len() == placed.len() {
                tried.push(self.fitting(task, unit, names, allowed).into_iter());
            }
            match tried.last_mut().and_then(Iterator::next) {
                Some(at) => {
                    let amounts = self.get(at).map(|node| node.fitted(&task.amounts)).unwrap_or_default();
                    self.change(at, |node| node.take(&amounts));
                    placed.push((at, amounts));
                }
                None => {
                    tried.pop();
                    let Some((at, amounts)) = placed.pop() else { break };
                    self.change(at, |node| node.give_back(&amounts));
                }
            }
        }
        for (at, amounts) in &placed {
            self.change(*at, |node| node.give_back(amounts));
        }
        if placed.len() < tasks.len() {
            return None;
        }
        let mut nodes: Vec<(usize, NodeIx)> = tasks.into_iter().zip(placed).map(|(part, (at, _))| (part, at)).collect();
        nodes.sort_by_key(|(part, _)| *part);
        Some(nodes.into_iter().map(|(_, at)| at).collect())
    }

    /// Returns the nodes where a task fits now, the fullest first.
    fn fitting(
        &self,
        task: &TaskShape,
        unit: Option<UnitIx>,
        names: &ResourceNames,
        allowed: &impl Fn(NodeIx, &ScheduledNode) -> bool,
    ) -> Vec<NodeIx> {
        let fits = |at: &NodeIx| {
            self.get(*at).is_some_and(|node| {
                node.shortage(&task.amounts, unit).is_none()
                    && node.excludes(&task.amounts, &task.constraints, names).is_none()
                    && allowed(*at, node)
            })
        };
        self.open.iter().map(|(_, _, at)| *at).filter(fits).collect()
    }

    /// Finds nodes for a unit in the room that is kept for it, without what is kept for others.
    pub(super) fn place_nominee(
        &mut self,
        shape: &DemandShape,
        unit: UnitIx,
        nodes: &[NodeIx],
        names: &ResourceNames,
    ) -> Option<Placement> {
        let kept: Vec<(NodeIx, Amounts)> =
            nodes.iter().filter_map(|at| Some((*at, self.change(*at, |node| node.withdraw(unit))??))).collect();
        let placement = self.place(shape, Some(unit), false, names, &|at, _| nodes.contains(&at));
        for (at, amounts) in kept {
            self.change(at, |node| node.nominate(unit, amounts));
        }
        placement
    }

    /// Returns the node where a unit that is larger than all nodes may run alone.
    pub(super) fn node_for_alone(&self, shape: &DemandShape, names: &ResourceNames) -> Option<NodeIx> {
        let may =
            |(_, node): &(NodeIx, &ScheduledNode)| !node.spec.cordoned && self.exceeds_measured(shape, node, names);
        self.all().find(may).map(|(at, _)| at)
    }

    /// Finds an idle node for a unit that is larger than all nodes, if only measured amounts say so: it runs there alone.
    fn alone(
        &self,
        shape: &DemandShape,
        names: &ResourceNames,
        allowed: &impl Fn(NodeIx, &ScheduledNode) -> bool,
    ) -> Option<Placement> {
        let tasks: usize = shape.parts.iter().map(|(_, count)| *count as usize).sum();
        let idle = self.all().find(|(at, node)| {
            node.is_idle() && !node.spec.cordoned && allowed(*at, node) && self.exceeds_measured(shape, node, names)
        });
        idle.map(|(at, _)| vec![at; tasks])
    }

    /// Reports whether each task of the unit may run on this node and only measured amounts keep all of them apart.
    fn exceeds_measured(&self, shape: &DemandShape, node: &ScheduledNode, names: &ResourceNames) -> bool {
        let total = shape.total();
        let declared = total.iter().all(|(index, amount)| {
            node.capacity(index).is_none_or(|has| if has.declared { has.amount >= amount } else { has.amount > 0 })
        });
        declared
            && shape.parts.iter().all(|(task, _)| node.excludes(&task.amounts, &task.constraints, names).is_none())
            && !self.could_hold(shape, names, true)
    }

    /// Reports whether the nodes, were they idle, could hold the unit within everything they have; those that are `cordoned`
    /// only if asked for.
    pub(super) fn could_hold(&self, shape: &DemandShape, names: &ResourceNames, cordoned: bool) -> bool {
        let tasks: u32 = shape.parts.iter().map(|(_, count)| *count).sum();
        self.holds_in_order(shape, names, cordoned)
            || (shape.parts.len() > 1
                && tasks <= MAX_SEARCHED
                && self.idle(cordoned).search(shape, None, names, &|_, _| true).is_some())
    }

    /// Returns a copy in which nothing runs.
    fn idle(&self, cordoned: bool) -> Self {
        let mut idle = self.clone();
        let nodes: Vec<NodeIx> = self.all().map(|(at, _)| at).collect();
        for at in nodes {
            idle.change(at, |node| {
                node.empty();
                node.spec.cordoned &= !cordoned;
            });
        }
        idle
    }

    /// Reports whether idle nodes hold the unit if each task takes the first node that fits.
    fn holds_in_order(&self, shape: &DemandShape, names: &ResourceNames, cordoned: bool) -> bool {
        let nodes = self.all().filter(|(_, node)| cordoned || !node.spec.cordoned);
        let mut left: Vec<(NodeIx, Amounts)> = nodes.map(|(at, _)| (at, Amounts::default())).collect();
        shape.parts.iter().all(|(task, count)| {
            (0..*count).all(|_| {
                let room = left.iter_mut().find(|(at, used)| {
                    self.get(*at).is_some_and(|node| {
                        node.excludes(&task.amounts, &task.constraints, names).is_none()
                            && task.amounts.iter().all(|(index, amount)| {
                                node.capacity(index).is_none_or(|has| {
                                    let amount = if has.declared { amount } else { amount.min(has.amount) };
                                    used.get(index).saturating_add(amount) <= has.amount
                                })
                            })
                    })
                });
                room.is_some_and(|(at, used)| {
                    let fitted = self.get(*at).map(|node| node.fitted(&task.amounts)).unwrap_or_default();
                    used.add(&fitted);
                    true
                })
            })
        })
    }

    /// Reports whether there may be room for a unit now that some was freed on this node. A unit of several tasks is only
    /// tried where it matters.
    pub(super) fn may_fit(&self, shape: &DemandShape, at: NodeIx, names: &ResourceNames) -> bool {
        let Some(node) = self.get(at) else { return false };
        if node.spec.cordoned {
            return false;
        }
        if shape.single().is_none() && node.is_idle() {
            return true;
        }
        shape.parts.iter().any(|(task, _)| {
            node.shortage(&task.amounts, None).is_none()
                && node.excludes(&task.amounts, &task.constraints, names).is_none()
        })
    }
}
