//! Instantiates templates: fills in a node's variables. An instance is made when a node needs it and cached while the
//! node is open; it is a function of the state, so it can be rebuilt at any time.

use std::sync::{Arc, OnceLock};

use octoflow_model::{
    NodeIx,
    argo::{Call, Role, Template},
};
use serde_json::Value;

use super::{
    expand::nth,
    program::{CallSite, Calls, CompiledTemplate},
    run::Run,
    scope::Scope,
    substitute::{Missing, fill_value},
    turn::Turn,
    view::View,
};

#[derive(Debug)]
pub(crate) struct Instance {
    pub compiled: Arc<CompiledTemplate>,
    /// The template with variables filled in; for a steps or DAG template, without its calls and outputs.
    pub template: Arc<Template>,
    /// Source of calls and outputs. Those of a steps or DAG template are as written.
    pub body: Arc<Template>,
    /// Variables that only this steps or DAG node has.
    pub locals: Vec<(&'static str, String)>,
    dag_targets: OnceLock<DagTargets>,
}

/// The targets of a DAG.
#[derive(Debug)]
pub(crate) struct DagTargets {
    pub targets: Vec<u32>,
    /// Whether each task is a target or needed by one, by task.
    pub needed: Vec<bool>,
    /// Number of needed tasks.
    pub count: u32,
}

impl Instance {
    fn new(
        compiled: Arc<CompiledTemplate>,
        template: Arc<Template>,
        body: Arc<Template>,
        locals: Vec<(&'static str, String)>,
    ) -> Self {
        let locals = if matches!(compiled.calls, Calls::None) { Vec::new() } else { locals };
        Self { compiled, template, body, locals, dag_targets: OnceLock::new() }
    }

    pub(crate) fn dag_targets(&self) -> &DagTargets {
        self.dag_targets.get_or_init(|| {
            let graph = self.compiled.graph();
            let named = self.template.dag.as_ref().and_then(|dag| dag.target.as_deref()).unwrap_or_default();
            let mut targets: Vec<u32> =
                named.split_whitespace().filter_map(|name| graph.index.get(name).copied()).collect();
            if targets.is_empty() {
                targets = graph.leaves();
            }
            let needed = graph.needed(&targets);
            let count = needed.iter().filter(|needed| **needed).count() as u32;
            DagTargets { targets, needed, count }
        })
    }

    pub(crate) fn call(&self, place: CallSite) -> &Call {
        let found = match place {
            CallSite::Step(group, step) => {
                self.body.steps.as_ref().and_then(|groups| groups.get(group as usize)?.get(step as usize))
            }
            CallSite::Task(task) => self.body.dag.as_ref().and_then(|dag| dag.tasks.get(task as usize)),
        };
        found.expect("an instance has the calls its compiled template has")
    }
}

impl Turn<'_> {
    /// Returns the node's template with its variables filled in; fails with the reason.
    pub(super) fn instance(&mut self, at: NodeIx) -> Result<Arc<Instance>, String> {
        // An inline template needs the instance of its boundary: walk up without recursion, then instantiate downwards.
        let mut chain = vec![at];
        while let Some(last) = chain.last().copied() {
            let node = self.run.state.node(last);
            if self.run.instances.contains_key(&last) || !self.run.compiled_of(last).inline() {
                break;
            }
            match node.boundary {
                Some(boundary) => chain.push(boundary),
                None => break,
            }
        }
        while let Some(at) = chain.pop() {
            if !self.run.instances.contains_key(&at) {
                let made = Arc::new(self.view().make_instance(at)?);
                self.run.instances.insert(at, made);
            }
        }
        Ok(self.run.instances[&at].clone())
    }
}

impl View<'_> {
    fn make_instance(&self, at: NodeIx) -> Result<Instance, String> {
        let compiled = self.run.compiled_of(at).clone();
        let inline = if compiled.inline() { Some(self.inline_raw(at)?) } else { None };
        let locals = if compiled.tagged { self.locals(at) } else { Vec::new() };
        let Some(raw) = inline.as_ref().or(compiled.raw.as_ref()) else {
            let template = compiled.template.clone();
            return Ok(Instance::new(compiled, template.clone(), template, locals));
        };
        let node = self.run.state.node(at);
        let scope = Scope {
            inputs: node.inputs.as_deref(),
            template: Some(&compiled.template),
            locals: &locals,
            ..Scope::of_node(self.run, self.now, at)
        };
        let filled = fill_value(raw, &scope, Missing::Keep).map_err(|error| error.to_string())?;
        let template: Template = serde_json::from_value(filled).map_err(|error| {
            format!("template '{}' is not usable once its variables are put in: {error}", compiled.key)
        })?;
        let template = Arc::new(template);
        let whole = inline.is_some() || matches!(compiled.calls, Calls::None);
        let body = if whole { template.clone() } else { compiled.template.clone() };
        Ok(Instance::new(compiled, template, body, locals))
    }

    /// Fills an inline template with the variables of its call site.
    pub(super) fn inline_raw(&self, at: NodeIx) -> Result<Value, String> {
        let (boundary, place, site) =
            self.run.site_of(at).ok_or("an inline template is only ever called from a step or a task")?;
        let caller = self.run.instances.get(&boundary).ok_or("the caller of an inline template is open")?;
        let inline = caller.call(place).inline.as_ref().ok_or("the call has an inline template")?;
        let item = self.run.item_of(site);
        let scope = Scope { item: item.as_ref(), ..self.frame_scope(boundary, caller).as_node(at) };
        fill_value(inline, &scope, Missing::Keep).map_err(|error| error.to_string())
    }

    /// Returns the variables that only this node has.
    pub(super) fn locals(&self, at: NodeIx) -> Vec<(&'static str, String)> {
        let state = &self.run.state;
        let node = state.node(at);
        let mut locals = vec![("node.name", node.name.to_string())];
        if let Some(template) = &node.template {
            locals.push(("pod.name", super::ident::pod_name(&state.head.name, &node.name, template)));
        }
        if let Some((boundary, place, _)) = self.run.site_of(at) {
            let word = if matches!(place, CallSite::Step(..)) { "steps.name" } else { "tasks.name" };
            locals.push((word, self.run.compiled_of(boundary).call_name(place).to_owned()));
        }
        if let (Role::Attempt(number), Some(retry)) = (&node.role, node.parent) {
            locals.push(("retries", number.to_string()));
            locals.extend(self.last_retry(retry, at, "0"));
        }
        locals
    }
}

impl Run {
    /// Returns the call site of a node: the boundary, the site in it, and the node of the call (the one above the
    /// attempts of a retry).
    pub(super) fn site_of(&self, at: NodeIx) -> Option<(NodeIx, CallSite, NodeIx)> {
        let mut site = at;
        if matches!(self.state.node(site).role, Role::Attempt(_)) {
            site = self.state.node(site).parent?;
        }
        let node = self.state.node(site);
        match node.role {
            Role::Step { step, .. } => {
                let group = self.state.node(node.parent?);
                let Role::Group(index) = group.role else { return None };
                Some((group.parent?, CallSite::Step(index, step), site))
            }
            Role::Task(task) => Some((node.parent?, CallSite::Task(task), site)),
            Role::Item(_) => {
                let tasks = self.state.node(node.parent?);
                let Role::Task(task) = tasks.role else { return None };
                Some((tasks.parent?, CallSite::Task(task), site))
            }
            Role::Entry
            | Role::Exit
            | Role::Group(_)
            | Role::Attempt(_)
            | Role::Hook(_)
            | Role::RunHook(_)
            | Role::Container(_) => None,
        }
    }

    /// Returns the loop item of a call's node.
    pub(super) fn item_of(&self, site: NodeIx) -> Option<Value> {
        use super::node::Body;
        let node = self.state.node(site);
        let parent = &self.state.node(node.parent?).body;
        match (&node.role, parent) {
            (Role::Step { step, item: Some(item) }, Body::Group(group)) => {
                group.calls.get(*step as usize)?.items.as_ref().and_then(|items| nth(items, *item as usize))
            }
            (Role::Item(item), Body::TaskGroup(expansion)) => {
                expansion.items.as_ref().and_then(|items| nth(items, *item as usize))
            }
            (Role::Step { .. } | Role::Item(_), _)
            | (Role::Entry | Role::Exit | Role::Group(_) | Role::Task(_) | Role::Attempt(_), _)
            | (Role::Hook(_) | Role::RunHook(_) | Role::Container(_), _) => None,
        }
    }
}
