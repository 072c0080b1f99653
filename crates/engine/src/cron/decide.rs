//! Decides what to do about a CronWorkflow now. A total function: the same state always yields the same acts, and a
//! time that has been handled is never handled again, whatever the clock does.

use std::{collections::BTreeSet, fmt, time::Duration};

use octoflow_model::{RunId, Time};
use serde_json::Value;

use super::{CatchUp, Concurrency, Timetable, judge::ConditionEnv};

/// A time that passed longer ago than this, and was not seen in time, counts as missed. The maintenance thread looks
/// more often than this.
pub const ON_TIME: Duration = Duration::from_secs(90);

/// The times that have been handled.
pub trait Ledger {
    fn has(&self, nominal: Time) -> bool;

    /// Returns the newest handled time that is not after `until`.
    fn newest(&self, until: Time) -> Option<Time>;
}

/// Input of a decision besides the CronWorkflow itself.
pub struct CronState<'a> {
    pub now: Time,
    /// Time of the previous look without interruption; `None` for the first look after a start, a change or a pause.
    pub looked: Option<Time>,
    pub ledger: &'a dyn Ledger,
    /// Open runs of the CronWorkflow.
    pub active: &'a [RunId],
    pub succeeded: u64,
    pub failed: u64,
    /// Scheduled time of its last run.
    pub last: Option<Time>,
    /// True if its stop condition was met.
    pub stopped: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// The stop condition is met: it starts no further runs.
    Stop,
    /// End these runs, then start the one for this time.
    Start { nominal: Time, replaces: Vec<RunId> },
    /// Skip this time for good.
    Skip { nominal: Time, why: Skip },
    /// A condition cannot be evaluated.
    Trouble(String),
}

/// Why a time is skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Skip {
    /// An earlier run is still going on.
    Busy,
    /// The `when` condition is false, or cannot be evaluated.
    Unwanted,
    /// A newer time has passed already, and only the newest counts.
    Replaced,
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Busy => "an earlier run was still active",
            Self::Unwanted => "its condition did not hold",
            Self::Replaced => "a newer time had come already",
        })
    }
}

/// Returns when to decide again, if nothing else happens.
pub fn wake_at(timetable: &Timetable, state: &CronState<'_>) -> Option<Time> {
    if timetable.suspended || state.stopped { None } else { timetable.next_after(state.now) }
}

pub fn decide(timetable: &Timetable, object: &Value, state: &CronState<'_>) -> Vec<Act> {
    if state.stopped {
        return Vec::new();
    }
    let env = ConditionEnv::new(object, state);
    let mut acts = Vec::new();
    match timetable.stop.as_deref().map(|stop| env.stops(stop)) {
        Some(Ok(true)) => return vec![Act::Stop],
        Some(Err(why)) => return vec![Act::Trouble(why)],
        Some(Ok(false)) | None => {}
    }
    if timetable.suspended {
        return acts;
    }
    let due = due(timetable, state);
    let Some(newest) = due.last().copied() else { return acts };
    let mut trouble = None;
    let wanted = timetable.when.as_deref().is_none_or(|when| {
        env.runs(when).unwrap_or_else(|why| {
            trouble = Some(why);
            false
        })
    });
    acts.extend(trouble.map(Act::Trouble));
    let mut busy = !state.active.is_empty();
    for nominal in due {
        let act = match timetable.concurrency {
            _ if !wanted => Act::Skip { nominal, why: Skip::Unwanted },
            Concurrency::Forbid if busy => Act::Skip { nominal, why: Skip::Busy },
            Concurrency::Replace if nominal != newest => Act::Skip { nominal, why: Skip::Replaced },
            Concurrency::Replace => Act::Start { nominal, replaces: state.active.to_vec() },
            Concurrency::Allow | Concurrency::Forbid => Act::Start { nominal, replaces: Vec::new() },
        };
        busy |= matches!(act, Act::Start { .. });
        acts.push(act);
    }
    acts
}

/// Returns the times that are due, oldest first.
fn due(timetable: &Timetable, state: &CronState<'_>) -> BTreeSet<Time> {
    let now = state.now;
    // After the clock was set back, the previous look is void.
    let looked = state.looked.filter(|looked| *looked <= now);
    let fresh = Time(now.0.saturating_sub(i64::try_from(ON_TIME.as_micros()).unwrap_or(i64::MAX)));
    let seen = looked.map_or(now, |looked| looked.max(fresh));
    let mut due = BTreeSet::new();
    let mut at = seen;
    while let Some(next) = timetable.next_after(at).filter(|next| *next <= now) {
        due.insert(next);
        at = next;
    }
    due.extend(missed(timetable, state, looked, seen));
    due.retain(|nominal| !state.ledger.has(*nominal));
    due
}

/// Returns missed times that are to be caught up.
fn missed(timetable: &Timetable, state: &CronState<'_>, looked: Option<Time>, until: Time) -> Vec<Time> {
    let known = state.ledger.newest(until);
    // Without a `catchUp` policy, only a CronWorkflow that has run before can have missed a time.
    let since = match timetable.catch_up {
        Some(CatchUp::Skip) => return Vec::new(),
        Some(CatchUp::Latest | CatchUp::All(_)) => known.or(timetable.created),
        None if timetable.deadline.is_none() => return Vec::new(),
        None => known.or(state.last.filter(|last| *last <= until)),
    };
    let Some(since) = since.map(|since| looked.map_or(since, |looked| since.max(looked))) else { return Vec::new() };
    let most = match timetable.catch_up {
        Some(CatchUp::All(most)) => most,
        Some(CatchUp::Latest | CatchUp::Skip) | None => 1,
    };
    let mut missed = Vec::new();
    let mut at = until;
    while let Some(nominal) = timetable.latest(at).filter(|nominal| *nominal > since && missed.len() < most) {
        let late = state.now.since(nominal);
        if timetable.deadline.is_some_and(|deadline| late > deadline) {
            break;
        }
        missed.push(nominal);
        at = Time(nominal.0 - 1_000_000);
    }
    missed
}
