//! The fold: applies facts to the state of a job. It never decides, fails or reads the time, and no other code writes the
//! state. It also leaves notes of what changed for the turn; it does not see the work list.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
    ops::Deref,
    sync::Arc,
};

use octoflow_model::{
    Fact, NodeIx, RunFact, RunId, Time,
    kubejob::{Amendment, Counted, KubeJobFact, PodEnd, PodOutcome, PodPhase},
    submission::Submission,
};

use super::{
    indexes::Indexes,
    program::Program,
    run::{Judgement, PHASES, Pod, Run, State},
    todo::{Note, Todo},
};
use crate::run::head::Head;

/// The state of a job, read-only outside of the fold.
#[derive(Clone, Debug, PartialEq)]
pub struct Folded(State);

impl Deref for Folded {
    type Target = State;

    fn deref(&self) -> &State {
        &self.0
    }
}

/// A state while a fact is folded into it.
struct Fold<'a> {
    id: RunId,
    state: &'a mut State,
    notes: &'a mut Vec<Note>,
    program: &'a Program,
}

impl Run {
    /// Creates a job of a submission; the program is compiled from its manifest.
    pub(crate) fn with(id: RunId, submission: &Submission, program: Arc<Program>) -> Self {
        let spec = &program.job.spec;
        let head = Head::new(submission, &program.job.metadata, spec.suspend, spec.shutdown);
        let settings = program.settings.clone();
        let indexes = settings.completions.filter(|_| program.indexed).unwrap_or(0);
        let state = State {
            suspension: head.suspended.then_some((true, submission.at)),
            head,
            settings,
            started: None,
            finished: None,
            judgement: None,
            seed: 0,
            pods: Vec::new(),
            open: BTreeSet::new(),
            counts: [0; PHASES],
            succeeded: 0,
            failed: 0,
            succeeded_indexes: Indexes::default(),
            failed_indexes: Indexes::default(),
            vacant: Indexes::between(0, indexes),
            taken: BTreeMap::new(),
            beyond: 0,
            failures: BTreeMap::new(),
            failures_in_a_row: 0,
            last_failure: None,
            restarts: 0,
            logs: Vec::new(),
            over: false,
        };
        Self {
            id,
            state: Folded(state),
            hosts: program.hosts(id, &submission.name),
            manifest: crate::run::written(&submission.manifest),
            known: submission.context.clone(),
            demand: OnceCell::new(),
            replaced: submission.previous.as_ref().map(|before| before.runs.clone()).unwrap_or_default(),
            todo: Todo { job: true, ..Todo::default() },
            notes: Vec::new(),
            program,
        }
    }

    /// Folds one fact into the state.
    pub fn apply(&mut self, fact: &Fact) {
        let (notes, program) = (&mut self.notes, &*self.program);
        let mut fold = Fold { id: self.id, state: &mut self.state.0, notes, program };
        // The journal of a job never holds facts of other dialects.
        if let Fact::Run(fact) = fact {
            fold.state.head.apply(fact);
            fold.follow_head(fact);
        } else if let Fact::KubeJob(fact) = fact {
            fold.apply(fact);
        }
        self.enter_notes();
    }
}

impl Fold<'_> {
    fn note(&mut self, note: Note) {
        self.notes.push(note);
    }

    fn follow_head(&mut self, fact: &RunFact) {
        match fact {
            RunFact::Ended { at, .. } => {
                self.state.over = true;
                self.state.finished = Some(*at);
            }
            RunFact::Submitted(_) | RunFact::Marked { .. } | RunFact::Deadlock { .. } => {}
            RunFact::Suspended { at } => {
                self.state.suspension = Some((true, *at));
                self.note(Note::JobChanged);
            }
            RunFact::Resumed { at } => {
                self.state.suspension = Some((false, *at));
                // It is set again when the job is active again.
                self.state.started = None;
                self.note(Note::JobChanged);
            }
            RunFact::ShuttingDown { .. } | RunFact::DeadlinePassed { .. } => self.note(Note::JobChanged),
        }
    }

    fn apply(&mut self, fact: &KubeJobFact) {
        match fact {
            KubeJobFact::Began { at } => self.state.started = Some(*at),
            KubeJobFact::Created { first, count, indexes, seed, at } => {
                self.state.seed = *seed;
                let mut all = indexes.iter().flat_map(|range| range.0..=range.1);
                for pod in *first..*first + *count {
                    let index = all.next();
                    self.create(pod, index, *at);
                }
                indexes.iter().for_each(|range| self.state.vacant.remove_range(range.0, range.1));
            }
            KubeJobFact::Launched { pod, at, deadline, on } => {
                // A pod whose containers are started again has been running all the time.
                let held = self.state.pods[*pod as usize].phase == PodPhase::BackOff;
                self.move_to(*pod, if held { PodPhase::Running } else { PodPhase::Starting }, *at);
                let slot = &mut self.state.pods[*pod as usize];
                slot.tries += 1;
                (slot.started, slot.finished) = (None, None);
                slot.wake = *deadline;
                slot.launched = *at;
                slot.since.get_or_insert(*at);
                slot.on.clone_from(on);
                self.notes.extend(deadline.map(|at| Note::Wake(at, NodeIx(*pod))));
            }
            KubeJobFact::Started { pod, at } => {
                self.move_to(*pod, PodPhase::Running, *at);
                self.state.pods[*pod as usize].started = Some(*at);
            }
            KubeJobFact::Ready { pod, ready, .. } => self.state.pods[*pod as usize].ready = *ready,
            KubeJobFact::Ending { pod, at, why, counted, message } => {
                self.move_to(*pod, PodPhase::Terminating, *at);
                let slot = &mut self.state.pods[*pod as usize];
                slot.closing = Some(*why);
                slot.message.clone_from(message);
                slot.wake = None;
                self.count(*pod, *counted, *at);
                if !self.program.waits_for_ends() {
                    self.vacate(*pod);
                }
                self.note(Note::JobChanged);
            }
            KubeJobFact::Ended(end) => self.ended(end),
            KubeJobFact::Removed { pods, at, counted } => {
                for pod in pods {
                    self.move_to(*pod, PodPhase::Gone, *at);
                    self.count(*pod, Some(*counted), *at);
                    self.vacate(*pod);
                }
                self.note(Note::JobChanged);
            }
            KubeJobFact::Amended { to, .. } => {
                self.amend(to);
                self.note(Note::JobChanged);
            }
            KubeJobFact::Judged { at, verdict, reason, message } => {
                let (reason, message) = (reason.clone(), message.clone());
                self.state.judgement = Some(Judgement { verdict: *verdict, at: *at, reason, message });
                self.note(Note::JobChanged);
            }
        }
    }

    fn create(&mut self, pod: u32, index: Option<u32>, at: Time) {
        debug_assert_eq!(pod as usize, self.state.pods.len(), "pods are numbered in the order of their creation");
        let failures = index.and_then(|index| self.state.failures.get(&index)).copied().unwrap_or_default();
        let before = (failures.counted, failures.ignored);
        self.state.pods.push(Pod { index, before, created: at, transition: at, ..Pod::default() });
        self.state.counts[PodPhase::Queued as usize] += 1;
        self.state.open.insert(pod);
        if let Some(index) = index {
            *self.state.taken.entry(index).or_default() += 1;
        }
        self.note(Note::Queued(NodeIx(pod)));
    }

    fn ended(&mut self, end: &PodEnd) {
        let pod = end.pod;
        if let (Some(attempt), true) = (self.state.attempt_of(self.id, pod), end.log_bytes > 0) {
            self.state.logs.push((attempt, end.log_bytes));
        }
        let next = match end.outcome {
            PodOutcome::Succeeded => PodPhase::Succeeded,
            PodOutcome::Failed => PodPhase::Failed,
            PodOutcome::Gone => PodPhase::Gone,
            PodOutcome::Restarted => PodPhase::BackOff,
        };
        let message = std::mem::take(&mut self.state.pods[pod as usize].message);
        self.move_to(pod, next, end.at);
        let slot = &mut self.state.pods[pod as usize];
        slot.message = message;
        slot.started = slot.started.or(end.started);
        slot.finished = Some(end.at);
        slot.terminated = end.terminated.clone().map(Box::new);
        slot.exits.clone_from(&end.exits);
        slot.reason.clone_from(&end.reason);
        slot.disruption.clone_from(&end.disruption);
        slot.closing = None;
        slot.wake = end.again;
        if end.outcome == PodOutcome::Restarted {
            slot.restarts += 1;
            self.state.restarts += 1;
        } else {
            self.count(pod, end.counted, end.at);
            self.vacate(pod);
        }
        self.notes.extend(end.again.map(|again| Note::Wake(again, NodeIx(pod))));
        self.note(Note::PodChanged(pod));
        self.note(Note::JobChanged);
    }

    /// Counts a pod once; later ends of it change nothing.
    fn count(&mut self, pod: u32, counted: Option<Counted>, at: Time) {
        let state = &mut *self.state;
        let slot = &mut state.pods[pod as usize];
        let Some(counted) = counted.filter(|_| slot.counted.is_none()) else { return };
        slot.counted = Some(counted);
        let index = slot.index;
        if index.is_some_and(|index| state.settings.completions.is_some_and(|all| index >= all)) {
            return;
        }
        match counted {
            Counted::Succeeded => {
                match index {
                    Some(index) => {
                        state.succeeded_indexes.insert(index);
                        state.succeeded = state.succeeded_indexes.count();
                    }
                    None => state.succeeded += 1,
                }
                state.failures_in_a_row = 0;
                return;
            }
            Counted::Nothing => return,
            Counted::Failed | Counted::FailedIndex => state.failed += 1,
            Counted::Ignored => {}
        }
        state.failures_in_a_row += 1;
        state.last_failure = Some(at);
        if let Some(index) = index.filter(|_| self.program.limit_per_index.is_some()) {
            let failures = state.failures.entry(index).or_default();
            failures.last = at;
            match counted {
                Counted::Ignored => failures.ignored += 1,
                Counted::Succeeded | Counted::Failed | Counted::FailedIndex | Counted::Nothing => failures.counted += 1,
            }
            if counted == Counted::FailedIndex {
                state.failed_indexes.insert(index);
                state.vacant.remove(index);
            }
        }
    }

    /// Lets another pod have the index of this one, unless that is done with.
    fn vacate(&mut self, pod: u32) {
        let state = &mut *self.state;
        let Some(index) = state.pods[pod as usize].index else { return };
        let wanted = state.settings.completions.is_some_and(|all| index < all);
        let done = state.succeeded_indexes.contains(index) || state.failed_indexes.contains(index);
        if wanted && !done && !state.taken.contains_key(&index) {
            state.vacant.insert(index);
        } else {
            state.vacant.remove(index);
        }
    }

    fn amend(&mut self, to: &Amendment) {
        let state = &mut *self.state;
        let before = state.settings.completions.unwrap_or(0);
        state.settings = to.clone();
        let Some(after) = to.completions.filter(|_| self.program.indexed) else { return };
        for set in [&mut state.succeeded_indexes, &mut state.failed_indexes, &mut state.vacant] {
            set.truncate(after);
        }
        state.failures.retain(|index, _| *index < after);
        let active = state.open.iter().map(|pod| &state.pods[*pod as usize]).filter(|pod| pod.phase.active());
        state.beyond = active.filter(|pod| state.is_beyond(pod.index)).count() as u32;
        state.succeeded = state.succeeded_indexes.count();
        for index in before..after {
            if !state.taken.contains_key(&index) {
                state.vacant.insert(index);
            }
        }
    }

    fn move_to(&mut self, pod: u32, phase: PodPhase, at: Time) {
        let state = &mut *self.state;
        let slot = &mut state.pods[pod as usize];
        debug_assert!(slot.phase.leads_to(phase), "{} never becomes {phase}", slot.phase);
        slot.ready = false;
        state.counts[slot.phase as usize] -= 1;
        state.counts[phase as usize] += 1;
        if slot.phase.active() && !phase.active() {
            state.restarts -= slot.restarts;
            let all = state.settings.completions;
            let beyond = all.zip(slot.index).is_some_and(|(all, index)| index >= all);
            state.beyond -= u32::from(beyond);
        }
        if !phase.active() && phase != PodPhase::Terminating {
            state.open.remove(&pod);
        }
        let keeps = |phase: PodPhase| phase.active() || phase == PodPhase::Terminating && self.program.waits_for_ends();
        if let (Some(index), true) = (slot.index, keeps(slot.phase) && !keeps(phase))
            && let Some(pods) = state.taken.get_mut(&index)
        {
            *pods -= 1;
            if *pods == 0 {
                state.taken.remove(&index);
            }
        }
        slot.phase = phase;
        slot.message = String::new();
        slot.transition = at;
    }
}
