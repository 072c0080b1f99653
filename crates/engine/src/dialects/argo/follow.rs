//! Runs what follows a call's end: its last hooks, then its exit handler. The call is not settled before they are.
//! The handler's result does not change that of the call.

use octoflow_model::{
    NodeIx, Shutdown,
    argo::{Arguments, Hook, Role, WorkflowFact},
};

use super::{
    call::NewNode,
    hook::EXIT,
    program::CallSite,
    scope::Scope,
    substitute::{Missing, fill},
    turn::Turn,
    view::View,
};

/// A handler or hook that can start: its template and its inputs.
pub(super) type HookCall = (std::sync::Arc<super::program::CompiledTemplate>, octoflow_model::argo::InputValues);

impl Turn<'_> {
    /// Continues a node that is final: fires its hooks, then starts its exit handler, then settles it.
    pub(super) fn follow(&mut self, at: NodeIx) {
        let state = &self.run.state;
        let is_handler = |hook: &&NodeIx| matches!(&state.node(**hook).role, Role::Hook(name) if name == EXIT);
        let handler = state.fired.get(&Some(at)).and_then(|fired| fired.iter().find(is_handler)).copied();
        match handler {
            Some(handler) if state.node(handler).settled => self.decide(WorkflowFact::Settled { node: at }),
            Some(_) => {}
            None => {
                self.fire(at);
                if !self.run.state.waits_for_hooks(Some(at)) {
                    self.start_handler(at);
                }
            }
        }
    }

    fn start_handler(&mut self, at: NodeIx) {
        if self.run.state.head.shutdown == Some(Shutdown::Terminate) {
            return self.decide(WorkflowFact::Settled { node: at });
        }
        let Some((frame, place, _)) = self.run.site_of(at) else {
            return self.decide(WorkflowFact::Settled { node: at });
        };
        let node = self.run.state.node(at);
        if !node.followed || !node.phase.completed() {
            return self.decide(WorkflowFact::Settled { node: at });
        }
        let new_node = NewNode {
            name: format!("{}.onExit", node.name),
            role: Role::Hook(EXIT.to_owned()),
            parent: Some(at),
            boundary: node.boundary,
            after: at.into(),
            followed: false,
            place: None,
        };
        let instance = match self.instance(frame) {
            Ok(instance) => instance,
            Err(why) => {
                self.add_errored(new_node, why);
                return;
            }
        };
        let call = instance.call(place);
        let item = self.run.item_of(at);
        let plain = call.on_exit.as_ref().map(|template| Hook { template: Some(template.clone()), ..Hook::default() });
        let Some(hook) = call.hooks.get(EXIT).cloned().or(plain) else {
            return self.decide(WorkflowFact::Settled { node: at });
        };
        let scope = Scope {
            item: item.as_ref(),
            own: Some((&call.name, at)),
            ..self.view().frame_scope(frame, &instance).about(&new_node.name)
        };
        match hook_holds(&hook, &scope) {
            Ok(true) => {}
            Ok(false) => return self.decide(WorkflowFact::Settled { node: at }),
            Err(why) => {
                self.add_errored(new_node, why);
                return;
            }
        }
        match self.view().hook_call(instance.compiled.template_scope(), &hook, &scope) {
            Ok((compiled, inputs)) => match self.handler_gate(new_node.boundary, &compiled.template) {
                Some(gate) => self.park(at, gate),
                None => {
                    self.enter(new_node, &compiled, inputs);
                }
            },
            Err(why) => {
                self.add_errored(new_node, why);
            }
        }
    }
}

impl View<'_> {
    /// Whether a call has an exit handler.
    pub(super) fn call_is_followed(&self, frame: NodeIx, place: CallSite) -> bool {
        let template = &self.run.compiled_of(frame).template;
        let call = match place {
            CallSite::Step(group, step) => {
                template.steps.as_ref().and_then(|groups| groups.get(group as usize)?.get(step as usize))
            }
            CallSite::Task(task) => template.dag.as_ref().and_then(|dag| dag.tasks.get(task as usize)),
        };
        call.is_some_and(|call| call.on_exit.is_some() || call.hooks.contains_key(EXIT))
    }

    pub(super) fn hook_call(
        &self,
        template_scope: Option<&str>,
        hook: &Hook,
        scope: &Scope<'_>,
    ) -> Result<HookCall, String> {
        let compiled = self.named(template_scope, hook.template.as_deref(), hook.template_ref.as_ref(), scope)?;
        let arguments: &Arguments = &hook.arguments;
        let inputs = self.inputs(&compiled, arguments, scope)?;
        Ok((compiled, inputs))
    }
}

/// Evaluates a hook's expression. A hook without one always holds.
pub(super) fn hook_holds(hook: &Hook, scope: &Scope<'_>) -> Result<bool, String> {
    let Some(expression) = &hook.expression else { return Ok(true) };
    let expression = fill(expression, scope, Missing::Refuse).map_err(|error| error.to_string())?;
    let value = scope.meter.evaluate(&expression, scope).map_err(|error| error.to_string())?;
    value.as_bool().ok_or_else(|| {
        format!("hook expression '{expression}' gave {} where true or false was expected", value.to_json())
    })
}
