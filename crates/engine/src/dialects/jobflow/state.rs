//! The state of a flow, and the fold that applies facts to it. The fold never decides, fails or reads the time.

use std::collections::{BTreeMap, BTreeSet};

use octoflow_model::{
    RunId, Time,
    jobflow::{EntryResult, FlowFact, FormerJob, JobEnd, TaskCounts},
    volcano::JobPhase,
};

/// Most phases of an entry that are remembered: a job may be preempted for ever.
const MAX_HISTORY: usize = 128;

/// State folded from the facts. Two folds of the same facts are equal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    pub entries: Vec<Entry>,
    pub removal: Removal,
}

/// Deletion of the jobs of a flow that has succeeded, if its policy wants that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Removal {
    #[default]
    Unwanted,
    UnderWay,
    /// Over; holds what could not be deleted.
    Done(String),
}

/// Tests of a condition of an entry's probe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Test {
    /// How often the addresses were replaced.
    pub attempts: u32,
    /// The addresses under test; empty while nothing is tested.
    pub addresses: Vec<String>,
}

/// An entry of the flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    pub stage: Stage,
    /// Number of tries so far, the current one included.
    pub tries: u32,
    /// Number of tries of the flow that this one replaced. Their jobs keep their names.
    pub earlier: u32,
    /// Restarts of earlier tries, the tries after them included.
    pub earlier_restarts: u32,
    /// The job of the current try, once it was made.
    pub job: Option<Job>,
    /// The jobs of earlier tries, the oldest first.
    pub former: Vec<FormerJob>,
    /// Why the job of the current try cannot be made yet, or how the last try ended.
    pub message: String,
    /// Conditions of its probe that hold, or held once.
    pub met: BTreeSet<u32>,
    /// Tests of its conditions under way, by condition.
    pub tests: BTreeMap<u32, Test>,
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
    /// `None` for one of the flow that this one replaced.
    pub run: Option<RunId>,
    pub name: String,
    pub uid: String,
    /// `None` for one of the flow that this one replaced.
    pub made: Option<Time>,
    pub phase: JobPhase,
    /// How often its phase has changed.
    pub changes: u32,
    /// How often it was restarted.
    pub restarts: u32,
    pub tasks: TaskCounts,
}

impl State {
    pub fn new(entries: usize) -> Self {
        Self { entries: vec![Entry::default(); entries], removal: Removal::default() }
    }

    /// Takes over what is known of an entry from the flow that this one replaces.
    pub(super) fn restore(&mut self, entry: usize, before: &EntryResult) {
        let Some(entry) = self.entries.get_mut(entry) else { return };
        entry.earlier = before.tries;
        entry.earlier_restarts = before.restarts;
        entry.history.clone_from(&before.history);
        entry.met.clone_from(&before.met);
        entry.former.clone_from(&before.former);
        (entry.started, entry.ended) = (before.started, before.ended);
        match &before.job {
            Some(job) => {
                entry.stage = Stage::Over(JobEnd::Completed);
                entry.job = Some(Job {
                    run: None,
                    name: job.name.clone(),
                    uid: job.uid.clone(),
                    made: None,
                    phase: JobPhase::Completed,
                    changes: 0,
                    restarts: 0,
                    tasks: job.tasks.clone(),
                });
            }
            // A retry that has not begun is not deployed, whatever was before.
            None => (entry.started, entry.ended) = (None, None),
        }
    }

    /// Folds one fact into the state. A fact of an entry that does not exist changes nothing.
    pub fn apply(&mut self, fact: &FlowFact) {
        match fact {
            FlowFact::Removing { .. } => self.removal = Removal::UnderWay,
            FlowFact::Removed { message, .. } => self.removal = Removal::Done(message.clone()),
            FlowFact::Wanted { .. }
            | FlowFact::Held { .. }
            | FlowFact::Made { .. }
            | FlowFact::Observed { .. }
            | FlowFact::Probing { .. }
            | FlowFact::ConditionMet { .. }
            | FlowFact::Ended { .. } => {}
        }
        if let Some(entry) = Self::entry_of(fact).and_then(|number| self.entries.get_mut(number)) {
            entry.apply(fact);
        }
    }

    /// Returns the entry that a fact is about.
    pub fn entry_of(fact: &FlowFact) -> Option<usize> {
        match fact {
            FlowFact::Wanted { entry, .. }
            | FlowFact::Held { entry, .. }
            | FlowFact::Made { entry, .. }
            | FlowFact::Observed { entry, .. }
            | FlowFact::Probing { entry, .. }
            | FlowFact::ConditionMet { entry, .. }
            | FlowFact::Ended { entry, .. } => Some(*entry as usize),
            FlowFact::Removing { .. } | FlowFact::Removed { .. } => None,
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
                // What is tried again was restarted, and so often before that.
                if let Some(Job { name, uid, made, restarts, .. }) = self.job.take() {
                    self.earlier_restarts += restarts;
                    let (ended, message) = (self.ended, std::mem::take(&mut self.message));
                    self.former.push(FormerJob { name, uid, made, ended, message });
                }
                self.earlier_restarts += u32::from(self.tries + self.earlier > 0);
                self.stage = Stage::Wanted;
                self.tries += 1;
                self.message.clear();
            }
            FlowFact::Held { why, .. } => self.message.clone_from(why),
            FlowFact::Made { at, run, name, uid, .. } => {
                let phase = JobPhase::Pending;
                let (name, uid) = (name.clone(), uid.clone());
                self.stage = Stage::Active;
                self.message.clear();
                self.started = self.started.or(Some(*at));
                let (run, made, tasks) = (Some(*run), Some(*at), TaskCounts::new());
                self.job = Some(Job { run, name, uid, made, phase, changes: 0, restarts: 0, tasks });
                self.remember(phase, *at);
            }
            FlowFact::Observed { at, phase, restarts, tasks, changes, .. } => {
                let Some(job) = &mut self.job else { return };
                let is_new = job.phase != *phase;
                // Earlier journals do not count them.
                job.changes = if *changes > 0 { *changes } else { job.changes + u32::from(is_new) };
                job.phase = *phase;
                job.restarts = *restarts;
                job.tasks.clone_from(tasks);
                if is_new {
                    self.remember(*phase, *at);
                }
            }
            FlowFact::Probing { condition, addresses, .. } => {
                let test = self.tests.entry(*condition).or_default();
                test.attempts += 1;
                test.addresses.clone_from(addresses);
            }
            FlowFact::ConditionMet { condition, .. } => {
                self.met.insert(*condition);
                self.message.clear();
                // Its attempts stay counted: one that answers late is of an earlier number.
                if let Some(test) = self.tests.get_mut(condition) {
                    test.addresses.clear();
                }
            }
            FlowFact::Ended { at, end, message, again, .. } => {
                self.stage = again.map_or(Stage::Over(*end), Stage::BackOff);
                self.message.clone_from(message);
                self.ended = Some(*at);
            }
            FlowFact::Removing { .. } | FlowFact::Removed { .. } => {}
        }
    }

    fn remember(&mut self, phase: JobPhase, at: Time) {
        if self.history.len() == MAX_HISTORY {
            self.history.remove(0);
        }
        self.history.push((phase, at));
    }

    /// Returns the number of the current try among all of its jobs, from 0.
    pub fn number(&self) -> u32 {
        (self.earlier + self.tries).saturating_sub(1)
    }

    /// Returns how often its jobs were restarted, a further try included.
    pub fn restarts(&self) -> u32 {
        self.earlier_restarts + self.job.as_ref().map_or(0, |job| job.restarts)
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
