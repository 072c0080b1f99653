//! Counts over the entries of a flow, kept by the fold, so that a fact costs what depends on it and not the whole flow: unmet
//! targets of each entry, entries that may start, and what is left. It follows from program and state alone and decides
//! nothing; `decide` works the same out by full passes.

use std::collections::BTreeSet;

use octoflow_model::{
    Time,
    jobflow::{FlowPhase, JobEnd},
    volcano::JobPhase,
};

use super::{
    decide::{Conditions, EntryGate, tally},
    program::Program,
    state::{Entry, Stage, State},
};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    waits: Vec<Wait>,
    /// Entries that nobody has ordered and whose gate is open.
    ready: BTreeSet<u32>,
    /// Entries that are tried again, by time.
    back_off: BTreeSet<(Time, u32)>,
    /// Number of entries that are ordered or whose jobs are there.
    active: usize,
    /// Number of entries that nobody has ordered and that may still start.
    hopeful: usize,
    /// Number of entries whose jobs are completed, and of those of which something has been heard.
    completed: usize,
    begun: usize,
    /// Number of entries that are over and completed.
    done: usize,
    /// When the first job was made.
    started: Option<Time>,
}

/// An entry as the index knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wait {
    gate: EntryGate,
    stage: Stage,
    standing: Standing,
    begun: bool,
    /// Targets of the entry: those that have come so far, those that never will, those that are over or lost.
    open: usize,
    never: usize,
    over: usize,
}

/// What an entry is to those that wait for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Standing {
    completed: bool,
    deployed: bool,
    lost: bool,
    over: bool,
}

impl Standing {
    fn of(entry: &Entry, gate: EntryGate) -> Self {
        let lost = entry.has_failed() || entry.stage == Stage::Waiting && gate == EntryGate::Never;
        Self {
            completed: entry.is_completed(),
            deployed: entry.is_deployed(),
            lost,
            over: lost || matches!(entry.stage, Stage::Over(_)),
        }
    }

    /// Returns the gate of an entry that waits for this one alone, with a probe or without.
    fn gate(self, probed: bool) -> EntryGate {
        let open = if probed { self.deployed } else { self.completed };
        match (open, self.lost) {
            (true, _) => EntryGate::Open,
            (false, true) => EntryGate::Never,
            (false, false) => EntryGate::Closed,
        }
    }
}

impl Index {
    pub fn new(program: &Program, state: &State) -> Self {
        let blank = Wait {
            gate: EntryGate::Closed,
            stage: Stage::Waiting,
            standing: Standing::default(),
            begun: false,
            open: 0,
            never: 0,
            over: 0,
        };
        let count = program.entries.len();
        let mut index = Self { waits: vec![blank; count], hopeful: count, ..Self::default() };
        for at in program.order.iter().copied() {
            index.update(program, state, at);
        }
        index
    }

    /// Brings the index up to date after a fact about an entry. Returns the number of entries that it looked at.
    pub fn update(&mut self, program: &Program, state: &State, at: usize) -> usize {
        let (mut visited, mut changed) = (0, vec![at]);
        while let Some(at) = changed.pop() {
            visited += 1;
            let (before, after) = self.look(program, state, at);
            if before == after {
                continue;
            }
            for dependant in program.after[at].iter().map(|dependant| *dependant as usize) {
                visited += 1;
                let probed = program.entries[dependant].conditions > 0;
                let wait = &mut self.waits[dependant];
                wait.count(before, probed, |count| *count -= 1);
                wait.count(after, probed, |count| *count += 1);
                if gate(program, state, dependant, wait) != wait.gate {
                    changed.push(dependant);
                }
            }
        }
        visited
    }

    /// Notes an entry as it is now. Returns what it was to others, and what it is.
    fn look(&mut self, program: &Program, state: &State, at: usize) -> (Standing, Standing) {
        let (entry, before) = (&state.entries[at], self.waits[at]);
        let gate = gate(program, state, at, &before);
        let standing = Standing::of(entry, gate);
        let begun = has_begun(entry);
        self.remove(at as u32, before);
        let now = Wait { gate, stage: entry.stage, standing, begun, ..before };
        self.waits[at] = now;
        self.add(at as u32, now);
        self.started = [self.started, entry.started].into_iter().flatten().min();
        (before.standing, standing)
    }

    fn remove(&mut self, at: u32, wait: Wait) {
        match wait.stage {
            Stage::Waiting => {
                self.hopeful -= usize::from(wait.gate != EntryGate::Never);
                self.ready.remove(&at);
            }
            Stage::Wanted | Stage::Active => self.active -= 1,
            Stage::BackOff(until) => {
                self.back_off.remove(&(until, at));
            }
            Stage::Over(end) => self.done -= usize::from(end == JobEnd::Completed),
        }
        self.completed -= usize::from(wait.standing.completed);
        self.begun -= usize::from(wait.begun);
    }

    fn add(&mut self, at: u32, wait: Wait) {
        match wait.stage {
            Stage::Waiting => {
                self.hopeful += usize::from(wait.gate != EntryGate::Never);
                if wait.gate == EntryGate::Open {
                    self.ready.insert(at);
                }
            }
            Stage::Wanted | Stage::Active => self.active += 1,
            Stage::BackOff(until) => {
                self.back_off.insert((until, at));
            }
            Stage::Over(end) => self.done += usize::from(end == JobEnd::Completed),
        }
        self.completed += usize::from(wait.standing.completed);
        self.begun += usize::from(wait.begun);
    }

    /// Returns the entries to order now, in manifest order.
    pub fn wanted(&self, told: Conditions, now: Time) -> Vec<u32> {
        if told.suspended || told.closing || told.deleted {
            return Vec::new();
        }
        let mut due: Vec<u32> = self.ready.iter().copied().collect();
        due.extend(self.back_off.range(..=(now, u32::MAX)).map(|(_, at)| *at));
        due.sort_unstable();
        due
    }

    /// Reports whether an entry is among those to order now.
    pub fn is_wanted(&self, at: u32, told: Conditions, now: Time) -> bool {
        let due = match self.waits[at as usize].stage {
            Stage::Waiting => self.ready.contains(&at),
            Stage::BackOff(until) => until <= now,
            Stage::Wanted | Stage::Active | Stage::Over(_) => false,
        };
        due && !told.suspended && !told.closing && !told.deleted
    }

    /// Reports whether nothing is active and nothing may start any more.
    pub fn is_over(&self, told: Conditions) -> bool {
        let closing = told.closing || told.deleted;
        self.active == 0 && (closing || self.hopeful == 0 && self.back_off.is_empty())
    }

    /// Returns the phase of the flow. It follows from the jobs alone, whatever it was before.
    pub fn phase(&self, told: Conditions) -> FlowPhase {
        if told.deleted {
            FlowPhase::Terminating
        } else if self.completed == self.waits.len() {
            FlowPhase::Succeed
        } else if self.is_over(told) {
            FlowPhase::Failed
        } else if self.begun > 0 {
            FlowPhase::Running
        } else {
            FlowPhase::Pending
        }
    }

    /// Returns the gate of an entry.
    pub fn gate(&self, at: usize) -> EntryGate {
        self.waits[at].gate
    }

    /// Returns the number of entries that are over and completed.
    pub fn done(&self) -> usize {
        self.done
    }

    pub fn started(&self) -> Option<Time> {
        self.started
    }
}

impl Wait {
    fn count(&mut self, target: Standing, probed: bool, change: impl Fn(&mut usize)) {
        match target.gate(probed) {
            EntryGate::Open => change(&mut self.open),
            EntryGate::Never => change(&mut self.never),
            EntryGate::Closed => {}
        }
        if target.over {
            change(&mut self.over);
        }
    }
}

fn has_begun(entry: &Entry) -> bool {
    entry.ended.is_some() || entry.job.as_ref().is_some_and(|job| job.phase != JobPhase::Pending)
}

/// Works out the gate of an entry from the counts of its targets.
fn gate(program: &Program, state: &State, at: usize, wait: &Wait) -> EntryGate {
    let (plan, entry) = (&program.entries[at], &state.entries[at]);
    let all = plan.needs.len();
    if entry.tries > 0 || all == 0 {
        return EntryGate::Open;
    }
    let of_targets = tally(plan.strategy, wait.open, all - wait.open - wait.never, wait.never);
    if plan.conditions == 0 {
        return of_targets;
    }
    let met = entry.met.len().min(plan.conditions);
    let (closed, never) = if wait.over == all { (0, plan.conditions - met) } else { (plan.conditions - met, 0) };
    match (of_targets, tally(plan.strategy, met, closed, never)) {
        (EntryGate::Never, _) | (_, EntryGate::Never) => EntryGate::Never,
        (EntryGate::Closed, _) | (_, EntryGate::Closed) => EntryGate::Closed,
        (EntryGate::Open, EntryGate::Open) => EntryGate::Open,
    }
}
