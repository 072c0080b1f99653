//! The state of a walk, and the fold that applies facts to it. The fold never decides, fails or reads the time.

use std::time::Duration;

use octoflow_model::{
    Fact, RunId, Time,
    plugin::{Factor, Factors, PluginType, increment::Increment},
    submitted::{BoundPlugin, ErredCall, GateVerdict, WalkEnd, WalkFact},
};
use serde_json::Value;

use super::edit;

/// Most reasons of commands that are remembered: a job may be suspended and resumed for ever.
const MAX_REASONS: usize = 32;

/// State folded from the facts. Two folds of the same facts are equal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// The stage in progress.
    pub stage: Option<PluginType>,
    /// The plugins of the stage, and whose turn it is.
    pub plugins: Vec<BoundPlugin>,
    pub next: usize,
    pub step: WalkStep,
    /// True while a gate holds the job.
    pub gated: bool,
    /// Number of calls so far, of all plugins.
    pub calls: u32,
    /// Number of tries of the question that is asked now.
    pub tries: u32,
    /// How often the gate whose turn it is was asked again.
    pub asks: u32,
    /// When the last call began, and how long calls took so far.
    pub called: Option<Time>,
    pub spent: Duration,
    /// The job as it is now.
    pub job: Value,
    pub factors: Factors,
    /// Why it is where it is.
    pub message: String,
    pub trace: Vec<TraceEntry>,
    /// Why commands were given, the oldest first.
    pub reasons: Vec<ToldReason>,
    pub handed_over: Option<Time>,
    pub child: Option<Child>,
}

/// Where the walk is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WalkStep {
    /// What comes next is decided at once.
    #[default]
    Ready,
    /// A plugin is being called.
    Calling,
    /// The call failed and is repeated at this time.
    Pausing(Time),
    /// A gate has suspended the job: it waits for somebody, or for this time.
    Gated(Option<Time>),
    /// A plugin has ended the walk.
    Ending(WalkEnd),
    /// The run that came out is ordered.
    HandingOver,
    /// The run that came out is there.
    Following,
    Over(WalkEnd),
}

/// The run that came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Child {
    pub run: RunId,
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub uid: String,
    pub phase: String,
    pub message: String,
    /// When it began to run.
    pub began: Option<Time>,
    pub suspended: bool,
}

/// Why a command was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToldReason {
    pub at: Time,
    pub command: String,
    pub reason: String,
}

/// A question to a plugin and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceEntry {
    pub stage: PluginType,
    pub plugin: String,
    /// The number of its first call.
    pub call: u32,
    /// Number of calls, with those that failed and those of a gate that was asked again by itself.
    pub tries: u32,
    pub started: Time,
    pub finished: Option<Time>,
    pub outcome: Option<TraceOutcome>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TraceOutcome {
    /// The whole job that a translator made.
    Job(Box<Value>),
    Added(Increment),
    Factors(Vec<Factor>),
    Verdict {
        verdict: GateVerdict,
        reason: String,
        recheck: Option<Time>,
    },
    Error(String),
}

/// Reports whether a gate of this address let the job pass, by the facts of the job.
pub fn was_passed<'a>(facts: impl IntoIterator<Item = &'a Fact>, address: &str) -> bool {
    let mut walk = State::default();
    facts.into_iter().any(|fact| {
        // Nothing else moves a walk through its gates.
        let Fact::SubmittedJob(fact @ (WalkFact::Bound { .. } | WalkFact::Judged { .. } | WalkFact::Released { .. })) =
            fact
        else {
            return false;
        };
        let gate = walk.plugin().is_some_and(|plugin| plugin.address == address);
        walk.apply(fact);
        gate && matches!(fact, WalkFact::Judged { verdict: GateVerdict::Pass, .. })
    })
}

impl State {
    pub fn new(job: Value) -> Self {
        Self { job, ..Self::default() }
    }

    /// Returns the plugin whose turn it is.
    pub fn plugin(&self) -> Option<&BoundPlugin> {
        self.plugins.get(self.next)
    }

    /// Folds one fact into the state.
    pub fn apply(&mut self, fact: &WalkFact) {
        match fact {
            WalkFact::Bound { stage, plugins, .. } => {
                self.stage = Some(*stage);
                self.plugins.clone_from(plugins);
                (self.next, self.tries, self.asks) = (0, 0, 0);
                self.step = WalkStep::Ready;
            }
            WalkFact::Called { at } => self.call(*at),
            WalkFact::Erred { at, why, then } => {
                self.answered(*at, TraceOutcome::Error(why.clone()));
                match then {
                    ErredCall::Retried(until) => self.step = WalkStep::Pausing(*until),
                    ErredCall::Ignored => self.pass(),
                    ErredCall::Fatal => {
                        self.message.clone_from(why);
                        self.step = WalkStep::Ending(WalkEnd::Failed);
                    }
                }
            }
            WalkFact::Translated { at, job } => {
                self.answered(*at, TraceOutcome::Job(Box::new(job.clone())));
                self.job.clone_from(job);
                self.pass();
            }
            WalkFact::Extended { at, edits, added } => {
                self.answered(*at, TraceOutcome::Added(added.clone()));
                edit::apply(&mut self.job, edits);
                self.pass();
            }
            WalkFact::Advised { at, factors } => {
                self.answered(*at, TraceOutcome::Factors(factors.clone()));
                for factor in factors {
                    self.factors.entry(factor.topic.clone()).or_default().push(factor.clone());
                }
                self.pass();
            }
            WalkFact::Judged { at, verdict, reason, recheck } => {
                let (verdict, reason, recheck) = (*verdict, reason.clone(), *recheck);
                self.answered(*at, TraceOutcome::Verdict { verdict, reason: reason.clone(), recheck });
                self.judge(verdict, reason, recheck);
            }
            WalkFact::Released { recheck: true, .. } => {
                (self.gated, self.tries) = (false, 0);
                self.ask_again();
            }
            WalkFact::Released { .. } => self.pass(),
            WalkFact::RecheckDue { .. } => self.ask_again(),
            WalkFact::Told { at, command, reason } => {
                if self.reasons.len() == MAX_REASONS {
                    self.reasons.remove(0);
                }
                self.reasons.push(ToldReason { at: *at, command: command.clone(), reason: reason.clone() });
            }
            WalkFact::HandedOver { at } => {
                self.stage = None;
                self.plugins.clear();
                self.message.clear();
                self.handed_over = Some(*at);
                self.step = WalkStep::HandingOver;
            }
            WalkFact::Held { why, .. } => self.message.clone_from(why),
            WalkFact::Made { run, api_version, kind, name, uid, .. } => {
                self.message.clear();
                self.step = WalkStep::Following;
                self.child = Some(Child {
                    run: *run,
                    api_version: api_version.clone(),
                    kind: kind.clone(),
                    name: name.clone(),
                    uid: uid.clone(),
                    phase: String::new(),
                    message: String::new(),
                    began: None,
                    suspended: false,
                });
            }
            WalkFact::Observed { phase, message, began, suspended, .. } => {
                let Some(child) = &mut self.child else { return };
                child.phase.clone_from(phase);
                child.message.clone_from(message);
                child.began = *began;
                child.suspended = *suspended;
            }
            WalkFact::Over { end, message, .. } => {
                self.message.clone_from(message);
                self.step = WalkStep::Over(*end);
            }
        }
    }

    fn call(&mut self, at: Time) {
        self.calls += 1;
        self.tries += 1;
        self.called = Some(at);
        self.step = WalkStep::Calling;
        // A gate that is asked again by itself, maybe for weeks, has one entry.
        if let Some(last) = self.trace.last_mut().filter(|_| self.tries > 1 || self.gated) {
            last.tries += 1;
            return;
        }
        let (Some(stage), Some(plugin)) = (self.stage, self.plugins.get(self.next)) else { return };
        self.trace.push(TraceEntry {
            stage,
            plugin: plugin.key.clone(),
            call: self.calls,
            tries: 1,
            started: at,
            finished: None,
            outcome: None,
        });
    }

    /// Notes what came of the call. Time that it waited for a place is no time of the plugin: it counts its timeout at most.
    fn answered(&mut self, at: Time, outcome: TraceOutcome) {
        let most = self.plugin().map_or(Duration::ZERO, |plugin| Duration::from_secs(plugin.timeout_seconds.into()));
        let took = self.called.map_or(Duration::ZERO, |called| at.since(called));
        self.spent = self.spent.saturating_add(took.min(most));
        if let Some(last) = self.trace.last_mut() {
            last.finished = Some(at);
            last.outcome = Some(outcome);
        }
    }

    fn judge(&mut self, verdict: GateVerdict, reason: String, recheck: Option<Time>) {
        match verdict {
            GateVerdict::Pass => self.pass(),
            GateVerdict::Suspend => {
                self.message = reason;
                (self.gated, self.tries) = (true, 0);
                // Each part of the walk has a budget of its own: a gate may ask for weeks.
                self.spent = Duration::ZERO;
                self.step = WalkStep::Gated(recheck);
            }
            GateVerdict::Stop => {
                self.message = reason;
                self.step = WalkStep::Ending(WalkEnd::Stopped);
            }
        }
    }

    fn ask_again(&mut self) {
        self.asks += 1;
        self.step = WalkStep::Ready;
    }

    /// Goes on with the next plugin.
    fn pass(&mut self) {
        self.message.clear();
        self.gated = false;
        (self.tries, self.asks) = (0, 0);
        self.next += 1;
        self.step = WalkStep::Ready;
    }
}
