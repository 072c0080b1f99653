//! A run as its facts tell it while it is under way: just enough to show progress.
//! It decides nothing and is thrown away at the end; the truth is the object.

use std::{fmt, time::Duration};

use octoflow_model::{
    Fact, NodeIx, RunFact, RunPhase, Shutdown, Time,
    argo::{NodeKind, Phase},
};
use serde_json::Value;

use crate::{
    dialect::{self, Dialect},
    kinds,
};

/// How many enclosing nodes a label names before it is cut.
const LABEL_LEVELS: usize = 4;

#[derive(Debug)]
pub struct Followed {
    pub name: String,
    /// What is known of its kind, once its submission was heard of.
    pub dialect: Option<&'static Dialect>,
    pub nodes: Vec<Seen>,
    pub phase: RunPhase,
    pub message: String,
    pub began: Option<Time>,
    pub ended: Option<Time>,
    /// Tasks that ended well, and all that are known.
    pub done: usize,
    pub total: usize,
    /// How many groups of members it has, where its nodes are members: they come after the node of the whole, then all members.
    pub(crate) groups: usize,
}

#[derive(Debug)]
pub struct Seen {
    pub name: String,
    pub display: String,
    pub kind: NodeKind,
    pub phase: Phase,
    pub template: String,
    pub message: String,
    pub started: Time,
    /// When its process began, if it did.
    pub running: Option<Time>,
    pub finished: Option<Time>,
    pub boundary: Option<NodeIx>,
    /// The node it is drawn below.
    pub holder: Option<NodeIx>,
    /// How far it says it is.
    pub progress: (u32, u32),
    /// Its place among its siblings, where that does not follow from when it started.
    pub rank: Option<usize>,
    /// How often it was tried again.
    pub retries: u32,
}

/// Something a person following along wants to hear of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Began,
    Started(NodeIx),
    /// Final, whether it ran or was born so.
    Finished(NodeIx),
    /// A suspend node waits for a person or a duration.
    Waits(NodeIx),
    Backoff {
        node: NodeIx,
        until: Time,
        message: String,
    },
    /// Others hold a lock that the node, or the run as a whole, needs.
    Locked {
        node: Option<NodeIx>,
        lock: String,
        holders: Vec<String>,
    },
    /// A replica was ended by us, because its role is over.
    Stopped(NodeIx),
    /// A role has its verdict.
    Judged(NodeIx),
    /// An attempt of the whole is over, and another one follows.
    TriedAgain {
        until: Time,
        message: String,
    },
    /// An attempt of the whole begins that is not the first.
    Attempt(u32),
    Suspended,
    Resumed,
    ShuttingDown(Shutdown),
    DeadlinePassed,
    Ended,
}

/// A task's way through a runtime, for whoever reads what it writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskLife {
    /// A runtime has it from here on. Without a number it is one more attempt at the task than before.
    Launched {
        task: NodeIx,
        attempt: Option<u32>,
        label: String,
    },
    Ended {
        task: NodeIx,
    },
}

/// What the facts of a dialect mean to whoever follows a run.
pub trait Follow: fmt::Debug + Sync {
    /// What is known from the manifest before anything happens.
    fn enrol(&self, run: &mut Followed, manifest: &Value, at: Time) {
        let _ = (run, manifest, at);
    }

    /// Takes in a fact of the dialect; says what is worth telling, and when it happened.
    fn take(&self, run: &mut Followed, fact: &Fact) -> Option<(Time, Event)>;

    /// The run is over.
    fn end(&self, run: &mut Followed, phase: RunPhase, at: Time) {
        let _ = (run, phase, at);
    }

    /// A message with names where it has ids.
    fn readable(&self, run: &Followed, message: &str) -> String {
        let _ = run;
        message.to_owned()
    }

    /// What a fact says of a task's way.
    fn life(&self, run: &Followed, fact: &Fact) -> Option<TaskLife>;
}

impl Followed {
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            dialect: None,
            nodes: Vec::new(),
            phase: RunPhase::Pending,
            message: String::new(),
            began: None,
            ended: None,
            done: 0,
            total: 0,
            groups: 0,
        }
    }

    /// What to call it in a sentence.
    pub fn noun(&self) -> &'static str {
        self.dialect.map_or(kinds::UNKNOWN.noun, |dialect| dialect.kind.noun)
    }

    /// Takes in a fact; says what is worth telling, and when it happened.
    pub fn take(&mut self, fact: &Fact) -> Option<(Time, Event)> {
        let Fact::Run(of_run) = fact else { return self.dialect?.follow.take(self, fact) };
        match of_run {
            RunFact::Suspended { at } => Some((*at, Event::Suspended)),
            RunFact::Resumed { at } => Some((*at, Event::Resumed)),
            RunFact::ShuttingDown { how, at } => Some((*at, Event::ShuttingDown(*how))),
            RunFact::DeadlinePassed { at } => Some((*at, Event::DeadlinePassed)),
            RunFact::Ended { phase, message, at } => {
                self.phase = *phase;
                self.message = match self.dialect {
                    Some(dialect) => {
                        dialect.follow.end(self, *phase, *at);
                        dialect.follow.readable(self, message)
                    }
                    None => message.clone(),
                };
                self.ended = Some(*at);
                Some((*at, Event::Ended))
            }
            RunFact::Submitted(submission) => {
                self.dialect = dialect::of(&submission.manifest).ok();
                self.dialect?.follow.enrol(self, &submission.manifest, submission.at);
                None
            }
            RunFact::Marked { .. } => None,
        }
    }

    /// What a fact says of the way of one of its tasks.
    pub fn life(&self, fact: &Fact) -> Option<TaskLife> {
        self.dialect?.follow.life(self, fact)
    }

    /// How it stands, in its dialect's word.
    pub fn phase_word(&self) -> &'static str {
        match (self.phase, self.dialect.and_then(|dialect| dialect.phases.first())) {
            (RunPhase::Pending, Some(first)) => first.word,
            (phase, _) => phase.word(),
        }
    }

    /// The node's display name behind those of the nodes around it: `outer/inner`.
    pub fn label(&self, node: NodeIx) -> String {
        let mut words: Vec<&str> = Vec::new();
        let mut next = Some(node);
        while let Some(seen) = next.and_then(|at| self.nodes.get(at.at())) {
            // The entrypoint encloses everything, so it only names itself.
            if seen.boundary.is_none() && !words.is_empty() && seen.name == self.name {
                break;
            }
            if words.len() == LABEL_LEVELS {
                words.push("…");
                break;
            }
            words.push(&seen.display);
            next = seen.boundary;
        }
        words.reverse();
        words.join("/")
    }
}

impl Seen {
    pub fn waits_for_resume(&self) -> bool {
        self.kind == NodeKind::Suspend && !self.phase.fulfilled()
    }

    /// How long it ran, or has run.
    pub fn took(&self, now: Time) -> Duration {
        self.finished.unwrap_or(now).since(self.running.unwrap_or(self.started))
    }
}
