//! What a variable's name means at one place of a run. Values are looked up when asked for, never collected:
//! a run with a hundred thousand nodes costs nothing to a step that refers to one of them.

use std::collections::BTreeMap;

use octoflow_model::{
    NodeIx, Time,
    argo::{InputValues, NodeKind, OutputValues, Phase, Role, Template},
};
use serde_json::Value;

use super::{
    node::{Body, Fan, Node},
    program::{Calls, Recipe},
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
    /// What `workflow.parameters` means: the run's own, or those it will begin with.
    pub parameters: &'a BTreeMap<String, String>,
    /// The steps or DAG node whose calls can be referred to, with its template.
    pub frame: Option<(NodeIx, &'a Recipe)>,
    /// A call's name that means this node, whatever the frame says: inside an exit handler of a loop's item.
    pub own: Option<(&'a str, NodeIx)>,
    /// The step or task that is being called; it is what `steps.name` means unless the caller was called by one itself.
    pub calling: Option<&'a str>,
    pub item: Option<&'a Value>,
    pub inputs: Option<&'a InputValues>,
    /// The template whose declared paths can be referred to.
    pub template: Option<&'a Template>,
    pub locals: &'a [(&'static str, String)],
    /// Where what a node itself has given can be referred to: in its metrics.
    pub outputs: Option<&'a OutputValues>,
    /// What expressions take for the present.
    pub moment: Time,
    /// What expressions draw from: whose text this is, and the place in it.
    pub seed: Seed,
    /// Who pays for them.
    pub meter: &'a Meter,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    Text(String),
    /// It would be there, had its producer not been skipped or omitted.
    Absent,
    Unknown,
}

impl From<Option<String>> for Lookup {
    fn from(found: Option<String>) -> Self {
        found.map_or(Self::Unknown, Self::Text)
    }
}

impl<'a> Scope<'a> {
    /// Only the run's own variables.
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

    /// For a node's own texts. They are filled again after a restart, so their present is when the node came into being.
    pub(crate) fn of_node(run: &'a Run, now: Time, at: NodeIx) -> Self {
        Self::new(run, now).as_node(at)
    }

    /// The same place, with the present and the chance of a node.
    pub(crate) fn as_node(self, at: NodeIx) -> Self {
        let node = self.run.state.node(at);
        Self { moment: node.born, ..self.about(&node.name) }
    }

    /// With chances of its own for what has this name.
    pub(crate) fn about(self, name: &str) -> Self {
        Self { seed: self.seed.with(name), ..self }
    }

    /// With chances of its own for what stands at this place of a text or list.
    pub(crate) fn nth(self, place: usize) -> Self {
        Self { seed: self.seed.nth(place), ..self }
    }

    /// Only the run's own variables, at the same moment and with the same chances.
    pub(crate) fn bare(&self) -> Self {
        Self {
            parameters: self.parameters,
            moment: self.moment,
            seed: self.seed,
            meter: self.meter,
            ..Self::new(self.run, self.now)
        }
    }

    pub(crate) fn in_frame(self, frame: NodeIx, recipe: &'a Recipe) -> Self {
        Self { frame: Some((frame, recipe)), ..self }
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

/// What a call's name stands for.
#[derive(Clone, Copy)]
pub(super) enum Subject<'a> {
    One(NodeIx),
    /// A loop, with the node that carries its phase.
    Many {
        fan: &'a Fan,
        group: NodeIx,
    },
}

impl<'a> Scope<'a> {
    /// The node or nodes a call of the frame stands for; `None` when there is no such call or it has not been made.
    pub(super) fn subject(&self, root: &str, call: &str) -> Option<Subject<'a>> {
        if let Some((own, node)) = self.own
            && own == call
        {
            return Some(Subject::One(node));
        }
        let (frame, recipe) = self.frame?;
        let state = &self.run.state;
        match (&recipe.calls, &state.node(frame).body, root) {
            (Calls::Steps { index }, Body::Steps { groups }, "steps") => {
                let (group, step) = *index.get(call)?;
                let group = *groups.get(group as usize)?;
                let Body::Group(body) = &state.node(group).body else { return None };
                subject_of(&state.nodes, body.calls.get(step as usize)?, group)
            }
            (Calls::Dag(graph), Body::Dag(dag), "tasks") => {
                let task = *graph.index.get(call)?;
                let node = dag.nodes[task as usize]?;
                match &state.node(node).body {
                    Body::Fan(fan) if state.node(node).kind == NodeKind::TaskGroup => {
                        Some(Subject::Many { fan, group: node })
                    }
                    _ => Some(Subject::One(node)),
                }
            }
            _ => None,
        }
    }

    pub(super) fn node(&self, at: NodeIx) -> &'a Node {
        self.run.state.node(at)
    }

    /// Everything the subject stands for is final.
    pub(super) fn fulfilled(&self, subject: Subject<'_>) -> bool {
        match subject {
            Subject::One(node) => self.node(node).phase.fulfilled() || self.node(node).daemoned,
            Subject::Many { fan, group } => {
                self.node(group).phase.fulfilled()
                    || fan.open == 0 && fan.items.as_ref().is_some_and(|items| items.len() == fan.nodes.len())
            }
        }
    }

    pub(super) fn phase(&self, subject: Subject<'_>) -> Phase {
        match subject {
            Subject::One(node) => self.node(node).phase,
            Subject::Many { group, .. } => self.node(group).phase,
        }
    }
}

fn subject_of<'a>(nodes: &[Node], fan: &'a Fan, group: NodeIx) -> Option<Subject<'a>> {
    let first = *fan.nodes.first()?;
    let looped = matches!(nodes[first.at()].role, Role::Step { item: Some(_), .. });
    Some(if looped { Subject::Many { fan, group } } else { Subject::One(first) })
}
