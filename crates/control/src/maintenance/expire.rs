//! Expiry: deletes runs past their time to live, runs beyond the retention limits, and artifacts whose deletion failed
//! before. Failures are retried and reported; they never block other deletions.

use std::{collections::BTreeMap, time::Duration};

use octoflow_model::{RunId, Time};
use octoflow_store::{Batch, Change};

use crate::{Controller, Error, clock, controller::world, maintenance::sweep, registry::kinds::of_runs};

mod retention;

pub use retention::{BadRetention, PhaseRetention, RetentionPolicy};

/// Maximum number of runs deleted in one pass, so that other maintenance gets its turn.
const MAX_BATCH: usize = 64;

/// Interval for counting runs and retrying artifacts.
const INTERVAL: Duration = Duration::from_secs(30);

/// Pause after the first failure; doubled after each further one, up to an hour.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const MAX_PAUSE: Duration = Duration::from_secs(3600);

/// Deletes what has expired.
pub struct Expirer {
    retention: RetentionPolicy,
    failures: BTreeMap<RunId, Failure>,
    counted: Option<Time>,
    swept: Option<Time>,
}

/// Run whose deletion failed.
#[derive(Clone, Debug)]
struct Failure {
    tries: u32,
    retry_at: Time,
    why: String,
}

/// Deletion that failed and is overdue.
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

    /// Deletes what is due in engine time. Returns the latest time for the next call.
    pub fn run_due(&mut self, controller: &Controller, now: Time) -> Result<Option<Time>, Error> {
        let expired = self.expire(controller, now)?;
        let kept = self.retain(controller, now)?;
        let swept = self.sweep(controller, now)?;
        let retry_at = self.failures.values().map(|failure| failure.retry_at).min();
        Ok([expired, kept, swept, retry_at].into_iter().flatten().min())
    }

    /// Returns failed deletions with their errors.
    pub fn overdue(&self) -> Vec<Overdue> {
        let one = |(run, failure): (&RunId, &Failure)| Overdue {
            what: format!("run {run}"),
            tries: failure.tries,
            why: failure.why.clone(),
        };
        self.failures.iter().map(one).collect()
    }

    /// Deletes runs past their time to live.
    fn expire(&mut self, controller: &Controller, now: Time) -> Result<Option<Time>, Error> {
        let reader = controller.store().reader()?;
        // Failed ones come first, so more than their number must be read.
        for (due, run) in reader.expiries(MAX_BATCH + self.failures.len())? {
            if due > now {
                return Ok(Some(due));
            }
            if !self.may_try(run, now) {
                continue;
            }
            if reader.run(run)?.is_some_and(|row| row.archived) {
                self.delete(controller, run, now)?;
            } else {
                // It is gone, or was retried and is open again.
                controller.store().commit_wait(Batch::from(Change::Expire { run, due: None }))?;
            }
        }
        let more = reader.expiries(MAX_BATCH + self.failures.len())?;
        Ok(more.into_iter().find(|(_, run)| !self.failures.contains_key(run)).map(|(due, _)| due.max(now)))
    }

    /// Deletes runs beyond the retention limits.
    fn retain(&mut self, controller: &Controller, now: Time) -> Result<Option<Time>, Error> {
        if self.retention.keeps_all() {
            return Ok(None);
        }
        if let Some(next) = next_time(self.counted, now) {
            return Ok(Some(next));
        }
        self.counted = Some(now);
        let mut wake = now.saturating_add(INTERVAL);
        // Each kind is counted separately: many runs of one do not evict those of another.
        let retention = self.retention;
        let kinds = of_runs().flat_map(|kind| retention.phases().map(|(phase, keep)| (kind.key, phase, keep)));
        for (kind, phase, keep) in kinds {
            let reader = controller.store().reader()?;
            let count = match keep.max_count {
                Some(_) => reader.count_finished(kind, phase)?,
                None => 0,
            };
            let surplus = count.saturating_sub(keep.max_count.unwrap_or(0));
            let oldest = reader.finished(kind, phase, MAX_BATCH + self.failures.len())?;
            let mut tried = 0;
            for (at, row) in oldest.into_iter().enumerate() {
                let old = keep
                    .max_age
                    .is_some_and(|longest| row.finished.is_some_and(|finished| clock::age(finished, now) >= longest));
                if at as u64 >= surplus && !old {
                    break;
                }
                if self.may_try(row.run, now) {
                    self.delete(controller, row.run, now)?;
                    tried += 1;
                }
            }
            if tried >= MAX_BATCH {
                // There may be more to delete at once.
                (self.counted, wake) = (None, now);
            }
        }
        Ok(Some(wake))
    }

    /// Retries artifact deletions whose pause is over.
    fn sweep(&mut self, controller: &Controller, now: Time) -> Result<Option<Time>, Error> {
        if !sweep::has_queued(controller.data_dir()) {
            return Ok(None);
        }
        if let Some(next) = next_time(self.swept, now) {
            return Ok(Some(next));
        }
        self.swept = Some(now);
        let reader = controller.store().reader()?;
        let waiting = sweep::due_deletions(controller.data_dir(), &reader)?;
        if !waiting.is_empty() {
            let world = world(&reader)?;
            waiting.into_iter().for_each(|deletion| controller.sweep(deletion.locate(&world)));
        }
        Ok(Some(now.saturating_add(INTERVAL)))
    }

    fn may_try(&self, run: RunId, now: Time) -> bool {
        self.failures.get(&run).is_none_or(|failure| failure.retry_at <= now)
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
                let pause = FIRST_PAUSE.saturating_mul(1 << (tries - 1).min(20)).min(MAX_PAUSE);
                let failure = Failure { tries, retry_at: now.saturating_add(pause), why: error_text(&error) };
                self.failures.insert(run, failure);
                Ok(())
            }
        }
    }
}

/// Returns the next time if it is in the future.
fn next_time(last: Option<Time>, now: Time) -> Option<Time> {
    // A clock that was set back is ignored.
    let next = last.filter(|last| *last <= now)?.saturating_add(INTERVAL);
    (next > now).then_some(next)
}

fn error_text(error: &Error) -> String {
    let source = std::error::Error::source(error).map_or(String::new(), |source| format!(": {source}"));
    format!("{error}{source}")
}
