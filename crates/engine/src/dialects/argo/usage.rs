//! Computes `resourcesDuration`: the resources that tasks had reserved, and for how long.
//! A projection of the state; actual usage is not measured here.

use std::{collections::BTreeMap, time::Duration};

use octoflow_model::{
    NodeIx,
    argo::{NodeKind, Template},
    podspec::ContainerResources,
};
use serde_json::{Map, Value, json};

use super::{
    run::Run,
    scope::Scope,
    substitute::{Missing, fill},
};
use crate::{expr::Meter, pod::thousandths};

/// Default reservation of a container in thousandths: a tenth of a core, and 100Mi.
const DEFAULTS: [(&str, u64); 2] = [("cpu", 100), ("memory", 100 * MEBIBYTE)];
/// One mebibyte in thousandths of a byte.
const MEBIBYTE: u64 = 1024 * 1024 * 1000;

/// Resource seconds: a core for a second is 1, and so are 100Mi of memory for a second.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResourceUsage {
    cpu: u64,
    memory: u64,
    others: BTreeMap<String, u64>,
}

impl ResourceUsage {
    pub(crate) fn get(&self, resource: &str) -> u64 {
        match resource {
            "cpu" => self.cpu,
            "memory" => self.memory,
            other => self.others.get(other).copied().unwrap_or(0),
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.cpu = self.cpu.saturating_add(other.cpu);
        self.memory = self.memory.saturating_add(other.memory);
        for (name, seconds) in &other.others {
            self.put(name, *seconds);
        }
    }

    fn put(&mut self, name: &str, seconds: u64) {
        let slot = match name {
            "cpu" => &mut self.cpu,
            "memory" => &mut self.memory,
            other => self.others.entry(other.to_owned()).or_insert(0),
        };
        *slot = slot.saturating_add(seconds);
    }

    pub(crate) fn value(&self) -> Value {
        let mut fields =
            Map::from_iter([("cpu".to_owned(), json!(self.cpu)), ("memory".to_owned(), json!(self.memory))]);
        fields.extend(self.others.iter().map(|(name, seconds)| (name.clone(), json!(seconds))));
        Value::Object(fields)
    }
}

/// Returns the usage of one task; `None` if the node is no task, is not over, or never began.
pub(crate) fn of_task(run: &Run, at: NodeIx) -> Option<ResourceUsage> {
    let node = run.state.node(at);
    let finished = node.finished.filter(|_| node.kind == NodeKind::Pod && node.ran)?;
    let compiled = node.template.as_deref().and_then(|name| run.program.compiled(name))?;
    // Rendering a run must not use up the budget of its decisions.
    let meter = Meter::default();
    let scope = Scope {
        inputs: node.inputs.as_deref(),
        template: Some(&compiled.template),
        meter: &meter,
        // The time has no effect: a container's request does not depend on it.
        ..Scope::of_node(run, finished, at)
    };
    let mut usage = ResourceUsage::default();
    let span = finished.since(node.started);
    for resources in containers(&compiled.template) {
        reserved(resources, &scope, |name, amount| usage.put(name, seconds(span, name, amount)));
    }
    Some(usage)
}

/// Sums up the usage of a node and everything below it.
pub(crate) fn below(run: &Run, at: NodeIx) -> ResourceUsage {
    let nodes = &run.state.nodes;
    let mut inside = vec![false; nodes.len() - at.at()];
    let mut usage = ResourceUsage::default();
    for (offset, node) in nodes[at.at()..].iter().enumerate() {
        let below = node.parent.is_some_and(|parent| parent >= at && inside[parent.at() - at.at()]);
        inside[offset] = offset == 0 || below;
        if inside[offset]
            && let Some(own) = of_task(run, NodeIx((at.at() + offset) as u32))
        {
            usage.add(&own);
        }
    }
    usage
}

/// Computes the usage of each node with everything below it, and of the whole run. Children come after their parents,
/// so one pass from the end adds everything up.
pub(crate) fn of_all(run: &Run) -> (Vec<ResourceUsage>, ResourceUsage) {
    let mut sums = vec![ResourceUsage::default(); run.state.nodes.len()];
    let mut whole = ResourceUsage::default();
    for (at, node) in run.state.nodes.iter().enumerate().rev() {
        if let Some(own) = of_task(run, NodeIx(at as u32)) {
            whole.add(&own);
            sums[at].add(&own);
        }
        if let Some(parent) = node.parent {
            let (before, from) = sums.split_at_mut(at);
            before[parent.at()].add(&from[0]);
        }
    }
    (sums, whole)
}

/// Iterates over the containers that run as long as the task does.
fn containers(template: &Template) -> impl Iterator<Item = &ContainerResources> {
    let main = template.container.iter().chain(template.script.iter().map(|script| &script.container));
    let set = template.container_set.iter().flat_map(|set| set.containers.iter().map(|member| &member.container));
    let beside = template.sidecars.iter().map(|sidecar| &sidecar.container);
    main.chain(set).chain(beside).map(|container| &container.resources)
}

/// Reports the reservation of a container in thousandths: its request, else its limit, else the default.
fn reserved(resources: &ContainerResources, scope: &Scope<'_>, mut report: impl FnMut(&str, u64)) {
    let amount = |name: &str| {
        let text = resources.requests.get(name).or_else(|| resources.limits.get(name))?;
        thousandths(&fill(&text.0, scope, Missing::Keep).ok()?)
    };
    for (name, default) in DEFAULTS {
        report(name, amount(name).unwrap_or(default));
    }
    let limits = resources.limits.keys().filter(|name| !resources.requests.contains_key(*name));
    let named = resources.requests.keys().chain(limits).filter(|name| !matches!(name.as_str(), "cpu" | "memory"));
    for name in named {
        report(name, amount(name).unwrap_or(0));
    }
}

/// Converts a reservation to seconds, rounded down, so that a short task with little memory has none.
fn seconds(span: Duration, resource: &str, thousandths: u64) -> u64 {
    let base: u64 = match resource {
        "memory" => 100 * MEBIBYTE,
        "storage" | "ephemeral-storage" => 10 * 1024 * MEBIBYTE,
        _ => 1000,
    };
    let amount = span.as_micros().saturating_mul(u128::from(thousandths)) / u128::from(base) / 1_000_000;
    u64::try_from(amount).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_count_in_their_own_units() {
        let minutes = |count: u64| Duration::from_secs(60 * count);
        assert_eq!(seconds(minutes(3), "cpu", 2000), 360);
        assert_eq!(seconds(minutes(3), "memory", 1024 * MEBIBYTE), 1843);
        assert_eq!(seconds(minutes(3), "nvidia.com/gpu", 1000), 180);
        assert_eq!(seconds(Duration::from_secs(9), "cpu", 100), 0);
        assert_eq!(seconds(Duration::from_secs(10), "cpu", 100), 1);
        assert_eq!(seconds(minutes(10), "ephemeral-storage", 1024 * MEBIBYTE), 60);
        assert_eq!(seconds(Duration::MAX, "cpu", u64::MAX), u64::MAX);
    }
}
