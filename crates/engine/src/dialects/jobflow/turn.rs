//! One turn of a flow: after an input, decides everything that follows until nothing is left to decide. Each decision is a
//! fact that is folded at once, so later decisions of the turn see it.

use octoflow_model::{
    AttemptId, Fact, NodeIx, Order, Report, RunFact, RunPhase, Time,
    jobflow::{FlowFact, FlowPhase, JobEnd, RetainPolicy},
    request::Answer,
};

use super::{
    decide,
    program::NodeRole,
    run::Run,
    state::{Removal, Stage},
};
use crate::{
    dialects::dialect::DialectRun,
    engine::slice::{Slice, Work},
    run::effect::Effects,
};

pub struct Turn<'a> {
    pub run: &'a mut Run,
    pub now: Time,
    pub(super) effects: Effects,
    slice: Slice,
}

impl<'a> Turn<'a> {
    pub fn new(run: &'a mut Run, now: Time) -> Self {
        Self { run, now, effects: Effects::default(), slice: Slice::new(0) }
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
            if let Some(node) = todo.stops.pop_front() {
                self.resend_stop(node);
            } else if let Some(entry) = todo.wanted.pop_front() {
                self.want(entry);
            } else if std::mem::take(&mut todo.flow) {
                self.sync();
            } else {
                return false;
            }
        }
    }

    pub(super) fn into_effects(mut self) -> Effects {
        self.effects.wakes = std::mem::take(&mut self.run.todo.wakes);
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
        } else if let Fact::JobFlow(fact) = &fact {
            self.note(fact);
        } else {
            unreachable!("a flow decides nothing of other dialects: {fact:?}");
        }
        self.effects.facts.push(fact);
    }

    /// Decides what follows from the jobs as they are: orders jobs, tests conditions, ends the flow.
    fn sync(&mut self) {
        if self.run.state.finished.is_some() {
            return;
        }
        let wanted = self.run.state.index.wanted(self.run.told(), self.now);
        if !wanted.is_empty() {
            self.run.todo.wanted.extend(wanted);
            self.run.todo.flow = true;
            return;
        }
        if self.run.state.index.is_over(self.run.told()) {
            self.end();
        }
    }

    /// Orders the job of an entry, unless somebody has held the flow up since that was decided.
    fn want(&mut self, entry: u32) {
        if self.run.state.index.is_wanted(entry, self.run.told(), self.now) {
            self.end_tests(entry as usize);
            self.decide(FlowFact::Wanted { entry, at: self.now });
            self.start(NodeIx(entry));
        }
    }

    /// Orders the current attempt of a node.
    pub(super) fn start(&mut self, node: NodeIx) {
        let Some(attempt) = self.run.attempt_of(node) else { return };
        match self.run.task(node) {
            Ok(task) => self.effects.orders.push(Order::Start { attempt, task: Box::new(task) }),
            Err(why) => self.give_up(node, JobEnd::Refused, why),
        }
    }

    /// Ends the flow once nothing of it is left.
    fn end(&mut self) {
        for entry in 0..self.run.program.entries.len() {
            self.end_tests(entry);
        }
        let state = &self.run.state;
        let succeeded = state.flow.entries.iter().all(super::state::Entry::is_completed);
        let (phase, message) = match (&state.flow.removal, succeeded) {
            (Removal::Unwanted, true) if self.run.program.retain == RetainPolicy::Delete => {
                self.decide(FlowFact::Removing { at: self.now });
                return self.start(self.run.program.removal_node());
            }
            (Removal::UnderWay, _) => return,
            (Removal::Done(message), _) => (RunPhase::Succeeded, message.clone()),
            (Removal::Unwanted, true) => (RunPhase::Succeeded, String::new()),
            (Removal::Unwanted, false) => (RunPhase::Failed, decide::failure(&self.run.program, &state.flow)),
        };
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
            Report::Lost { why, .. } => self.answered(attempt, Answer::Refused(why)),
            Report::Waiting { why, .. } => self.held(attempt.task, why),
            Report::Started { .. }
            | Report::Ended { .. }
            | Report::Container { .. }
            | Report::Ready { .. }
            | Report::Progress { .. } => {}
        }
    }

    /// Lets the runtime forget an attempt that is over for the flow already.
    fn forget_late(&mut self, report: &Report) {
        if matches!(report, Report::Answered { .. } | Report::Ended { .. }) {
            self.effects.orders.push(Order::Forget { attempt: report.attempt() });
        }
    }

    fn held(&mut self, node: NodeIx, why: String) {
        let entry = match self.run.program.role(node) {
            Some(NodeRole::Entry(at) | NodeRole::Test(at, _)) => at,
            Some(NodeRole::Removal) | None => return,
        };
        if self.run.state.flow.entries[entry].message != why {
            self.decide(FlowFact::Held { entry: entry as u32, at: self.now, why });
        }
    }

    fn answered(&mut self, attempt: AttemptId, answer: Answer) {
        match self.run.program.role(attempt.task) {
            Some(NodeRole::Entry(_)) => self.job_answered(attempt.task, answer),
            Some(NodeRole::Test(entry, condition)) => self.tested(entry, condition, answer),
            Some(NodeRole::Removal) => {
                let message = match answer {
                    Answer::Refused(why) | Answer::Failed(why) => why,
                    Answer::Http(_) | Answer::Object(_) | Answer::Listing(_) | Answer::Probed | Answer::Stopped => {
                        String::new()
                    }
                };
                self.decide(FlowFact::Removed { at: self.now, message });
            }
            None => {}
        }
    }

    /// Takes the answer about a job that was not made, or that is run by nobody here and is over.
    fn job_answered(&mut self, node: NodeIx, answer: Answer) {
        let closing = self.run.told().closing;
        match answer {
            Answer::Refused(why) | Answer::Failed(why) if !closing => self.give_up(node, JobEnd::Refused, why),
            Answer::Object(object) => self.found(node, &object),
            Answer::Refused(_)
            | Answer::Failed(_)
            | Answer::Stopped
            | Answer::Http(_)
            | Answer::Listing(_)
            | Answer::Probed => {
                self.give_up(node, JobEnd::Stopped, "the flow was ended before its job was made".to_owned());
            }
        }
    }

    /// Records that the current try of an entry is over.
    pub(super) fn give_up(&mut self, node: NodeIx, end: JobEnd, message: String) {
        let fact = decide::ended(&self.run.program, &self.run.state.flow, node.at(), end, message, self.now);
        self.decide(fact);
    }

    /// Repeats the order to end an attempt that is being ended.
    pub(super) fn resend_stop(&mut self, node: NodeIx) {
        if let Some(attempt) = self.run.attempt_of(node) {
            self.effects.orders.push(Order::Stop { attempt });
        }
    }

    /// Returns the phase that the flow has now.
    pub fn phase(&self) -> FlowPhase {
        self.run.flow_phase()
    }

    /// Returns the entries whose jobs are there.
    pub(super) fn active(&self) -> Vec<usize> {
        let all = self.run.state.flow.entries.iter().enumerate();
        all.filter(|(_, entry)| entry.stage == Stage::Active).map(|(at, _)| at).collect()
    }
}
