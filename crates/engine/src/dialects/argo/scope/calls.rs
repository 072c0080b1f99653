//! Resolves the fields of `steps.X` and `tasks.X`: outputs, status and times of the frame's calls.
//! A loop's outputs are JSON lists of its items' outputs, in item order, of those that succeeded.

use octoflow_model::{
    NodeIx,
    argo::{NodeKind, OutputValues, Phase, template::ValueFrom},
};
use serde_json::{Map, Value};

use super::{CallNodes, Lookup, Scope};
use crate::dialects::argo::daemon;

impl Scope<'_> {
    pub(super) fn call(&self, root: &str, call: &str, field: &str) -> Lookup {
        let Some(nodes) = self.call_nodes(root, call) else { return Lookup::Unknown };
        match field {
            "status" => return Lookup::Text(self.phase(nodes).word().to_owned()),
            "id" => return Lookup::Text(self.run.state.id_of(self.carrier(nodes))),
            "startedAt" => return Lookup::Text(self.node(self.carrier(nodes)).started.to_string()),
            "finishedAt" => return self.node(self.carrier(nodes)).finished.map(|at| at.to_string()).into(),
            "name" => return Lookup::Text(call.to_owned()),
            "ip" | "hostNodeName" => return self.machine(nodes, field).into(),
            // Deprecated spelling of `outputs.exitCode`.
            "exitCode" => return self.call(root, call, "outputs.exitCode"),
            _ => {}
        }
        let Some(output) = field.strip_prefix("outputs.") else { return Lookup::Unknown };
        if !self.fulfilled(nodes) {
            return Lookup::Unknown;
        }
        let found = match nodes {
            CallNodes::One(node) => self.output(node, output),
            CallNodes::Many { expansion, .. } => self.aggregate(&expansion.nodes, output),
        };
        match found {
            Some(text) => Lookup::Text(text),
            None if matches!(self.phase(nodes), Phase::Skipped | Phase::Omitted) => {
                self.producer_default(root, call, output)
            }
            None => Lookup::Unknown,
        }
    }

    /// Returns the host of a task that has started: everything runs on this machine.
    fn machine(&self, nodes: CallNodes<'_>, field: &str) -> Option<String> {
        let CallNodes::One(at) = nodes else { return None };
        let ran = match self.node(at).kind {
            NodeKind::Skipped | NodeKind::Suspend | NodeKind::StepGroup | NodeKind::TaskGroup => false,
            NodeKind::Steps | NodeKind::Dag => field == "hostNodeName",
            NodeKind::Pod | NodeKind::Retry | NodeKind::Container | NodeKind::Http => true,
        };
        let word = if field == "ip" { daemon::ADDRESS } else { self.run.host().unwrap_or(daemon::HOST) };
        (ran && self.node(at).phase != Phase::Pending).then(|| word.to_owned())
    }

    /// Returns the node that carries a nodes's phase and times.
    fn carrier(&self, nodes: CallNodes<'_>) -> NodeIx {
        match nodes {
            CallNodes::One(node) => node,
            CallNodes::Many { group, .. } => group,
        }
    }

    fn output(&self, node: NodeIx, output: &str) -> Option<String> {
        let outputs = self.node(node).outputs.as_deref()?;
        match output {
            "result" => outputs.result.clone(),
            "exitCode" => outputs.exit_code.clone(),
            "parameters" => Some(parameters_map(outputs).to_string()),
            _ => parameter(outputs, output.strip_prefix("parameters.")?).map(str::to_owned),
        }
    }

    fn aggregate(&self, nodes: &[NodeIx], output: &str) -> Option<String> {
        let good = || {
            let succeeded = nodes.iter().map(|at| self.node(*at)).filter(|node| node.phase == Phase::Succeeded);
            succeeded.filter_map(|node| node.outputs.as_deref())
        };
        let list: Vec<Value> = match output {
            "result" => good().filter_map(|outputs| outputs.result.as_deref()).map(parsed_or_text).collect(),
            "exitCode" => good().filter_map(|outputs| outputs.exit_code.clone()).map(Value::String).collect(),
            "parameters" => good().filter(|outputs| !outputs.parameters.is_empty()).map(parameters_map).collect(),
            _ => {
                let name = output.strip_prefix("parameters.")?;
                let texts: Vec<&str> = good().filter_map(|outputs| parameter(outputs, name)).collect();
                if texts.is_empty() {
                    return Some("[]".to_owned());
                }
                structured(&texts).unwrap_or_else(|| texts.iter().map(|text| Value::from(*text)).collect())
            }
        };
        Some(Value::Array(list).to_string())
    }

    /// Returns the default that a skipped producer's template declares for its output.
    fn producer_default(&self, root: &str, call: &str, output: &str) -> Lookup {
        let declared = || {
            let (_, compiled) = self.frame?;
            let place = compiled.call_site(root, call)?;
            let template = compiled.called_template(place, &self.run.program)?;
            let name = output.strip_prefix("parameters.")?;
            let parameter = template.template.outputs.parameters.iter().find(|parameter| parameter.name == name)?;
            let default = parameter.value_from.as_ref().and_then(|from: &ValueFrom| from.default.as_ref());
            default.or(parameter.default.as_ref()).map(|text| text.0.clone())
        };
        declared().map_or(Lookup::Absent, Lookup::Text)
    }

    /// Builds the map of a call's fields for expressions; `None` while it is not known.
    pub(super) fn call_map(&self, root: &str, call: &str) -> Option<Value> {
        let nodes = self.call_nodes(root, call)?;
        // Hooks see calls that still run; of those only the outputs are unknown.
        if !self.fulfilled(nodes) && self.own.is_none() {
            return None;
        }
        let mut fields = Map::new();
        for field in ["id", "status", "startedAt", "finishedAt", "name", "ip", "hostNodeName", "exitCode"] {
            if let Lookup::Text(text) = self.call(root, call, field) {
                fields.insert(field.to_owned(), text.into());
            }
        }
        let mut outputs = Map::new();
        for field in ["result", "exitCode"] {
            if let Lookup::Text(text) = self.call(root, call, &format!("outputs.{field}")) {
                outputs.insert(field.to_owned(), text.into());
            }
        }
        let mut parameters = Map::new();
        for name in self.output_names(root, call, nodes) {
            if let Lookup::Text(text) = self.call(root, call, &format!("outputs.parameters.{name}")) {
                parameters.insert(name, text.into());
            }
        }
        outputs.insert("parameters".to_owned(), Value::Object(parameters));
        fields.insert("outputs".to_owned(), Value::Object(outputs));
        Some(Value::Object(fields))
    }

    fn output_names(&self, root: &str, call: &str, nodes: CallNodes<'_>) -> Vec<String> {
        let mut names: Vec<String> = match nodes {
            CallNodes::One(node) => self.names_in(node),
            CallNodes::Many { expansion, .. } => expansion.nodes.iter().flat_map(|node| self.names_in(*node)).collect(),
        };
        let declared = self.frame.and_then(|(_, compiled)| {
            let place = compiled.call_site(root, call)?;
            compiled.called_template(place, &self.run.program)
        });
        names.extend(
            declared.iter().flat_map(|compiled| {
                compiled.template.outputs.parameters.iter().map(|parameter| parameter.name.clone())
            }),
        );
        names.sort_unstable();
        names.dedup();
        names
    }

    fn names_in(&self, node: NodeIx) -> Vec<String> {
        let outputs = self.node(node).outputs.as_deref();
        outputs.into_iter().flat_map(|outputs| outputs.parameters.iter().map(|(name, _)| name.clone())).collect()
    }
}

fn parameter<'o>(outputs: &'o OutputValues, name: &str) -> Option<&'o str> {
    outputs.parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

fn parameters_map(outputs: &OutputValues) -> Value {
    Value::Object(outputs.parameters.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect())
}

/// Parses a result as JSON; any other is taken as text.
fn parsed_or_text(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

/// Parses the values as lists and objects, if each of them is one.
fn structured(texts: &[&str]) -> Option<Vec<Value>> {
    let parse =
        |text: &&str| serde_json::from_str::<Value>(text).ok().filter(|value| value.is_array() || value.is_object());
    texts.iter().map(parse).collect()
}

impl Scope<'_> {
    /// Returns the node that produced `steps.X.outputs.artifacts.Y`.
    pub(crate) fn artifact_producer(&self, reference: &str) -> Option<NodeIx> {
        let (root, rest) = reference.split_once('.')?;
        let (call, _) = rest.split_once(".outputs.artifacts.")?;
        match self.call_nodes(root, call)? {
            CallNodes::One(node) => Some(node),
            CallNodes::Many { .. } => None,
        }
    }

    /// Builds the map of a call's fields, in which each artifact stands for its own reference.
    pub(crate) fn call_with_artifacts(&self, root: &str, call: &str) -> Option<Value> {
        let mut fields = self.call_map(root, call)?;
        let CallNodes::One(node) = self.call_nodes(root, call)? else { return Some(fields) };
        let artifacts: Map<String, Value> = self
            .node(node)
            .outputs
            .as_deref()
            .into_iter()
            .flat_map(|outputs| &outputs.artifacts)
            .map(|artifact| {
                (artifact.name.clone(), format!("{root}.{call}.outputs.artifacts.{}", artifact.name).into())
            })
            .collect();
        fields["outputs"]["artifacts"] = Value::Object(artifacts);
        Some(fields)
    }
}
