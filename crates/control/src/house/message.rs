//! What can be put into the pump's inbox. Whoever asks for something leaves a way to be answered.

use std::sync::mpsc::Sender;

use octoflow_engine::{Command, engine::Keyed};
use octoflow_model::{AttemptId, Fact, Report, Revision, RunId, fact::Submission};
use octoflow_store::Change;
use serde_json::Value;

use super::Watcher;
use crate::{Claim, Error, Explanation, gauge::Gauges, keyed::KeyedObject};

/// By node id, the attempt that is its task.
type Attempts = Vec<(String, AttemptId)>;

pub(crate) enum Message {
    Submit {
        run: RunId,
        submission: Box<Submission>,
        terms: Terms,
        watcher: Option<Watcher>,
        /// Whoever submits wants to see it too.
        show: bool,
        reply: Sender<Result<Entered, Error>>,
    },
    TakeUp {
        run: RunId,
        past: Vec<Fact>,
        watcher: Watcher,
        reply: Sender<Result<(), Error>>,
    },
    /// Reads a run back without letting it go on.
    Restore {
        run: RunId,
        past: Vec<Fact>,
        reply: Sender<Result<(), Error>>,
    },
    /// Lets everything restored go on.
    GoOn {
        reply: Sender<Result<(), Error>>,
    },
    Command {
        run: RunId,
        command: Command,
        reply: Sender<Result<(), Error>>,
    },
    Keyed {
        object: Box<KeyedObject>,
        reply: Sender<Result<(), Error>>,
    },
    Unkeyed {
        kind: Keyed,
        namespace: String,
        name: String,
        reply: Sender<Result<(), Error>>,
    },
    /// Nobody works on this run any more, and its name is free.
    Forget {
        run: RunId,
        /// Namespace, kind and name.
        name: (String, String, String),
        reply: Sender<Result<(), Error>>,
    },
    Watch {
        run: RunId,
        watcher: Watcher,
    },
    Object {
        run: RunId,
        reply: Sender<Result<Option<Value>, Error>>,
    },
    /// Which task each node of an open run that has one is.
    Tasks {
        run: RunId,
        reply: Sender<Result<Option<Attempts>, Error>>,
    },
    Explain {
        run: RunId,
        reply: Sender<Result<Option<Vec<Explanation>>, Error>>,
    },
    Metrics {
        reply: Sender<Result<String, Error>>,
    },
    Gauges {
        reply: Sender<Result<Gauges, Error>>,
    },
    Reports(Vec<Report>),
    /// A commit failed: nothing more can be kept.
    Failed(octoflow_store::Error),
    Close,
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
