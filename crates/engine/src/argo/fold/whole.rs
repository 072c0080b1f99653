//! The part of the fold that is about the run as a whole: its beginning and end, what it gives away, and commands to it.

use octoflow_model::{
    RunFact, RunPhase,
    argo::WorkflowFact,
    meter::{Metered, Reading},
};

use crate::argo::run::{Run, Todo};

impl Run {
    /// Folds what the head's change means for the workflow.
    pub(super) fn follow_head(&mut self, fact: &RunFact) {
        match fact {
            RunFact::Submitted(_) | RunFact::Suspended { .. } | RunFact::Marked { .. } => {}
            RunFact::Resumed { .. } | RunFact::ShuttingDown { .. } | RunFact::DeadlinePassed { .. } => {
                self.look_everywhere()
            }
            RunFact::Ended { phase, message, at } => {
                self.state.phase = *phase;
                self.state.message.clone_from(message);
                self.state.ended = Some(*at);
                self.state.lock = None;
                self.state.following.clear();
                self.instances.clear();
                self.todo = Todo::default();
            }
        }
    }

    pub(super) fn apply_to_whole(&mut self, fact: &WorkflowFact) {
        match fact {
            WorkflowFact::Began { at, parameters, labels, annotations } => {
                self.state.head.describe(labels, annotations);
                self.state.phase = RunPhase::Running;
                self.state.began = Some(*at);
                self.state.parameters = parameters.iter().cloned().collect();
                if let Some(seconds) = self.program.workflow.spec.active_deadline_seconds {
                    let span = std::time::Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
                    self.todo.wakes.push((at.saturating_add(span), None));
                }
                self.todo.run = true;
            }
            WorkflowFact::Exported { parameter, artifact } => {
                if let Some((name, value)) = parameter {
                    self.state.exported.insert(name.clone(), value.clone());
                }
                if let Some(artifact) = artifact {
                    self.state.exported_artifacts.insert(artifact.name.clone(), artifact.clone());
                }
                self.look_at_watchers();
            }
            WorkflowFact::Metered(metered) => self.keep_gauge(metered),
            WorkflowFact::Unmetered { message } => self.state.unmetered = Some(message.clone()),
            _ => unreachable!("the fold hands on only these"),
        }
    }

    /// Of all metrics only those that follow the run are part of it; the others are the engine's.
    fn keep_gauge(&mut self, metered: &Metered) {
        if metered.reading == Reading::Follow {
            self.state.following.push(metered.clone());
        }
    }
}
