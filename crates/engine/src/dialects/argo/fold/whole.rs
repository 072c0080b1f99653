//! Folds facts about the run as a whole: begin and end, exports, and commands.

use octoflow_model::{
    RunFact, RunPhase, Time,
    argo::OutputArtifactValue,
    meter::{Metered, Reading},
};

use super::Fold;
use crate::dialects::argo::todo::Note;

impl Fold<'_> {
    /// Folds what a change of the head means for the workflow.
    pub(super) fn follow_head(&mut self, fact: &RunFact) {
        match fact {
            RunFact::Submitted(_) | RunFact::Suspended { .. } | RunFact::Marked { .. } | RunFact::Deadlock { .. } => {}
            RunFact::Resumed { .. } | RunFact::ShuttingDown { .. } | RunFact::DeadlinePassed { .. } => {
                self.note(Note::RulesChanged)
            }
            RunFact::Ended { phase, message, at } => {
                self.state.enter(*phase);
                self.state.message.clone_from(message);
                self.state.ended = Some(*at);
                self.state.lock = None;
                self.state.following.clear();
                self.note(Note::Ended);
            }
        }
    }

    pub(super) fn begin(&mut self, at: Time, parameters: &[(String, String)]) {
        self.state.enter(RunPhase::Running);
        self.state.began = Some(at);
        self.state.parameters = parameters.iter().cloned().collect();
        if let Some(seconds) = self.program.workflow.spec.active_deadline_seconds {
            let span = std::time::Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
            self.note(Note::Wake(at.saturating_add(span), None));
        }
        self.note(Note::RunChanged);
    }

    pub(super) fn export(&mut self, parameter: Option<&(String, String)>, artifact: Option<&OutputArtifactValue>) {
        if let Some((name, value)) = parameter {
            self.state.exported.insert(name.clone(), value.clone());
        }
        if let Some(artifact) = artifact {
            self.state.exported_artifacts.insert(artifact.name.clone(), artifact.clone());
        }
        self.look_at_watchers();
    }

    /// Keeps only gauges that follow the run; all other metrics belong to the engine.
    pub(super) fn keep_gauge(&mut self, metered: &Metered) {
        if metered.reading == Reading::Follow {
            self.state.following.push(metered.clone());
        }
    }
}
