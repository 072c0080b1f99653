//! Runs that resource templates create: the node waits for the run it has ordered, and is judged by its conditions each time
//! that run changes. Who creates the run is not known here.

use octoflow_model::{NodeIx, argo::WorkflowFact, request::Answer};
use serde_json::Value;

use super::{
    condition::{self, Condition, ConditionResult},
    run::Run,
    turn::Turn,
};
use crate::{dialects::dialect::ChildEvent, engine::input::Command, run::Run as AnyRun};

/// The conditions of a resource template.
struct Conditions {
    success: Option<Condition>,
    failure: Option<Condition>,
}

impl Conditions {
    fn parse(success: Option<&str>, failure: Option<&str>) -> Result<Self, String> {
        let parse = |text: Option<&str>| text.filter(|text| !text.trim().is_empty()).map(Condition::parse).transpose();
        Ok(Self { success: parse(success)?, failure: parse(failure)? })
    }

    fn is_empty(&self) -> bool {
        self.success.is_none() && self.failure.is_none()
    }

    /// Reports whether the conditions read only what changes when the run as a whole does.
    fn is_shallow(&self) -> bool {
        [&self.success, &self.failure].into_iter().flatten().all(Condition::shallow)
    }
}

impl Run {
    /// Reports whether a node waits for something that only a part of its child can change.
    pub(super) fn follows_parts_of(&self, at: NodeIx, child: &AnyRun) -> bool {
        if !child.dialect().has_run_level_changes {
            return true;
        }
        // A node whose template is not filled in yet is judged to be on the safe side.
        let Some(instance) = self.instances.get(&at) else { return true };
        let Some(asked) = &instance.template.resource else { return false };
        let conditions = Conditions::parse(asked.success_condition.as_deref(), asked.failure_condition.as_deref());
        conditions.is_ok_and(|conditions| !conditions.is_shallow())
    }
}

impl Turn<'_> {
    /// Takes what happened to the run that a node has ordered.
    pub(super) fn child(&mut self, at: NodeIx, event: ChildEvent<'_>) {
        let Some(leaf) = self.run.state.node(at).leaf() else { return };
        let answer = match event {
            ChildEvent::Created(child) => {
                let (name, uid) = (child.name().to_owned(), child.uid().to_owned());
                self.decide(WorkflowFact::ChildCreated { node: at, at: self.now, run: child.id(), name, uid });
                self.judge_child(at, child)
            }
            ChildEvent::Changed(child) => self.judge_child(at, child),
            ChildEvent::Deleted(child) => {
                Some(Answer::Failed(format!("{} was deleted while it was waited for", described(child))))
            }
        };
        if let Some(answer) = answer {
            self.answered(at, leaf, &answer);
        }
    }

    /// Evaluates the conditions of a node over its child; `None` while neither holds and the child goes on.
    fn judge_child(&mut self, at: NodeIx, child: &AnyRun) -> Option<Answer> {
        let (conditions, wants_all) = match self.instance(at) {
            Ok(instance) => {
                let asked = instance.template.resource.as_ref()?;
                let conditions =
                    Conditions::parse(asked.success_condition.as_deref(), asked.failure_condition.as_deref());
                let outputs = &instance.template.outputs.parameters;
                (conditions, outputs.iter().any(|parameter| parameter.value_from.is_some()))
            }
            Err(why) => (Err(why), false),
        };
        let conditions = match conditions {
            Ok(conditions) => conditions,
            Err(why) => return Some(Answer::Refused(why)),
        };
        // The parts of a large run are rendered only for those who read them.
        let seen: Value = if conditions.is_shallow() { child.summary() } else { child.object() };
        let result = match conditions.is_empty() {
            true => ConditionResult::Succeeded,
            false => condition::evaluate(conditions.success.as_ref(), conditions.failure.as_ref(), &seen),
        };
        match result {
            ConditionResult::Succeeded => {
                Some(Answer::Object(if wants_all && conditions.is_shallow() { child.object() } else { seen }))
            }
            ConditionResult::Failed(why) => Some(Answer::Failed(why)),
            // A finished run never changes again.
            ConditionResult::Pending if child.finished() => Some(Answer::Failed(format!(
                "{} ended {}, and the success condition does not hold",
                described(child),
                child.phase()
            ))),
            ConditionResult::Pending => None,
        }
    }

    /// Ends the child of a node that is ended early, if the child belongs to this run.
    pub(super) fn leave_child(&mut self, at: NodeIx, at_once: bool) {
        let Some(child) = self.run.state.children.get(&at).copied() else { return };
        let owned = self
            .instance(at)
            .ok()
            .and_then(|instance| instance.template.resource.as_ref().map(|asked| asked.set_owner_reference));
        if owned == Some(true) {
            self.effects.commands.push((child, if at_once { Command::Terminate } else { Command::Stop }));
        }
    }
}

/// Describes a run in messages, such as `workflow 'w'`.
fn described(child: &AnyRun) -> String {
    format!("{} '{}'", child.kind().noun, child.name())
}
