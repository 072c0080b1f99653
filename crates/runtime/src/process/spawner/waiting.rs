//! Work in the spawner that waits for a shortage to pass: starts, and reports whose descriptor could not be duplicated.
//! It is retried with backoff, and the engine is notified of the reason. Nothing ends because of a shortage.

use std::time::Instant;

use octoflow_model::{ids::AttemptId, time::Time};

use super::{
    attempt::State,
    hands::{Job, Key},
    turn::Spawner,
};
use crate::{
    port::ConditionKind,
    process::{
        sys,
        wire::{Ended, FromSpawner, Hindrance},
    },
    shortage::{Backoff, Shortage},
};

#[derive(Default)]
pub(crate) struct Waiting {
    /// Starts that met a shortage; those that must be recorded in the ledger first are in the spawner's `noted` and
    /// `jobs`.
    delayed: Vec<Job>,
    /// Attempts whose last report needs a descriptor that was not available.
    untold: Vec<AttemptId>,
    /// Time at which everything that waits is retried.
    again_at: Option<Instant>,
    backoff: Backoff,
    hindrances: Vec<(ConditionKind, Time, String)>,
    /// True if the engine was not notified of the last change.
    news: bool,
}

impl Waiting {
    pub(crate) fn due(&self) -> Option<Instant> {
        self.again_at
    }

    /// Returns whether the pause is not over yet, so that nothing is tried.
    pub(crate) fn holds_back(&self) -> bool {
        self.again_at.is_some_and(|at| at > Instant::now())
    }

    pub(crate) fn pause(&mut self) {
        if self.again_at.is_none() {
            self.again_at = Some(Instant::now() + self.backoff.pause());
        }
    }

    pub(crate) fn hinder(&mut self, kind: ConditionKind, why: String) {
        self.pause();
        match self.hindrances.iter_mut().find(|(known, ..)| *known == kind) {
            Some((.., before)) if *before == why => {}
            Some((.., before)) => {
                *before = why;
                self.news = true;
            }
            None => {
                self.hindrances.push((kind, sys::now(), why));
                self.news = true;
            }
        }
    }

    pub(crate) fn clear(&mut self, kind: ConditionKind) {
        let before = self.hindrances.len();
        self.hindrances.retain(|(known, ..)| *known != kind);
        if self.hindrances.len() < before {
            self.news = true;
        }
    }

    /// Marks the conditions as unreported for a new engine.
    pub(crate) fn tell_anew(&mut self) {
        self.news = !self.hindrances.is_empty();
    }
}

impl Spawner {
    /// Delays a start that met a shortage.
    pub(super) fn delay(&mut self, job: Job, shortage: Shortage, why: &Ended) {
        let why = match why {
            Ended::NotStarted(why) | Ended::Environment(why) => why.as_str(),
            Ended::Code(_) | Ended::Signal(_) | Ended::OutOfMemory | Ended::Evicted(_) => "",
        };
        self.waiting.hinder(ConditionKind::StartsDelayed, format!("{}. Tasks wait: {why}", shortage.advice()));
        self.waiting.delayed.push(job);
    }

    /// Delays a report until a descriptor is available.
    pub(super) fn tell_later(&mut self, attempt: AttemptId) {
        self.waiting.hinder(ConditionKind::StartsDelayed, Shortage::Descriptors.advice().to_owned());
        self.waiting.untold.push(attempt);
    }

    /// Retries what waits, once its pause is over.
    pub(super) fn try_again(&mut self) {
        if self.waiting.again_at.is_none_or(|at| at > Instant::now()) {
            return;
        }
        self.waiting.again_at = None;
        self.jobs.append(&mut self.waiting.delayed);
        for attempt in std::mem::take(&mut self.waiting.untold) {
            self.tell_again(attempt);
        }
    }

    /// Records a successful start: whatever was short is available again, at least a little.
    pub(super) fn relieved(&mut self) {
        if !self.waiting.hindrances.is_empty() {
            self.waiting.backoff.reset();
            if self.waiting.delayed.is_empty() && self.waiting.untold.is_empty() {
                self.waiting.clear(ConditionKind::StartsDelayed);
            }
        }
    }

    /// Clears conditions that nothing waits for any more, because it was stopped or ended otherwise.
    fn clear_hindrances(&mut self) {
        if self.waiting.hindrances.is_empty() {
            return;
        }
        if self.noted.is_empty() && self.jobs.is_empty() {
            self.waiting.clear(ConditionKind::LedgerUnwritable);
        }
        let being_made = |state: &State| matches!(state, State::Starting | State::Preparing);
        if self.waiting.delayed.is_empty()
            && self.waiting.untold.is_empty()
            && !self.table.iter().any(|(_, entry)| being_made(&entry.state))
        {
            self.waiting.clear(ConditionKind::StartsDelayed);
        }
    }

    /// Takes back a start that was not passed to a thread yet.
    pub(super) fn withdraw(&mut self, key: Key, attempt: AttemptId) -> Option<Job> {
        self.noted.retain(|noted| *noted != attempt);
        let lists = [&mut self.jobs, &mut self.waiting.delayed];
        lists.into_iter().find_map(|list| {
            let at = list.iter().position(|job| job.key() == key)?;
            Some(list.remove(at))
        })
    }

    pub(super) fn tell_hindrances(&mut self) {
        self.clear_hindrances();
        if self.waiting.news && self.peer.as_ref().is_some_and(|peer| peer.greeted) {
            self.waiting.news = false;
            let all = self.waiting.hindrances.iter();
            let all = all.map(|(kind, since, why)| Hindrance::new(*kind, *since, why.clone())).collect();
            self.say(&FromSpawner::Hindered(all));
        }
    }
}
