//! What can be put into the event loop's inbox. Whoever asks for something leaves a way to be answered.

use std::sync::Arc;

use octoflow_engine::{Command, Program, engine::Keyed, plugins::PluginTable, schedule::Scheduler};
use octoflow_model::{AttemptId, Fact, Report, Revision, RunId, submission::Submission};
use octoflow_store::{Change, Delivery};
use serde_json::Value;
use tokio::sync::oneshot;

use super::{Restored, Watcher, archive::Packed};
use crate::{
    Claim, Error, Explanation,
    gauge::Gauges,
    objects::{keyed::KeyedObject, scheduling::SchedulingChange},
};

/// The way back to whoever asks: a thread or a task can wait at its other end.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, Error>>;

/// Reads the scheduler. Returns what tells the caller, which is called once everything that was seen is durable.
pub(crate) type SchedulerLook = Box<dyn FnOnce(Option<&Scheduler>) -> Tell + Send>;

/// Tells a caller what was seen, or why nothing is known.
pub(crate) type Tell = Box<dyn FnOnce(Result<(), Error>) + Send>;

/// Why parts of a run wait, and the scheduler as it was then: what would let them go is tried out by whoever asks.
pub(crate) struct Explained {
    /// `None` if the run is too large to be looked at while everybody waits.
    pub reasons: Option<Vec<Explanation>>,
    pub scheduler: Scheduler,
}

/// By node id, the attempt that is its task.
type Attempts = Vec<(String, AttemptId)>;

pub(crate) enum Message {
    Submit {
        run: RunId,
        submission: Box<Submission>,
        /// Its manifest made ready, if whoever submits has done that.
        program: Option<Program>,
        terms: Terms,
        watcher: Option<Watcher>,
        /// Whoever submits wants to see it too.
        show: bool,
        reply: Reply<Entered>,
    },
    Restore {
        run: RunId,
        past: Vec<Fact>,
        watcher: Watcher,
        reply: Reply<()>,
    },
    /// Every open run that could be read goes on.
    RestoreAll {
        runs: Vec<Restored>,
        /// Those that cannot be read, as far as they can: their locks stay taken.
        unreadable: Vec<(RunId, Vec<Fact>)>,
        reply: Reply<()>,
    },
    Command {
        run: RunId,
        command: Command,
        reply: Reply<()>,
    },
    Keyed {
        object: Box<KeyedObject>,
        reply: Reply<()>,
    },
    Unkeyed {
        kind: Keyed,
        namespace: String,
        name: String,
        reply: Reply<()>,
    },
    /// Features have changed: the plugins that there are now. They are stored.
    Plugins {
        table: Arc<PluginTable>,
        reply: Reply<()>,
    },
    /// What the scheduler works with has changed. Whatever is stored of it was stored before.
    Scheduling {
        change: Box<SchedulingChange>,
        reply: Reply<()>,
    },
    /// Somebody looks at the scheduler; there is none while nothing can be written. It shows what was decided, so it is
    /// told once that is durable.
    Look(SchedulerLook),
    /// Nobody works on this run any more, and its name is free.
    Forget {
        run: RunId,
        /// Namespace, kind and name.
        name: (String, String, String),
        /// The events that its deletion means, for the commit that deletes it.
        reply: Reply<Vec<Delivery>>,
    },
    Watch {
        run: RunId,
        watcher: Watcher,
    },
    Object {
        run: RunId,
        detail: Detail,
        reply: Reply<Option<Shown>>,
    },
    /// How many nodes or replicas an open run has.
    Size {
        run: RunId,
        reply: Reply<Option<usize>>,
    },
    /// Which task each node of an open run that has one is.
    Tasks {
        run: RunId,
        reply: Reply<Option<Attempts>>,
    },
    /// How long the logs of its ended attempts were.
    LogSizes {
        run: RunId,
        reply: Reply<Option<Vec<(AttemptId, u64)>>>,
    },
    Explain {
        run: RunId,
        reply: Reply<Option<Box<Explained>>>,
    },
    Metrics {
        reply: Reply<String>,
    },
    Gauges {
        reply: Reply<Gauges>,
    },
    Reports(Vec<Report>),
    /// The record of a large run that is over can take the place of its facts.
    Packed(Box<Packed>),
    /// The store was opened again after a failed write, at this revision, or could not be.
    Reopened(Result<Revision, octoflow_store::Error>),
    /// A commit failed: nothing more can be kept.
    Failed(octoflow_store::Error),
    /// A thread ended that the event loop cannot work without; says which and why.
    Broken(String),
    Close,
}

/// How much of a run somebody wants to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    Whole,
    /// All but its nodes.
    Summary,
}

/// An open run as it stands.
pub(crate) enum Shown {
    Here(Value),
    /// It has so many nodes that it is not drawn while everybody waits; whoever asked reads it from the store, where it is
    /// by now.
    Elsewhere(usize),
}

/// What goes with a run that is handed in.
pub(crate) struct Terms {
    /// Makes handing it in twice make one run.
    pub claim: Option<Claim>,
    /// The finished run whose place it takes.
    pub replaces: Option<RunId>,
    /// Kept with the run, or neither is.
    pub beside: Vec<Change>,
}

/// A run that was accepted.
pub(crate) struct Entered {
    pub run: RunId,
    /// As it stood when it was, and the commit that was part of, for those who asked.
    pub shown: Option<(Revision, Value)>,
}
