//! Life-cycle hooks: templates that run once a condition over a call, or over the whole run, holds.
//! Each fires at most once; what it belongs to is not over before it is. How it ends changes nothing.

use octoflow_model::{
    NodeIx,
    argo::{Hook, Phase, Role, WorkflowFact, workflow::Spec},
};

use super::{
    call::{Birth, Gate},
    follow::hook_holds,
    scope::Scope,
    turn::Turn,
    view::View,
};
use crate::expr::lang;

/// The hook that is an exit handler: it has a moment of its own.
pub(super) const EXIT: &str = "exit";

/// Some hook of the run looks at something that changes while the entrypoint is at work.
pub(super) fn run_watches(spec: &Spec) -> bool {
    let changes = |text: &String| text.contains("outputs") || text.contains("failures");
    spec.hooks.iter().any(|(name, hook)| name != EXIT && hook.expression.as_ref().is_some_and(changes))
}

impl Turn<'_> {
    /// Fires the hooks of a call whose moment has come.
    pub(super) fn fire(&mut self, at: NodeIx) {
        let node = self.run.state.node(at);
        if !node.hooked || node.phase == Phase::Pending || self.run.state.closes(at) {
            return;
        }
        let Some((frame, place, _)) = self.run.site_of(at) else { return };
        let call = self.run.recipe_of(frame).call(place);
        let silent: Vec<String> = call.map(|call| self.view().silent(Some(at), call.hooks.keys())).unwrap_or_default();
        // A frame that cannot be made ready says so when it is looked at itself.
        let Ok(instance) = self.instance(frame) else { return };
        for name in silent {
            let call = instance.call(place);
            let Some(hook) = call.hooks.get(&name) else { continue };
            let item = self.run.item_of(at);
            let node = self.run.state.node(at);
            let birth = Birth {
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
                ..self.view().frame_scope(frame, &instance).about(&birth.name)
            };
            let over = node.phase.fulfilled();
            let due = self.view().is_due(Some(at), &name) || self.run.was_begun(&birth.name);
            if !due && let Err(why) = come(hook, &scope, over) {
                match why {
                    Some(why) => {
                        self.add_errored(birth, why);
                    }
                    None if !over && looks_beyond(hook, &call.name) => {
                        self.run.todo.watchers.insert(at);
                    }
                    None => {}
                }
                continue;
            }
            let made = self.view().hook_call(instance.recipe.home(), hook, &scope);
            if let Some(gate) = self.start_hook(birth, made) {
                self.postpone(Some(at), name, due);
                self.park(at, gate);
            }
        }
    }

    /// The same for the hooks of the run.
    pub(super) fn fire_run(&mut self, root: NodeIx) {
        if self.run.state.closing() {
            return;
        }
        let program = self.run.program.clone();
        for name in self.view().silent(None, program.workflow.spec.hooks.keys()) {
            let hook = &program.workflow.spec.hooks[&name];
            let mut birth = self.view().run_birth(format!(".hooks.{name}"), Role::RunHook(name.clone()));
            birth.after.push(root);
            let scope = Scope::new(self.run, self.now).about(&birth.name);
            let due = self.view().is_due(None, &name);
            if !due && let Err(why) = come(hook, &scope, self.run.state.node(root).settled) {
                if let Some(why) = why {
                    self.add_errored(birth, why);
                }
                continue;
            }
            let made = self.view().hook_call(None, hook, &scope);
            if let Some(gate) = self.start_hook(birth, made) {
                self.postpone(None, name, due);
                self.run.todo.run_parked |= gate == Gate::Run;
            }
        }
    }

    /// Its moment may be gone when there is room, so it is remembered that it came.
    fn postpone(&mut self, node: Option<NodeIx>, hook: String, due: bool) {
        if !due {
            self.decide(WorkflowFact::Due { node, hook });
        }
    }

    /// What keeps it from starting, if anything does.
    fn start_hook(&mut self, birth: Birth, made: Result<super::follow::Made, String>) -> Option<Gate> {
        match made {
            Ok((recipe, inputs)) => {
                let gate = self.room(birth.boundary, &recipe.template);
                if gate.is_none() {
                    self.enter(birth, &recipe, inputs);
                }
                gate
            }
            Err(why) => {
                self.add_errored(birth, why);
                None
            }
        }
    }
}

impl View<'_> {
    /// Those of the named hooks that have not fired. The exit handler has a moment of its own.
    fn silent<'n>(&self, owner: Option<NodeIx>, names: impl Iterator<Item = &'n String>) -> Vec<String> {
        let fired = self.run.state.fired.get(&owner).map(Vec::as_slice).unwrap_or_default();
        let fired = |name: &str| {
            fired.iter().any(|hook| match &self.run.state.node(*hook).role {
                Role::Hook(fired) | Role::RunHook(fired) => fired == name,
                _ => false,
            })
        };
        names.filter(|name| *name != EXIT && !fired(name)).cloned().collect()
    }

    fn is_due(&self, owner: Option<NodeIx>, name: &str) -> bool {
        self.run.state.due.get(&owner).is_some_and(|due| due.iter().any(|other| other == name))
    }
}

/// Its moment has come; or not, with the reason when it never can because it does not make sense.
fn come(hook: &Hook, scope: &Scope<'_>, over: bool) -> Result<(), Option<String>> {
    match hook_holds(hook, scope) {
        Ok(true) => Ok(()),
        Ok(false) => Err(None),
        // Something it looks at may not be there yet.
        Err(why) => Err(over.then_some(why)),
    }
}

/// Its condition may come true though nothing happens to the call itself.
fn looks_beyond(hook: &Hook, own: &str) -> bool {
    let Some(text) = &hook.expression else { return false };
    let Ok(program) = lang::parse(text) else { return true };
    program.roots().iter().any(|reference| match reference.root() {
        "steps" | "tasks" => reference.path.get(1).is_none_or(|call| call != own),
        "workflow" => reference.path.get(1).is_none_or(|field| matches!(field.as_str(), "outputs" | "failures")),
        _ => false,
    })
}
