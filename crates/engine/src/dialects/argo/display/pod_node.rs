//! Finds the nodes of a run that are pods to the outside, with their names and phases. Reads the run's object.

use octoflow_model::Time;
use serde_json::Value;

use crate::dialects::argo::ident;

/// A node that is a pod.
#[derive(Clone, Copy)]
pub(super) struct PodNode<'a> {
    pub node: &'a Value,
    run: &'a str,
}

/// Iterates over the pods of a run in no particular order. Nodes that never became a pod are left out.
pub(super) fn of(object: &Value) -> impl Iterator<Item = PodNode<'_>> {
    let run = object["metadata"]["name"].as_str().unwrap_or_default();
    let nodes = object["status"]["nodes"].as_object().into_iter().flat_map(|nodes| nodes.values());
    nodes.filter(|node| node["type"] == "Pod").map(move |node| PodNode { node, run }).filter(|pod| pod.is_pod())
}

/// Returns the name of the pod that a node is.
pub(super) fn name(run: &str, node: &Value) -> String {
    PodNode { node, run }.name()
}

impl<'a> PodNode<'a> {
    pub(super) fn name(self) -> String {
        ident::pod_name(self.run, self.text("name"), self.template())
    }

    /// Returns the template it runs; empty for an inline one.
    pub(super) fn template(self) -> &'a str {
        match self.text("templateName") {
            "" => self.node["templateRef"]["template"].as_str().unwrap_or_default(),
            name => name,
        }
    }

    pub(super) fn text(self, field: &str) -> &'a str {
        self.node[field].as_str().unwrap_or_default()
    }

    pub(super) fn began(self) -> Time {
        Time::parse(self.text("startedAt")).unwrap_or(Time(0))
    }

    pub(super) fn over(self) -> bool {
        matches!(self.text("phase"), "Succeeded" | "Failed" | "Error" | "Skipped" | "Omitted")
    }

    /// Whether the word is one of its names: id, name, display name or pod name.
    pub(super) fn is_called(self, word: &str) -> bool {
        ["id", "name", "displayName"].iter().any(|field| self.text(field) == word) || self.name() == word
    }

    /// Whether the node became a pod: a cache hit or a wait for a lock has none.
    fn is_pod(self) -> bool {
        self.node["memoizationStatus"]["hit"] != true && self.node["synchronizationStatus"].is_null()
    }
}
