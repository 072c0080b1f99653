//! The node view: this machine, its resources, and how much of them runs use. What people change about it is stored as the
//! difference to what was measured and configured.

use std::{env::consts, fs};

use octoflow_engine::{
    kinds::{
        core::NODE,
        scheduling::{parse_quantity, render_quantity},
    },
    schedule::spec::{NodeSpec, Quantities},
};
use octoflow_model::{
    Revision,
    task::placement::{Taint, TaintEffect},
};
use serde_json::{Map, Value, json};

use super::{Fault, Kind, Registry, uid};
use crate::{
    Error,
    node::{NodeOverlay, arch, overlay},
    objects::{known, scheduling::SchedulingChange},
    registry::{Cause, WriteOptions},
};

/// Number of tries when concurrent changes interfere.
const TRIES: usize = 8;

/// The part of a node that a request may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::registry) enum NodePart {
    /// Metadata and specification.
    Spec,
    /// The declared capacity.
    Status,
}

impl Registry {
    /// Returns this machine as clients see it.
    pub(in crate::registry) fn node(&self) -> Result<Value, Fault> {
        let base = self.controller().node();
        let (changes, revision) = self.node_overlay(&base.name)?;
        let name = base.name.to_string();
        let allocated = self.handle().look_at_scheduler(move |scheduler| {
            scheduler.nodes().into_iter().find(|node| node.spec.name.as_ref() == name).map(|node| node.allocated)
        })?;
        Ok(self.render_node(&changes.apply(base), &changes, revision, &allocated.flatten().unwrap_or_default()))
    }

    fn node_overlay(&self, name: &str) -> Result<(NodeOverlay, Option<Revision>), Fault> {
        let found = self.read(|reader| Ok(reader.object(NODE.key, "", name)?))?;
        match found {
            Some(object) => Ok((overlay(&object)?, Some(object.revision))),
            None => Ok((NodeOverlay::default(), None)),
        }
    }

    /// Changes the node, with retries on concurrent changes.
    pub(in crate::registry) fn change_node(
        &self,
        name: &str,
        part: NodePart,
        dry_run: bool,
        change: &mut impl FnMut(&Value) -> Result<Value, Fault>,
    ) -> Result<Value, Fault> {
        let base = self.controller().node();
        if base.name.as_ref() != name {
            return Err(Fault::NotFound { kind: &NODE, name: name.to_owned() });
        }
        for last in (0..TRIES).rev() {
            let (before, revision) = self.node_overlay(name)?;
            let after = change(&self.node()?)?;
            let changed = difference(base, &before, &after, part).map_err(|causes| Fault::Invalid {
                kind: &NODE,
                name: name.to_owned(),
                causes,
            })?;
            if changed == before {
                return self.node();
            }
            if dry_run {
                return Ok(self.render_node(&changed.apply(base), &changed, revision, &Quantities::new()));
            }
            match self.handle().put_node(base, &changed, revision) {
                Ok(_) => return self.node(),
                Err(Error::Store(octoflow_store::Error::Stale { .. })) if last > 0 => {}
                Err(Error::Store(octoflow_store::Error::Stale { .. })) => return Err(Fault::stale(&NODE, name)),
                Err(error) => return Err(error.into()),
            }
        }
        unreachable!("the last try answers")
    }

    /// Changes the declared capacity of a node.
    pub fn update_node_status(
        &self,
        name: &str,
        options: &WriteOptions,
        mut change: impl FnMut(&Value) -> Result<Value, Fault>,
    ) -> Result<Value, Fault> {
        self.change_node(name, NodePart::Status, options.dry_run, &mut change)
    }

    /// Ends everything that runs on a node; it waits again. The node should be cordoned before.
    pub fn drain_node(&self, name: &str) -> Result<(), Fault> {
        if self.controller().node().name.as_ref() != name {
            return Err(Fault::NotFound { kind: &NODE, name: name.to_owned() });
        }
        Ok(self.handle().schedule(SchedulingChange::Drain { node: name.to_owned() })?)
    }

    fn render_node(
        &self,
        node: &NodeSpec,
        changes: &NodeOverlay,
        revision: Option<Revision>,
        allocated: &Quantities,
    ) -> Value {
        let host = known::host().unwrap_or_else(|| "localhost".to_owned());
        let began = self.controller().opened().to_string();
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let machine = fs::read_to_string("/etc/machine-id").unwrap_or_default();
        let capacity: Quantities =
            node.capacity.iter().map(|(name, capacity)| (name.clone(), capacity.amount)).collect();
        let mut metadata = json!({
            "name": node.name, "uid": uid(&[&host, machine.trim(), "node"]),
            "resourceVersion": revision.unwrap_or(Revision(1)).to_string(),
            "creationTimestamp": began, "labels": node.labels,
        });
        if !changes.annotations.is_empty() {
            metadata["annotations"] = json!(changes.annotations);
        }
        let mut spec = json!({});
        if node.cordoned {
            spec["unschedulable"] = json!(true);
        }
        if !node.taints.is_empty() {
            spec["taints"] = json!(node.taints);
        }
        json!({
            "apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec,
            "status": {
                "capacity": rendered(&capacity),
                "allocatable": rendered(&capacity),
                "allocated": rendered(allocated),
                "conditions": [{
                    "type": "Ready", "status": "True", "reason": "EngineReady", "message": "the engine takes work",
                    "lastHeartbeatTime": crate::now().to_string(), "lastTransitionTime": began,
                }],
                "addresses": [{"type": "Hostname", "address": host}, {"type": "InternalIP", "address": "127.0.0.1"}],
                "nodeInfo": {
                    "architecture": arch(), "operatingSystem": consts::OS, "kernelVersion": kernel.trim(),
                    "machineID": machine.trim(), "systemUUID": "", "bootID": "", "osImage": consts::OS,
                    "containerRuntimeVersion": concat!("octoflow://", env!("CARGO_PKG_VERSION")),
                    "kubeletVersion": concat!("v", env!("CARGO_PKG_VERSION")),
                    "kubeProxyVersion": concat!("v", env!("CARGO_PKG_VERSION")),
                },
            },
        })
    }
}

/// Renders amounts as Kubernetes does.
pub(in crate::registry) fn rendered(quantities: &Quantities) -> Value {
    let pairs = quantities.iter().map(|(name, amount)| (name.clone(), json!(render_quantity(name, *amount))));
    Value::Object(pairs.collect::<Map<_, _>>())
}

/// Returns whether a kind is that of nodes.
pub(in crate::registry) fn is_node(kind: &Kind) -> bool {
    *kind == NODE
}

/// Returns what differs from what was measured and configured once the node is as wanted.
fn difference(
    base: &NodeSpec,
    before: &NodeOverlay,
    wanted: &Value,
    part: NodePart,
) -> Result<NodeOverlay, Vec<Cause>> {
    let mut causes = Vec::new();
    let mut changes = before.clone();
    match part {
        NodePart::Spec => {
            let texts = |field: &str| {
                let map = wanted["metadata"][field].as_object().into_iter().flatten();
                map.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect::<Vec<_>>()
            };
            let labels = texts("labels");
            let gone = base.labels.keys().filter(|key| !labels.iter().any(|(other, _)| other == *key));
            changes.labels = gone.map(|key| (key.clone(), None)).collect();
            let set = labels.into_iter().filter(|(key, value)| base.labels.get(key) != Some(value));
            changes.labels.extend(set.map(|(key, value)| (key, Some(value))));
            changes.annotations = texts("annotations").into_iter().collect();
            changes.unschedulable = match &wanted["spec"]["unschedulable"] {
                Value::Null => false,
                Value::Bool(cordoned) => *cordoned,
                Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                    causes.push(Cause::invalid("spec.unschedulable", "must be true or false"));
                    false
                }
            };
            changes.taints = taints(&wanted["spec"]["taints"], &before.taints, &mut causes);
        }
        NodePart::Status => {
            let shown = before.apply(base).capacity;
            let mut declared = Quantities::new();
            for (name, value) in wanted["status"]["capacity"].as_object().into_iter().flatten() {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let was = shown.get(name);
                match parse_quantity(name, &text) {
                    // What nobody touched stays measured.
                    Ok(amount)
                        if was.is_some_and(|was| was.amount == amount) && !before.capacity.contains_key(name) => {}
                    Ok(amount) => drop(declared.insert(name.clone(), amount)),
                    Err(why) => causes.push(Cause::invalid(format!("status.capacity.{name}"), why)),
                }
            }
            changes.capacity = declared;
        }
    }
    if causes.is_empty() { Ok(changes) } else { Err(causes) }
}

/// Reads taints. Whoever may stay for some time counts it from the moment at which a taint was added.
fn taints(list: &Value, before: &[Taint], causes: &mut Vec<Cause>) -> Vec<Taint> {
    let mut taints: Vec<Taint> = Vec::new();
    for (at, item) in list.as_array().into_iter().flatten().enumerate() {
        match serde_json::from_value::<Taint>(item.clone()) {
            Ok(taint) if taint.key.is_empty() => {
                causes.push(Cause::required(format!("spec.taints[{at}].key"), "must not be empty"));
            }
            Ok(taint) if taints.iter().any(|other| other.key == taint.key && other.effect == taint.effect) => {
                let why = format!("{} has this effect already", taint.key);
                causes.push(Cause::invalid(format!("spec.taints[{at}]"), why));
            }
            Ok(mut taint) => {
                if taint.effect == TaintEffect::NoExecute {
                    let same = |other: &&Taint| (&other.key, &other.value) == (&taint.key, &taint.value);
                    let known = before.iter().filter(|other| other.effect == taint.effect).find(same);
                    taint.added = known.and_then(|known| known.added).or(taint.added).or_else(|| Some(crate::now()));
                }
                taints.push(taint);
            }
            Err(why) => causes.push(Cause::invalid(format!("spec.taints[{at}]"), why.to_string())),
        }
    }
    taints
}
