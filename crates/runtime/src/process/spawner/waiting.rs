//! Work in the spawner that waits for a shortage to pass: starts, and reports whose descriptor could not be duplicated.
//! It is retried with backoff, and the engine is notified of the reason. Nothing ends because of a shortage.

use std::time::Instant;

use octoflow_model::{ids::AttemptId, time::Time};

use super::{
    attempt::State,
    turn::Spawner,
    workers::{Job, Key},
};
use crate::{
    port::ConditionKind,
    process::{
        sys,
        wire::{Ended, FromSpawner, WireCondition},
    },
    shortage::{Backoff, Shortage},
};

#[derive(Default)]
pub(crate) struct Waiting {
    /// Starts that met a shortage; those that must be recorded in the ledger first are in the spawner's `to_record` and
    /// `jobs`.
    delayed: Vec<Job>,
    /// Attempts whose last report needs a descriptor that was not available.
    unreported: Vec<AttemptId>,
    /// Time at which everything that waits is retried.
    retry_at: Option<Instant>,
    backoff: Backoff,
    conditions: Vec<(ConditionKind, Time, String)>,
    /// True if the engine was not notified of the last change.
    news: bool,
}

impl Waiting {
    pub(crate) fn due(&self) -> Option<Instant> {
        self.retry_at
    }

    /// Returns whether the pause is not over yet, so that nothing is tried.
    pub(crate) fn is_paused(&self) -> bool {
        self.retry_at.is_some_and(|at| at > Instant::now())
    }

    pub(crate) fn pause(&mut self) {
        if self.retry_at.is_none() {
            self.retry_at = Some(Instant::now() + self.backoff.pause());
        }
    }

    pub(crate) fn add_condition(&mut self, kind: ConditionKind, why: String) {
        self.pause();
        match self.conditions.iter_mut().find(|(known, ..)| *known == kind) {
            Some((.., before)) if *before == why => {}
            Some((.., before)) => {
                *before = why;
                self.news = true;
            }
            None => {
                self.conditions.push((kind, sys::now(), why));
                self.news = true;
            }
        }
    }

    pub(crate) fn clear(&mut self, kind: ConditionKind) {
        let before = self.conditions.len();
        self.conditions.retain(|(known, ..)| *known != kind);
        if self.conditions.len() < before {
            self.news = true;
        }
    }

    /// Marks the conditions as unreported for a new engine.
    pub(crate) fn mark_unreported(&mut self) {
        self.news = !self.conditions.is_empty();
    }
}

impl Spawner {
    /// Delays a start that met a shortage.
    pub(super) fn delay(&mut self, job: Job, shortage: Shortage, why: &Ended) {
        let why = match why {
            Ended::NotStarted(why) | Ended::Environment(why) => why.as_str(),
            Ended::Code(_) | Ended::Signal(_) | Ended::OutOfMemory | Ended::Evicted(_) => "",
        };
        self.waiting.add_condition(ConditionKind::StartsDelayed, format!("{}. Tasks wait: {why}", shortage.advice()));
        self.waiting.delayed.push(job);
    }

    /// Delays a report until a descriptor is available.
    pub(super) fn report_later(&mut self, attempt: AttemptId) {
        self.waiting.add_condition(ConditionKind::StartsDelayed, Shortage::Descriptors.advice().to_owned());
        self.waiting.unreported.push(attempt);
    }

    /// Retries what waits, once its pause is over.
    pub(super) fn retry_waiting(&mut self) {
        if self.waiting.retry_at.is_none_or(|at| at > Instant::now()) {
            return;
        }
        self.waiting.retry_at = None;
        self.jobs.append(&mut self.waiting.delayed);
        for attempt in std::mem::take(&mut self.waiting.unreported) {
            self.report_again(attempt);
        }
    }

    /// Records a successful start: whatever was short is available again, at least a little.
    pub(super) fn start_succeeded(&mut self) {
        if !self.waiting.conditions.is_empty() {
            self.waiting.backoff.reset();
            if self.waiting.delayed.is_empty() && self.waiting.unreported.is_empty() {
                self.waiting.clear(ConditionKind::StartsDelayed);
            }
        }
    }

    /// Clears conditions that nothing waits for any more, because it was stopped or ended otherwise.
    fn clear_conditions(&mut self) {
        if self.waiting.conditions.is_empty() {
            return;
        }
        if self.to_record.is_empty() && self.jobs.is_empty() {
            self.waiting.clear(ConditionKind::LedgerUnwritable);
        }
        let being_made = |state: &State| matches!(state, State::Starting | State::Preparing);
        if self.waiting.delayed.is_empty()
            && self.waiting.unreported.is_empty()
            && !self.table.iter().any(|(_, entry)| being_made(&entry.state))
        {
            self.waiting.clear(ConditionKind::StartsDelayed);
        }
    }

    /// Takes back a start that was not passed to a thread yet.
    pub(super) fn withdraw(&mut self, key: Key, attempt: AttemptId) -> Option<Job> {
        self.to_record.retain(|to_record| *to_record != attempt);
        let lists = [&mut self.jobs, &mut self.waiting.delayed];
        lists.into_iter().find_map(|list| {
            let at = list.iter().position(|job| job.key() == key)?;
            Some(list.remove(at))
        })
    }

    pub(super) fn report_conditions(&mut self) {
        self.clear_conditions();
        if self.waiting.news && self.peer.as_ref().is_some_and(|peer| peer.handshaken) {
            self.waiting.news = false;
            let all = self.waiting.conditions.iter();
            let all = all.map(|(kind, since, why)| WireCondition::new(*kind, *since, why.clone())).collect();
            self.send(&FromSpawner::Conditions(all));
        }
    }
}
