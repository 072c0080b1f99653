//! Facts about a workflow, as the journal keeps them. A released fact never changes: new facts may be added, new fields
//! must have defaults.

use serde::{Deserialize, Serialize};

use super::{ArtifactLocation, Items, NodeKind, NodeList, OutputArtifactValue, OutputValues, Phase};
use crate::{
    fact::is_nothing,
    ids::{NodeIx, RunId},
    run::{lock::Claim, meter::Metered},
    task::{Labels, StoredArtifact, placement::Assignment},
    time::Time,
};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum WorkflowFact {
    /// The run began executing.
    Began {
        at: Time,
        parameters: Vec<(String, String)>,
        /// Labels computed from `workflowMetadata`, added to the run's own.
        #[serde(default, skip_serializing_if = "Labels::is_empty")]
        labels: Labels,
        #[serde(default, skip_serializing_if = "Labels::is_empty")]
        annotations: Labels,
    },
    /// A node was created.
    Added(Box<NodeAdded>),
    /// The node (or the run itself, before it begins) must acquire all of these locks before it goes on.
    Wanted {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<NodeIx>,
        locks: Vec<Claim>,
    },
    /// The node or run waits for a lock: others hold it, or are ahead in its queue.
    Waiting {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<NodeIx>,
        at: Time,
        /// The lock it is blocked on; `holders` are its current holders.
        lock: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        holders: Vec<String>,
        message: String,
    },
    /// The node or run acquired all its locks and holds them until it is over.
    Locked {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<NodeIx>,
        at: Time,
        /// Time at which the engine must visit the node again without an input.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wake: Option<Time>,
    },
    /// A loop at this node (a step group or a task group) was expanded into its items.
    Expanded { node: NodeIx, call: u32, items: Items },
    /// The scheduler admitted the node's task, and an order to start it goes to a runtime.
    Launched {
        node: NodeIx,
        at: Time,
        /// Deadline of the task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Time>,
        /// Where it runs. `None`: on the machine that the run was submitted on, without devices.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: Option<Box<Assignment>>,
    },
    /// The node's task is being ended so that another can run. Its end does not end the node.
    Preempted { node: NodeIx, at: Time, message: String },
    /// The preempted task is over, and the node waits for the scheduler again. Its next task has this attempt number.
    Requeued {
        node: NodeIx,
        at: Time,
        attempt: u32,
        /// Time at which the engine must visit the node again without an input.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wake: Option<Time>,
        /// Length of the log of the preempted task; as in `NodeFinished`.
        #[serde(default, skip_serializing_if = "is_nothing")]
        log_bytes: u64,
    },
    /// The runtime reported that the node's process runs.
    Started { node: NodeIx, at: Time },
    /// The run that the node's request asks for was submitted, in the same commit. The node waits for it.
    ChildCreated { node: NodeIx, at: Time, run: RunId, name: String, uid: String },
    /// The task reported its progress: `done` of `total`.
    Progressed { node: NodeIx, done: u32, total: u32 },
    /// A daemon is up: it keeps running, and counts as finished for those that wait for it.
    Daemoned { node: NodeIx },
    /// A daemon is no longer needed: it is being ended, which counts as success.
    Dismissed { node: NodeIx },
    /// The node is being ended early; its end will carry this message.
    Stopping { node: NodeIx, message: String },
    /// The next attempt waits until `until`.
    Backoff { node: NodeIx, at: Time, until: Time, message: String },
    /// A user supplied a suspended node with output values or a message; the node stays suspended.
    Supplied {
        node: NodeIx,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parameters: Vec<(String, String)>,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
    },
    /// The node reached its final state.
    Finished(Box<NodeFinished>),
    /// The node is finished, and so is everything that follows its end (exit handler, hooks).
    Settled { node: NodeIx },
    /// The condition of a hook (of a node, or of the run) became true, but the hook cannot start yet. It starts as soon
    /// as it can.
    Due {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<NodeIx>,
        hook: String,
    },
    /// A memoized node looked up its cache. On a hit it finishes next, with the cached outputs.
    Recalled { node: NodeIx, cache: String, key: String, hit: bool },
    /// A memoized node's outputs were stored in its cache for later nodes with the same key.
    Memoized {
        node: NodeIx,
        at: Time,
        cache: String,
        key: String,
        #[serde(default, skip_serializing_if = "OutputValues::is_empty")]
        outputs: OutputValues,
    },
    /// A global output became visible as `workflow.outputs.*`.
    Exported { parameter: Option<(String, String)>, artifact: Option<OutputArtifactValue> },
    /// A custom metric of a node, or of the run, was evaluated.
    Metered(Box<Metered>),
    /// A custom metric could not be evaluated; the run goes on without it.
    Unmetered { message: String },
    /// The deadline of a whole attempt of a retried steps or DAG template passed: everything in it is being ended.
    Expired { node: NodeIx, at: Time },
}

/// A fact that begins or ends something: the run, a node or a task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LifecycleFact<'f> {
    Began,
    Added(&'f NodeAdded),
    Launched(NodeIx),
    Requeued(NodeIx),
    Finished(&'f NodeFinished),
}

impl WorkflowFact {
    /// Returns what the fact begins or ends; `None` if it does neither.
    pub fn lifecycle(&self) -> Option<LifecycleFact<'_>> {
        match self {
            Self::Began { .. } => Some(LifecycleFact::Began),
            Self::Added(added) => Some(LifecycleFact::Added(added)),
            Self::Launched { node, .. } => Some(LifecycleFact::Launched(*node)),
            Self::Requeued { node, .. } => Some(LifecycleFact::Requeued(*node)),
            Self::Finished(finished) => Some(LifecycleFact::Finished(finished)),
            Self::Wanted { .. }
            | Self::Waiting { .. }
            | Self::Locked { .. }
            | Self::Expanded { .. }
            | Self::Preempted { .. }
            | Self::Started { .. }
            | Self::ChildCreated { .. }
            | Self::Progressed { .. }
            | Self::Daemoned { .. }
            | Self::Dismissed { .. }
            | Self::Stopping { .. }
            | Self::Backoff { .. }
            | Self::Supplied { .. }
            | Self::Settled { .. }
            | Self::Due { .. }
            | Self::Recalled { .. }
            | Self::Memoized { .. }
            | Self::Exported { .. }
            | Self::Metered(_)
            | Self::Unmetered { .. }
            | Self::Expired { .. } => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeAdded {
    pub name: String,
    pub kind: NodeKind,
    pub role: Role,
    /// The node that waits for this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<NodeIx>,
    /// The enclosing steps or DAG node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boundary: Option<NodeIx>,
    /// The nodes it hangs off in the drawing graph.
    #[serde(default, skip_serializing_if = "NodeList::is_empty")]
    pub after: NodeList,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    pub phase: Phase,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    pub at: Time,
    #[serde(default, skip_serializing_if = "InputValues::is_empty")]
    pub inputs: InputValues,
    /// True if an exit handler or hook may follow its end; the node counts as over only after that.
    #[serde(default, skip_serializing_if = "is_false")]
    pub followed: bool,
    /// Time at which the engine must visit the node again without an input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake: Option<Time>,
    /// True if the node must acquire locks before it goes on.
    #[serde(default, skip_serializing_if = "is_false")]
    pub barred: bool,
    /// True if hooks other than the exit handler may fire while it runs and when it is over.
    #[serde(default, skip_serializing_if = "is_false")]
    pub hooked: bool,
    /// The display name, where the template sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display: Option<String>,
    /// True if the node reuses a result of the previous run: it is finished on creation, with the result the run was
    /// submitted with.
    #[serde(default, skip_serializing_if = "is_false")]
    pub reused: bool,
}

/// The relation of a node to its parent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Role {
    /// The root of the run.
    Entry,
    /// The run's exit handler.
    Exit,
    /// A group of steps; the parent is the steps node.
    Group(u32),
    /// A step, by its index in the group and the index of its loop item.
    Step { step: u32, item: Option<u32> },
    /// A DAG task by its index in the list; the parent is the DAG node.
    Task(u32),
    /// An item of a looped task; the parent is the task group.
    Item(u32),
    /// One attempt of a retried call; the parent is the retry node.
    Attempt(u32),
    /// A hook of the parent; the one called `exit` follows its end.
    Hook(String),
    /// A container of a set, by its index in the list; the parent is the pod node.
    Container(u32),
    /// A hook of the run as a whole.
    RunHook(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeFinished {
    pub node: NodeIx,
    pub phase: Phase,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    pub at: Time,
    #[serde(default, skip_serializing_if = "OutputValues::is_empty")]
    pub outputs: OutputValues,
    /// Steps and DAG nodes: the last nodes of their drawing.
    #[serde(default, skip_serializing_if = "NodeList::is_empty")]
    pub outbound: NodeList,
    /// How long its log was; 0 when it wrote nothing, or nobody said. A log that is found shorter lost its end.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub log_bytes: u64,
}

/// Input values as they were when the node was created.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InputValues {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<(String, String)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<InputArtifactValue>,
}

impl InputValues {
    pub fn is_empty(&self) -> bool {
        self.parameters.is_empty() && self.artifacts.is_empty()
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputArtifactValue {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    pub source: ArtifactValue,
}

/// Location of an input artifact's bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum ArtifactValue {
    Raw(String),
    Stored {
        artifact: StoredArtifact,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sub_path: Option<String>,
    },
    /// In an external store; credentials are references to Secrets.
    Located {
        at: Box<ArtifactLocation>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sub_path: Option<String>,
        #[serde(default, skip_serializing_if = "is_false")]
        optional: bool,
    },
    /// Optional and missing.
    Absent,
}

fn is_false(flag: &bool) -> bool {
    !flag
}
