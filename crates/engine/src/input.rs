//! The engine's one entry point: everything that can happen, and everything that can come of it.

use std::collections::BTreeMap;

use octoflow_model::{
    AttemptId, Marks, Order, Report, RunId, Task, argo::Phase, meta::KeyedData, submission::Submission,
    taskset::Closing,
};
use thiserror::Error;

use crate::{dialect::Program, effect::Decided, engine::Keyed, meters::Series, run::Run};

/// Something happened.
#[derive(Debug)]
pub enum Input {
    /// Someone submits an admitted manifest. Identity was drawn at the edge. All that is decided is that the run is there;
    /// it begins with [`Input::Begin`]. Whoever compiled the manifest already hands the program in with it.
    Submit { run: RunId, submission: Box<Submission>, program: Option<Program> },
    /// A run that was submitted begins. Nothing happens to one that has begun.
    Begin { run: RunId },
    /// Someone tells a run to do something.
    Command { run: RunId, command: Command },
    /// A runtime says what became of a task.
    Report(Report),
    /// Time has passed; whatever was due by now is looked at.
    Tick,
    /// A ConfigMap or Secret was created or changed, or deleted when there is no data. It may hold the limit of a semaphore.
    Object { kind: Keyed, namespace: String, name: String, data: Option<KeyedData> },
    /// A run was folded from its journal (see [`fold`](crate::engine::fold)). It has its locks, its room and its places in the
    /// queues from now on, and goes on with [`Input::Continue`].
    Restore(Box<Run>),
    /// The same for a run that does not go on here: nobody takes its locks from it. Every open run must be restored or
    /// reserved before the first one continues: a lock is not free because its holder has not been read yet.
    ReserveLocks(Box<Run>),
    /// Restored runs go on, all of them before the first is given room.
    Continue { runs: Vec<RunId> },
    /// Whoever owns the engine keeps the run elsewhere, or nowhere: the engine forgets it and hands it over.
    Release { run: RunId },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// End the work, then run the exit handlers.
    Stop,
    /// End the suspended nodes a selector chooses, as failed.
    StopNodes { selector: String, message: String },
    /// End the work and run nothing more.
    Terminate,
    /// Start nothing new until resumed.
    Suspend,
    /// Go on: the whole run, or only the suspended nodes a selector chooses, with values for their outputs.
    Resume { selector: Option<String>, supplied: BTreeMap<String, String> },
    /// Give the suspended nodes a selector chooses values for their outputs, a message, or an end.
    Set { selector: String, phase: Option<Phase>, message: String, outputs: BTreeMap<String, String> },
    /// Let this pod go; whatever it worked on may try again with another.
    Evict { pod: String, why: Closing },
    /// Its control unit is gone: the attempt under way fails by it.
    Disband { unit: String },
    /// Write this on the run, if what stands there is still what was read.
    Mark { read: Box<Marks>, write: Box<Marks> },
}

impl Command {
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Stop | Self::StopNodes { .. } | Self::Terminate => "shutdown",
            Self::Suspend => "suspend",
            Self::Resume { .. } => "resume",
            Self::Set { .. } => "set",
            Self::Evict { .. } => "evict a pod of",
            Self::Disband { .. } => "disband",
            Self::Mark { .. } => "change",
        }
    }
}

/// A command that cannot be carried out. Nothing has changed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Refusal {
    #[error("cannot {verb} a completed {kind}: {name}")]
    Finished { kind: &'static str, name: String, verb: &'static str },
    #[error("there is no open run {0}")]
    UnknownRun(RunId),
    #[error("'{text}' is not a node field selector; write key=value terms joined by commas")]
    Selector { text: String },
    #[error("currently, set only targets suspend nodes: no suspend nodes matching nodeFieldSelector: {selector}")]
    NoSuchNode { selector: String },
    #[error("there is no pod {pod} that could go")]
    NoSuchPod { pod: String },
    #[error("somebody else changed what is written on the workflow; look again")]
    Stale,
    #[error("{0}")]
    Invalid(String),
}

/// What came of an input: facts to keep, then orders to send once they are kept.
#[derive(Debug, Default)]
pub struct Outcome {
    pub decided: Vec<Decided>,
    pub orders: Vec<Order>,
    pub refusal: Option<Refusal>,
    /// Series of custom metrics as this input left them. They are kept together with the facts.
    pub series: Vec<Series>,
    /// After [`Input::Continue`]: what is believed to be with a runtime. The caller tells the runtime.
    pub believed: Vec<(AttemptId, Box<Task>)>,
    /// After [`Input::Release`].
    pub released: Option<Box<Run>>,
}
