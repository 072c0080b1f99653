//! Resolves variables at one place of a run. Values are looked up on demand, never collected: a run with a hundred
//! thousand nodes costs nothing to a step that refers to one of them.

use std::collections::BTreeMap;

use octoflow_model::{
    NodeIx, Time,
    argo::{InputValues, OutputValues, Phase, Role, Template},
};
use serde_json::Value;

use super::{
    node::{Body, Expansion, Node},
    program::{Calls, CompiledTemplate},
    run::Run,
};
use crate::expr::{Meter, random::Seed};

mod calls;
mod expression;
mod workflow;

pub(crate) use workflow::is_date_part;

#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub run: &'a Run,
    pub now: Time,
    /// Values of `workflow.parameters`: the run's own, or those it will begin with.
    pub parameters: &'a BTreeMap<String, String>,
    /// The steps or DAG node whose calls can be referred to, with its template.
    pub frame: Option<(NodeIx, &'a CompiledTemplate)>,
    /// A call name that means this node, whatever the frame says: for the exit handler of a loop's item.
    pub own: Option<(&'a str, NodeIx)>,
    /// The step or task being called: the value of `steps.name`, unless the caller was called by one itself.
    pub calling: Option<&'a str>,
    pub item: Option<&'a Value>,
    pub inputs: Option<&'a InputValues>,
    /// The template whose declared paths can be referred to.
    pub template: Option<&'a Template>,
    pub locals: &'a [(&'static str, String)],
    /// The node's own outputs, which its metrics can refer to.
    pub outputs: Option<&'a OutputValues>,
    /// Current time as expressions see it.
    pub moment: Time,
    /// Seed of random functions: derived from the owner of the text and the position in it.
    pub seed: Seed,
    /// Budget that expressions are charged to.
    pub meter: &'a Meter,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    Text(String),
    /// The value is missing because its producer was skipped or omitted.
    Absent,
    Unknown,
}

impl From<Option<String>> for Lookup {
    fn from(found: Option<String>) -> Self {
        found.map_or(Self::Unknown, Self::Text)
    }
}

impl<'a> Scope<'a> {
    /// Creates a scope with the run's own variables only.
    pub(crate) fn new(run: &'a Run, now: Time) -> Self {
        Self {
            run,
            now,
            parameters: &run.state.parameters,
            frame: None,
            own: None,
            calling: None,
            item: None,
            inputs: None,
            template: None,
            locals: &[],
            outputs: None,
            moment: now,
            seed: Seed::of(&run.state.head.uid),
            meter: &run.meter,
        }
    }

    /// Creates a scope for a node's own texts. They are filled again after a restart, so their current time is that of
    /// the node's addition.
    pub(crate) fn of_node(run: &'a Run, now: Time, at: NodeIx) -> Self {
        Self::new(run, now).as_node(at)
    }

    /// Returns the scope with the time and the seed of a node.
    pub(crate) fn as_node(self, at: NodeIx) -> Self {
        let node = self.run.state.node(at);
        Self { moment: node.created_at, ..self.about(&node.name) }
    }

    /// Returns the scope with a seed of its own for this name.
    pub(crate) fn about(self, name: &str) -> Self {
        Self { seed: self.seed.with(name), ..self }
    }

    /// Returns the scope with a seed of its own for this position of a text or list.
    pub(crate) fn nth(self, place: usize) -> Self {
        Self { seed: self.seed.nth(place), ..self }
    }

    /// Returns the scope reduced to the run's own variables, with the same time and seed.
    pub(crate) fn bare(&self) -> Self {
        Self {
            parameters: self.parameters,
            moment: self.moment,
            seed: self.seed,
            meter: self.meter,
            ..Self::new(self.run, self.now)
        }
    }

    pub(crate) fn in_frame(self, frame: NodeIx, compiled: &'a CompiledTemplate) -> Self {
        Self { frame: Some((frame, compiled)), ..self }
    }

    pub(crate) fn lookup(&self, name: &str) -> Lookup {
        if let Some((_, value)) = self.locals.iter().find(|(local, _)| *local == name) {
            return Lookup::Text(value.clone());
        }
        let (root, rest) = name.split_once('.').unwrap_or((name, ""));
        match root {
            "workflow" => self.workflow(rest).into(),
            "inputs" => self.input(rest).into(),
            "outputs" => self.own_output(rest).or_else(|| self.output_path(rest)).into(),
            "item" => self.item_text(rest).into(),
            "steps" | "tasks" => match rest.split_once('.') {
                Some((call, field)) => self.call(root, call, field),
                None if rest == "name" => self.calling.map(str::to_owned).into(),
                None => Lookup::Unknown,
            },
            _ => Lookup::Unknown,
        }
    }

    fn input(&self, rest: &str) -> Option<String> {
        if rest == "parameters" {
            let list: Vec<Value> = self
                .inputs?
                .parameters
                .iter()
                .map(|(name, value)| serde_json::json!({"name": name, "value": value}))
                .collect();
            return Some(Value::Array(list).to_string());
        }
        if let Some(name) = rest.strip_prefix("parameters.") {
            return self.inputs?.parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        }
        let name = rest.strip_prefix("artifacts.")?.strip_suffix(".path")?;
        let declared = self.template?.inputs.artifacts.iter().find(|artifact| artifact.name == name)?;
        declared.path.clone()
    }

    fn own_output(&self, rest: &str) -> Option<String> {
        let outputs = self.outputs?;
        match rest {
            "result" => outputs.result.clone(),
            "exitCode" => outputs.exit_code.clone(),
            _ => {
                let name = rest.strip_prefix("parameters.")?;
                outputs.parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
            }
        }
    }

    fn output_path(&self, rest: &str) -> Option<String> {
        let outputs = &self.template?.outputs;
        let name = rest.strip_suffix(".path")?;
        if let Some(name) = name.strip_prefix("parameters.") {
            let declared = outputs.parameters.iter().find(|parameter| parameter.name == name)?;
            return declared.value_from.as_ref()?.path.clone();
        }
        let name = name.strip_prefix("artifacts.")?;
        outputs.artifacts.iter().find(|artifact| artifact.name == name)?.path.clone()
    }

    fn item_text(&self, rest: &str) -> Option<String> {
        let item = self.item?;
        let value = if rest.is_empty() { item } else { item.get(rest)? };
        Some(octoflow_model::scalar::spelled(value.clone()))
    }
}

/// The nodes that a call's name refers to.
#[derive(Clone, Copy)]
pub(super) enum CallNodes<'a> {
    One(NodeIx),
    /// A loop, with the node that carries its phase.
    Many {
        expansion: &'a Expansion,
        group: NodeIx,
    },
}

impl<'a> Scope<'a> {
    /// Resolves a call of the frame to its node or nodes; `None` if there is no such call or it has not been made.
    pub(super) fn call_nodes(&self, root: &str, call: &str) -> Option<CallNodes<'a>> {
        if let Some((own, node)) = self.own
            && own == call
        {
            return Some(CallNodes::One(node));
        }
        let (frame, compiled) = self.frame?;
        let state = &self.run.state;
        match (&compiled.calls, &state.node(frame).body, root) {
            (Calls::Steps { index }, Body::Steps { groups }, "steps") => {
                let (group, step) = *index.get(call)?;
                let group = *groups.get(group as usize)?;
                let Body::Group(body) = &state.node(group).body else { return None };
                call_nodes_of(&state.nodes, body.calls.get(step as usize)?, group)
            }
            (Calls::Dag(graph), Body::Dag(dag), "tasks") => {
                let task = *graph.index.get(call)?;
                let node = dag.nodes[task as usize]?;
                Some(match &state.node(node).body {
                    Body::TaskGroup(expansion) => CallNodes::Many { expansion, group: node },
                    Body::Plain
                    | Body::Leaf(_)
                    | Body::Steps { .. }
                    | Body::Group(_)
                    | Body::Dag(_)
                    | Body::Retry { .. } => CallNodes::One(node),
                })
            }
            _ => None,
        }
    }

    pub(super) fn node(&self, at: NodeIx) -> &'a Node {
        self.run.state.node(at)
    }

    /// Whether all nodes of the nodes are final.
    pub(super) fn fulfilled(&self, nodes: CallNodes<'_>) -> bool {
        match nodes {
            CallNodes::One(node) => self.node(node).phase.fulfilled() || self.node(node).daemoned,
            CallNodes::Many { expansion, group } => {
                self.node(group).phase.fulfilled()
                    || expansion.open == 0
                        && expansion.items.as_ref().is_some_and(|items| items.len() == expansion.nodes.len())
            }
        }
    }

    pub(super) fn phase(&self, nodes: CallNodes<'_>) -> Phase {
        match nodes {
            CallNodes::One(node) => self.node(node).phase,
            CallNodes::Many { group, .. } => self.node(group).phase,
        }
    }
}

fn call_nodes_of<'a>(nodes: &[Node], expansion: &'a Expansion, group: NodeIx) -> Option<CallNodes<'a>> {
    let first = *expansion.nodes.first()?;
    let looped = matches!(nodes[first.at()].role, Role::Step { item: Some(_), .. });
    Some(if looped { CallNodes::Many { expansion, group } } else { CallNodes::One(first) })
}
