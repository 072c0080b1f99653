//! Inputs and outcomes of [`Engine::handle`](crate::Engine::handle): everything that can happen, and everything that
//! can follow.

use std::{collections::BTreeMap, sync::Arc};

use octoflow_model::{
    AttemptId, MutableMetadata, Order, Report, RunId, Task,
    meta::KeyedData,
    run::{node::Phase, stop::StopReason},
    submission::Submission,
};
use serde_json::Value;
use thiserror::Error;

use crate::{
    dialects::dialect::{Dialect, Program},
    engine::Keyed,
    meters::Series,
    plugins::PluginTable,
    run::{Run, effect::Decided},
    schedule::{
        TaskRef, UsageRecord,
        spec::{ClassSpec, NodeSpec, QueueSpec},
    },
};

/// An event for the engine.
#[derive(Debug)]
pub enum Input {
    /// Submits an admitted manifest. Its identity was drawn by the caller. Only the submission is decided; the run
    /// begins with [`Input::Begin`]. A caller that has already compiled the manifest passes the program along.
    Submit { run: RunId, submission: Box<Submission>, program: Option<Program> },
    /// Begins a submitted run. Idempotent.
    Begin { run: RunId },
    /// Sends a command to a run.
    Command { run: RunId, command: Command },
    /// A runtime reports on a task.
    Report(Report),
    /// Time has passed: due timers fire.
    Tick,
    /// A ConfigMap or Secret was created or changed, or deleted if there is no data. It may hold the limit of a
    /// semaphore.
    Object { kind: Keyed, namespace: String, name: String, data: Option<KeyedData> },
    /// A node joined or has changed, or is gone if there is no spec.
    Node { name: String, spec: Option<Box<NodeSpec>> },
    /// Everything that runs on the node is ended and waits again. The node should be cordoned before.
    Drain { node: String },
    /// A running task is ended and waits again, because somebody wants its room.
    Evict { task: TaskRef, why: String },
    /// A queue was created or changed, or deleted if there is no spec.
    Queue { name: String, spec: Option<Box<QueueSpec>> },
    /// A priority class was created or changed, or deleted if there is none.
    Class { name: String, class: Option<ClassSpec>, is_default: bool },
    /// The features have changed: this is the table of plugins from now on. Stages that began keep theirs.
    Plugins(Arc<PluginTable>),
    /// Restores what tenants used before a restart.
    Usage(Vec<UsageRecord>),
    /// Adds a run that was folded from its journal (see [`fold`](crate::engine::fold)). From now on it holds its locks,
    /// its room and its places in the queues; it continues with [`Input::Continue`].
    Restore(Box<Run>),
    /// Reserves the locks of a run that does not continue here, so that nothing else takes them. Every open run must be
    /// restored or reserved before the first one continues: a lock is not free because its holder has not been read
    /// yet.
    ReserveLocks(Box<Run>),
    /// Continues restored runs, all of them before the first task is admitted.
    Continue { runs: Vec<RunId> },
    /// Removes a run from the engine and returns it; its owner keeps it elsewhere, or drops it.
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
    /// Evict this pod; its replica may be tried again with another one.
    Evict { pod: String, why: StopReason },
    /// The control unit was deleted: the current attempt fails.
    Disband { unit: String },
    /// Change the specification to this one, as far as the dialect allows it.
    Amend { spec: Box<Value> },
    /// Carry out an action that the dialect knows by this name.
    Perform { action: String },
    /// Replace the run's metadata, if it is still what the caller read (compare and swap).
    Mark { read: Box<MutableMetadata>, write: Box<MutableMetadata> },
    /// The command, and why it is given. Dialects that keep no reasons carry it out all the same.
    Because { reason: String, command: Box<Self> },
}

/// A command without its arguments: what a dialect lists that it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandKind {
    Stop,
    Terminate,
    Suspend,
    Resume,
    /// Any command about nodes that a selector chooses, or that gives them values.
    Nodes,
    Evict,
    Disband,
    Amend,
    Perform,
    Mark,
}

impl Command {
    pub fn kind(&self) -> CommandKind {
        match self {
            Self::Stop => CommandKind::Stop,
            Self::Terminate => CommandKind::Terminate,
            Self::Suspend => CommandKind::Suspend,
            Self::Resume { selector: None, supplied } if supplied.is_empty() => CommandKind::Resume,
            Self::StopNodes { .. } | Self::Resume { .. } | Self::Set { .. } => CommandKind::Nodes,
            Self::Evict { .. } => CommandKind::Evict,
            Self::Disband { .. } => CommandKind::Disband,
            Self::Amend { .. } => CommandKind::Amend,
            Self::Perform { .. } => CommandKind::Perform,
            Self::Mark { .. } => CommandKind::Mark,
            Self::Because { command, .. } => command.kind(),
        }
    }

    /// Returns the command alone, and why it is given if that was said.
    pub fn split(&self) -> (&Self, Option<&str>) {
        match self {
            Self::Because { reason, command } => (command.split().0, Some(reason)),
            Self::Stop
            | Self::StopNodes { .. }
            | Self::Terminate
            | Self::Suspend
            | Self::Resume { .. }
            | Self::Set { .. }
            | Self::Evict { .. }
            | Self::Disband { .. }
            | Self::Amend { .. }
            | Self::Perform { .. }
            | Self::Mark { .. } => (self, None),
        }
    }

    /// Returns why a run of a dialect that does not take the command refuses it.
    pub(crate) fn not_taken(&self, dialect: &Dialect) -> Refusal {
        let name = dialect.kind.name;
        Refusal::Invalid(match self {
            Self::Stop | Self::Terminate | Self::Suspend | Self::Mark { .. } => {
                format!("a {name} does not take the command {}", self.verb())
            }
            Self::Resume { .. } | Self::StopNodes { .. } | Self::Set { .. } => {
                format!("a {name} has no nodes to choose from; this works on the whole of it only")
            }
            Self::Evict { pod, .. } => match dialect.pod_delete_refusal {
                Some(instead) => format!("the pods of a {name} cannot be removed one by one; {instead}"),
                None => return Refusal::NoSuchPod { pod: pod.clone() },
            },
            Self::Disband { .. } => format!("a {name} has no control unit"),
            Self::Amend { .. } => format!("the specification of a {name} does not change"),
            Self::Perform { action } => format!("a {name} knows no action `{action}`"),
            Self::Because { command, .. } => return command.not_taken(dialect),
        })
    }

    pub fn verb(&self) -> &'static str {
        match self {
            Self::Stop | Self::StopNodes { .. } | Self::Terminate => "shutdown",
            Self::Suspend => "suspend",
            Self::Resume { .. } => "resume",
            Self::Set { .. } => "set",
            Self::Evict { .. } => "evict a pod of",
            Self::Disband { .. } => "disband",
            Self::Mark { .. } | Self::Amend { .. } => "change",
            Self::Perform { .. } => "command",
            Self::Because { command, .. } => command.verb(),
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
    #[error("there is no running pod {pod}")]
    NoSuchPod { pod: String },
    #[error("the metadata was changed by someone else meanwhile; read the object again and retry")]
    Stale,
    #[error("the run that ordered {name} does not wait for it any more")]
    Unwanted { name: String },
    #[error("{0}")]
    Invalid(String),
}

/// The result of an input: facts to make durable, then orders to send once they are durable.
#[derive(Debug, Default)]
pub struct Outcome {
    pub decided: Vec<Decided>,
    pub orders: Vec<Order>,
    pub refusal: Option<Refusal>,
    /// Custom metric series that this input changed. They are persisted together with the facts.
    pub series: Vec<Series>,
    /// Usages of tenants that this input changed. They are persisted together with the facts.
    pub usage: Vec<UsageRecord>,
    /// After [`Input::Continue`]: tasks assumed to be with a runtime. The caller asks the runtime to adopt them.
    pub assumed_running: Vec<(AttemptId, Box<Task>)>,
    /// After [`Input::Release`]: the run.
    pub released: Option<Box<Run>>,
}
