//! What people tell a run to do.

use octoflow_model::{
    Fact, NodeIx,
    argo::{NodeKind, Shutdown},
};

use super::{node::Leaf, turn::Turn};
use crate::input::{Command, Refusal};

impl Turn<'_> {
    pub fn command(&mut self, command: &Command) -> Result<(), Refusal> {
        let state = &self.run.state;
        if state.finished() {
            return Err(Refusal::Finished { name: state.name.to_string(), verb: command.verb() });
        }
        match command {
            Command::Stop => self.shut_down(Shutdown::Stop),
            Command::Terminate => self.shut_down(Shutdown::Terminate),
            Command::Suspend => {
                if !state.suspended {
                    self.decide(Fact::Suspended { at: self.now });
                }
            }
            Command::Resume { selector, supplied } => {
                let chosen = self.suspended_nodes(selector.as_deref())?;
                for at in &chosen {
                    self.supplied_outputs(*at, supplied).map_err(Refusal::Invalid)?;
                }
                if selector.is_none() && self.run.state.suspended {
                    self.decide(Fact::Resumed { at: self.now });
                }
                for at in chosen {
                    self.resume_node(at, supplied, String::new());
                }
            }
            Command::Mark { read, write } => self.mark(read, write)?,
        }
        Ok(())
    }

    /// Ending harder is allowed, ending softer is not.
    fn shut_down(&mut self, how: Shutdown) {
        let now = self.run.state.shutdown;
        if now.is_none() || (now, how) == (Some(Shutdown::Stop), Shutdown::Terminate) {
            self.decide(Fact::ShuttingDown { how, at: self.now });
            let told: Vec<NodeIx> =
                self.run.open_leaves().filter(|(_, leaf)| *leaf == Leaf::Stopping).map(|(at, _)| at).collect();
            told.into_iter().for_each(|at| self.press(at));
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
        let terms = selector
            .split(',')
            .map(|term| Term::parse(term).ok_or_else(|| Refusal::Selector { text: selector.to_owned() }));
        let terms: Vec<Term<'_>> = terms.collect::<Result<_, _>>()?;
        let chosen: Vec<NodeIx> = open.filter(|at| terms.iter().all(|term| term.holds(self, *at))).collect();
        if chosen.is_empty() { Err(Refusal::NoSuchNode { selector: selector.to_owned() }) } else { Ok(chosen) }
    }
}

/// One `key=value` or `key!=value` of a node field selector.
struct Term<'s> {
    key: &'s str,
    value: &'s str,
    equal: bool,
}

impl<'s> Term<'s> {
    fn parse(text: &'s str) -> Option<Self> {
        if let Some((key, value)) = text.split_once("!=") {
            return Some(Self { key: key.trim(), value: value.trim(), equal: false });
        }
        let (key, value) = text.split_once("==").or_else(|| text.split_once('='))?;
        Some(Self { key: key.trim(), value: value.trim(), equal: true })
    }

    fn holds(&self, turn: &Turn<'_>, at: NodeIx) -> bool {
        let state = &turn.run.state;
        let node = state.node(at);
        let found = match self.key {
            "id" => state.id_of(at) == self.value,
            "name" => *node.name == *self.value,
            "displayName" => state.display_of(at) == self.value,
            "templateName" => {
                state.reference_of(at).is_none() && node.template.as_deref().map(super::refer::bare) == Some(self.value)
            }
            "templateRef.name" => state.reference_of(at).is_some_and(|reference| reference.name == self.value),
            "templateRef.template" => state.reference_of(at).is_some_and(|reference| reference.template == self.value),
            "phase" => node.phase.word() == self.value,
            key => match key.strip_prefix("inputs.parameters.").and_then(|key| key.strip_suffix(".value")) {
                Some(parameter) => node.input(parameter) == Some(self.value),
                None => false,
            },
        };
        found == self.equal
    }
}
