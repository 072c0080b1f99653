//! Fires life-cycle hooks: templates that run once a condition over a call, or over the whole run, holds.
//! Each fires at most once. Its owner is not settled before it is, but its result changes nothing.

use octoflow_model::{
    NodeIx,
    argo::{Hook, Phase, Role, WorkflowFact, workflow::Spec},
};

use super::{
    call::{CallGate, NewNode},
    follow::hook_holds,
    scope::Scope,
    turn::Turn,
    view::View,
};
use crate::expr::lang;

/// Name of the hook that is the exit handler, which starts at its own time: after the end.
pub(super) const EXIT: &str = "exit";

/// Whether a hook of the run depends on something that changes while the entrypoint runs.
pub(super) fn run_watches(spec: &Spec) -> bool {
    let changes = |text: &String| text.contains("outputs") || text.contains("failures");
    spec.hooks.iter().any(|(name, hook)| name != EXIT && hook.expression.as_ref().is_some_and(changes))
}

impl Turn<'_> {
    /// Fires the hooks of a call whose conditions hold.
    pub(super) fn fire(&mut self, at: NodeIx) {
        let node = self.run.state.node(at);
        if !node.hooked || node.phase == Phase::Pending || self.run.state.closes(at) {
            return;
        }
        let Some((frame, place, _)) = self.run.site_of(at) else { return };
        let call = self.run.compiled_of(frame).call(place);
        let unfired: Vec<String> =
            call.map(|call| self.view().unfired(Some(at), call.hooks.keys())).unwrap_or_default();
        // A frame that cannot be instantiated reports that when it is visited itself.
        let Ok(instance) = self.instance(frame) else { return };
        for name in unfired {
            let call = instance.call(place);
            let Some(hook) = call.hooks.get(&name) else { continue };
            let item = self.run.item_of(at);
            let node = self.run.state.node(at);
            let new_node = NewNode {
                name: format!("{}.hooks.{name}", node.name),
                role: Role::Hook(name.clone()),
                parent: Some(at),
                boundary: node.boundary,
                after: at.into(),
                followed: false,
                place: None,
            };
            let scope = Scope {
                item: item.as_ref(),
                own: Some((&call.name, at)),
                ..self.view().frame_scope(frame, &instance).about(&new_node.name)
            };
            let over = node.phase.fulfilled();
            let due = self.view().is_due(Some(at), &name) || self.run.has_reused_part(&new_node.name);
            let checked = if due { Ok(()) } else { check_due(hook, &scope, over) };
            match checked {
                Ok(()) => {}
                Err(NotDue::Invalid(why)) => {
                    self.add_errored(new_node, why);
                    continue;
                }
                Err(NotDue::Yet) => {
                    if !over && depends_on_others(hook, &call.name) {
                        self.run.todo.watchers.insert(at);
                    }
                    continue;
                }
            }
            let made = self.view().hook_call(instance.compiled.template_scope(), hook, &scope);
            if let Some(gate) = self.start_hook(new_node, made) {
                self.record_due(Some(at), name, due);
                self.park(at, gate);
            }
        }
    }

    /// Fires the hooks of the run whose conditions hold.
    pub(super) fn fire_run(&mut self, root: NodeIx) {
        if self.run.state.closing() {
            return;
        }
        let program = self.run.program.clone();
        for name in self.view().unfired(None, program.workflow.spec.hooks.keys()) {
            let hook = &program.workflow.spec.hooks[&name];
            let mut new_node = self.view().run_node(format!(".hooks.{name}"), Role::RunHook(name.clone()));
            new_node.after.push(root);
            let scope = Scope::new(self.run, self.now).about(&new_node.name);
            let due = self.view().is_due(None, &name);
            let over = self.run.state.node(root).settled;
            let checked = if due { Ok(()) } else { check_due(hook, &scope, over) };
            match checked {
                Ok(()) => {}
                Err(NotDue::Invalid(why)) => {
                    self.add_errored(new_node, why);
                    continue;
                }
                Err(NotDue::Yet) => continue,
            }
            let made = self.view().hook_call(None, hook, &scope);
            if let Some(gate) = self.start_hook(new_node, made) {
                self.record_due(None, name, due);
                self.run.todo.run_parked |= gate == CallGate::Run;
            }
        }
    }

    /// Records that a hook is due, because its condition may not hold any more when a slot is free.
    fn record_due(&mut self, node: Option<NodeIx>, hook: String, due: bool) {
        if !due {
            self.decide(WorkflowFact::Due { node, hook });
        }
    }

    /// Starts a hook, unless a limit blocks it; returns that limit.
    fn start_hook(&mut self, new_node: NewNode, made: Result<super::follow::HookCall, String>) -> Option<CallGate> {
        match made {
            Ok((compiled, inputs)) => {
                let gate = self.handler_gate(new_node.boundary, &compiled.template);
                if gate.is_none() {
                    self.enter(new_node, &compiled, inputs);
                }
                gate
            }
            Err(why) => {
                self.add_errored(new_node, why);
                None
            }
        }
    }
}

impl View<'_> {
    /// Returns those of the named hooks that have not fired, without the exit handler.
    fn unfired<'n>(&self, owner: Option<NodeIx>, names: impl Iterator<Item = &'n String>) -> Vec<String> {
        let fired = self.run.state.fired.get(&owner).map(Vec::as_slice).unwrap_or_default();
        let fired = |name: &str| {
            let is_named = |role: &Role| matches!(role, Role::Hook(fired) | Role::RunHook(fired) if fired == name);
            fired.iter().any(|hook| is_named(&self.run.state.node(*hook).role))
        };
        names.filter(|name| *name != EXIT && !fired(name)).cloned().collect()
    }

    fn is_due(&self, owner: Option<NodeIx>, name: &str) -> bool {
        self.run.state.due.get(&owner).is_some_and(|due| due.iter().any(|other| other == name))
    }
}

/// Why a hook does not fire now.
enum NotDue {
    /// Its condition does not hold, and may later.
    Yet,
    /// Its condition can never hold, for this reason.
    Invalid(String),
}

/// Checks whether a hook's condition holds. `over` is true if its owner has ended, so that nothing changes any more.
fn check_due(hook: &Hook, scope: &Scope<'_>, over: bool) -> Result<(), NotDue> {
    match hook_holds(hook, scope) {
        Ok(true) => Ok(()),
        Ok(false) => Err(NotDue::Yet),
        Err(why) if over => Err(NotDue::Invalid(why)),
        // A value that it refers to may not exist yet.
        Err(_) => Err(NotDue::Yet),
    }
}

/// Whether a hook's condition may become true though nothing happens to its own call.
fn depends_on_others(hook: &Hook, own: &str) -> bool {
    let Some(text) = &hook.expression else { return false };
    let Ok(program) = lang::parse(text) else { return true };
    program.roots().iter().any(|reference| match reference.root() {
        "steps" | "tasks" => reference.path.get(1).is_none_or(|call| call != own),
        "workflow" => reference.path.get(1).is_none_or(|field| matches!(field.as_str(), "outputs" | "failures")),
        _ => false,
    })
}
