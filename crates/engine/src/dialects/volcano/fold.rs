//! The fold: applies facts to the state of a job. It never decides, fails or reads the time, and no other code writes the
//! state. It also leaves notes of what changed for the turn; it does not see the work list.

use std::{collections::BTreeMap, ops::Deref, sync::Arc};

use octoflow_model::{
    Fact, NodeIx, RunFact, RunId, Time,
    submission::Submission,
    volcano::{JobFact, JobPhase, PodEnd, PodOutcome, PodPhase, PodStop, Sizes},
};

use super::{
    demand::TaskDemands,
    program::Program,
    run::{MAX_HISTORY, Pod, Preemptions, Run, State, Task},
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
        let absent = |count| {
            let mut task = Task::default();
            task.counts[PodPhase::Absent as usize] = count;
            task
        };
        let state = State {
            head: Head::new(submission, &program.job.metadata, spec.suspend, spec.shutdown),
            phase: JobPhase::Pending,
            reason: String::new(),
            message: String::new(),
            transition: submission.at,
            version: 0,
            retries: 0,
            history: vec![(JobPhase::Pending, submission.at)],
            changes: 0,
            started: None,
            finished: None,
            tasks: program.tasks.iter().map(|plan| absent(plan.count)).collect(),
            pods: vec![Pod { transition: submission.at, ..Pod::default() }; program.slots as usize],
            replicas: program.pods,
            sizes: None,
            awaits: None,
            delayed: BTreeMap::new(),
            left: Vec::new(),
            admitted: false,
            logs: Vec::new(),
            preempted: 0,
            over: false,
        };
        Self {
            id,
            state: Folded(state),
            hosts: program.plugins.hosts(id, &submission.name, &program),
            manifest: crate::run::written(&submission.manifest),
            known: submission.context.clone(),
            demands: program.tasks.iter().map(|_| TaskDemands::default()).collect(),
            replaced: submission.previous.as_ref().map(|before| before.runs.clone()).unwrap_or_default(),
            todo: Todo { job: true, ..Todo::default() },
            notes: Vec::new(),
            program,
        }
    }

    /// Folds one fact into the state.
    pub fn apply(&mut self, fact: &Fact) {
        if let Fact::VolcanoJob(JobFact::Resized(sizes)) = fact {
            self.resize(sizes);
        }
        let (notes, program) = (&mut self.notes, &*self.program);
        let mut fold = Fold { id: self.id, state: &mut self.state.0, notes, program };
        // The journal of a job never holds facts of other dialects.
        if let Fact::Run(fact) = fact {
            fold.state.head.apply(fact);
            fold.follow_head(fact);
        } else if let Fact::VolcanoJob(fact) = fact {
            fold.apply(fact);
        }
        self.enter_notes();
    }
}

impl Run {
    /// Compiles the program anew for other numbers of pods. What is derived from it is derived again.
    fn resize(&mut self, sizes: &Sizes) {
        let program = self.program.resized(sizes).expect("sizes are checked before they become a fact");
        self.program = Arc::new(program);
        self.hosts = self.program.plugins.hosts(self.id, &self.state.head.name, &self.program);
        self.demands = self.program.tasks.iter().map(|_| TaskDemands::default()).collect();
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
            RunFact::Suspended { .. }
            | RunFact::Resumed { .. }
            | RunFact::ShuttingDown { .. }
            | RunFact::DeadlinePassed { .. } => self.note(Note::JobChanged),
        }
    }

    fn apply(&mut self, fact: &JobFact) {
        match fact {
            JobFact::Entered { phase, at, retries, version, reason, message } => {
                self.enter(*phase, *at, *retries, *version);
                self.state.reason.clone_from(reason);
                self.state.message.clone_from(message);
                self.note(Note::JobChanged);
            }
            JobFact::Created { first, count, at } => {
                for pod in *first..*first + *count {
                    self.create(pod, *at);
                }
                self.note(Note::JobChanged);
            }
            JobFact::Launched { pod, at, deadline, on } => {
                // A pod whose container is started again has been running all the time.
                let held = self.state.pods[*pod as usize].phase == PodPhase::BackOff;
                self.move_to(*pod, if held { PodPhase::Running } else { PodPhase::Starting }, *at);
                let version = self.state.version;
                let slot = &mut self.state.pods[*pod as usize];
                slot.tries.push(version);
                (slot.started, slot.finished) = (None, None);
                slot.wake = *deadline;
                slot.launched = *at;
                slot.since.get_or_insert(*at);
                slot.on.clone_from(on);
                slot.joined = true;
                slot.preempted.iter_mut().for_each(|preempted| preempted.waits = false);
                self.state.admitted = true;
                self.notes.extend(deadline.map(|at| Note::Wake(at, NodeIx(*pod))));
                self.note(Note::JobChanged);
            }
            JobFact::Started { pod, at } => {
                self.move_to(*pod, PodPhase::Running, *at);
                self.up(*pod, *at);
                self.note(Note::JobChanged);
            }
            JobFact::Ending { pod, at, why, message } => {
                self.move_to(*pod, PodPhase::Terminating, *at);
                let slot = &mut self.state.pods[*pod as usize];
                slot.closing = Some(*why);
                slot.message.clone_from(message);
                slot.wake = None;
                self.note(Note::JobChanged);
            }
            JobFact::Ended(end) => self.ended(end),
            JobFact::Removed { first, count, at } => {
                for pod in *first..*first + *count {
                    self.remove(pod, *at);
                }
                self.note(Note::JobChanged);
            }
            JobFact::Delayed(delayed) => {
                self.note(Note::Wake(delayed.due, NodeIx(delayed.pod)));
                self.state.delayed.insert(delayed.pod, (**delayed).clone());
            }
            JobFact::DelayEnded { pod, .. } => {
                self.state.delayed.remove(pod);
                self.note(Note::JobChanged);
            }
            JobFact::Ready { pod, ready, .. } => {
                let counted = &mut self.state.tasks[self.program.task_of(*pod)].ready;
                let slot = &mut self.state.pods[*pod as usize];
                match (slot.ready, *ready) {
                    (false, true) => *counted += 1,
                    (true, false) => *counted -= 1,
                    (false, false) | (true, true) => {}
                }
                slot.ready = *ready;
                self.note(Note::JobChanged);
            }
            JobFact::Resized(sizes) => self.resized(sizes),
            JobFact::Awaits { at, claims } => {
                self.state.awaits = (!claims.is_empty()).then(|| (*at, claims.clone()));
                self.note(Note::JobChanged);
            }
            JobFact::Left { work, .. } => {
                self.state.left.clone_from(work);
                self.note(Note::JobChanged);
            }
        }
    }

    fn enter(&mut self, phase: JobPhase, at: Time, retries: u32, version: u32) {
        let state = &mut self.state;
        debug_assert!(state.phase.leads_to(phase), "{} never becomes {phase}", state.phase);
        if state.phase != phase {
            state.transition = at;
            state.changes += 1;
            if state.history.len() == MAX_HISTORY {
                // The first one is when it was created.
                state.history.remove(1);
            }
            state.history.push((phase, at));
        }
        state.phase = phase;
        state.retries = retries;
        if state.version != version {
            state.version = version;
            state.admitted = false;
            state.delayed.clear();
            state.tasks.iter_mut().for_each(|task| task.begun = false);
            state.pods.iter_mut().for_each(|pod| pod.joined = false);
        }
    }

    /// Takes over new numbers of pods. The program has them already.
    fn resized(&mut self, sizes: &Sizes) {
        let (program, state) = (self.program, &mut self.state);
        // Whoever comes to a gang that has started does not wait for it.
        let new = Pod { transition: sizes.at, joined: state.admitted, ..Pod::default() };
        state.pods.resize(program.slots as usize, new);
        for (task, plan) in state.tasks.iter_mut().zip(&program.tasks) {
            let known: u32 = task.counts.iter().sum();
            task.counts[PodPhase::Absent as usize] += plan.slots().count() as u32 - known;
        }
        state.replicas = program.pods;
        state.sizes = Some(Box::new(sizes.clone()));
        // Nor does whoever waits in it already, or was removed while it did: those who have started may have ended since.
        let waits = |pod: &&mut Pod| matches!(pod.phase, PodPhase::Queued | PodPhase::Absent);
        if state.admitted {
            state.pods.iter_mut().filter(waits).for_each(|pod| pod.joined = true);
        }
        // What waits in the scheduler waits there with the demands of before.
        self.note(Note::Resized(program.slots));
        self.note(Note::JobChanged);
    }

    fn create(&mut self, pod: u32, at: Time) {
        self.move_to(pod, PodPhase::Queued, at);
        self.state.tasks[self.program.task_of(pod)].begun = true;
        let slot = &mut self.state.pods[pod as usize];
        let waited = slot.preempted.as_ref().is_some_and(|preempted| preempted.waits);
        *slot = Pod {
            phase: PodPhase::Queued,
            transition: at,
            tries: std::mem::take(&mut slot.tries),
            created: slot.created + 1,
            // A preempted one keeps its place.
            queued: if waited { slot.queued } else { at },
            joined: slot.joined,
            message: slot.preempted.as_ref().filter(|_| waited).map(|one| one.why.to_string()).unwrap_or_default(),
            preempted: slot.preempted.take(),
            ..Pod::default()
        };
        self.note(Note::Queued(NodeIx(pod)));
    }

    fn ended(&mut self, end: &PodEnd) {
        let PodEnd { pod, at, outcome, started, terminated, reason, again, log_bytes } = end;
        if let (Some(attempt), true) = (self.state.attempt_of(self.id, *pod), *log_bytes > 0) {
            self.state.logs.push((attempt, *log_bytes));
        }
        if let Some(started) = started
            && self.state.pods[*pod as usize].started.is_none()
        {
            // It ended before its start was reported.
            self.up(*pod, *started);
        }
        let closing = self.state.pods[*pod as usize].closing;
        let why = self.state.pods[*pod as usize].message.clone();
        let next = match outcome {
            PodOutcome::Succeeded => PodPhase::Succeeded,
            PodOutcome::Failed => PodPhase::Failed,
            PodOutcome::Gone => PodPhase::Absent,
            PodOutcome::Restarted => PodPhase::BackOff,
        };
        self.move_to(*pod, next, *at);
        let slot = &mut self.state.pods[*pod as usize];
        slot.terminated = terminated.clone().map(Box::new);
        slot.reason.clone_from(reason);
        slot.finished = Some(*at);
        slot.closing = None;
        slot.wake = *again;
        match outcome {
            PodOutcome::Restarted => slot.restarts += 1,
            PodOutcome::Gone if closing == Some(PodStop::Preempted) => {
                let count = slot.preempted.as_ref().map_or(0, |before| before.count) + 1;
                slot.preempted = Some(Box::new(Preemptions { count, at: *at, why: why.into(), waits: true }));
                self.state.preempted += 1;
            }
            PodOutcome::Succeeded | PodOutcome::Failed | PodOutcome::Gone => {}
        }
        self.notes.extend(again.map(|again| Note::Wake(again, NodeIx(*pod))));
        self.note(Note::PodChanged(*pod));
        self.note(Note::JobChanged);
    }

    fn remove(&mut self, pod: u32, at: Time) {
        self.move_to(pod, PodPhase::Absent, at);
        let slot = &mut self.state.pods[pod as usize];
        slot.wake = None;
        // Whoever waited for room and is gone does not keep its place.
        slot.preempted.iter_mut().for_each(|preempted| preempted.waits = false);
    }

    /// Folds that a container is up, which may be the start of the job.
    fn up(&mut self, pod: u32, at: Time) {
        self.state.pods[pod as usize].started = Some(at);
        self.state.started.get_or_insert(at);
    }

    fn move_to(&mut self, pod: u32, phase: PodPhase, at: Time) {
        let task = self.program.task_of(pod);
        let slot = &mut self.state.pods[pod as usize];
        debug_assert!(slot.phase.leads_to(phase), "{} never becomes {phase}", slot.phase);
        if std::mem::take(&mut slot.ready) {
            self.state.tasks[task].ready -= 1;
        }
        let counts = &mut self.state.tasks[task].counts;
        counts[slot.phase as usize] -= 1;
        counts[phase as usize] += 1;
        slot.phase = phase;
        slot.message = String::new();
        slot.transition = at;
    }
}
