//! What follows from a flow as it is: pure, total functions over program and state. Each call looks at the whole, so
//! calling twice decides nothing twice; turns ask the index, which tells the same. Nothing here knows who makes jobs.

use std::time::Duration;

use octoflow_model::{
    Time,
    jobflow::{FlowFact, FlowPhase, JobEnd, Strategy},
    volcano::JobPhase,
};

use super::{
    program::{LONGEST_BACKOFF, Plan, Program},
    state::{Entry, Stage, State},
};

/// Whether what an entry waits for has come so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryGate {
    Open,
    Closed,
    /// It never will.
    Never,
}

/// What the flow as a whole was told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// No further try is ordered until it is resumed.
    pub suspended: bool,
    /// No further try is ordered at all.
    pub closing: bool,
    /// The object is being deleted.
    pub deleted: bool,
}

/// Returns of every entry whether what it waits for has come so far. Takes time linear to the graph.
pub fn gates(program: &Program, state: &State) -> Vec<EntryGate> {
    let mut gates = vec![EntryGate::Closed; program.entries.len()];
    for at in program.order.iter().copied() {
        gates[at] = gate(&program.entries[at], at, state, &gates);
    }
    gates
}

fn gate(plan: &Plan, at: usize, state: &State, gates: &[EntryGate]) -> EntryGate {
    let entry = &state.entries[at];
    if entry.tries > 0 || plan.needs.is_empty() {
        return EntryGate::Open;
    }
    // One that was never ordered and never will be is as lost as one that failed.
    let is_lost = |up: usize| {
        let needed = &state.entries[up];
        needed.has_failed() || needed.stage == Stage::Waiting && gates[up] == EntryGate::Never
    };
    let targets = plan.needs.iter().map(|up| {
        let needed = &state.entries[*up];
        let open = if plan.conditions == 0 { needed.is_completed() } else { needed.is_deployed() };
        match open {
            true => EntryGate::Open,
            false if is_lost(*up) => EntryGate::Never,
            false => EntryGate::Closed,
        }
    });
    let of_targets = joined(plan.strategy, targets);
    if plan.conditions == 0 {
        return of_targets;
    }
    // Conditions are about running targets: once all are over, what does not hold never will.
    let over = |up: &usize| is_lost(*up) || matches!(state.entries[*up].stage, Stage::Over(_));
    let missing = if plan.needs.iter().all(over) { EntryGate::Never } else { EntryGate::Closed };
    let conditions =
        (0..plan.conditions).map(|number| if entry.met.contains(&(number as u32)) { EntryGate::Open } else { missing });
    joined(Strategy::All, [of_targets, joined(plan.strategy, conditions)].into_iter())
}

/// Joins gates: all must be open, or one of them.
fn joined(strategy: Strategy, gates: impl Iterator<Item = EntryGate>) -> EntryGate {
    let (mut open, mut closed, mut never) = (0, 0, 0);
    for gate in gates {
        match gate {
            EntryGate::Open => open += 1,
            EntryGate::Closed => closed += 1,
            EntryGate::Never => never += 1,
        }
    }
    tally(strategy, open, closed, never)
}

/// Joins so many gates of each kind.
pub(super) fn tally(strategy: Strategy, open: usize, closed: usize, never: usize) -> EntryGate {
    match strategy {
        Strategy::All if never > 0 => EntryGate::Never,
        Strategy::All if closed > 0 => EntryGate::Closed,
        Strategy::All => EntryGate::Open,
        Strategy::Any if open > 0 => EntryGate::Open,
        Strategy::Any if closed > 0 => EntryGate::Closed,
        Strategy::Any => EntryGate::Never,
    }
}

/// Returns the tries to order now, in manifest order.
pub fn wanted(program: &Program, state: &State, told: Conditions, now: Time) -> Vec<FlowFact> {
    if told.suspended || told.closing || told.deleted {
        return Vec::new();
    }
    let gates = gates(program, state);
    let is_due = |(at, entry): &(usize, &Entry)| match entry.stage {
        Stage::Waiting => gates[*at] == EntryGate::Open,
        Stage::BackOff(until) => until <= now,
        Stage::Wanted | Stage::Active | Stage::Over(_) => false,
    };
    let due = state.entries.iter().enumerate().filter(is_due);
    due.map(|(at, _)| FlowFact::Wanted { entry: at as u32, at: now }).collect()
}

/// Returns the fact that a try is over. A job that failed by itself, or could not be made, is followed by another try while
/// there are retries; one that somebody ended or deleted is not.
pub fn ended(program: &Program, state: &State, at: usize, end: JobEnd, message: String, now: Time) -> FlowFact {
    let (plan, tries) = (&program.entries[at], state.entries[at].tries);
    let retried = match end {
        JobEnd::Failed | JobEnd::Refused => tries > 0 && tries <= plan.retries,
        JobEnd::Completed | JobEnd::Terminated | JobEnd::Deleted | JobEnd::Stopped => false,
    };
    let again = retried.then(|| now.saturating_add(delay(plan.backoff, tries)));
    FlowFact::Ended { entry: at as u32, at: now, end, message, again }
}

/// Returns how long to wait after this number of tries.
pub fn delay(first: Duration, tries: u32) -> Duration {
    let doubled = first.saturating_mul(1u32.checked_shl(tries.saturating_sub(1)).unwrap_or(u32::MAX));
    doubled.min(LONGEST_BACKOFF.max(first))
}

/// Returns the end that a final phase of a job stands for; `None` while it may go on.
pub fn end_of(phase: JobPhase) -> Option<JobEnd> {
    match phase {
        JobPhase::Completed => Some(JobEnd::Completed),
        JobPhase::Failed => Some(JobEnd::Failed),
        JobPhase::Terminated => Some(JobEnd::Terminated),
        JobPhase::Pending
        | JobPhase::Running
        | JobPhase::Restarting
        | JobPhase::Aborting
        | JobPhase::Aborted
        | JobPhase::Completing
        | JobPhase::Terminating => None,
    }
}

/// Reports whether nothing is active and nothing may start any more.
pub fn is_over(program: &Program, state: &State, told: Conditions) -> bool {
    let closing = told.closing || told.deleted;
    let gates = if closing { Vec::new() } else { gates(program, state) };
    state.entries.iter().enumerate().all(|(at, entry)| match entry.stage {
        Stage::Wanted | Stage::Active => false,
        Stage::Waiting => closing || gates[at] == EntryGate::Never,
        Stage::BackOff(_) => closing,
        Stage::Over(_) => true,
    })
}

/// Returns the phase of the flow. It follows from the jobs alone, whatever it was before.
pub fn phase(program: &Program, state: &State, told: Conditions) -> FlowPhase {
    let has_begun = |entry: &Entry| entry.job.as_ref().is_some_and(|job| job.phase != JobPhase::Pending);
    if told.deleted {
        FlowPhase::Terminating
    } else if state.entries.iter().all(Entry::is_completed) {
        FlowPhase::Succeed
    } else if is_over(program, state, told) {
        FlowPhase::Failed
    } else if state.entries.iter().any(|entry| has_begun(entry) || entry.ended.is_some()) {
        FlowPhase::Running
    } else {
        FlowPhase::Pending
    }
}

/// Names of entries that were not started, in a message.
const NAMED: usize = 3;

/// Returns why a flow that did not succeed did not, in one sentence.
pub fn failure(program: &Program, state: &State) -> String {
    let failed = |(at, entry): (usize, &Entry)| {
        let why = if entry.message.is_empty() { String::new() } else { format!(" ({})", entry.message) };
        entry.has_failed().then(|| format!("'{}'{why}", program.name(at)))
    };
    let names: Vec<String> = state.entries.iter().enumerate().filter_map(failed).collect();
    let unmade: Vec<usize> =
        state.entries.iter().enumerate().filter(|(_, entry)| entry.stage == Stage::Waiting).map(|(at, _)| at).collect();
    let listed: Vec<String> = unmade.iter().take(NAMED).map(|at| format!("'{}'", program.name(*at))).collect();
    let rest = match (listed.is_empty(), unmade.len() - listed.len()) {
        (true, _) => String::new(),
        (false, 0) => format!("not started: {}", listed.join(", ")),
        (false, more) => format!("not started: {} and {more} more", listed.join(", ")),
    };
    let failed = match (names.first(), names.len()) {
        (None, _) => String::new(),
        (Some(first), 1) => format!("job {first} failed"),
        (Some(first), count) => format!("job {first} and {} more failed", count - 1),
    };
    [failed, rest].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}
