//! Calling a template: is it to run at all, is there room, with which inputs, and as what kind of node.
//! Every node that runs something comes into being here.

use std::{borrow::Cow, sync::Arc};

use octoflow_model::{
    NodeIx,
    argo::{Call, InputValues, NodeAdded, NodeKind, NodeList, Phase, Role, Template, TemplateRef, WorkflowFact},
};
use serde_json::Value;

use super::{
    instance::Instance,
    program::{Place, Recipe, inline_key},
    refer::{self, Reach},
    room,
    scope::Scope,
    substitute::{Missing, fill, shortened},
    turn::Turn,
    view::View,
};

/// How deep calls may nest before a recursion is taken for an endless one.
pub(crate) const MAX_DEPTH: u16 = 100;

/// Where a new node stands.
#[derive(Clone, Debug)]
pub(super) struct Birth {
    pub name: String,
    pub role: Role,
    pub parent: Option<NodeIx>,
    pub boundary: Option<NodeIx>,
    pub after: NodeList,
    pub followed: bool,
    /// The call it comes from, when a step or task calls it.
    pub place: Option<Place>,
}

/// Why a call cannot be made now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    /// The run may not have more pods at a time.
    Run,
    /// The boundary may not have more children at a time.
    Boundary(NodeIx),
    /// A child of the boundary failed and it fails fast: nothing new will start in it.
    FailFast(NodeIx),
    /// The run is suspended.
    Suspended,
}

pub(super) enum Called {
    Made,
    Blocked(Gate),
}

impl Turn<'_> {
    /// Calls a step or task of an open boundary, once for the given item.
    pub(super) fn call(&mut self, frame: NodeIx, place: Place, item: Option<&Value>, birth: Birth) -> Called {
        self.run.meter.next_node(self.run.state.nodes.len());
        let instance = match self.instance(frame) {
            Ok(instance) => instance,
            Err(why) => {
                self.add_errored(birth, why);
                return Called::Made;
            }
        };
        let call = instance.call(place);
        let recipe = match self.view().admit_call(frame, &instance, place, item, &birth.name) {
            Ok(recipe) => recipe,
            Err(Verdict::Skip(message)) => {
                self.add_final(birth, Phase::Skipped, message);
                return Called::Made;
            }
            Err(Verdict::Wrong(message)) => {
                self.add_errored(birth, message);
                return Called::Made;
            }
        };
        if let Some(gate) = self.gate(birth.boundary, &recipe.template) {
            return Called::Blocked(gate);
        }
        let calling = Some(call.name.as_str());
        let scope = Scope { item, calling, ..self.view().frame_scope(frame, &instance).about(&birth.name) };
        match self.view().inputs(&recipe, &call.arguments, &scope) {
            Ok(inputs) => self.enter(birth, &recipe, inputs),
            Err(message) => self.add_errored(birth, message),
        };
        Called::Made
    }

    /// What keeps a call of this template from being made now.
    pub(super) fn gate(&mut self, boundary: Option<NodeIx>, template: &Template) -> Option<Gate> {
        match boundary {
            Some(boundary) if !self.run.state.held() && self.view().fails_fast(boundary) => {
                Some(Gate::FailFast(boundary))
            }
            _ => self.room(boundary, template),
        }
    }

    /// The same for an exit handler: failing fast does not keep it from running.
    pub(super) fn room(&mut self, boundary: Option<NodeIx>, template: &Template) -> Option<Gate> {
        if self.run.state.held() {
            return Some(Gate::Suspended);
        }
        if let Some(boundary) = boundary
            && !self.boundary_has_room(boundary)
        {
            return Some(Gate::Boundary(boundary));
        }
        let leaf = kind_of(template).is_some_and(NodeKind::tasked);
        (leaf && !self.view().pods_have_room()).then_some(Gate::Run)
    }

    /// The boundary may have one more child at a time.
    pub(super) fn boundary_has_room(&mut self, boundary: NodeIx) -> bool {
        if self.run.recipe_of(boundary).template.parallelism.is_none()
            || self.run.state.node(boundary).phase.fulfilled()
        {
            return true;
        }
        // The limit may come from a variable; a boundary that cannot be made ready says so when it is visited.
        let Ok(instance) = self.instance(boundary) else { return true };
        let limit = instance.template.parallelism.as_ref().and_then(|limit| limit.0.trim().parse::<u64>().ok());
        let active = self.run.state.active_children.get(&boundary).copied().unwrap_or(0);
        limit.is_none_or(|limit| limit == 0 || u64::from(active) < limit)
    }

    /// Waits until the gate may have opened.
    pub(super) fn park(&mut self, at: NodeIx, gate: Gate) {
        let todo = &mut self.run.todo;
        let queue = match gate {
            Gate::Run => &mut todo.parked,
            Gate::Boundary(boundary) => todo.parked_in.entry(boundary).or_default(),
            // Both look at everything again when they end.
            Gate::FailFast(_) | Gate::Suspended => return,
        };
        if todo.parked_nodes.insert(at) {
            queue.push_back(at);
        }
    }

    /// The call becomes a node: one that wraps attempts when it is to be retried, else what its template is.
    pub(super) fn enter(&mut self, birth: Birth, recipe: &Arc<Recipe>, inputs: InputValues) -> NodeIx {
        let depth = birth.boundary.map_or(0, |boundary| self.run.state.node(boundary).depth + 1);
        if depth >= MAX_DEPTH {
            return self
                .add_errored(birth, format!("Maximum recursion depth exceeded: calls may nest {MAX_DEPTH} deep"));
        }
        let full = room::full(self.run.state.nodes.len(), self.world.most_nodes);
        let heavy = || room::refuse(self.run.state.weight, room::of_inputs(&inputs), self.world.most_bytes);
        if let Some(why) = full.or_else(heavy) {
            return self.add_errored(birth, why);
        }
        if self.run.was_done(&birth.name) {
            return self.born_done(birth, recipe, inputs);
        }
        if !matches!(birth.role, Role::Attempt(_)) && self.run.program.retry(&recipe.template).is_some() {
            let mut added = self.view().added(birth, NodeKind::Retry, Phase::Running, Some(recipe), inputs);
            // What will only look at old attempts needs no locks.
            if !self.run.resumes || !self.run.was_done(&format!("{}(0)", added.name)) {
                bar(&mut added, recipe);
            }
            return self.born_asking(added, recipe);
        }
        let (kind, phase) = match kind_of(&recipe.template) {
            Some(kind) if kind.tasked() => (kind, Phase::Pending),
            Some(kind) => (kind, Phase::Running),
            None => return self.add_errored(birth, format!("template '{}' has no type that can run here", recipe.key)),
        };
        let mut added = self.view().added(birth, kind, phase, Some(recipe), inputs);
        let whole = matches!(kind, NodeKind::Steps | NodeKind::Dag);
        if let (Role::Attempt(_), Some(retry), true) = (&added.role, added.parent, whole) {
            // A task gets its time when it starts; these begin now.
            added.wake = self.attempt_latest(retry);
        }
        bar(&mut added, recipe);
        if kind == NodeKind::Suspend && !added.barred || kind.tasked() && recipe.template.timeout.is_some() {
            match self.view().first_wake(&added.name, kind, &added.inputs, recipe) {
                Ok(wake) => added.wake = wake,
                Err(message) => {
                    (added.kind, added.phase, added.message) = (NodeKind::Skipped, Phase::Error, message);
                    added.barred = false;
                }
            }
        }
        self.born_asking(added, recipe)
    }

    /// A node that needs no locks asks its cache at once, so that it takes its room before the next one is called.
    fn born_asking(&mut self, added: NodeAdded, recipe: &Recipe) -> NodeIx {
        let asks = added.barred && recipe.template.synchronization.is_none();
        let at = self.born(added);
        if asks {
            self.visit_barred(at);
        }
        at
    }

    pub(super) fn add_final(&mut self, birth: Birth, phase: Phase, message: String) -> NodeIx {
        let mut added = self.view().added(birth, NodeKind::Skipped, phase, None, InputValues::default());
        added.message = message;
        self.born(added)
    }

    /// A node that errors before it could start.
    pub(super) fn add_errored(&mut self, birth: Birth, message: String) -> NodeIx {
        self.add_final(birth, Phase::Error, message)
    }

    pub(super) fn born(&mut self, added: NodeAdded) -> NodeIx {
        let at = self.view().next_node();
        self.decide(WorkflowFact::Added(Box::new(added)));
        at
    }
}

impl<'a> View<'a> {
    /// Its condition holds and its template is there.
    fn admit_call(
        &self,
        frame: NodeIx,
        instance: &Instance,
        place: Place,
        item: Option<&Value>,
        name: &str,
    ) -> Result<Arc<Recipe>, Verdict> {
        let call = instance.call(place);
        let calling = Some(call.name.as_str());
        let scope = Scope { item, calling, ..self.frame_scope(frame, instance).about(name) };
        if let Some(condition) = &call.when {
            check_when(condition, &scope)?;
        }
        if call.template.is_none() && call.template_ref.is_none() {
            let key = inline_key(&instance.recipe.key, place);
            let undefined = || Verdict::Wrong(format!("template name '{key}' undefined"));
            return self.run.program.recipe(&key).cloned().ok_or_else(undefined);
        }
        let home = instance.recipe.home();
        self.named(home, call.template.as_deref(), call.template_ref.as_ref(), &scope).map_err(Verdict::Wrong)
    }

    /// The template a call or a hook at this home names, by its name or by reference.
    pub(super) fn named(
        &self,
        home: Option<&str>,
        name: Option<&str>,
        reference: Option<&TemplateRef>,
        scope: &Scope<'_>,
    ) -> Result<Arc<Recipe>, String> {
        let filled =
            |text: &str| fill(text, scope, Missing::Refuse).map(Cow::into_owned).map_err(|error| error.to_string());
        let (key, undefined) = match reference {
            Some(reference) => {
                let (name, template) = (filled(&reference.name)?, filled(&reference.template)?);
                let kind = Reach::of(reference.cluster_scope).kind();
                let undefined = format!("template name '{template}' undefined in {kind} '{name}'");
                let reference = TemplateRef { name, template, cluster_scope: reference.cluster_scope };
                (refer::key(&reference), undefined)
            }
            None => {
                let name = filled(name.unwrap_or_default())?;
                (refer::neighbour(home, &name), format!("template name '{name}' undefined"))
            }
        };
        self.run.program.recipe(&key).cloned().ok_or(undefined)
    }

    /// `when` of a loop that does not depend on the item; `None` when it must be asked per item.
    pub(super) fn skips_whole(&self, frame: NodeIx, instance: &Instance, call: &Call) -> Option<String> {
        let condition = call.when.as_ref()?;
        match check_when(condition, &self.frame_scope(frame, instance).about(&call.name)) {
            Err(Verdict::Skip(message)) => Some(message),
            _ => None,
        }
    }

    pub(super) fn frame_scope<'s>(self, frame: NodeIx, instance: &'s Instance) -> Scope<'s>
    where
        'a: 's,
    {
        let inputs = self.run.state.node(frame).inputs.as_deref();
        Scope {
            inputs,
            template: Some(&instance.template),
            locals: &instance.locals,
            ..Scope::new(self.run, self.now).about(&self.run.state.node(frame).name).in_frame(frame, &instance.recipe)
        }
    }

    /// The boundary has a failed child and asked to start nothing more then.
    pub(super) fn fails_fast(&self, boundary: NodeIx) -> bool {
        self.run.state.failed_children.contains_key(&boundary)
            && self.run.recipe_of(boundary).template.fail_fast == Some(true)
    }

    pub(super) fn added(
        &self,
        birth: Birth,
        kind: NodeKind,
        phase: Phase,
        recipe: Option<&Arc<Recipe>>,
        inputs: InputValues,
    ) -> NodeAdded {
        let named = || {
            let (caller, place) = (self.run.recipe_of(birth.boundary?), birth.place?);
            let call = caller.call(place)?;
            (call.template.is_some() || call.template_ref.is_some()).then(|| caller.callee_key(place))?
        };
        let hooked = || {
            let call = self.run.recipe_of(birth.boundary?).call(birth.place?)?;
            // Of a looped task each item has its own.
            Some(kind != NodeKind::TaskGroup && call.hooks.keys().any(|name| name != super::hook::EXIT))
        };
        let hooked = hooked().unwrap_or(false);
        let template = recipe.map(|recipe| recipe.key.to_string()).or_else(named);
        let display =
            recipe.and_then(|recipe| recipe.template.metadata.annotations.get("workflows.argoproj.io/display-name"));
        NodeAdded {
            name: birth.name,
            kind,
            role: birth.role,
            parent: birth.parent,
            boundary: birth.boundary,
            after: birth.after,
            template,
            phase,
            message: String::new(),
            at: self.now,
            inputs,
            followed: birth.followed,
            wake: None,
            barred: false,
            hooked,
            display: display.filter(|name| !name.contains("{{")).cloned(),
            reused: false,
        }
    }
}

/// Attempts do not ask for locks, nor their cache: the node above them does for all of them.
fn bar(added: &mut NodeAdded, recipe: &Recipe) {
    let bars = recipe.template.synchronization.is_some() || recipe.template.memoize.is_some();
    if bars && !matches!(added.role, Role::Attempt(_)) {
        added.barred = true;
        added.phase = Phase::Pending;
    }
}

/// Why a call is not made.
enum Verdict {
    Skip(String),
    Wrong(String),
}

fn check_when(condition: &str, scope: &Scope<'_>) -> Result<(), Verdict> {
    let text = fill(condition, scope, Missing::Refuse).map_err(|error| Verdict::Wrong(error.to_string()))?;
    match scope.meter.holds(&text) {
        Ok(true) => Ok(()),
        // Every node keeps it, so not a mebibyte of it.
        Ok(false) => Err(Verdict::Skip(format!("when '{}' evaluated false", shortened(&text)))),
        Err(error) => Err(Verdict::Wrong(error.to_string())),
    }
}

pub(super) fn kind_of(template: &Template) -> Option<NodeKind> {
    if template.container.is_some() || template.script.is_some() || template.container_set.is_some() {
        Some(NodeKind::Pod)
    } else if template.steps.is_some() {
        Some(NodeKind::Steps)
    } else if template.dag.is_some() {
        Some(NodeKind::Dag)
    } else if template.suspend.is_some() {
        Some(NodeKind::Suspend)
    } else if template.http.is_some() {
        Some(NodeKind::Http)
    } else if template.resource.is_some() || template.data.is_some() {
        Some(NodeKind::Pod)
    } else {
        None
    }
}
