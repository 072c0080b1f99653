//! Drives the run as a whole: it begins, its entrypoint runs, its exit handler runs, it ends.

use octoflow_model::{
    NodeIx, RunFact, RunPhase, Shutdown, Time,
    argo::{Hook, NodeList, Phase, Role, WorkflowFact, template::Parameter},
};

use super::{
    call::NewNode,
    follow::hook_holds,
    hook::EXIT,
    metadata,
    scope::Scope,
    substitute::{Missing, fill},
    turn::Turn,
    view::View,
};

impl Turn<'_> {
    pub(super) fn visit_run(&mut self) {
        match self.run.state.phase {
            RunPhase::Pending => self.begin(),
            RunPhase::Running => self.go_on(),
            RunPhase::Succeeded | RunPhase::Failed | RunPhase::Error => {}
        }
    }

    fn begin(&mut self) {
        let begun = match (&self.run.program.flaw, self.view().unsupplied()) {
            (Some(flaw), _) => Err(flaw.clone()),
            (None, Some(message)) => {
                return self.decide(RunFact::Ended { phase: RunPhase::Failed, message, at: self.now });
            }
            (None, None) => self
                .view()
                .global_parameters()
                .map_err(|why| format!("failed to set global parameters: {why}"))
                .and_then(|parameters| Ok((metadata::metadata(self.run, &parameters, self.now)?, parameters))),
        };
        match begun {
            Ok(((labels, annotations), parameters)) => {
                if self.holds_own_locks(&parameters) {
                    self.decide(WorkflowFact::Began { at: self.now, parameters, labels, annotations });
                }
            }
            Err(message) => self.decide(RunFact::Ended { phase: RunPhase::Error, message, at: self.now }),
        }
    }

    fn go_on(&mut self) {
        if let Some(deadline) = self.view().run_deadline()
            && deadline <= self.now
            && !self.run.state.closing()
            && !self.run.state.worked()
        {
            return self.decide(RunFact::DeadlinePassed { at: self.now });
        }
        let Some(root) = self.run.state.root else { return self.start_entry() };
        if self.run.state.exit.is_none() {
            self.fire_run(root);
        }
        if !self.run.state.worked() {
            return;
        }
        match self.run.state.exit {
            Some(exit) if self.run.state.node(exit).settled => self.end(root, Some(exit)),
            Some(_) => {}
            None => self.start_exit(root),
        }
    }

    fn start_entry(&mut self) {
        if self.run.state.closing() {
            let message = self.view().closing_message();
            return self.decide(RunFact::Ended { phase: RunPhase::Failed, message, at: self.now });
        }
        if self.run.state.held() {
            return;
        }
        let spec = &self.run.program.clone().workflow.spec;
        let entrypoint = spec.entrypoint.as_deref().unwrap_or_default();
        let new_node = self.view().run_node(String::new(), Role::Entry);
        let Some(compiled) = self.run.program.compiled(entrypoint).cloned() else {
            let message = format!("error in entry template execution: template name '{entrypoint}' undefined");
            return self.decide(RunFact::Ended { phase: RunPhase::Error, message, at: self.now });
        };
        let mut arguments = spec.arguments.clone();
        for parameter in &mut arguments.parameters {
            parameter.value = self.run.state.parameters.get(&parameter.name).map(|value| value.as_str().into());
            parameter.value_from = None;
        }
        let inputs = self.view().inputs(&compiled, &arguments, &Scope::new(self.run, self.now).about(&new_node.name));
        match inputs {
            Ok(inputs) => {
                self.enter(new_node, &compiled, inputs);
            }
            Err(why) => {
                let message = format!("error in entry template execution: {why}");
                self.decide(RunFact::Ended { phase: RunPhase::Error, message, at: self.now });
            }
        }
    }

    fn start_exit(&mut self, root: NodeIx) {
        let spec = &self.run.program.clone().workflow.spec;
        let plain = spec.on_exit.as_ref().map(|template| Hook { template: Some(template.clone()), ..Hook::default() });
        let Some(mut hook) = spec.hooks.get(EXIT).cloned().or(plain) else { return self.end(root, None) };
        if self.run.state.head.shutdown == Some(Shutdown::Terminate) {
            return self.end(root, None);
        }
        if self.run.state.held() {
            return;
        }
        // A handler gets the workflow's arguments where it has none of its own.
        for parameter in &spec.arguments.parameters {
            if !hook.arguments.parameters.iter().any(|own| own.name == parameter.name) {
                let value = self.run.state.parameters.get(&parameter.name).map(|value| value.as_str().into());
                hook.arguments.parameters.push(Parameter { name: parameter.name.clone(), value, ..Default::default() });
            }
        }
        let new_node = self.view().run_node(".onExit".to_owned(), Role::Exit);
        let scope = Scope::new(self.run, self.now).about(&new_node.name);
        let made = match hook_holds(&hook, &scope) {
            Ok(true) => self.view().hook_call(None, &hook, &scope),
            Ok(false) => return self.end(root, None),
            Err(why) => Err(why),
        };
        match made {
            Ok((compiled, inputs)) => self.enter(new_node, &compiled, inputs),
            Err(why) => self.add_errored(new_node, format!("error in exit template execution : {why}")),
        };
    }

    /// Ends the run with its entrypoint's result. A failed exit handler turns a success into its own phase and changes
    /// nothing else.
    fn end(&mut self, root: NodeIx, exit: Option<NodeIx>) {
        let verdict = |at: NodeIx| {
            let node = self.run.state.node(at);
            let phase = match node.phase {
                Phase::Succeeded | Phase::Skipped | Phase::Omitted => RunPhase::Succeeded,
                Phase::Failed => RunPhase::Failed,
                Phase::Error | Phase::Pending | Phase::Running => RunPhase::Error,
            };
            (phase, node.message.as_deref().unwrap_or_default().to_owned())
        };
        let (mut phase, mut message) = verdict(root);
        if let (RunPhase::Succeeded, Some(exit)) = (phase, exit) {
            let (exit_phase, exit_message) = verdict(exit);
            if exit_phase != RunPhase::Succeeded {
                (phase, message) = (exit_phase, exit_message);
            }
        }
        if phase != RunPhase::Succeeded && self.run.state.head.shutdown.is_some() {
            message = self.view().closing_message();
        }
        self.decide(RunFact::Ended { phase, message, at: self.now });
    }
}

impl View<'_> {
    /// Returns the message for an argument that can never have a value. Admission refuses it; a manifest that bypassed
    /// admission fails as invalid, rather than as one that the controller could not serve.
    fn unsupplied(&self) -> Option<String> {
        let parameters = &self.run.program.workflow.spec.arguments.parameters;
        let lacks = |one: &&Parameter| one.value.is_none() && one.value_from.is_none() && one.default.is_none();
        let name = &parameters.iter().find(lacks)?.name;
        Some(format!("invalid spec: spec.arguments.{name}.value or spec.arguments.{name}.valueFrom is required"))
    }

    fn global_parameters(&self) -> Result<Vec<(String, String)>, String> {
        let scope = Scope::new(self.run, self.now);
        let mut parameters = Vec::new();
        for parameter in &self.run.program.workflow.spec.arguments.parameters {
            let value = match &parameter.value {
                Some(text) => Some(
                    fill(&text.0, &scope.about(&parameter.name), Missing::Keep)
                        .map_err(|error| error.to_string())?
                        .into_owned(),
                ),
                None => self
                    .value_from(parameter, &scope)?
                    .or_else(|| parameter.default.as_ref().map(|text| text.0.clone())),
            };
            let value = value.ok_or_else(|| {
                format!("spec.arguments.{0}.value or spec.arguments.{0}.valueFrom is required", parameter.name)
            })?;
            parameters.push((parameter.name.clone(), value));
        }
        Ok(parameters)
    }

    pub(super) fn run_deadline(&self) -> Option<Time> {
        let seconds = self.run.program.workflow.spec.active_deadline_seconds?;
        Some(self.run.state.began?.saturating_add(std::time::Duration::from_secs(u64::try_from(seconds).unwrap_or(0))))
    }

    pub(super) fn run_node(&self, suffix: String, role: Role) -> NewNode {
        let name = format!("{}{suffix}", self.run.state.head.name);
        NewNode { name, role, parent: None, boundary: None, after: NodeList::default(), followed: false, place: None }
    }

    /// Returns the message of work that never began because the run is shutting down.
    pub(super) fn closing_message(&self) -> String {
        match self.run.state.head.shutdown {
            Some(how) => format!("Stopped with strategy '{}'", how.word()),
            None => "Step exceeded its deadline".to_owned(),
        }
    }
}
