//! Compiles a workflow: templates by name, graphs sorted once, texts scanned once. A program is made from the manifest
//! and its stored copies alone and never changes during a run.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use octoflow_model::{
    argo::{Call, RetryStrategy, Template, Workflow},
    submission::Stored,
};
use serde::Deserialize;
use serde_json::Value;

use super::{demand::Ask, merge, meter, refer};
use crate::{
    expr::depends::{self, Depends},
    graph::{self, TieBreak},
};

#[derive(Debug)]
pub struct Program {
    /// The workflow without its templates, which are compiled separately.
    pub workflow: Workflow,
    /// `spec.volumes` as written.
    pub volumes: Option<Value>,
    /// Why something that the workflow refers to cannot be read. Such a run can only end in error.
    pub flaw: Option<String>,
    /// True if the workflow or one of its templates has custom metrics.
    pub metered: bool,
    /// True if a steps or DAG template says on which nodes the tasks of its calls may run.
    pub(super) places_calls: bool,
    templates: HashMap<Arc<str>, Arc<CompiledTemplate>>,
}

/// A template as written, with everything that can be derived before it is called.
#[derive(Debug)]
pub struct CompiledTemplate {
    /// The template's name; prefixed with its WorkflowTemplate if it has one; for an inline template [`inline_key`].
    pub key: Arc<str>,
    /// The raw template, if a node has to fill variables in it. Calls, and the outputs made from them, are left out:
    /// each is filled once, when it is needed.
    pub raw: Option<Value>,
    pub template: Arc<Template>,
    /// True if any text of the template, calls included, contains variables.
    pub tagged: bool,
    /// Calls of this template whose `outputs.result` some text of it refers to.
    pub results: HashSet<String>,
    /// True if one of its metrics refers to the result of its own node.
    pub reads_result: bool,
    pub calls: Calls,
    /// What it asks of the scheduler.
    pub(super) ask: Ask,
}

/// A call site inside a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallSite {
    Step(u32, u32),
    Task(u32),
}

/// Names an inline template after its caller and its call site. `#` cannot occur in a written name.
pub fn inline_key(caller: &str, place: CallSite) -> String {
    match place {
        CallSite::Step(group, step) => format!("{caller}#{group}.{step}"),
        CallSite::Task(task) => format!("{caller}#{task}"),
    }
}

/// The calls of a template, indexed by name.
#[derive(Debug)]
pub enum Calls {
    None,
    Steps { index: HashMap<String, (u32, u32)> },
    Dag(Graph),
}

/// The edges of a DAG template.
#[derive(Debug)]
pub struct Graph {
    pub index: HashMap<String, u32>,
    pub tasks: Vec<Vertex>,
    /// All tasks in topological order.
    pub order: Vec<u32>,
}

#[derive(Debug, Default)]
pub struct Vertex {
    /// Tasks that the condition mentions, in order of mention.
    pub needs: Vec<u32>,
    pub dependents: Vec<u32>,
    pub condition: Option<Depends>,
}

impl Program {
    /// Compiles a manifest. Fails with one sentence if it cannot; an admitted manifest always can.
    pub fn compile(manifest: &Value, stored: &Stored) -> Result<Self, String> {
        let manifest = merge::effective(manifest, stored);
        let mut workflow = Workflow::deserialize(&*manifest).map_err(|error| format!("invalid spec: {error}"))?;
        // Drop the raw templates: a second copy of a large graph would be the larger half of the program's memory.
        let raw_templates = std::mem::take(&mut workflow.spec.templates);
        let mut templates = HashMap::with_capacity(raw_templates.len() + stored.templates.len());
        let own = raw_templates.into_iter().map(|raw| {
            let name = raw.get("name").and_then(Value::as_str).unwrap_or_default();
            (Arc::<str>::from(name), raw)
        });
        let borrowed = stored.templates.iter().map(|(key, raw)| (Arc::<str>::from(key.as_str()), raw.clone()));
        for (key, raw) in own.chain(borrowed) {
            let raw = match &workflow.spec.template_defaults {
                Some(defaults) => merge::with_defaults(&raw, defaults),
                None => raw,
            };
            let mut open = vec![(key, raw)];
            while let Some((key, raw)) = open.pop() {
                let compiled = CompiledTemplate::compile(key, raw)?;
                compiled
                    .each_inline(|place, inline| open.push((inline_key(&compiled.key, place).into(), inline.clone())));
                templates.insert(compiled.key.clone(), Arc::new(compiled));
            }
        }
        let volumes = manifest.pointer("/spec/volumes").cloned();
        let metered = workflow.spec.metrics.is_some()
            || templates.values().any(|compiled: &Arc<CompiledTemplate>| compiled.template.metrics.is_some());
        let places =
            |compiled: &Arc<CompiledTemplate>| !matches!(compiled.calls, Calls::None) && compiled.ask.is_constrained();
        let places_calls = templates.values().any(places);
        Ok(Self { workflow, volumes, flaw: stored.flaw.clone(), metered, places_calls, templates })
    }

    pub fn compiled(&self, name: &str) -> Option<&Arc<CompiledTemplate>> {
        self.templates.get(name)
    }

    pub fn templates(&self) -> impl Iterator<Item = &Arc<CompiledTemplate>> {
        self.templates.values()
    }

    /// A template's own retry strategy, else the workflow's.
    pub fn retry<'a>(&'a self, template: &'a Template) -> Option<&'a RetryStrategy> {
        template.retry_strategy.as_ref().or(self.workflow.spec.retry_strategy.as_ref())
    }
}

impl CompiledTemplate {
    pub fn compile(key: Arc<str>, raw: Value) -> Result<Self, String> {
        let template =
            Template::deserialize(&raw).map_err(|error| format!("invalid spec: template `{key}`: {error}"))?;
        let mut scan = Scan::default();
        scan.value(&raw);
        let calls = match (&template.steps, &template.dag) {
            (Some(groups), _) => Calls::Steps { index: index_steps(groups) },
            (None, Some(dag)) => Calls::Dag(Graph::compile(&dag.tasks)?),
            (None, None) => Calls::None,
        };
        let ask = Ask::of(&template, &raw);
        let head = match calls {
            Calls::None => raw,
            Calls::Steps { .. } | Calls::Dag(_) => without_calls(raw),
        };
        let head = without_metrics(head);
        let raw = is_tagged(&head).then_some(head);
        let reads_result = template.metrics.as_ref().is_some_and(|own| meter::mentions(own, "outputs.result"));
        let (tagged, results) = (scan.tagged, scan.results);
        Ok(Self { key, raw, template: Arc::new(template), tagged, results, reads_result, calls, ask })
    }

    /// Whether the template is written at its call site rather than listed under a name.
    pub fn inline(&self) -> bool {
        self.key.contains('#')
    }

    pub fn group_size(&self, group: u32) -> usize {
        self.template.steps.as_ref().and_then(|groups| groups.get(group as usize)).map_or(0, Vec::len)
    }

    /// Finds the call site of the step or task with this name.
    pub fn call_site(&self, root: &str, call: &str) -> Option<CallSite> {
        match (&self.calls, root) {
            (Calls::Steps { index }, "steps") => index.get(call).map(|(group, step)| CallSite::Step(*group, *step)),
            (Calls::Dag(graph), "tasks") => graph.index.get(call).map(|task| CallSite::Task(*task)),
            (Calls::None | Calls::Steps { .. } | Calls::Dag(_), _) => None,
        }
    }

    /// Looks up the template that a call names, if that is known before the run.
    pub fn called_template<'p>(&self, place: CallSite, program: &'p Program) -> Option<&'p Arc<CompiledTemplate>> {
        program.compiled(&self.callee_key(place)?)
    }

    /// Returns the key of the template that a call names, as written there.
    pub fn callee_key(&self, place: CallSite) -> Option<String> {
        let call = self.call(place)?;
        Some(match (&call.template_ref, &call.template) {
            (Some(reference), _) => refer::key(reference),
            (None, Some(name)) => refer::sibling_key(self.template_scope(), name),
            (None, None) => inline_key(&self.key, place),
        })
    }

    /// Returns the WorkflowTemplate that the template belongs to; `None` for the workflow's own.
    pub fn template_scope(&self) -> Option<&str> {
        refer::scope_of(&self.key)
    }

    pub fn call(&self, place: CallSite) -> Option<&Call> {
        match place {
            CallSite::Step(group, step) => self.template.steps.as_ref()?.get(group as usize)?.get(step as usize),
            CallSite::Task(task) => self.template.dag.as_ref()?.tasks.get(task as usize),
        }
    }

    /// Returns the name of the step or task at a call site.
    pub fn call_name(&self, place: CallSite) -> &str {
        self.call(place).map_or("", |call| &call.name)
    }

    fn each_inline(&self, mut visit: impl FnMut(CallSite, &Value)) {
        for (group, steps) in self.template.steps.iter().flatten().enumerate() {
            for (step, call) in steps.iter().enumerate() {
                call.inline.iter().for_each(|inline| visit(CallSite::Step(group as u32, step as u32), inline));
            }
        }
        for (task, call) in self.template.dag.iter().flat_map(|dag| &dag.tasks).enumerate() {
            call.inline.iter().for_each(|inline| visit(CallSite::Task(task as u32), inline));
        }
    }

    pub fn graph(&self) -> &Graph {
        match &self.calls {
            Calls::Dag(graph) => graph,
            Calls::Steps { .. } | Calls::None => unreachable!("only DAG nodes ask for their graph"),
        }
    }
}

impl Graph {
    fn compile(tasks: &[Call]) -> Result<Self, String> {
        let index: HashMap<String, u32> =
            tasks.iter().enumerate().map(|(at, task)| (task.name.clone(), at as u32)).collect();
        let mut vertices: Vec<Vertex> = tasks.iter().map(|_| Vertex::default()).collect();
        for (at, task) in tasks.iter().enumerate() {
            let (names, condition) = match &task.depends {
                Some(text) => {
                    let condition =
                        depends::parse(text).map_err(|error| format!("invalid spec: task `{}`: {error}", task.name))?;
                    (condition.tasks(), Some(condition))
                }
                None => (task.dependencies.clone(), None),
            };
            for name in names {
                let needed = *index
                    .get(&name)
                    .ok_or_else(|| format!("invalid spec: task `{}` depends on unknown task `{name}`", task.name))?;
                if !vertices[at].needs.contains(&needed) {
                    vertices[at].needs.push(needed);
                    vertices[needed as usize].dependents.push(at as u32);
                }
            }
            vertices[at].condition = condition;
        }
        let needs = |at: usize| vertices[at].needs.iter().map(|needed| *needed as usize);
        let order = graph::sort(vertices.len(), TieBreak::Arrival, needs).complete();
        let order = order.ok_or("invalid spec: the tasks of a DAG depend on each other in a cycle")?;
        let order = order.into_iter().map(|at| at as u32).collect();
        Ok(Self { index, tasks: vertices, order })
    }

    /// Lists the tasks that no other task depends on, in the order written.
    pub fn leaves(&self) -> Vec<u32> {
        (0..self.tasks.len() as u32).filter(|at| self.tasks[*at as usize].dependents.is_empty()).collect()
    }

    /// Marks the tasks that must run for these targets: the targets and everything that they need.
    pub fn needed(&self, targets: &[u32]) -> Vec<bool> {
        let mut needed = vec![false; self.tasks.len()];
        let mut open = targets.to_vec();
        while let Some(task) = open.pop() {
            if !std::mem::replace(&mut needed[task as usize], true) {
                open.extend(&self.tasks[task as usize].needs);
            }
        }
        needed
    }
}

fn without_calls(mut raw: Value) -> Value {
    if let Some(fields) = raw.as_object_mut() {
        fields.remove("steps");
        fields.remove("outputs");
        if let Some(dag) = fields.get_mut("dag").and_then(Value::as_object_mut) {
            dag.remove("tasks");
        }
    }
    raw
}

/// Removes the metrics, which are filled separately when their node ends.
fn without_metrics(mut raw: Value) -> Value {
    if let Some(fields) = raw.as_object_mut() {
        fields.remove("metrics");
    }
    raw
}

/// Reports whether a text of a value contains variables.
pub(super) fn is_tagged(value: &Value) -> bool {
    let mut scan = Scan::default();
    scan.value(value);
    scan.tagged
}

fn index_steps(groups: &[Vec<Call>]) -> HashMap<String, (u32, u32)> {
    let mut index = HashMap::new();
    for (group, steps) in groups.iter().enumerate() {
        for (step, call) in steps.iter().enumerate() {
            index.insert(call.name.clone(), (group as u32, step as u32));
        }
    }
    index
}

/// Results of one scan over all texts of a template.
#[derive(Default)]
struct Scan {
    tagged: bool,
    results: HashSet<String>,
}

impl Scan {
    fn value(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(list) => list.iter().for_each(|item| self.value(item)),
            Value::Object(map) => map.iter().for_each(|(key, item)| {
                self.text(key);
                self.value(item);
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Collects calls from `steps.X.outputs.result`, `tasks['X'].outputs.result` and similar references, with or
    /// without braces (an output's `expression` has none).
    fn text(&mut self, text: &str) {
        self.tagged |= text.contains("{{");
        for (at, _) in text.match_indices("outputs.result") {
            if let Some(name) = call_before(&text[..at]) {
                self.results.insert(name.to_owned());
            }
        }
    }
}

fn call_before(text: &str) -> Option<&str> {
    let text = text.strip_suffix('.')?;
    let text = text.strip_suffix('?').unwrap_or(text);
    if let Some(text) = text.strip_suffix("']").or_else(|| text.strip_suffix("\"]")) {
        return text.rfind(['\'', '"']).map(|quote| &text[quote + 1..]);
    }
    let start = text.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_').map_or(0, |at| at + 1);
    Some(&text[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_to_results_are_found_in_every_spelling() {
        let mut scan = Scan::default();
        for text in [
            "{{steps.a-b.outputs.result}} == 1",
            "{{=tasks['c d'].outputs.result}}",
            "tasks.e.outputs.result",
            "steps.f?.outputs.result",
        ] {
            scan.text(text);
        }
        let mut found: Vec<_> = scan.results.iter().map(String::as_str).collect();
        found.sort_unstable();
        assert_eq!(found, ["a-b", "c d", "e", "f"]);
    }
}
