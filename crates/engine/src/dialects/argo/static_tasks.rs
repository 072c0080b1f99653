//! The tasks of a workflow as its manifest alone describes them: what each template that is called asks of the scheduler, and
//! whether the call is certain. Templates whose demands depend on values of the run are left out.

use std::{collections::HashMap, sync::Arc};

use octoflow_manifest::Path;
use octoflow_model::{
    argo::{Call, Sequence, Template},
    scalar::IntOrText,
};
use serde_json::Value;

use super::{
    demand::Ask,
    program::{CallSite, Calls, CompiledTemplate, Program, is_tagged},
    refer,
};
use crate::{
    dialects::dialect::StaticTask,
    pod::demand::{Constraints, Marks},
    schedule::spec::{DEFAULT, Demand},
};

/// Returns the tasks of all templates that are called, each once.
pub(super) fn static_tasks(object: &Value, program: &Program, inherited: Option<&str>) -> Vec<StaticTask> {
    let mut called: Vec<(Arc<CompiledTemplate>, bool)> = reachable(program).into_values().collect();
    called.sort_by(|one, other| one.0.key.cmp(&other.0.key));
    let mut tasks: Vec<StaticTask> = called
        .iter()
        .filter(|(compiled, _)| has_pod(&compiled.template))
        .filter_map(|(compiled, certain)| of_template(object, program, compiled, *certain, inherited))
        .collect();
    tasks.sort_by_cached_key(|task| task.path.to_string());
    tasks
}

fn has_pod(template: &Template) -> bool {
    template.container.is_some() || template.script.is_some() || template.container_set.is_some()
}

/// Returns all templates that are called, and whether some call is certain to be made.
fn reachable(program: &Program) -> HashMap<Arc<str>, (Arc<CompiledTemplate>, bool)> {
    let spec = &program.workflow.spec;
    let mut found: HashMap<Arc<str>, (Arc<CompiledTemplate>, bool)> = HashMap::new();
    let mut open: Vec<(String, bool)> = Vec::new();
    open.extend(spec.entrypoint.clone().map(|name| (name, true)));
    open.extend(spec.on_exit.clone().map(|name| (name, true)));
    for hook in spec.hooks.values() {
        let key = hook.template_ref.as_ref().map(refer::key).or_else(|| hook.template.clone());
        open.extend(key.map(|key| (key, hook.expression.is_none())));
    }
    while let Some((key, certain)) = open.pop() {
        let Some(compiled) = program.compiled(&key) else { continue };
        if found.get(&compiled.key).is_some_and(|(_, known)| *known || !certain) {
            continue;
        }
        found.insert(compiled.key.clone(), (compiled.clone(), certain));
        // A result that was kept makes the calls below unnecessary.
        let certain = certain && compiled.template.memoize.is_none();
        for (site, call) in sites(compiled) {
            let sure = certain && is_unconditional(call) && !has_target(compiled);
            open.extend(compiled.callee_key(site).map(|key| (key, sure)));
            let hooks = call.hooks.values().map(|hook| (hook.template.as_ref(), hook.template_ref.as_ref()));
            for (template, reference) in hooks.chain([(call.on_exit.as_ref(), None)]) {
                let own = template.map(|name| refer::sibling_key(compiled.template_scope(), name));
                open.extend(reference.map(refer::key).or(own).map(|key| (key, false)));
            }
        }
    }
    found
}

fn sites(compiled: &CompiledTemplate) -> Vec<(CallSite, &Call)> {
    match &compiled.calls {
        Calls::None => Vec::new(),
        Calls::Steps { .. } => {
            let groups = compiled.template.steps.iter().flatten().enumerate();
            let steps =
                groups.flat_map(|(group, steps)| steps.iter().enumerate().map(move |(step, call)| (group, step, call)));
            steps.map(|(group, step, call)| (CallSite::Step(group as u32, step as u32), call)).collect()
        }
        Calls::Dag(_) => {
            let tasks = compiled.template.dag.iter().flat_map(|dag| &dag.tasks).enumerate();
            tasks.map(|(task, call)| (CallSite::Task(task as u32), call)).collect()
        }
    }
}

fn has_target(compiled: &CompiledTemplate) -> bool {
    compiled.template.dag.as_ref().is_some_and(|dag| dag.target.is_some())
}

/// Reports whether a call is made whenever what it depends on has succeeded. A loop may be empty.
fn is_unconditional(call: &Call) -> bool {
    let empty = call.with_items.as_ref().is_some_and(Vec::is_empty);
    let plain = call.depends.as_ref().is_none_or(|depends| !depends.contains(['.', '|', '!']));
    let counted = call.with_sequence.as_ref().is_none_or(has_numbers);
    call.when.is_none() && call.with_param.is_none() && counted && !empty && plain
}

/// Reports whether a sequence has numbers for certain: its bounds are written out, and its count is not zero.
fn has_numbers(sequence: &Sequence) -> bool {
    let written = |bound: &Option<IntOrText>| bound.as_ref().map(|text| text.0.trim().parse::<i64>().ok());
    match (written(&sequence.count), written(&sequence.end)) {
        (Some(count), _) => count.is_some_and(|count| count > 0),
        // One that ends before it starts counts down.
        (None, end) => end.flatten().is_some() && written(&sequence.start).is_none_or(|start| start.is_some()),
    }
}

fn of_template(
    object: &Value,
    program: &Program,
    compiled: &CompiledTemplate,
    certain: bool,
    inherited: Option<&str>,
) -> Option<StaticTask> {
    let (spec, metadata) = (&program.workflow.spec, &program.workflow.metadata);
    let patched = compiled.template.pod_spec_patch.is_some() || spec.pod_spec_patch.is_some();
    if compiled.ask.is_variable() || patched {
        return None;
    }
    let Ask { resources, priority, class, constraints, marks, bound, .. } = compiled.ask.clone();
    let mut marks = marks;
    if let Some(of_pods) = &spec.pod_metadata {
        marks = marks.or(&Marks::of(&of_pods.labels, &of_pods.annotations));
    }
    marks = marks.or(&Marks::of(&metadata.labels, &metadata.annotations));
    if let Some(added) = &spec.workflow_metadata {
        marks = marks.or(&Marks::of(&added.labels, &added.annotations));
    }
    let queue = marks.queue.clone().or_else(|| inherited.map(str::to_owned)).unwrap_or_else(|| DEFAULT.to_owned());
    let whole = [&spec.node_selector, &spec.affinity, &spec.tolerations].map(Option::as_ref);
    // Constraints with variables, or of the steps and DAGs around, are known when a task is called.
    let known = !program.places_calls && whole.iter().flatten().all(|value| !is_tagged(value));
    let constraints =
        if known { constraints.or(&Constraints::of(whole[0], whole[1], whole[2])) } else { Constraints::default() };
    let of_spec = spec.pod_priority_class_name.as_deref().filter(|name| !name.is_empty() && !name.contains("{{"));
    let demand = Demand {
        queue: queue.as_str().into(),
        priority: priority.or(spec.pod_priority).or(spec.priority).unwrap_or(0),
        class: class.or_else(|| of_spec.map(Into::into)),
        preemptable: marks.preemptable,
        bound,
        constraints: Arc::new(constraints.into_placement()),
        ..Demand::new("", resources)
    };
    let queue_known = !queue.contains("{{");
    Some(StaticTask { path: path_of(object, compiled), gang: None, demand, queue_known, count: 1, certain })
}

/// Returns where a template is written: in the list of the manifest, or what refers to it.
fn path_of(object: &Value, compiled: &CompiledTemplate) -> Path {
    let spec = Path::root().join("spec");
    let name = compiled.key.split('#').next().unwrap_or_default();
    let listed = object["spec"]["templates"].as_array().into_iter().flatten().position(|one| one["name"] == name);
    match listed {
        Some(index) => spec.join("templates").join(index),
        None if object["spec"]["workflowTemplateRef"].is_object() => spec.join("workflowTemplateRef"),
        None => spec,
    }
}

#[cfg(test)]
mod tests {
    use octoflow_model::submission::Stored;
    use serde_json::json;

    use super::*;

    #[test]
    fn templates_that_are_called_are_told_and_whether_that_is_certain() {
        let pod = |name: &str, cpu: &str| json!({"name": name, "container": {"image": "i", "resources": {"requests": {"cpu": cpu}}}});
        let object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
            "metadata": {"name": "w", "labels": {"volcano.sh/queue-name": "q"}},
            "spec": {"entrypoint": "main", "onExit": "last", "templates": [
                {"name": "main", "steps": [[
                    {"name": "a", "template": "sure"},
                    {"name": "b", "template": "perhaps", "when": "{{workflow.parameters.x}} == 1"},
                ], [{"name": "c", "template": "filled", "arguments": {"parameters": [{"name": "n", "value": "1"}]}}]]},
                pod("sure", "2"), pod("perhaps", "3"), pod("unused", "4"), pod("last", "500m"),
                pod("filled", "{{inputs.parameters.n}}"),
            ]},
        });
        let program = Program::compile(&object, &Stored::default()).unwrap();
        let tasks = static_tasks(&object, &program, Some("of-namespace"));
        let told: Vec<(String, u64, bool)> =
            tasks.iter().map(|task| (task.path.to_string(), task.demand.resources.cpu_milli, task.certain)).collect();
        let wanted =
            [("spec.templates[1]", 2000, true), ("spec.templates[2]", 3000, false), ("spec.templates[4]", 500, true)];
        assert_eq!(told, wanted.map(|(path, cpu, certain)| (path.to_owned(), cpu, certain)));
        assert!(tasks.iter().all(|task| &*task.demand.queue == "q" && task.queue_known));
    }
}
