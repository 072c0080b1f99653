//! This machine as a node of the scheduler: what was measured and configured, and what people have changed since. Changes
//! are stored per node, so that they survive a restart with another configuration.

use std::{collections::BTreeMap, env::consts, path::Path};

use octoflow_engine::{
    Capacity,
    kinds::{Kind, core::NODE},
    schedule::spec::{NodeSpec, Quantities, ResourceCapacity},
};
use octoflow_model::task::{Labels, placement::Taint};
use octoflow_store::{Object, Reader};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Error, objects::known};

/// How much of a resource that cannot be measured there is: enough for everybody.
const PLENTY: u64 = 1 << 50;

/// What somebody configured about this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeConfig {
    /// Declared amounts, which are never exceeded.
    pub capacity: Quantities,
    pub labels: Labels,
}

/// What people have changed about a node. Wins over what was measured and configured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct NodeOverlay {
    /// Labels that were set, or removed if there is no value.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, Option<String>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unschedulable: bool,
    /// Amounts that were declared.
    #[serde(skip_serializing_if = "Quantities::is_empty")]
    pub capacity: Quantities,
}

/// Returns this machine as a node.
pub(crate) fn machine(capacity: Capacity, config: &NodeConfig, data_dir: &Path) -> NodeSpec {
    let host = known::host().unwrap_or_else(|| "localhost".to_owned());
    let name = dns(&host);
    let mut node =
        NodeSpec::measured(name.as_str(), capacity.slots as u64, capacity.cpu_milli, capacity.memory_bytes.min(PLENTY));
    node.labels = Labels::from([
        ("kubernetes.io/hostname".to_owned(), name),
        ("kubernetes.io/os".to_owned(), consts::OS.to_owned()),
        ("kubernetes.io/arch".to_owned(), arch().to_owned()),
        ("node.kubernetes.io/instance-type".to_owned(), "octoflow".to_owned()),
    ]);
    node.labels.extend(config.labels.clone());
    node.labels_declared = !config.labels.is_empty();
    declare(&mut node, config.capacity.iter().map(|(name, amount)| (name.as_str(), *amount)), data_dir);
    node
}

pub(crate) fn arch() -> &'static str {
    match consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Declares amounts. From the first on the node has nothing but what is declared or measured.
fn declare<'n>(node: &mut NodeSpec, declared: impl Iterator<Item = (&'n str, u64)>, data_dir: &Path) {
    for (name, amount) in declared {
        node.capacity.insert(name.to_owned(), ResourceCapacity { amount, declared: true });
        node.open_ended = false;
    }
    if !node.open_ended && !node.capacity.contains_key("ephemeral-storage") {
        let amount = octoflow_store::Space::of(data_dir).map_or(PLENTY, |space| space.total.min(PLENTY));
        node.capacity.insert("ephemeral-storage".to_owned(), ResourceCapacity { amount, declared: false });
    }
}

impl NodeOverlay {
    /// Returns the node as it is with these changes.
    pub(crate) fn apply(&self, node: &NodeSpec) -> NodeSpec {
        let mut node = node.clone();
        for (key, value) in &self.labels {
            match value {
                Some(value) => drop(node.labels.insert(key.clone(), value.clone())),
                None => drop(node.labels.remove(key)),
            }
        }
        node.labels_declared |= self.labels.values().any(Option::is_some);
        node.taints.clone_from(&self.taints);
        node.cordoned = self.unschedulable;
        let declared = self.capacity.iter().map(|(name, amount)| (name.as_str(), *amount));
        declare(&mut node, declared, Path::new("/"));
        node
    }
}

/// Returns this machine as a node, with what people have changed about it if the data directory can be read.
pub fn this_node(capacity: Capacity, config: &NodeConfig, data_dir: &Path) -> NodeSpec {
    let node = machine(capacity, config, data_dir);
    let changed = Reader::open(data_dir).ok().and_then(|reader| stored(&reader, &node).ok());
    changed.unwrap_or(node)
}

/// Returns the node with what people have changed about it.
pub(crate) fn stored(reader: &Reader, node: &NodeSpec) -> Result<NodeSpec, Error> {
    let object = reader.object(NODE.key, "", &node.name)?;
    Ok(object.map(|object| overlay(&object)).transpose()?.unwrap_or_default().apply(node))
}

pub(crate) fn overlay(object: &Object) -> Result<NodeOverlay, Error> {
    serde_json::from_slice(&object.body)
        .map_err(|error| Error::Object { what: format!("Node `{}`", object.name), why: error.to_string() })
}

/// Decodes a stored object.
pub(crate) fn body(kind: &Kind, object: &Object) -> Result<Value, Error> {
    serde_json::from_slice(&object.body)
        .map_err(|error| Error::Object { what: format!("{} `{}`", kind.name, object.name), why: error.to_string() })
}

/// Turns a host name into a valid object name.
pub(crate) fn dns(host: &str) -> String {
    let letters = host.chars().map(|letter| letter.to_ascii_lowercase());
    let name: String =
        letters.map(|letter| if letter.is_ascii_alphanumeric() || letter == '.' { letter } else { '-' }).collect();
    let name = name.trim_matches(['-', '.']).to_owned();
    if name.is_empty() { "localhost".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: Capacity = Capacity { slots: 16, cpu_milli: 4000, memory_bytes: 8 << 30 };

    fn node(config: &NodeConfig) -> NodeSpec {
        machine(CAPACITY, config, Path::new("."))
    }

    #[test]
    fn a_machine_that_nobody_configured_is_soft_and_open_ended() {
        let node = node(&NodeConfig::default());
        assert!(node.open_ended && !node.labels_declared && node.capacity.values().all(|amount| !amount.declared));
        assert_eq!(node.capacity["cpu"].amount, 4000);
    }

    #[test]
    fn what_is_declared_is_hard_and_the_rest_of_the_well_known_stays_measured() {
        let capacity = Quantities::from([("cpu".to_owned(), 8000), ("nvidia.com/gpu".to_owned(), 4)]);
        let labels = Labels::from([("disk".to_owned(), "ssd".to_owned())]);
        let node = node(&NodeConfig { capacity, labels });
        assert!(!node.open_ended && node.labels_declared);
        let declared: Vec<&str> =
            node.capacity.iter().filter(|(_, amount)| amount.declared).map(|(name, _)| name.as_str()).collect();
        assert_eq!(declared, ["cpu", "nvidia.com/gpu"]);
        assert_eq!(node.capacity["cpu"].amount, 8000);
        let measured = ["memory", "pods", "ephemeral-storage"].map(|name| node.capacity[name].declared);
        assert_eq!(measured, [false; 3]);
    }

    #[test]
    fn changes_win_over_the_configuration_and_are_stored_as_they_are() {
        let labels = Labels::from([("disk".to_owned(), "ssd".to_owned()), ("zone".to_owned(), "a".to_owned())]);
        let base = node(&NodeConfig { labels, ..NodeConfig::default() });
        let overlay = NodeOverlay {
            labels: BTreeMap::from([("zone".to_owned(), None), ("rack".to_owned(), Some("7".to_owned()))]),
            unschedulable: true,
            capacity: Quantities::from([("cpu".to_owned(), 2000)]),
            ..NodeOverlay::default()
        };
        let text = serde_json::to_string(&overlay).unwrap();
        let node = serde_json::from_str::<NodeOverlay>(&text).unwrap().apply(&base);
        assert!(node.cordoned && !node.open_ended && !node.labels.contains_key("zone"));
        assert_eq!((node.labels["disk"].as_str(), node.labels["rack"].as_str()), ("ssd", "7"));
        assert_eq!(node.capacity["cpu"], ResourceCapacity { amount: 2000, declared: true });
        assert!(!node.capacity["memory"].declared);
        assert_eq!(NodeOverlay::default().apply(&base), base);
    }

    #[test]
    fn host_names_become_names_of_objects() {
        assert_eq!((dns("My_Host.local").as_str(), dns("..").as_str()), ("my-host.local", "localhost"));
    }
}
