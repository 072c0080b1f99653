//! The state of a flow, and the fold that applies facts to it. The fold never decides, fails or reads the time.

use std::collections::BTreeSet;

use octoflow_model::{
    RunId, Time,
    jobflow::{FlowFact, JobEnd, TaskCounts},
    volcano::JobPhase,
};

/// State folded from the facts. Two folds of the same facts are equal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    pub entries: Vec<Entry>,
}

/// An entry of the flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    pub stage: Stage,
    /// Number of tries so far, the current one included.
    pub tries: u32,
    /// The job of the current try, once it was made.
    pub job: Option<Job>,
    /// Why the job of the current try cannot be made yet, or how the last try ended.
    pub message: String,
    /// Conditions of its probe that hold, or held once.
    pub met: BTreeSet<u32>,
    /// Phases that its jobs had, with the time at which each began, the oldest first.
    pub history: Vec<(JobPhase, Time)>,
    /// When its first job was made, and when its last one was over.
    pub started: Option<Time>,
    pub ended: Option<Time>,
}

/// Where an entry is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// No try was ordered.
    #[default]
    Waiting,
    /// A try was ordered, and its job is not made yet.
    Wanted,
    /// The job of the current try is there.
    Active,
    /// The last try failed, and another one follows at this time.
    BackOff(Time),
    /// Nothing follows.
    Over(JobEnd),
}

/// A job of the flow, as far as the flow was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub run: RunId,
    pub name: String,
    pub uid: String,
    pub phase: JobPhase,
    /// How often it was restarted.
    pub restarts: u32,
    pub tasks: TaskCounts,
}

impl State {
    pub fn new(entries: usize) -> Self {
        Self { entries: vec![Entry::default(); entries] }
    }

    /// Folds one fact into the state. A fact of an entry that does not exist changes nothing.
    pub fn apply(&mut self, fact: &FlowFact) {
        let number = match fact {
            FlowFact::Wanted { entry, .. }
            | FlowFact::Held { entry, .. }
            | FlowFact::Made { entry, .. }
            | FlowFact::Observed { entry, .. }
            | FlowFact::ConditionMet { entry, .. }
            | FlowFact::Ended { entry, .. } => *entry,
        };
        if let Some(entry) = self.entries.get_mut(number as usize) {
            entry.apply(fact);
        }
    }

    /// Returns the number of completed entries.
    pub fn completed(&self) -> usize {
        self.entries.iter().filter(|entry| entry.stage == Stage::Over(JobEnd::Completed)).count()
    }
}

impl Entry {
    fn apply(&mut self, fact: &FlowFact) {
        match fact {
            FlowFact::Wanted { .. } => {
                self.stage = Stage::Wanted;
                self.tries += 1;
                self.job = None;
                self.message.clear();
            }
            FlowFact::Held { why, .. } => self.message.clone_from(why),
            FlowFact::Made { at, run, name, uid, .. } => {
                let phase = JobPhase::Pending;
                let (name, uid) = (name.clone(), uid.clone());
                self.stage = Stage::Active;
                self.message.clear();
                self.started = self.started.or(Some(*at));
                self.job = Some(Job { run: *run, name, uid, phase, restarts: 0, tasks: TaskCounts::new() });
                self.history.push((phase, *at));
            }
            FlowFact::Observed { at, phase, restarts, tasks, .. } => {
                let Some(job) = &mut self.job else { return };
                if job.phase != *phase {
                    self.history.push((*phase, *at));
                }
                job.phase = *phase;
                job.restarts = *restarts;
                job.tasks.clone_from(tasks);
            }
            FlowFact::ConditionMet { condition, .. } => {
                self.met.insert(*condition);
            }
            FlowFact::Ended { at, end, message, again, .. } => {
                self.stage = again.map_or(Stage::Over(*end), Stage::BackOff);
                self.message.clone_from(message);
                self.ended = Some(*at);
            }
        }
    }

    /// Reports whether its job is completed. That is remembered whatever becomes of the job.
    pub fn is_completed(&self) -> bool {
        let now = self.stage == Stage::Active && self.job.as_ref().is_some_and(|job| job.phase == JobPhase::Completed);
        now || self.stage == Stage::Over(JobEnd::Completed)
    }

    /// Reports whether it has come to nothing for good.
    pub fn has_failed(&self) -> bool {
        match self.stage {
            Stage::Over(end) => end != JobEnd::Completed,
            Stage::Waiting | Stage::Wanted | Stage::Active | Stage::BackOff(_) => false,
        }
    }

    /// Reports whether a job of it is there, or was.
    pub fn is_deployed(&self) -> bool {
        self.started.is_some()
    }

    /// Reports whether a try is ordered or under way.
    pub fn is_active(&self) -> bool {
        matches!(self.stage, Stage::Wanted | Stage::Active)
    }
}
