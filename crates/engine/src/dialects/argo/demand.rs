//! What the scheduler is told of a workflow's tasks: from the template, else from the steps or DAG around it, else from the
//! workflow. Demands are built once for each template and shared by its tasks.

use std::{cell::RefCell, collections::HashMap, sync::Arc, time::Duration};

use octoflow_model::{
    NodeIx,
    argo::{Role, Template},
    task::Resources,
};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    duration,
    program::CompiledTemplate,
    run::Run,
    scope::Scope,
    substitute::{Missing, fill_value},
    task,
};
use crate::{
    pod::demand::{Constraints, Marks, is_read},
    schedule::spec::{DEFAULT, Demand},
};

/// What a template asks of the scheduler, as far as it says so itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Ask {
    pub(super) resources: Resources,
    pub(super) priority: Option<i32>,
    pub(super) class: Option<Arc<str>>,
    pub(super) constraints: Constraints,
    pub(super) marks: Marks,
    /// The longest that one attempt runs.
    pub(super) bound: Option<Duration>,
    /// The fields that it was read from, if they contain variables: then it is read again for each node.
    raw: Option<Value>,
}

/// Demands by everything that they are made of.
pub(super) type Demands = RefCell<HashMap<Key, Arc<Demand>>>;

/// Tasks with the same key have the same demand.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    template: Arc<str>,
    /// The template of the steps or DAG around it, if that has node constraints.
    boundary: Option<Arc<str>>,
    /// The estimate from history, as a power of two of seconds.
    estimate: Option<u32>,
    /// The template's fields with the variables of one node.
    filled: Option<String>,
}

/// Fields of a template that the scheduler is told.
const FIELDS: [&str; 7] =
    ["priority", "priorityClassName", "nodeSelector", "affinity", "tolerations", "activeDeadlineSeconds", "timeout"];

impl Ask {
    pub(super) fn of(template: &Template, raw: &Value) -> Self {
        let part = scheduling_part(raw);
        let raw = super::program::is_tagged(&part).then_some(part);
        Self { raw, ..Self::read(template) }
    }

    /// Reports whether it depends on values of the run.
    pub(super) fn is_variable(&self) -> bool {
        self.raw.is_some()
    }

    /// Reports whether it says on which nodes tasks may run.
    pub(super) fn is_constrained(&self) -> bool {
        self.constraints != Constraints::default()
    }

    fn read(template: &Template) -> Self {
        let limits = [&template.active_deadline_seconds, &template.timeout];
        let placed = [&template.node_selector, &template.affinity, &template.tolerations].map(Option::as_ref);
        Self {
            resources: task::resources(template),
            priority: template.priority,
            class: template.priority_class_name.as_deref().filter(|name| !name.is_empty()).map(Into::into),
            constraints: Constraints::of(placed[0], placed[1], placed[2]),
            marks: Marks::of(&template.metadata.labels, &template.metadata.annotations),
            bound: limits.into_iter().flatten().filter_map(|text| duration::parse(&text.0)).min(),
            raw: None,
        }
    }
}

/// Returns the fields of a template that the scheduler is told, and nothing else of it.
fn scheduling_part(raw: &Value) -> Value {
    let mut part = Map::new();
    for field in FIELDS {
        if let Some(value) = raw.get(field) {
            part.insert(field.to_owned(), value.clone());
        }
    }
    for texts in ["labels", "annotations"] {
        let all = raw["metadata"][texts].as_object().into_iter().flatten();
        let read: Map<String, Value> =
            all.filter(|(key, _)| is_read(key)).map(|(key, value)| (key.clone(), value.clone())).collect();
        if !read.is_empty() {
            let metadata = part.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
            metadata[texts] = Value::Object(read);
        }
    }
    let resources = |container: &Value| {
        let resources = container.get("resources").cloned().unwrap_or_default();
        Value::Object(Map::from_iter([("resources".to_owned(), resources)]))
    };
    for field in ["container", "script"] {
        if raw[field]["resources"].is_object() {
            part.insert(field.to_owned(), resources(&raw[field]));
        }
    }
    let lists = [("initContainers", &raw["initContainers"]), ("sidecars", &raw["sidecars"])];
    let list = |value: &Value| value.as_array().into_iter().flatten().map(resources).collect::<Value>();
    for (field, value) in lists {
        if value.is_array() {
            part.insert(field.to_owned(), list(value));
        }
    }
    let set = &raw["containerSet"]["containers"];
    if set.is_array() {
        part.insert("containerSet".to_owned(), serde_json::json!({"containers": list(set)}));
    }
    Value::Object(part)
}

impl Run {
    /// Returns what the scheduler is told of a task. Tasks of one template share it.
    pub(super) fn demand_of(&self, at: NodeIx) -> Arc<Demand> {
        let compiled = self.compiled_of(at);
        let filled = compiled.ask.raw.as_ref().map(|raw| self.filled_part(at, compiled, raw));
        let around = self.state.node(at).boundary.filter(|_| self.program.places_calls);
        let around = around.map(|boundary| self.compiled_of(boundary)).filter(|around| around.ask.is_constrained());
        let key = Key {
            template: compiled.key.clone(),
            boundary: around.map(|around| around.key.clone()),
            // A deadline is a better bound than history.
            estimate: self.estimate(Some(at)).filter(|_| compiled.ask.bound.is_none()).map(power),
            filled: filled.as_ref().map(Value::to_string),
        };
        if let Some(known) = self.demands.borrow().get(&key) {
            return known.clone();
        }
        let template = filled.and_then(|filled| Template::deserialize(filled).ok());
        let own = template.map_or_else(|| compiled.ask.clone(), |template| Ask::read(&template));
        let demand = Arc::new(self.new_demand(own, around, key.estimate));
        self.demands.borrow_mut().insert(key, demand.clone());
        demand
    }

    /// Fills the variables of a node into the fields that the scheduler is told. Variables of the call site of an inline
    /// template are known only while its caller is, so such fields are left out.
    fn filled_part(&self, at: NodeIx, compiled: &CompiledTemplate, raw: &Value) -> Value {
        let node = self.state.node(at);
        let mut locals = vec![("node.name", node.name.to_string())];
        if let Role::Attempt(number) = &node.role {
            locals.push(("retries", number.to_string()));
        }
        let scope = Scope {
            inputs: node.inputs.as_deref(),
            template: Some(&compiled.template),
            locals: &locals,
            ..Scope::of_node(self, node.created_at, at)
        };
        without_variables(fill_value(raw, &scope, Missing::Keep).unwrap_or_else(|_| raw.clone()))
    }

    fn new_demand(&self, own: Ask, around: Option<&Arc<CompiledTemplate>>, estimate: Option<u32>) -> Demand {
        let (spec, metadata) = (&self.program.workflow.spec, &self.program.workflow.metadata);
        let text = |text: &str| self.filled_text(text);
        let whole = [&spec.node_selector, &spec.affinity, &spec.tolerations].map(|value| self.filled(value.as_ref()));
        let whole = Constraints::of(whole[0].as_ref(), whole[1].as_ref(), whole[2].as_ref());
        let constraints = match around {
            Some(around) => own.constraints.or(&around.ask.constraints),
            None => own.constraints,
        };
        let mut marks = own.marks;
        if let Some(of_pods) = &spec.pod_metadata {
            marks = marks.or(&Marks::of(&of_pods.labels, &of_pods.annotations));
        }
        marks = marks.or(&Marks::of(&metadata.labels, &metadata.annotations));
        if let Some(added) = &spec.workflow_metadata {
            marks = marks.or(&Marks::of(&added.labels, &added.annotations));
        }
        let queue = marks.queue.and_then(|queue| text(&queue)).or_else(|| self.known.queue.clone());
        let class = spec.pod_priority_class_name.as_deref().filter(|class| !class.is_empty());
        let tenant = self.known.submitted_by.as_deref();
        Demand {
            queue: queue.map_or_else(|| DEFAULT.into(), Into::into),
            priority: own.priority.or(spec.pod_priority).or(spec.priority).unwrap_or(0),
            class: own.class.or_else(|| class.and_then(text).map(Into::into)),
            constraints: Arc::new(constraints.or(&whole).into_placement()),
            preemptable: marks.preemptable,
            bound: own.bound.or_else(|| estimate.map(|power| Duration::from_secs(1 << power))),
            longest_wait: marks.longest_wait.and_then(|span| duration::parse(&span)),
            ..Demand::new(tenant.map_or_else(|| self.state.head.namespace.clone(), Into::into), own.resources)
        }
    }

    /// Fills the run's variables into a value of its spec.
    fn filled(&self, value: Option<&Value>) -> Option<Value> {
        let value = value?;
        let scope = Scope::new(self, self.state.head.created);
        Some(without_variables(fill_value(value, &scope, Missing::Keep).unwrap_or_else(|_| value.clone())))
    }

    fn filled_text(&self, text: &str) -> Option<String> {
        if !text.contains("{{") {
            return Some(text.to_owned());
        }
        let filled = self.filled(Some(&Value::String(text.to_owned())))?;
        filled.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
    }
}

/// Removes texts with variables that could not be filled in.
fn without_variables(value: Value) -> Value {
    let known = |value: &Value| value.as_str().is_none_or(|text| !text.contains("{{"));
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().filter(|(_, value)| known(value));
            Value::Object(fields.map(|(key, value)| (key, without_variables(value))).collect())
        }
        Value::Array(items) => items.into_iter().filter(known).map(without_variables).collect(),
        Value::String(text) if text.contains("{{") => Value::Null,
        scalar @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => scalar,
    }
}

/// Returns the power of two of seconds that is at least twice this duration: what took so long before ends within it
/// unless something is wrong, and similar durations become equal.
fn power(seconds: u64) -> u32 {
    let most = seconds.clamp(1, 1 << 30).saturating_mul(2);
    most.next_power_of_two().trailing_zeros()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_estimate_is_at_least_twice_what_it_took_and_at_most_four_times() {
        for seconds in [1, 2, 3, 5, 60, 3600, 100_000] {
            let bound = 1_u64 << power(seconds);
            assert!(bound >= 2 * seconds && bound < 4 * seconds, "{seconds}: {bound}");
        }
        assert_eq!(power(0), power(1));
        assert!(power(u64::MAX) < 64);
    }

    #[test]
    fn only_what_the_scheduler_is_told_makes_a_template_variable() {
        let read = |raw: Value| Ask::of(&Template::deserialize(&raw).unwrap(), &raw).raw.is_some();
        let container = json!({"image": "i", "args": ["{{inputs.parameters.x}}"]});
        assert!(!read(json!({"name": "a", "container": container})));
        let display = json!({"annotations": {"workflows.argoproj.io/display-name": "{{inputs.parameters.x}}"}});
        assert!(!read(json!({"name": "a", "metadata": display, "container": container})));
        assert!(read(json!({"name": "a", "nodeSelector": {"arch": "{{inputs.parameters.x}}"}})));
        let asks = json!({"resources": {"requests": {"memory": "{{inputs.parameters.x}}"}}});
        assert!(read(json!({"name": "a", "container": asks})));
        assert!(read(json!({"name": "a", "containerSet": {"containers": [asks]}})));
        let queue = json!({"labels": {"kueue.x-k8s.io/queue-name": "{{inputs.parameters.x}}"}});
        assert!(read(json!({"name": "a", "metadata": queue})));
    }
}
