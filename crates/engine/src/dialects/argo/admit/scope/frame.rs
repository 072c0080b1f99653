//! Indexes the calls of a steps or DAG template, with the fields that each has before it runs.

use std::collections::HashMap;

use octoflow_model::argo::Call;

use crate::dialects::argo::admit::index::{CallPosition, Callee, TemplateEntry, TemplateIndex, TemplateType};

/// The calls of a template, by name.
pub(in crate::dialects::argo::admit) struct Frame<'a> {
    templates: &'a TemplateIndex<'a>,
    pub(in crate::dialects::argo::admit) entry: &'a TemplateEntry<'a>,
    pub(super) index: HashMap<&'a str, (usize, CallPosition, &'a Call)>,
}

const CALL: [&str; 9] = [
    "id",
    "status",
    "startedAt",
    "finishedAt",
    "hostNodeName",
    "ip",
    "exitCode",
    "outputs.result",
    "outputs.parameters",
];

impl<'a> Frame<'a> {
    pub(in crate::dialects::argo::admit) fn of(templates: &'a TemplateIndex<'a>, entry: &'a TemplateEntry<'a>) -> Self {
        let mut index = HashMap::new();
        for (position, (site, call)) in entry.calls().enumerate() {
            index.entry(call.name.as_str()).or_insert((position, site, call));
        }
        Self { templates, entry, index }
    }

    pub(super) fn root(&self) -> &'static str {
        if self.entry.kind == TemplateType::Dag { "tasks" } else { "steps" }
    }

    /// Whether a call has this field, such as `outputs.parameters.x`.
    pub(super) fn has(&self, position: usize, call: &Call, field: &str) -> bool {
        let Callee::Entry(callee) = self.entry.callees[position] else { return true };
        let callee = &self.templates.entries[callee];
        if callee.broken || callee.kind == TemplateType::Unclear {
            return true;
        }
        match field {
            "id" | "status" | "startedAt" | "finishedAt" | "hostNodeName" | "name" => true,
            "outputs.result" => callee.kind.leaf() || matches!(callee.kind, TemplateType::Http | TemplateType::Data),
            "ip" | "exitCode" | "outputs.exitCode" => callee.kind.leaf(),
            "outputs.parameters" => call.looped(),
            _ => match field.strip_prefix("outputs.").and_then(|output| output.split_once('.')) {
                Some(("parameters", name)) => callee.outputs.parameter(name),
                Some(("artifacts", name)) => callee.outputs.artifact(name),
                _ => false,
            },
        }
    }

    pub(super) fn fields(&self, position: usize, name: &str) -> Vec<String> {
        let root = self.root();
        let mut fields: Vec<String> = CALL.iter().map(|field| format!("{root}.{name}.{field}")).collect();
        if let Callee::Entry(callee) = self.entry.callees[position] {
            let outputs = &self.templates.entries[callee].outputs;
            fields.extend(outputs.parameters.iter().map(|output| format!("{root}.{name}.outputs.parameters.{output}")));
            fields.extend(outputs.artifacts.iter().map(|output| format!("{root}.{name}.outputs.artifacts.{output}")));
        }
        fields
    }
}
