//! Clearing away: runs whose time is up, runs beyond what is kept, and artifacts that could not be deleted before.
//! What cannot be deleted is tried again and can be seen; it never keeps anything else from being deleted.

use std::{collections::BTreeMap, time::Duration};

use octoflow_model::{RunId, Time};
use octoflow_store::{Batch, Change};

use crate::{Controller, Error, clock, controller::world, registry::kinds::of_runs, sweep};

mod retention;

pub use retention::{BadRetention, Keep, RetentionPolicy};

/// How many runs are deleted before somebody else may have a turn.
const AT_ONCE: usize = 64;

/// How often runs are counted, and artifacts tried again.
const PAUSE: Duration = Duration::from_secs(30);

/// The pause after the first failure; each further one is twice as long, up to an hour.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

/// Deletes what is due.
pub struct Expirer {
    retention: RetentionPolicy,
    failures: BTreeMap<RunId, Failure>,
    counted: Option<Time>,
    swept: Option<Time>,
}

/// A run that could not be deleted.
#[derive(Clone, Debug)]
struct Failure {
    tries: u32,
    again: Time,
    why: String,
}

/// Something that should be gone and is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overdue {
    pub what: String,
    pub tries: u32,
    pub why: String,
}

impl Expirer {
    pub fn new(retention: RetentionPolicy) -> Self {
        Self { retention, failures: BTreeMap::new(), counted: None, swept: None }
    }

    /// Deletes what is due in the engine's time, and says when to look again at the latest.
    pub fn look(&mut self, controller: &Controller, now: Time) -> Result<Option<Time>, Error> {
        let expired = self.expire(controller, now)?;
        let kept = self.retain(controller, now)?;
        let swept = self.sweep(controller, now)?;
        let again = self.failures.values().map(|failure| failure.again).min();
        Ok([expired, kept, swept, again].into_iter().flatten().min())
    }

    /// What should be gone and is not, with the reasons.
    pub fn overdue(&self) -> Vec<Overdue> {
        let one = |(run, failure): (&RunId, &Failure)| Overdue {
            what: format!("run {run}"),
            tries: failure.tries,
            why: failure.why.clone(),
        };
        self.failures.iter().map(one).collect()
    }

    /// Runs whose own time is up.
    fn expire(&mut self, controller: &Controller, now: Time) -> Result<Option<Time>, Error> {
        let reader = controller.store().reader()?;
        // Those that cannot be deleted stand first; others must come after them.
        for (due, run) in reader.expiries(AT_ONCE + self.failures.len())? {
            if due > now {
                return Ok(Some(due));
            }
            if !self.may_try(run, now) {
                continue;
            }
            if reader.run(run)?.is_some_and(|row| row.archived) {
                self.delete(controller, run, now)?;
            } else {
                // It is gone, or goes on again.
                controller.store().commit_wait(Batch::from(Change::Expire { run, due: None }))?;
            }
        }
        let more = reader.expiries(AT_ONCE + self.failures.len())?;
        Ok(more.into_iter().find(|(_, run)| !self.failures.contains_key(run)).map(|(due, _)| due.max(now)))
    }

    /// Runs beyond what is kept.
    fn retain(&mut self, controller: &Controller, now: Time) -> Result<Option<Time>, Error> {
        if self.retention.keeps_all() {
            return Ok(None);
        }
        if let Some(next) = rest(self.counted, now) {
            return Ok(Some(next));
        }
        self.counted = Some(now);
        let mut wake = now.saturating_add(PAUSE);
        // Each kind is counted by itself: many of one leave room for the others.
        let retention = self.retention;
        let kinds = of_runs().flat_map(|kind| retention.phases().map(|(phase, keep)| (kind.key, phase, keep)));
        for (kind, phase, keep) in kinds {
            let reader = controller.store().reader()?;
            let count = match keep.most {
                Some(_) => reader.count_finished(kind, phase)?,
                None => 0,
            };
            let surplus = count.saturating_sub(keep.most.unwrap_or(0));
            let oldest = reader.finished(kind, phase, AT_ONCE + self.failures.len())?;
            let mut tried = 0;
            for (at, row) in oldest.into_iter().enumerate() {
                let old = keep
                    .longest
                    .is_some_and(|longest| row.finished.is_some_and(|finished| clock::age(finished, now) >= longest));
                if at as u64 >= surplus && !old {
                    break;
                }
                if self.may_try(row.run, now) {
                    self.delete(controller, row.run, now)?;
                    tried += 1;
                }
            }
            if tried >= AT_ONCE {
                // There may be more, at once.
                (self.counted, wake) = (None, now);
            }
        }
        Ok(Some(wake))
    }

    /// Artifacts that could not be deleted before, once they have rested.
    fn sweep(&mut self, controller: &Controller, now: Time) -> Result<Option<Time>, Error> {
        if !sweep::is_open(controller.data_dir()) {
            return Ok(None);
        }
        if let Some(next) = rest(self.swept, now) {
            return Ok(Some(next));
        }
        self.swept = Some(now);
        let reader = controller.store().reader()?;
        let waiting = sweep::leftovers(controller.data_dir(), &reader)?;
        if !waiting.is_empty() {
            let world = world(&reader)?;
            waiting.into_iter().for_each(|doomed| controller.sweep(doomed.mission(&world)));
        }
        Ok(Some(now.saturating_add(PAUSE)))
    }

    fn may_try(&self, run: RunId, now: Time) -> bool {
        self.failures.get(&run).is_none_or(|failure| failure.again <= now)
    }

    fn delete(&mut self, controller: &Controller, run: RunId, now: Time) -> Result<(), Error> {
        match controller.delete_run(run) {
            Ok(_) | Err(Error::UnknownRun(_)) => {
                self.failures.remove(&run);
                Ok(())
            }
            Err(error @ Error::Gone) => Err(error),
            Err(error) => {
                let tries = self.failures.get(&run).map_or(0, |failure| failure.tries) + 1;
                let pause = FIRST_PAUSE.saturating_mul(1 << (tries - 1).min(20)).min(LONGEST_PAUSE);
                let failure = Failure { tries, again: now.saturating_add(pause), why: told(&error) };
                self.failures.insert(run, failure);
                Ok(())
            }
        }
    }
}

/// When it is time again, unless it is.
fn rest(last: Option<Time>, now: Time) -> Option<Time> {
    // A clock that went back has no say in it.
    let next = last.filter(|last| *last <= now)?.saturating_add(PAUSE);
    (next > now).then_some(next)
}

fn told(error: &Error) -> String {
    let source = std::error::Error::source(error).map_or(String::new(), |source| format!(": {source}"));
    format!("{error}{source}")
}
