//! The nodes of a run that are pods to the outside: what they are called and where they stand. Reads the run's object.

use octoflow_model::Time;
use serde_json::Value;

use crate::argo::ident;

/// One node that is a pod.
#[derive(Clone, Copy)]
pub(super) struct Podded<'a> {
    pub node: &'a Value,
    run: &'a str,
}

/// The pods of a run in no particular order. What never came to be a pod is none.
pub(super) fn of(object: &Value) -> impl Iterator<Item = Podded<'_>> {
    let run = object["metadata"]["name"].as_str().unwrap_or_default();
    let nodes = object["status"]["nodes"].as_object().into_iter().flat_map(|nodes| nodes.values());
    nodes.filter(|node| node["type"] == "Pod").map(move |node| Podded { node, run }).filter(|pod| pod.came_to_be())
}

/// The name of the pod that a node of a run is.
pub(super) fn name(run: &str, node: &Value) -> String {
    Podded { node, run }.name()
}

impl<'a> Podded<'a> {
    pub(super) fn name(self) -> String {
        ident::pod_name(self.run, self.text("name"), self.template())
    }

    /// The template it runs; empty for one without a name.
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

    /// It is called this, in any of the ways a node is called.
    pub(super) fn is_called(self, word: &str) -> bool {
        ["id", "name", "displayName"].iter().any(|field| self.text(field) == word) || self.name() == word
    }

    /// A node that found its outputs in a cache or waits for a lock has no pod.
    fn came_to_be(self) -> bool {
        self.node["memoizationStatus"]["hit"] != true && self.node["synchronizationStatus"].is_null()
    }
}
