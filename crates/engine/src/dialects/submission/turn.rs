//! One turn of a submitted job: after an input, decides everything that follows until nothing is left to decide. Each
//! decision is a fact that is folded at once, so later decisions of the turn see it.

use octoflow_model::{
    AttemptId, Fact, NodeIx, Order, Report, RunFact, RunPhase, Time,
    plugin::PluginType,
    request::Answer,
    submitted::{ErredCall, WalkEnd, WalkFact},
};

use super::{
    answer::{self, Asked, CallError},
    decide,
    run::{CALL, CHILD, Run},
    state::WalkStep,
};
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
    pub(super) shared: &'a SharedState,
    pub(super) effects: Effects,
    slice: Slice,
}

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
    /// at least one visit, and all that the next one needs is in the state.
    pub fn settle(&mut self) -> bool {
        let mut visited = false;
        while self.run.todo.walk {
            if visited && self.slice.is_spent() {
                return true;
            }
            visited = true;
            self.slice.visited();
            self.run.todo.walk = false;
            self.sync();
        }
        false
    }

    pub(super) fn into_effects(mut self) -> Effects {
        self.effects.wakes = std::mem::take(&mut self.run.todo.wakes).into_iter().map(|at| (at, None)).collect();
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
        } else if let Fact::SubmittedJob(fact) = &fact {
            self.note(fact);
        } else {
            unreachable!("a submitted job decides nothing of other dialects: {fact:?}");
        }
        self.effects.facts.push(fact);
    }

    /// Decides the next step.
    fn sync(&mut self) {
        let state = &self.run.state;
        if state.finished.is_some() {
            return;
        }
        let (step, held, closing) = (state.walk.step, state.head.suspended, state.head.closing());
        match step {
            WalkStep::Over(end) => self.end(end),
            WalkStep::Ending(end) => self.over(end, state.walk.message.clone()),
            // It ends with the run that came out.
            WalkStep::Following => {}
            WalkStep::Ready | WalkStep::Calling | WalkStep::Pausing(_) | WalkStep::Gated(_) | WalkStep::HandingOver
                if closing =>
            {
                self.break_off();
                self.over(WalkEnd::Stopped, self.why_stopped());
            }
            WalkStep::Ready if !held => self.advance(),
            WalkStep::Pausing(until) if !held && until <= self.now => self.call(),
            WalkStep::Gated(Some(until)) if !held && until <= self.now => {
                self.decide(WalkFact::RecheckDue { at: self.now });
            }
            WalkStep::Ready | WalkStep::Calling | WalkStep::Pausing(_) | WalkStep::Gated(_) | WalkStep::HandingOver => {
            }
        }
    }

    /// Goes on with the next plugin, the next stage, or the hand-over.
    fn advance(&mut self) {
        let walk = &self.run.state.walk;
        let Some(stage) = walk.stage else { return self.bind(PluginType::TemplateTranslator) };
        if let Some(why) = decide::obstacle(walk) {
            return self.over(WalkEnd::Failed, why);
        }
        if walk.next < walk.plugins.len() {
            return self.call();
        }
        let untranslated = (stage == PluginType::TemplateTranslator).then(|| decide::untranslated(walk)).flatten();
        if let Some(why) = untranslated {
            return self.over(WalkEnd::Failed, why);
        }
        match stage.next_stage() {
            Some(next) => self.bind(next),
            None => self.hand_over(),
        }
    }

    /// Begins a stage with the plugins that match now.
    fn bind(&mut self, stage: PluginType) {
        let state = &self.run.state;
        let skipped = stage == PluginType::TemplateTranslator && decide::needs_no_translator(&state.walk.job);
        let plugins = match skipped {
            true => Vec::new(),
            false => self.shared.plugins.matching(stage, &state.header).iter().map(|one| decide::bound(one)).collect(),
        };
        self.decide(WalkFact::Bound { stage, at: self.now, plugins });
    }

    /// Calls the plugin whose turn it is.
    fn call(&mut self) {
        if let Some(why) = decide::exhausted(&self.run.state.walk) {
            return self.over(WalkEnd::Failed, why);
        }
        self.decide(WalkFact::Called { at: self.now });
        self.start(CALL);
    }

    fn hand_over(&mut self) {
        self.decide(WalkFact::HandedOver { at: self.now });
        self.start(CHILD);
    }

    /// Orders the current attempt of a node.
    fn start(&mut self, node: NodeIx) {
        let Some(attempt) = self.run.attempt_of(node) else { return };
        match self.run.task(node, &self.shared.plugins) {
            Ok(task) => self.effects.orders.push(Order::Start { attempt, task: Box::new(task) }),
            Err(why) => self.over(WalkEnd::Failed, why),
        }
    }

    /// Ends what a runtime has, whatever comes of it.
    pub(super) fn break_off(&mut self) {
        for node in [CALL, CHILD] {
            if let Some(attempt) = self.run.attempt_of(node) {
                self.effects.orders.push(Order::Stop { attempt });
            }
        }
    }

    pub(super) fn over(&mut self, end: WalkEnd, message: String) {
        self.decide(WalkFact::Over { at: self.now, end, message });
    }

    fn end(&mut self, end: WalkEnd) {
        let phase = match end {
            WalkEnd::Succeeded => RunPhase::Succeeded,
            WalkEnd::Failed | WalkEnd::Stopped => RunPhase::Failed,
        };
        let message = self.run.state.walk.message.clone();
        self.decide(RunFact::Ended { phase, message, at: self.now });
    }

    pub fn report(&mut self, report: Report) {
        let attempt = report.attempt();
        if self.run.attempt_of(attempt.task) != Some(attempt) {
            return self.forget_late(&report);
        }
        match report {
            Report::Answered { answer, .. } => {
                self.effects.orders.push(Order::Forget { attempt });
                self.answered(attempt, *answer);
            }
            // Nobody knows whether it was received, which its key is for.
            Report::Lost { why, .. } if attempt.task == CALL => self.erred(CallError { why, passing: true }),
            Report::Lost { why, .. } => self.answered(attempt, Answer::Refused(why)),
            Report::Waiting { why, .. } => self.held(attempt, why),
            Report::Started { .. }
            | Report::Ended { .. }
            | Report::Container { .. }
            | Report::Ready { .. }
            | Report::Progress { .. } => {}
        }
    }

    /// Lets the runtime forget an attempt that is over for the job already.
    fn forget_late(&mut self, report: &Report) {
        if matches!(report, Report::Answered { .. } | Report::Ended { .. }) {
            self.effects.orders.push(Order::Forget { attempt: report.attempt() });
        }
    }

    fn held(&mut self, attempt: AttemptId, why: String) {
        if attempt.task == CHILD && self.run.state.walk.message != why {
            self.decide(WalkFact::Held { at: self.now, why });
        }
    }

    fn answered(&mut self, attempt: AttemptId, answer: Answer) {
        if attempt.task == CHILD {
            return self.child_answered(answer);
        }
        let walk = &self.run.state.walk;
        let builtin = walk.plugin().is_some_and(|plugin| super::request::builtin(plugin).is_some());
        let Some(stage) = walk.stage else { return };
        let read = answer::document(answer, builtin).and_then(|document| {
            let asked = Asked {
                stage,
                job: &walk.job,
                factors: &walk.factors,
                earlier: &decide::increments(walk),
                least_recheck: decide::least_recheck(walk.asks),
                now: self.now,
            };
            answer::read(&asked, document).map_err(|why| CallError { why, passing: false })
        });
        match read {
            Ok(fact) => self.decide(fact),
            Err(error) => self.erred(error),
        }
    }

    /// Decides what follows a call that brought nothing.
    fn erred(&mut self, error: CallError) {
        let walk = &self.run.state.walk;
        let Some(plugin) = walk.plugin() else { return };
        let retry = decide::retry(walk, self.now).filter(|_| error.passing);
        let then = match retry {
            Some(at) => ErredCall::Retried(at),
            None if plugin.ignored => ErredCall::Ignored,
            None => ErredCall::Fatal,
        };
        let tried = if walk.tries > 1 { format!(" (tried {} times)", walk.tries) } else { String::new() };
        let why = format!("{}: {}{tried}", plugin.key, error.why);
        self.decide(WalkFact::Erred { at: self.now, why, then });
    }

    /// Repeats the order to end an attempt.
    pub(super) fn resend_stop(&mut self, node: NodeIx) {
        if let Some(attempt) = self.run.attempt_of(node) {
            self.effects.orders.push(Order::Stop { attempt });
        }
    }
}
