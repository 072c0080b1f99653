//! A run that is over, as people see it, with short ways to ask about it.

use std::{collections::BTreeMap, time::Duration};

use octoflow_engine::argo::{Run, status};
use octoflow_model::{Fact, Task, Time};
use serde_json::Value;

use crate::play::DAWN;

pub(crate) struct Done {
    pub(crate) object: Value,
    pub(crate) facts: Vec<Fact>,
    pub(crate) starts: Vec<(Time, String)>,
    pub(crate) crowd: usize,
    pub(crate) tasks: BTreeMap<String, Task>,
}

impl Done {
    pub(crate) fn new(
        run: &Run,
        facts: Vec<Fact>,
        starts: Vec<(Time, String)>,
        crowd: usize,
        tasks: BTreeMap<String, Task>,
    ) -> Self {
        Self { object: status::object(run), facts, starts, crowd, tasks }
    }

    pub(crate) fn status(&self) -> &Value {
        &self.object["status"]
    }

    pub(crate) fn phase(&self) -> &str {
        self.status()["phase"].as_str().expect("a run has a phase")
    }

    pub(crate) fn message(&self) -> &str {
        self.status()["message"].as_str().unwrap_or_default()
    }

    fn nodes(&self) -> impl Iterator<Item = &Value> {
        self.status()["nodes"].as_object().into_iter().flat_map(|nodes| nodes.values())
    }

    pub(crate) fn count(&self) -> usize {
        self.nodes().count()
    }

    /// By full name, else by display name.
    pub(crate) fn find(&self, name: &str) -> Option<&Value> {
        self.nodes().find(|node| node["name"] == name).or_else(|| self.nodes().find(|node| node["displayName"] == name))
    }

    pub(crate) fn node(&self, name: &str) -> &Value {
        self.find(name).unwrap_or_else(|| panic!("there is no node {name} among {:#?}", self.phases()))
    }

    pub(crate) fn node_phase(&self, name: &str) -> &str {
        self.node(name)["phase"].as_str().expect("a node has a phase")
    }

    pub(crate) fn node_message(&self, name: &str) -> &str {
        self.node(name)["message"].as_str().unwrap_or_default()
    }

    /// Every node's type and phase by its full name.
    pub(crate) fn phases(&self) -> BTreeMap<String, String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        self.nodes()
            .map(|node| (text(&node["name"]), format!("{} {}", text(&node["type"]), text(&node["phase"]))))
            .collect()
    }

    fn named(&self, id: &Value) -> String {
        self.status()["nodes"][id.as_str().unwrap_or_default()]["name"]
            .as_str()
            .expect("an id leads to a node")
            .to_owned()
    }

    /// Full names of the nodes listed under `children` or `outboundNodes`.
    pub(crate) fn links(&self, name: &str, field: &str) -> Vec<String> {
        self.node(name)[field].as_array().into_iter().flatten().map(|id| self.named(id)).collect()
    }

    pub(crate) fn children(&self, name: &str) -> Vec<String> {
        self.links(name, "children")
    }

    pub(crate) fn outbound(&self, name: &str) -> Vec<String> {
        self.links(name, "outboundNodes")
    }

    pub(crate) fn boundary(&self, name: &str) -> Option<String> {
        let id = &self.node(name)["boundaryID"];
        (!id.is_null()).then(|| self.named(id))
    }

    pub(crate) fn input(&self, name: &str, parameter: &str) -> &str {
        listed(&self.node(name)["inputs"]["parameters"], parameter)
    }

    pub(crate) fn output(&self, name: &str, parameter: &str) -> &str {
        listed(&self.node(name)["outputs"]["parameters"], parameter)
    }

    /// The last argument of the task a node ran.
    pub(crate) fn said(&self, name: &str) -> &str {
        let node = self.node(name)["name"].as_str().expect("a node has a name");
        let task = self.tasks.get(node).unwrap_or_else(|| panic!("{name} ran no task"));
        task.main.args.last().map_or("", String::as_str)
    }

    /// Full names in the order their tasks were started.
    pub(crate) fn started(&self) -> Vec<&str> {
        self.starts.iter().map(|(_, name)| name.as_str()).collect()
    }

    /// Seconds from the submission to a task's start.
    pub(crate) fn started_at(&self, name: &str) -> Duration {
        let (at, _) =
            self.starts.iter().find(|(_, node)| node == name).unwrap_or_else(|| panic!("{name} was never started"));
        at.since(DAWN)
    }
}

fn listed<'v>(list: &'v Value, name: &str) -> &'v str {
    let entry = list.as_array().into_iter().flatten().find(|entry| entry["name"] == name);
    entry.and_then(|entry| entry["value"].as_str()).unwrap_or_else(|| panic!("there is no parameter {name} in {list}"))
}
