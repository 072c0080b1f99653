//! Calls templates: evaluates the condition, checks limits, resolves inputs and adds the node of the right kind.
//! Every node that runs something is added here.

use std::{borrow::Cow, sync::Arc};

use octoflow_model::{
    NodeIx,
    argo::{Call, InputValues, NodeAdded, NodeKind, NodeList, Phase, Role, Template, TemplateRef, WorkflowFact},
};
use serde_json::Value;

use super::{
    instance::Instance,
    program::{CallSite, CompiledTemplate, inline_key},
    refer::{self, Reach},
    room,
    scope::Scope,
    substitute::{Missing, fill, shortened},
    turn::Turn,
    view::View,
};

/// Maximum nesting of calls, beyond which a recursion counts as endless.
pub(crate) const MAX_DEPTH: u16 = 100;

/// Identity and place of a node to be added.
#[derive(Clone, Debug)]
pub(super) struct NewNode {
    pub name: String,
    pub role: Role,
    pub parent: Option<NodeIx>,
    pub boundary: Option<NodeIx>,
    pub after: NodeList,
    pub followed: bool,
    /// The call site, if a step or task calls it.
    pub place: Option<CallSite>,
}

/// Why a call cannot be made now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallGate {
    /// The run's parallelism limit is reached.
    Run,
    /// The boundary's parallelism limit is reached.
    Boundary(NodeIx),
    /// A child of the boundary failed and it fails fast: nothing new starts in it.
    FailFast(NodeIx),
    /// The run is suspended.
    Suspended,
}

pub(super) enum Called {
    Made,
    Blocked(CallGate),
}

impl Turn<'_> {
    /// Calls a step or task of an open boundary, once, for the given item.
    pub(super) fn call(&mut self, frame: NodeIx, place: CallSite, item: Option<&Value>, new_node: NewNode) -> Called {
        self.run.meter.next_node(self.run.state.nodes.len());
        let instance = match self.instance(frame) {
            Ok(instance) => instance,
            Err(why) => {
                self.add_errored(new_node, why);
                return Called::Made;
            }
        };
        let call = instance.call(place);
        let compiled = match self.view().admit_call(frame, &instance, place, item, &new_node.name) {
            Ok(compiled) => compiled,
            Err(NotCalled::Skipped(message)) => {
                self.add_final(new_node, Phase::Skipped, message);
                return Called::Made;
            }
            Err(NotCalled::Invalid(message)) => {
                self.add_errored(new_node, message);
                return Called::Made;
            }
        };
        if let Some(gate) = self.gate(new_node.boundary, &compiled.template) {
            return Called::Blocked(gate);
        }
        let calling = Some(call.name.as_str());
        let scope = Scope { item, calling, ..self.view().frame_scope(frame, &instance).about(&new_node.name) };
        match self.view().inputs(&compiled, &call.arguments, &scope) {
            Ok(inputs) => self.enter(new_node, &compiled, inputs),
            Err(message) => self.add_errored(new_node, message),
        };
        Called::Made
    }

    /// Returns what blocks a call of this template now.
    pub(super) fn gate(&mut self, boundary: Option<NodeIx>, template: &Template) -> Option<CallGate> {
        match boundary {
            Some(boundary) if !self.run.state.held() && self.view().fails_fast(boundary) => {
                Some(CallGate::FailFast(boundary))
            }
            _ => self.handler_gate(boundary, template),
        }
    }

    /// Like [`gate`](Self::gate), for exit handlers: failing fast does not block them.
    pub(super) fn handler_gate(&mut self, boundary: Option<NodeIx>, template: &Template) -> Option<CallGate> {
        if self.run.state.held() {
            return Some(CallGate::Suspended);
        }
        if let Some(boundary) = boundary
            && !self.boundary_has_room(boundary)
        {
            return Some(CallGate::Boundary(boundary));
        }
        let leaf = kind_of(template).is_some_and(NodeKind::tasked);
        (leaf && !self.view().pods_have_room()).then_some(CallGate::Run)
    }

    /// Like [`gate`](Self::gate), for whoever has a slot already: limits do not block it.
    pub(super) fn kept_gate(&self, boundary: Option<NodeIx>, handler: bool) -> Option<CallGate> {
        if self.run.state.held() {
            return Some(CallGate::Suspended);
        }
        let fails_fast = |boundary: &NodeIx| !handler && self.view().fails_fast(*boundary);
        boundary.filter(fails_fast).map(CallGate::FailFast)
    }

    /// Whether the boundary's parallelism allows one more child.
    pub(super) fn boundary_has_room(&mut self, boundary: NodeIx) -> bool {
        if self.run.compiled_of(boundary).template.parallelism.is_none()
            || self.run.state.node(boundary).phase.fulfilled()
        {
            return true;
        }
        // The limit may come from a variable. A boundary that cannot be instantiated reports that when it is visited.
        let Ok(instance) = self.instance(boundary) else { return true };
        let limit = instance.template.parallelism.as_ref().and_then(|limit| limit.0.trim().parse::<u64>().ok());
        limit.is_none_or(|limit| limit == 0 || self.run.slots_taken(boundary) < limit)
    }

    /// Queues the node until the gate may have opened.
    pub(super) fn park(&mut self, at: NodeIx, gate: CallGate) {
        let todo = &mut self.run.todo;
        let (limit, queue) = match gate {
            CallGate::Run => (None, &mut todo.parked),
            CallGate::Boundary(boundary) => (Some(boundary), todo.parked_in.entry(boundary).or_default()),
            // The end of either of these puts all open nodes on the work list.
            CallGate::FailFast(_) | CallGate::Suspended => return,
        };
        if todo.parked_nodes.insert((limit, at)) {
            queue.push_back(at);
        }
    }

    /// Adds the node of a call: a retry node around attempts if it has a retry strategy, else one of its template's
    /// kind.
    pub(super) fn enter(&mut self, new_node: NewNode, compiled: &Arc<CompiledTemplate>, inputs: InputValues) -> NodeIx {
        let depth = new_node.boundary.map_or(0, |boundary| self.run.state.node(boundary).depth + 1);
        if depth >= MAX_DEPTH {
            return self
                .add_errored(new_node, format!("Maximum recursion depth exceeded: calls may nest {MAX_DEPTH} deep"));
        }
        let full = room::full(self.run.state.nodes.len(), self.world.max_nodes);
        let heavy = || room::refuse(self.run.state.weight, room::of_inputs(&inputs), self.world.max_bytes);
        if let Some(why) = full.or_else(heavy) {
            return self.add_errored(new_node, why);
        }
        if self.run.is_reused(&new_node.name) {
            return self.add_reused(new_node, compiled, inputs);
        }
        if !matches!(new_node.role, Role::Attempt(_)) && self.run.program.retry(&compiled.template).is_some() {
            let mut added = self.view().added(new_node, NodeKind::Retry, Phase::Running, Some(compiled), inputs);
            // A retry node that only replays old attempts needs no locks.
            if !self.run.resumes || !self.run.is_reused(&format!("{}(0)", added.name)) {
                bar(&mut added, compiled);
            }
            return self.add_and_look_up(added, compiled);
        }
        let (kind, phase) = match kind_of(&compiled.template) {
            Some(kind) if kind.tasked() => (kind, Phase::Pending),
            Some(kind) => (kind, Phase::Running),
            None => {
                return self
                    .add_errored(new_node, format!("template '{}' has no type that can run here", compiled.key));
            }
        };
        let mut added = self.view().added(new_node, kind, phase, Some(compiled), inputs);
        let whole = matches!(kind, NodeKind::Steps | NodeKind::Dag);
        if let (Role::Attempt(_), Some(retry), true) = (&added.role, added.parent, whole) {
            // A task's deadline is set when it starts; steps and DAGs begin now.
            added.wake = self.attempt_latest(retry);
        }
        bar(&mut added, compiled);
        if kind == NodeKind::Suspend && !added.barred || kind.tasked() && compiled.template.timeout.is_some() {
            match self.view().first_wake(&added.name, kind, &added.inputs, compiled) {
                Ok(wake) => added.wake = wake,
                Err(message) => {
                    (added.kind, added.phase, added.message) = (NodeKind::Skipped, Phase::Error, message);
                    added.barred = false;
                }
            }
        }
        self.add_and_look_up(added, compiled)
    }

    /// Adds a node. One that needs no locks queries its cache at once, so that it takes its slot before the next call.
    fn add_and_look_up(&mut self, added: NodeAdded, compiled: &CompiledTemplate) -> NodeIx {
        let asks = added.barred && compiled.template.synchronization.is_none();
        let at = self.add_node(added);
        if asks {
            self.visit_barred(at);
        }
        at
    }

    pub(super) fn add_final(&mut self, new_node: NewNode, phase: Phase, message: String) -> NodeIx {
        let mut added = self.view().added(new_node, NodeKind::Skipped, phase, None, InputValues::default());
        added.message = message;
        self.add_node(added)
    }

    /// Adds a node that errored before it could start.
    pub(super) fn add_errored(&mut self, new_node: NewNode, message: String) -> NodeIx {
        self.add_final(new_node, Phase::Error, message)
    }

    pub(super) fn add_node(&mut self, added: NodeAdded) -> NodeIx {
        let at = self.view().next_node();
        self.decide(WorkflowFact::Added(Box::new(added)));
        at
    }
}

impl<'a> View<'a> {
    /// Evaluates the call's condition and looks up its template.
    fn admit_call(
        &self,
        frame: NodeIx,
        instance: &Instance,
        place: CallSite,
        item: Option<&Value>,
        name: &str,
    ) -> Result<Arc<CompiledTemplate>, NotCalled> {
        let call = instance.call(place);
        let calling = Some(call.name.as_str());
        let scope = Scope { item, calling, ..self.frame_scope(frame, instance).about(name) };
        if let Some(condition) = &call.when {
            check_when(condition, &scope)?;
        }
        if call.template.is_none() && call.template_ref.is_none() {
            let key = inline_key(&instance.compiled.key, place);
            let undefined = || NotCalled::Invalid(format!("template name '{key}' undefined"));
            return self.run.program.compiled(&key).cloned().ok_or_else(undefined);
        }
        let template_scope = instance.compiled.template_scope();
        self.named(template_scope, call.template.as_deref(), call.template_ref.as_ref(), &scope)
            .map_err(NotCalled::Invalid)
    }

    /// Looks up the template that a call or hook of this WorkflowTemplate names, by name or by reference.
    pub(super) fn named(
        &self,
        template_scope: Option<&str>,
        name: Option<&str>,
        reference: Option<&TemplateRef>,
        scope: &Scope<'_>,
    ) -> Result<Arc<CompiledTemplate>, String> {
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
                (refer::sibling_key(template_scope, &name), format!("template name '{name}' undefined"))
            }
        };
        self.run.program.compiled(&key).cloned().ok_or(undefined)
    }

    /// Evaluates the `when` of a loop as a whole. Returns the message if the whole loop is skipped; `None` if each item
    /// decides.
    pub(super) fn skips_whole(&self, frame: NodeIx, instance: &Instance, call: &Call) -> Option<String> {
        let condition = call.when.as_ref()?;
        match check_when(condition, &self.frame_scope(frame, instance).about(&call.name)) {
            Err(NotCalled::Skipped(message)) => Some(message),
            Ok(()) | Err(NotCalled::Invalid(_)) => None,
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
            ..Scope::new(self.run, self.now).about(&self.run.state.node(frame).name).in_frame(frame, &instance.compiled)
        }
    }

    /// Whether the boundary fails fast and has a failed child.
    pub(super) fn fails_fast(&self, boundary: NodeIx) -> bool {
        self.run.state.failed_children.contains_key(&boundary)
            && self.run.compiled_of(boundary).template.fail_fast == Some(true)
    }

    pub(super) fn added(
        &self,
        new_node: NewNode,
        kind: NodeKind,
        phase: Phase,
        compiled: Option<&Arc<CompiledTemplate>>,
        inputs: InputValues,
    ) -> NodeAdded {
        let named = || {
            let (caller, place) = (self.run.compiled_of(new_node.boundary?), new_node.place?);
            let call = caller.call(place)?;
            (call.template.is_some() || call.template_ref.is_some()).then(|| caller.callee_key(place))?
        };
        let hooked = || {
            let call = self.run.compiled_of(new_node.boundary?).call(new_node.place?)?;
            // Each item of a looped task has its own hooks.
            Some(kind != NodeKind::TaskGroup && call.hooks.keys().any(|name| name != super::hook::EXIT))
        };
        let hooked = hooked().unwrap_or(false);
        let template = compiled.map(|compiled| compiled.key.to_string()).or_else(named);
        let display = compiled
            .and_then(|compiled| compiled.template.metadata.annotations.get("workflows.argoproj.io/display-name"));
        NodeAdded {
            name: new_node.name,
            kind,
            role: new_node.role,
            parent: new_node.parent,
            boundary: new_node.boundary,
            after: new_node.after,
            template,
            phase,
            message: String::new(),
            at: self.now,
            inputs,
            followed: new_node.followed,
            wake: None,
            barred: false,
            hooked,
            display: display.filter(|name| !name.contains("{{")).cloned(),
            reused: false,
        }
    }
}

/// Makes a node wait for its locks or its cache lookup. Attempts need neither: the retry node above has them for all.
fn bar(added: &mut NodeAdded, compiled: &CompiledTemplate) {
    let bars = compiled.template.synchronization.is_some() || compiled.template.memoize.is_some();
    if bars && !matches!(added.role, Role::Attempt(_)) {
        added.barred = true;
        added.phase = Phase::Pending;
    }
}

/// Why a call is not made.
enum NotCalled {
    Skipped(String),
    Invalid(String),
}

fn check_when(condition: &str, scope: &Scope<'_>) -> Result<(), NotCalled> {
    let text = fill(condition, scope, Missing::Refuse).map_err(|error| NotCalled::Invalid(error.to_string()))?;
    match scope.meter.holds(&text) {
        Ok(true) => Ok(()),
        // Every node keeps this message, so a long condition is shortened.
        Ok(false) => Err(NotCalled::Skipped(format!("when '{}' evaluated false", shortened(&text)))),
        Err(error) => Err(NotCalled::Invalid(error.to_string())),
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
