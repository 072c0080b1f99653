//! Whether something could start now. A gang is tried on all nodes in every way, so that no packing is overlooked.

use octoflow_engine::schedule::spec::{Demand, NodeSpec};
use octoflow_model::task::placement::Assignment;

use super::{Holder, Recount, TaskRef, excluded};

impl Recount {
    /// Returns the node on which a task could start now, quotas and guarantees included.
    pub fn could_start(&self, demand: &Demand) -> Option<&NodeSpec> {
        if self.quota(&[demand]).is_some() {
            return None;
        }
        self.declared.nodes.values().find(|node| self.fits(demand, node))
    }

    /// Reports whether tasks could start at once on some nodes, quotas and guarantees included.
    pub fn could_start_together(&self, demands: &[&Demand]) -> bool {
        self.quota(demands).is_none() && self.place_all(demands)
    }

    /// Reports whether the nodes could ever hold a task, however empty they are.
    pub fn could_ever_run(&self, demand: &Demand) -> bool {
        self.declared.nodes.values().any(|node| excluded(demand, node).is_none())
    }

    fn place_all(&self, demands: &[&Demand]) -> bool {
        let Some((first, rest)) = demands.split_first() else { return true };
        let mut tried: Vec<&NodeSpec> = Vec::new();
        for node in self.declared.nodes.values().filter(|node| self.fits(first, node)) {
            // A node like one that did not help does not help.
            let alike = |other: &&&NodeSpec| {
                let same = NodeSpec { name: node.name.clone(), ..(**other).clone() } == *node;
                same && node
                    .capacity
                    .keys()
                    .all(|name| self.used_on(&node.name, name) == self.used_on(&other.name, name))
            };
            if tried.iter().find(alike).is_some() {
                continue;
            }
            tried.push(node);
            let mut with = self.clone();
            // Names of tasks on trial come after those of all others.
            let task = TaskRef {
                run: octoflow_model::RunId(u64::MAX),
                node: octoflow_model::NodeIx(u32::try_from(rest.len()).unwrap_or(u32::MAX)),
            };
            let assignment = Assignment { node: node.name.to_string(), ..Assignment::default() };
            let holder = Holder {
                demand: std::sync::Arc::new((*first).clone()),
                assignment,
                started: octoflow_model::Time(0),
                ending: false,
            };
            with.holders.insert(task, holder);
            if with.place_all(rest) {
                return true;
            }
        }
        false
    }
}
