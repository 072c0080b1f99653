//! View of a run's object (`metadata`, `spec`, `status`). Workflows and TaskSets have different field names; here they
//! are the same. It borrows the JSON, never changes it, and treats absent fields as empty.

use std::{borrow::Cow, collections::HashMap};

use octoflow_engine::{
    Dialect,
    dialect::{self, NodeTable, PhaseClass, StatusFields},
    kinds,
    view::{Heading, readable},
};
use octoflow_model::Time;
use serde_json::Value;

use crate::output::clock;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Workflow<'a> {
    object: &'a Value,
}

impl<'a> Workflow<'a> {
    pub(crate) fn new(object: &'a Value) -> Self {
        Self { object }
    }

    pub(crate) fn name(self) -> &'a str {
        text(&self.object["metadata"], "name")
    }

    pub(crate) fn object(self) -> &'a Value {
        self.object
    }

    /// Returns the dialect of its kind; `None` for a kind of a newer version.
    pub(crate) fn dialect(self) -> Option<&'static Dialect> {
        dialect::of(self.object).ok()
    }

    /// Returns the noun for messages.
    pub(crate) fn noun(self) -> &'static str {
        self.dialect().map_or(kinds::UNKNOWN.noun, |dialect| dialect.kind.noun)
    }

    /// Returns the noun for a group of equal pods.
    pub(crate) fn group_noun(self) -> &'static str {
        self.dialect().map_or("group", |dialect| dialect.group_noun)
    }

    fn fields(self) -> StatusFields {
        self.dialect().map_or(StatusFields::USUAL, |dialect| dialect.status)
    }

    /// Returns the text of a status field; empty if it has none.
    fn field(self, path: &str) -> &'a str {
        StatusFields::value(self.status(), path).as_str().unwrap_or_default()
    }

    /// Returns the layout of its table of nodes.
    pub(crate) fn node_table(self) -> NodeTable {
        self.dialect().map_or(NodeTable::Steps, |dialect| dialect.node_table)
    }

    /// Returns the additional header lines of its kind.
    pub(crate) fn heading(self) -> Heading {
        self.dialect().map(|dialect| dialect.view.heading(self.object)).unwrap_or_default()
    }

    pub(crate) fn namespace(self) -> &'a str {
        text(&self.object["metadata"], "namespace")
    }

    pub(crate) fn created(self) -> Option<Time> {
        time(&self.object["metadata"], "creationTimestamp")
    }

    pub(crate) fn spec(self) -> &'a Value {
        &self.object["spec"]
    }

    pub(crate) fn status(self) -> &'a Value {
        &self.object["status"]
    }

    /// Returns the phase; the dialect's first one if it was not started yet.
    pub(crate) fn phase(self) -> &'a str {
        match (self.dialect(), self.field(self.fields().phase)) {
            (Some(dialect), _) => dialect.phase_of(self.object),
            (None, "") => "Pending",
            (None, phase) => phase,
        }
    }

    /// Returns the meaning of its phase.
    pub(crate) fn phase_class(self) -> Option<PhaseClass> {
        self.dialect()?.phase_class(self.phase())
    }

    /// Reports whether it is over, successfully.
    pub(crate) fn succeeded(self) -> bool {
        match self.dialect() {
            Some(dialect) => dialect.phase_class(self.phase()) == Some(PhaseClass::Succeeded),
            // A kind of a newer version most likely says it as most kinds do.
            None => self.phase() == "Succeeded",
        }
    }

    /// Returns the phase, marked if it waits to be resumed.
    pub(crate) fn phase_in_words(self) -> String {
        let suspended =
            self.spec()["suspend"] == Value::Bool(true) || self.nodes().iter().any(|node| node.waits_for_resume());
        let over = self.phase_class().is_some_and(PhaseClass::is_final);
        if !over && suspended { format!("{} (Suspended)", self.phase()) } else { self.phase().to_owned() }
    }

    pub(crate) fn message(self) -> &'a str {
        self.field(self.fields().message)
    }

    pub(crate) fn started(self) -> Option<Time> {
        clock::parse(self.field(self.fields().started))
    }

    pub(crate) fn finished(self) -> Option<Time> {
        clock::parse(self.field(self.fields().finished))
    }

    /// Returns arguments that have a value, in the order of the manifest.
    pub(crate) fn parameters(self) -> Vec<(&'a str, String)> {
        named_values(&self.spec()["arguments"]["parameters"])
    }

    pub(crate) fn output_parameters(self) -> Vec<(&'a str, String)> {
        named_values(&self.status()["outputs"]["parameters"])
    }

    pub(crate) fn output_artifacts(self) -> Vec<(&'a str, String)> {
        artifacts(&self.status()["outputs"]["artifacts"])
    }

    /// Returns conditions such as `Completed=True`.
    pub(crate) fn conditions(self) -> Vec<(&'a str, &'a str, &'a str)> {
        list(&self.status()["conditions"])
            .iter()
            .map(|condition| (text(condition, "type"), text(condition, "status"), text(condition, "message")))
            .collect()
    }

    pub(crate) fn nodes(self) -> Vec<Node<'a>> {
        self.status()["nodes"].as_object().into_iter().flatten().map(|(_, node)| Node { node }).collect()
    }

    /// Returns the name of the pod that a node runs as, whatever the runtime.
    pub(crate) fn pod_name(self, node: Node<'_>) -> String {
        self.dialect().map(|dialect| dialect.view.pod_name(self.object, node.node)).unwrap_or_default()
    }

    /// Makes a message readable: `child 'w-123' failed` names the step instead of its id.
    pub(crate) fn readable(self, message: &str) -> String {
        readable(message, |id| self.status()["nodes"].get(id).map(|node| Node { node }.display().to_owned()))
    }

    /// Returns the numbers of pending, running and completed pods.
    pub(crate) fn pods_by_state(self) -> (usize, usize, usize) {
        let mut counts = (0, 0, 0);
        for node in self.nodes().into_iter().filter(|node| node.kind() == "Pod") {
            match node.phase() {
                "Pending" => counts.0 += 1,
                "Running" => counts.1 += 1,
                _ => counts.2 += 1,
            }
        }
        counts
    }
}

/// One entry of `status.nodes`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'a> {
    node: &'a Value,
}

impl<'a> Node<'a> {
    pub(crate) fn id(self) -> &'a str {
        text(self.node, "id")
    }

    pub(crate) fn name(self) -> &'a str {
        text(self.node, "name")
    }

    pub(crate) fn display(self) -> &'a str {
        match text(self.node, "displayName") {
            "" => self.name(),
            display => display,
        }
    }

    pub(crate) fn kind(self) -> &'a str {
        text(self.node, "type")
    }

    pub(crate) fn phase(self) -> &'a str {
        text(self.node, "phase")
    }

    pub(crate) fn message(self) -> &'a str {
        text(self.node, "message")
    }

    pub(crate) fn boundary(self) -> &'a str {
        text(self.node, "boundaryID")
    }

    pub(crate) fn host(self) -> &'a str {
        text(self.node, "hostNodeName")
    }

    pub(crate) fn resources_duration(self) -> String {
        let spent = self.node["resourcesDuration"].as_object().into_iter().flatten();
        let parts: Vec<String> = spent.map(|(name, seconds)| format!("{}*({name})", clock_of(seconds))).collect();
        parts.join(",")
    }

    /// Returns `template`, or `wftmpl/template` for a reference.
    pub(crate) fn template(self) -> String {
        match text(self.node, "templateName") {
            "" => {
                let reference = &self.node["templateRef"];
                match (text(reference, "name"), text(reference, "template")) {
                    ("", template) => template.to_owned(),
                    (name, template) => format!("{name}/{template}"),
                }
            }
            name => name.to_owned(),
        }
    }

    pub(crate) fn template_short(self) -> &'a str {
        match text(self.node, "templateName") {
            "" => text(&self.node["templateRef"], "template"),
            name => name,
        }
    }

    pub(crate) fn started(self) -> Option<Time> {
        time(self.node, "startedAt")
    }

    pub(crate) fn finished(self) -> Option<Time> {
        time(self.node, "finishedAt")
    }

    pub(crate) fn children(self) -> impl Iterator<Item = &'a str> {
        list(&self.node["children"]).iter().filter_map(Value::as_str)
    }

    pub(crate) fn inputs(self) -> &'a Value {
        &self.node["inputs"]
    }

    pub(crate) fn outputs(self) -> &'a Value {
        &self.node["outputs"]
    }

    /// Returns its position among its siblings, where that does not follow from its start.
    pub(crate) fn rank(self) -> Option<usize> {
        self.node["rank"].as_u64().and_then(|rank| usize::try_from(rank).ok())
    }

    pub(crate) fn is_pod(self) -> bool {
        self.kind() == "Pod"
    }

    pub(crate) fn is_bad(self) -> bool {
        matches!(self.phase(), "Failed" | "Error")
    }

    pub(crate) fn waits_for_resume(self) -> bool {
        self.kind() == "Suspend" && self.phase() == "Running"
    }

    /// Returns a field by the name selectors use: `displayName`, `phase`, `inputs.parameters.x.value`…
    pub(crate) fn field(self, path: &str) -> Option<String> {
        match path {
            "displayName" => return Some(self.display().to_owned()),
            "templateName" => return Some(self.template()),
            _ => {}
        }
        if let Some((side, rest)) = path.split_once(".parameters.")
            && matches!(side, "inputs" | "outputs")
        {
            let name = rest.strip_suffix(".value").unwrap_or(rest);
            return named_values(&self.node[side]["parameters"])
                .into_iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| value);
        }
        path.split('.').try_fold(self.node, |value, key| value.get(key)).map(plain)
    }
}

/// Returns the noun for runs of a kind, by the key of the kind.
pub(crate) fn noun(kind: &str) -> &'static str {
    kinds::of_key(kind).map_or(kinds::UNKNOWN.noun, |kind| kind.noun)
}

/// Returns the object of a run with `status.nodes`, the tree for people.
pub(crate) fn with_nodes(object: &Value) -> Cow<'_, Value> {
    dialect::of(object).map_or(Cow::Borrowed(object), |dialect| dialect.view.with_nodes(object))
}

/// Indexes nodes by id.
pub(crate) fn by_id<'a>(nodes: &[Node<'a>]) -> HashMap<&'a str, usize> {
    nodes.iter().enumerate().map(|(at, node)| (node.id(), at)).collect()
}

/// Returns `name` and `value` of parameters that have one.
pub(crate) fn named_values(parameters: &Value) -> Vec<(&str, String)> {
    list(parameters)
        .iter()
        .filter_map(|parameter| match parameter.get("value") {
            None | Some(Value::Null) => None,
            Some(value) => Some((text(parameter, "name"), plain(value))),
        })
        .collect()
}

/// Returns `name` and location of artifacts.
pub(crate) fn artifacts(artifacts: &Value) -> Vec<(&str, String)> {
    list(artifacts).iter().map(|artifact| (text(artifact, "name"), artifact_place(artifact))).collect()
}

fn artifact_place(artifact: &Value) -> String {
    let keys = ["s3", "oss", "gcs", "azure", "hdfs", "local", "file"];
    let key = keys.iter().map(|driver| text(&artifact[*driver], "key")).find(|key| !key.is_empty());
    match key {
        Some(key) => key.to_owned(),
        None => text(artifact, "path").to_owned(),
    }
}

/// Returns a string as it is, anything else as JSON.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn time(value: &Value, key: &str) -> Option<Time> {
    clock::parse(text(value, key))
}

fn clock_of(seconds: &Value) -> String {
    clock::short(std::time::Duration::from_secs(seconds.as_u64().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn absent_fields_read_as_empty() {
        let object = json!({"kind": "Workflow", "metadata": {"name": "w"}});
        let workflow = Workflow::new(&object);
        assert_eq!(workflow.phase(), "Pending");
        assert_eq!(workflow.started(), None);
        assert!(workflow.nodes().is_empty() && workflow.parameters().is_empty());
    }

    #[test]
    fn a_template_of_another_object_is_shown_with_its_owner() {
        let object = json!({"kind": "Workflow", "metadata": {"name": "w"}, "status": {"nodes": {
            "w-78": {"id": "w-78", "name": "w[0].b", "templateRef": {"name": "lib", "template": "echo"}, "type": "Pod"}}}});
        let workflow = Workflow::new(&object);
        let node = workflow.nodes()[0];
        assert_eq!(node.template(), "lib/echo");
        assert!(workflow.pod_name(node).starts_with("w-echo-"), "{}", workflow.pod_name(node));
    }

    #[test]
    fn selectors_reach_into_parameters() {
        let object = json!({"status": {"nodes": {"a": {"id": "a", "displayName": "A", "phase": "Running",
            "inputs": {"parameters": [{"name": "who", "value": "me"}]}}}}});
        let node = Workflow::new(&object).nodes()[0];
        assert_eq!(node.field("displayName").as_deref(), Some("A"));
        assert_eq!(node.field("inputs.parameters.who.value").as_deref(), Some("me"));
        assert_eq!(node.field("phase").as_deref(), Some("Running"));
        assert_eq!(node.field("nothing"), None);
    }

    #[test]
    fn messages_name_steps_instead_of_ids() {
        let object = json!({"status": {"nodes": {"w-12": {"id": "w-12", "displayName": "build"}}}});
        let workflow = Workflow::new(&object);
        assert_eq!(workflow.readable("child 'w-12' failed"), "child 'build' failed");
        assert_eq!(workflow.readable("it's w-12, isn't it"), "it's w-12, isn't it");
        assert_eq!(workflow.readable("Stopped with strategy 'Stop'"), "Stopped with strategy 'Stop'");
        // What else is quoted may be named like a node: the job of a flow's entry, for one.
        assert_eq!(workflow.readable("'w-12' exists already"), "'w-12' exists already");
    }

    #[test]
    fn a_workflow_that_waits_for_a_person_says_so() {
        let waiting =
            json!({"status": {"phase": "Running", "nodes": {"a": {"id": "a", "type": "Suspend", "phase": "Running"}}}});
        assert_eq!(Workflow::new(&waiting).phase_in_words(), "Running (Suspended)");
        let over = json!({"kind": "Workflow", "spec": {"suspend": true}, "status": {"phase": "Failed"}});
        assert_eq!(Workflow::new(&over).phase_in_words(), "Failed");
    }
}
