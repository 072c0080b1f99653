//! One turn of a job: after an input, decides everything that follows until nothing is left to decide. Each decision is a
//! fact that is folded at once, so later decisions of the turn see it.

use octoflow_model::{
    Fact, NodeIx, RunFact, RunPhase, Time,
    kubejob::{KubeJobFact, PodStop, Verdict},
};

use super::run::Run;
use crate::{
    dialects::dialect::DialectRun,
    engine::{
        SharedState,
        slice::{Slice, Work},
    },
    run::effect::Effects,
};

pub struct Turn<'a> {
    pub run: &'a mut Run,
    pub now: Time,
    pub shared: &'a SharedState,
    pub(super) effects: Effects,
    pub(super) slice: Slice,
}

/// Why a job has failed or succeeded, in Kubernetes' words: a reason and a sentence.
type Cause = (&'static str, &'static str);

const BACKOFF_LIMIT: Cause = ("BackoffLimitExceeded", "Job has reached the specified backoff limit");
const DEADLINE: Cause = ("DeadlineExceeded", "Job was active longer than specified deadline");
const MAX_FAILED_INDEXES: Cause =
    ("MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes");
const FAILED_INDEXES: Cause = ("FailedIndexes", "Job has failed indexes");
const COMPLETIONS_REACHED: Cause = ("CompletionsReached", "Reached expected number of succeeded pods");
/// A person ended it. Kubernetes has no such command.
const STOPPED: Cause = ("Stopped", "Job was stopped");

impl<'a> Turn<'a> {
    pub fn new(run: &'a mut Run, now: Time, shared: &'a SharedState) -> Self {
        Self { run, now, shared, effects: Effects::default(), slice: Slice::new(0) }
    }

    pub(crate) fn limit(&mut self, work: Work) {
        self.slice.limit = work;
    }

    pub(crate) fn done(&self) -> Work {
        self.slice.done(0)
    }

    /// Decides until nothing is left to decide, or until the slice is used up. Returns true if work is left. A slice makes
    /// at least one visit. A pause between two visits changes nothing: all that they need is in state and work list.
    pub fn settle(&mut self) -> bool {
        let mut visited = false;
        loop {
            let todo = &mut self.run.todo;
            if visited && self.slice.is_spent() && todo.is_long() {
                return true;
            }
            visited = true;
            self.slice.visited();
            if let Some(pod) = todo.stops.pop_front() {
                self.resend_stop(NodeIx(pod));
            } else if !todo.surplus.is_empty() {
                self.delete_some();
            } else if let Some(pod) = todo.pods.pop_front() {
                self.visit_pod(pod);
            } else if std::mem::take(&mut todo.job) {
                todo.lacks_pods = false;
                self.sync();
            } else {
                return false;
            }
        }
    }

    pub(super) fn into_effects(mut self) -> Effects {
        let todo = &mut self.run.todo;
        self.effects.queued = std::mem::take(&mut todo.queued);
        self.effects.wakes = std::mem::take(&mut todo.wakes);
        self.effects
    }

    /// Folds a decision into the state and records its effects.
    pub(super) fn decide(&mut self, fact: impl Into<Fact>) {
        let fact = fact.into();
        let life = self.run.life_state();
        self.run.apply(&fact);
        self.effects.note_life(life, self.run.life_state(), self.now);
        self.slice.decided();
        if let Fact::Run(fact) = &fact {
            self.effects.note(fact);
            self.effects.change.phase |= matches!(fact, RunFact::Suspended { .. } | RunFact::Resumed { .. });
        } else if let Fact::KubeJob(fact) = &fact {
            self.note(fact);
        } else {
            unreachable!("a Job decides nothing of other dialects: {fact:?}");
        }
        self.effects.facts.push(fact);
    }

    /// Decides what follows from the pods as they are: how the job ends, or which pods are missing or too many.
    fn sync(&mut self) {
        if self.run.state.over {
            return;
        }
        if !self.run.state.head.suspended && self.run.state.started.is_none() {
            self.decide(KubeJobFact::Began { at: self.now });
        }
        if self.run.state.judgement.is_none()
            && let Some((verdict, reason, message)) = self.verdict()
        {
            self.judge(verdict, reason, message);
        }
        let mut timer = None;
        if self.run.state.judgement.is_some() {
            self.wind_up();
        } else {
            let again = self.scale();
            if self.is_complete() {
                let (reason, message) = COMPLETIONS_REACHED;
                self.judge(Verdict::Complete, reason, message.to_owned());
            } else {
                timer = [again, self.run.state.deadline()].into_iter().flatten().min();
            }
        }
        self.run.set_timer(timer);
    }

    /// Decides how the job ends.
    pub(super) fn judge(&mut self, verdict: Verdict, reason: &str, message: String) {
        if self.run.state.judgement.is_none() {
            self.decide(KubeJobFact::Judged { at: self.now, verdict, reason: reason.to_owned(), message });
        }
    }

    /// Returns how the job ends, if that follows from its counts and the time.
    fn verdict(&self) -> Option<(Verdict, &'static str, String)> {
        let (state, program) = (&self.run.state, &self.run.program);
        let settings = &state.settings;
        let failed = |(reason, message): Cause| Some((Verdict::Failed, reason, message.to_owned()));
        if state.head.closing() {
            return failed(STOPPED);
        }
        // Containers that were started again count as long as their pods are active.
        let restarts = program.restarts && state.restarts >= settings.backoff_limit.max(1);
        if state.failed > settings.backoff_limit || restarts {
            return failed(BACKOFF_LIMIT);
        }
        if state.deadline().is_some_and(|deadline| deadline <= self.now) {
            return failed(DEADLINE);
        }
        let all = settings.completions.filter(|_| program.indexed)?;
        let lost = state.failed_indexes.count();
        if settings.max_failed_indexes.is_some_and(|most| lost > most) {
            return failed(MAX_FAILED_INDEXES);
        }
        if lost > 0 && lost + state.succeeded >= all {
            return failed(FAILED_INDEXES);
        }
        let holds = |rule: &super::program::SuccessRule| {
            let (there, wanted) = match &rule.indexes {
                Some(indexes) => (state.succeeded_indexes.shared_with(indexes), indexes.count()),
                None => (state.succeeded, all),
            };
            there >= rule.count.unwrap_or(wanted)
        };
        let rule = program.success.iter().position(holds)?;
        Some((Verdict::Complete, "SuccessPolicy", format!("Matched rules at index {rule}")))
    }

    fn is_complete(&self) -> bool {
        let state = &self.run.state;
        let enough = match state.settings.completions {
            Some(wanted) => state.succeeded >= wanted,
            None => state.succeeded > 0,
        };
        enough && state.active() == 0 && state.judgement.is_none()
    }

    /// Ends what is left of a job that is decided, and then the run.
    fn wind_up(&mut self) {
        self.delete_all(PodStop::Finished);
        if !self.run.state.open.is_empty() {
            return;
        }
        let Some(judgement) = self.run.state.judgement.clone() else { return };
        let phase = match judgement.verdict {
            Verdict::Complete => RunPhase::Succeeded,
            Verdict::Failed => RunPhase::Failed,
        };
        self.decide(RunFact::Ended { phase, message: judgement.message, at: self.now });
    }
}
