//! Carries out users' commands to a run.

use std::{borrow::Cow, collections::BTreeMap};

use octoflow_model::{
    NodeIx, RunFact, Shutdown,
    argo::{NodeKind, NodeList, Phase, WorkflowFact},
};

use super::{
    DIALECT,
    node::Leaf,
    selector::{Selector, input_named},
    turn::Turn,
    view::View,
};
use crate::{
    engine::input::{Command, Refusal},
    run::mark,
};

impl Turn<'_> {
    pub fn command(&mut self, command: &Command) -> Result<(), Refusal> {
        let state = &self.run.state;
        match command {
            Command::Stop => self.shut_down(Shutdown::Stop),
            Command::Terminate => self.shut_down(Shutdown::Terminate),
            Command::StopNodes { selector, message } => {
                for at in self.view().suspended_nodes(Some(selector))? {
                    let message = self.view().joined_message(at, message);
                    self.finish(at, Phase::Failed, message);
                }
            }
            Command::Set { selector, phase, message, outputs } => self.set_nodes(selector, *phase, message, outputs)?,
            Command::Suspend => {
                if !state.head.suspended {
                    self.decide(RunFact::Suspended { at: self.now });
                }
            }
            Command::Resume { selector, supplied } => {
                let chosen = self.view().suspended_nodes(selector.as_deref())?;
                for at in &chosen {
                    self.supplied_outputs(*at, supplied).map_err(Refusal::Invalid)?;
                }
                if selector.is_none() && self.run.state.head.suspended {
                    self.decide(RunFact::Resumed { at: self.now });
                }
                for at in chosen {
                    self.resume_node(at, supplied, String::new());
                }
            }
            Command::Mark { read, write } => {
                let written = mark::change(self.run, read, write, self.now)?;
                written.into_iter().for_each(|fact| self.decide(fact));
            }
            Command::Evict { .. }
            | Command::Disband { .. }
            | Command::Amend { .. }
            | Command::Perform { .. }
            | Command::Because { .. } => {
                return Err(command.not_taken(&DIALECT));
            }
        }
        Ok(())
    }

    /// Sets outputs, a message, or a final phase on suspended nodes.
    fn set_nodes(
        &mut self,
        selector: &str,
        phase: Option<Phase>,
        message: &str,
        outputs: &BTreeMap<String, String>,
    ) -> Result<(), Refusal> {
        if selector.trim().is_empty() {
            let why = "set works on suspended nodes only; choose them with a node field selector";
            return Err(Refusal::Invalid(why.to_owned()));
        }
        if let Some(phase) = phase.filter(|phase| !phase.completed()) {
            let why = format!("a suspended node cannot be set to {phase}; choose Succeeded, Failed or Error");
            return Err(Refusal::Invalid(why));
        }
        let chosen = self.view().suspended_nodes(Some(selector))?;
        for at in &chosen {
            match phase {
                Some(Phase::Succeeded) => drop(self.supplied_outputs(*at, outputs).map_err(Refusal::Invalid)?),
                _ => self.expects(*at, outputs).map_err(Refusal::Invalid)?,
            }
        }
        for at in chosen {
            let message = self.view().joined_message(at, message);
            match phase {
                Some(Phase::Succeeded) => self.resume_node(at, outputs, message),
                Some(phase) => {
                    let outputs = self.view().given_outputs(at, outputs);
                    self.finish_with(at, phase, message, outputs, NodeList::default());
                }
                None => {
                    let parameters = outputs.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
                    self.decide(WorkflowFact::Supplied { node: at, parameters, message });
                }
            }
        }
        Ok(())
    }

    /// Begins a shutdown, or raises one.
    fn shut_down(&mut self, how: Shutdown) {
        if let Some(fact) = self.run.state.head.shut_down(how, self.now) {
            self.decide(fact);
            let stopping: Vec<NodeIx> =
                self.run.open_leaves().filter(|(_, leaf)| *leaf == Leaf::Stopping).map(|(at, _)| at).collect();
            stopping.into_iter().for_each(|at| self.resend_stop(at));
        }
    }
}

impl<'a> View<'a> {
    /// Appends a new message to the node's old one.
    fn joined_message(&self, at: NodeIx, message: &str) -> String {
        match self.run.state.node(at).message.as_deref() {
            Some(before) if !message.is_empty() => format!("{before}; {message}"),
            Some(before) => before.to_owned(),
            None => message.to_owned(),
        }
    }

    fn suspended_nodes(&self, selector: Option<&str>) -> Result<Vec<NodeIx>, Refusal> {
        let state = &self.run.state;
        let open = state
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| node.kind == NodeKind::Suspend && !node.phase.fulfilled());
        let open = open.map(|(at, _)| NodeIx(at as u32));
        let Some(selector) = selector else { return Ok(open.collect()) };
        let terms = Selector::parse(selector).ok_or_else(|| Refusal::Selector { text: selector.to_owned() })?;
        let chosen: Vec<NodeIx> = open.filter(|at| terms.holds(|key| self.field(*at, key))).collect();
        if chosen.is_empty() { Err(Refusal::NoSuchNode { selector: selector.to_owned() }) } else { Ok(chosen) }
    }
    /// Returns a field of a node, by its name in selectors.
    fn field(self, at: NodeIx, key: &str) -> Option<Cow<'a, str>> {
        let state = &self.run.state;
        let node = state.node(at);
        match key {
            "id" => Some(state.id_of(at).into()),
            "name" => Some((&*node.name).into()),
            "displayName" => Some(state.display_of(at).into()),
            "templateName" if state.reference_of(at).is_some() => None,
            "templateName" => Some(super::refer::bare(node.template.as_deref()?).into()),
            "templateRef.name" => Some(state.reference_of(at)?.name.into()),
            "templateRef.template" => Some(state.reference_of(at)?.template.into()),
            "phase" => Some(node.phase.word().into()),
            key => Some(node.input(input_named(key)?)?.into()),
        }
    }
}
