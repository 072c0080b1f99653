//! The run that came out of a walk: what the job notes of it when it is created, changes and ends. The job hears of it from
//! the engine, in the commit in which it happens; nothing is inferred from what exists.

use octoflow_model::{
    RunFact,
    request::Answer,
    submitted::{WalkEnd, WalkFact},
};
use serde_json::Value;

use super::{state::WalkStep, turn::Turn};
use crate::{
    dialects::dialect::{ChildEvent, Dialect, PhaseClass, StatusFields},
    engine::input::{Command, CommandKind},
    kinds,
    run::Run as AnyRun,
};

impl Turn<'_> {
    /// Takes what happened to the run that came out.
    pub(super) fn child(&mut self, event: ChildEvent<'_>) {
        match event {
            ChildEvent::Created(child) => self.created(child),
            ChildEvent::Changed(child) => {
                self.observe(child);
                if child.finished() {
                    self.child_ended(child);
                }
            }
            ChildEvent::Deleted(child) => {
                self.observe(child);
                let message = format!("its {} '{}' was deleted before its end", child.kind().noun, child.name());
                self.over(WalkEnd::Stopped, self.told_why(message));
            }
        }
    }

    fn created(&mut self, child: &AnyRun) {
        let kind = child.kind();
        self.decide(WalkFact::Made {
            at: self.now,
            run: child.id(),
            api_version: kind.api_version(),
            kind: kind.name.to_owned(),
            name: child.name().to_owned(),
            uid: child.uid().to_owned(),
        });
        self.observe(child);
        // Somebody has suspended the job while its run was on its way.
        let told = self.run.state.head.suspended && !child.head().suspended;
        if told && child.dialect().commands.contains(&CommandKind::Suspend) {
            self.effects.commands.push((child.id(), Command::Suspend));
        }
    }

    /// Notes how the run is, if that is not what the job knows.
    fn observe(&mut self, child: &AnyRun) {
        let Some(known) = &self.run.state.walk.child else { return };
        let class = child.dialect().phase_class(child.phase());
        let runs = class == Some(PhaseClass::Running) || child.finished() && child.began().is_some();
        let began = known.began.or_else(|| runs.then_some(self.now));
        let (phase, message, suspended) = (child.phase(), child.message(), child.head().suspended);
        let turned = suspended != known.suspended;
        if (known.phase.as_str(), known.message.as_str(), known.began, turned) == (phase, message, began, false) {
            return;
        }
        let (phase, message) = (phase.to_owned(), message.to_owned());
        self.decide(WalkFact::Observed { at: self.now, phase, message, began, suspended });
        // Whoever suspends the run suspends the job, and whoever resumes it resumes the job.
        if turned && !child.finished() && suspended != self.run.state.head.suspended {
            let at = self.now;
            self.decide(if suspended { RunFact::Suspended { at } } else { RunFact::Resumed { at } });
        }
    }

    fn child_ended(&mut self, child: &AnyRun) {
        let head = child.head();
        let deleted = head.ownership.as_ref().is_some_and(|ownership| ownership.deleted.is_some());
        let stopped = head.shutdown.is_some() || self.run.state.head.closing() || deleted;
        self.end_with(child.dialect(), child.phase(), child.message(), stopped);
    }

    /// Ends the job as its run has ended.
    fn end_with(&mut self, dialect: &Dialect, phase: &str, message: &str, stopped: bool) {
        let end = match dialect.phase_class(phase) {
            Some(PhaseClass::Succeeded) => WalkEnd::Succeeded,
            Some(PhaseClass::Failed) if !stopped => WalkEnd::Failed,
            Some(PhaseClass::Failed | PhaseClass::Waiting | PhaseClass::Running) | None => WalkEnd::Stopped,
        };
        let said =
            if message.is_empty() { format!("its {} is {phase}", dialect.kind.noun) } else { message.to_owned() };
        let message = match end {
            WalkEnd::Succeeded => message.to_owned(),
            WalkEnd::Failed => said,
            WalkEnd::Stopped => self.told_why(said),
        };
        self.over(end, message);
    }

    /// Takes the answer about a run that was not created, or that nobody follows here and is over.
    pub(super) fn child_answered(&mut self, answer: Answer) {
        match (self.run.state.walk.step, answer) {
            (WalkStep::Following, Answer::Object(object)) => self.found(&object),
            (_, Answer::Refused(why) | Answer::Failed(why)) => {
                let kind = self.run.state.walk.job["kind"].as_str().unwrap_or_default();
                self.over(WalkEnd::Failed, format!("its {kind} is refused: {why}"));
            }
            (_, Answer::Object(_) | Answer::Stopped | Answer::Http(_) | Answer::Listing(_) | Answer::Probed) => {
                self.over(WalkEnd::Stopped, self.told_why("its run was not created".to_owned()));
            }
        }
    }

    /// Takes the object of a run that is over, or `Null` if it is gone.
    fn found(&mut self, object: &Value) {
        let Some(known) = &self.run.state.walk.child else { return };
        let (name, kind) = (known.name.clone(), known.kind.clone());
        let Ok(dialect) = kinds::dialect_of(object) else {
            return self
                .over(WalkEnd::Stopped, self.told_why(format!("its {kind} '{name}' was deleted before its end")));
        };
        let status = &object["status"];
        let text = |path: &str| StatusFields::value(status, path).as_str().unwrap_or_default().to_owned();
        let (phase, message) = (dialect.phase_of(object).to_owned(), text(dialect.status.message));
        let began = known.began.or_else(|| octoflow_model::Time::parse(&text(dialect.status.started)));
        let suspended = known.suspended;
        let stopped = object["spec"]["shutdown"].is_string() || self.run.state.head.closing();
        self.decide(WalkFact::Observed {
            at: self.now,
            phase: phase.clone(),
            message: message.clone(),
            began,
            suspended,
        });
        self.end_with(dialect, &phase, &message, stopped);
    }
}
