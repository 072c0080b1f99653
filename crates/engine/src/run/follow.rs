//! Live progress of a run, folded from its facts: just enough to display it. It decides nothing and is dropped at the
//! end; the object is authoritative.

use std::{fmt, time::Duration};

use octoflow_model::{
    Fact, NodeIx, RunFact, RunPhase, Shutdown, Time,
    run::node::{NodeKind, Phase},
};
use serde_json::Value;

use crate::{
    dialects::dialect::{self, Dialect},
    kinds,
};

/// Maximum number of enclosing nodes in a label.
const LABEL_LEVELS: usize = 4;

#[derive(Debug)]
pub struct FollowedRun {
    pub name: String,
    /// The dialect, once the submission was seen.
    pub dialect: Option<&'static Dialect>,
    pub nodes: Vec<FollowedNode>,
    pub phase: RunPhase,
    pub message: String,
    pub began: Option<Time>,
    pub ended: Option<Time>,
    /// Succeeded tasks, and all known ones (`total`).
    pub done: usize,
    pub total: usize,
    /// Number of roles, for a run of roles and replicas: nodes are then the whole, the roles, and all replicas, in this
    /// order.
    pub(crate) groups: usize,
}

#[derive(Debug)]
pub struct FollowedNode {
    pub name: String,
    pub display: String,
    pub kind: NodeKind,
    pub phase: Phase,
    pub template: String,
    pub message: String,
    pub started: Time,
    /// Start time of its process, if it started.
    pub running: Option<Time>,
    pub finished: Option<Time>,
    pub boundary: Option<NodeIx>,
    /// The parent in the displayed tree.
    pub holder: Option<NodeIx>,
    /// Progress it reported: done and total.
    pub progress: (u32, u32),
    /// Sort position among its siblings, if not by start time.
    pub rank: Option<usize>,
    /// Number of retries.
    pub retries: u32,
    /// Number of attempts that were ended for other tasks; they are no retries.
    pub preempted: u32,
}

/// A change worth displaying to a user who follows a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Began,
    Started(NodeIx),
    /// A node is final, whether it ran or was created so.
    Finished(NodeIx),
    /// A suspend node waits for a person or a duration.
    Waits(NodeIx),
    Backoff {
        node: NodeIx,
        until: Time,
        message: String,
    },
    /// The task is being ended for another, and waits again.
    Preempted {
        node: NodeIx,
        message: String,
    },
    /// The node, or the run as a whole, is blocked on a lock that others hold.
    Locked {
        node: Option<NodeIx>,
        lock: String,
        holders: Vec<String>,
    },
    /// A replica was stopped because its role is over.
    Stopped(NodeIx),
    /// A role has its verdict.
    Judged(NodeIx),
    /// An attempt of the whole run is over, and another one follows.
    TriedAgain {
        until: Time,
        message: String,
    },
    /// A further attempt of the whole run begins.
    Attempt(u32),
    Suspended,
    Resumed,
    ShuttingDown(Shutdown),
    DeadlinePassed,
    /// It waits in a circle of runs.
    Deadlock {
        message: String,
    },
    Ended,
}

/// Start and end of a task's execution, for log readers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskEvent {
    /// A runtime has the task from now on. Without a number it is the next attempt of the task.
    Launched {
        task: NodeIx,
        attempt: Option<u32>,
        label: String,
    },
    Ended {
        task: NodeIx,
    },
}

/// Interprets the facts of a dialect for clients that follow a run.
pub trait Follow: fmt::Debug + Sync {
    /// Adds the nodes that are known from the manifest.
    fn add_known_nodes(&self, run: &mut FollowedRun, manifest: &Value, at: Time) {
        let _ = (run, manifest, at);
    }

    /// Folds a fact of the dialect; returns the event to display and its time.
    fn take(&self, run: &mut FollowedRun, fact: &Fact) -> Option<(Time, Event)>;

    /// Folds the end of the run.
    fn end(&self, run: &mut FollowedRun, phase: RunPhase, at: Time) {
        let _ = (run, phase, at);
    }

    /// Replaces ids in a message by names.
    fn readable(&self, run: &FollowedRun, message: &str) -> String {
        let _ = run;
        message.to_owned()
    }

    /// Returns the start or end of a task that a fact stands for.
    fn task_event(&self, run: &FollowedRun, fact: &Fact) -> Option<TaskEvent>;
}

impl FollowedRun {
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

    /// Returns the noun for it in messages.
    pub fn noun(&self) -> &'static str {
        self.dialect.map_or(kinds::UNKNOWN.noun, |dialect| dialect.kind.noun)
    }

    /// Folds a fact; returns the event to display and its time.
    pub fn take(&mut self, fact: &Fact) -> Option<(Time, Event)> {
        let Fact::Run(of_run) = fact else { return self.dialect?.follow.take(self, fact) };
        match of_run {
            RunFact::Suspended { at } => Some((*at, Event::Suspended)),
            RunFact::Resumed { at } => Some((*at, Event::Resumed)),
            RunFact::ShuttingDown { how, at } => Some((*at, Event::ShuttingDown(*how))),
            RunFact::DeadlinePassed { at } => Some((*at, Event::DeadlinePassed)),
            RunFact::Deadlock { at, message } => message.clone().map(|message| (*at, Event::Deadlock { message })),
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
                self.dialect?.follow.add_known_nodes(self, &submission.manifest, submission.at);
                None
            }
            RunFact::Marked { .. } => None,
        }
    }

    /// Returns the start or end of a task that a fact stands for.
    pub fn task_event(&self, fact: &Fact) -> Option<TaskEvent> {
        self.dialect?.follow.task_event(self, fact)
    }

    /// Returns its phase, in the dialect's word.
    pub fn phase_word(&self) -> &'static str {
        match (self.phase, self.dialect.and_then(|dialect| dialect.phases.first())) {
            (RunPhase::Pending, Some(first)) => first.word,
            (phase, _) => phase.word(),
        }
    }

    /// Returns the node's display name, prefixed with those of the enclosing nodes: `outer/inner`.
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

impl FollowedNode {
    pub fn waits_for_resume(&self) -> bool {
        self.kind == NodeKind::Suspend && !self.phase.fulfilled()
    }

    /// Returns how long it ran, or has run so far.
    pub fn took(&self, now: Time) -> Duration {
        self.finished.unwrap_or(now).since(self.running.unwrap_or(self.started))
    }
}
