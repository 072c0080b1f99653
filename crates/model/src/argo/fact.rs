//! What is decided about a workflow. Never changed once released: new facts may be added, new fields must have defaults.

use serde::{Deserialize, Serialize};

use super::{ArtifactLocation, Items, NodeKind, NodeList, Phase};
use crate::{
    fact::is_nothing,
    ids::NodeIx,
    lock::Claim,
    meter::Metered,
    order::Fetched,
    task::{Labels, StoredArtifact},
    time::Time,
};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum WorkflowFact {
    /// Work has begun.
    Began {
        at: Time,
        parameters: Vec<(String, String)>,
        /// Added to the run's own as its `workflowMetadata` says.
        #[serde(default, skip_serializing_if = "Labels::is_empty")]
        labels: Labels,
        #[serde(default, skip_serializing_if = "Labels::is_empty")]
        annotations: Labels,
    },
    /// A node came into being.
    Added(Box<NodeAdded>),
    /// The node, or the run itself before it begins, must hold all of these before it goes on.
    Wanted {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<NodeIx>,
        locks: Vec<Claim>,
    },
    /// It waits: others hold one of its locks, or come before it.
    Waiting {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<NodeIx>,
        at: Time,
        /// The lock that keeps it, and who holds that now.
        lock: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        holders: Vec<String>,
        message: String,
    },
    /// It holds all its locks, until it is over.
    Locked {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<NodeIx>,
        at: Time,
        /// When the engine must look at the node again without being told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wake: Option<Time>,
    },
    /// A loop at this node (a step group or a task group) was expanded into items.
    Expanded { node: NodeIx, call: u32, items: Items },
    /// The scheduler gave the node's task to a runtime.
    Launched {
        node: NodeIx,
        at: Time,
        /// Its task must have ended by then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Time>,
    },
    /// The runtime reports that it runs.
    Started { node: NodeIx, at: Time },
    /// It tells how far it is: so much of so much.
    Progressed { node: NodeIx, done: u32, total: u32 },
    /// A daemon is up: it counts as over for those that wait for it, and goes on.
    Daemoned { node: NodeIx },
    /// A daemon is not needed any more: it is being ended, and succeeds by that.
    Dismissed { node: NodeIx },
    /// It is being ended before its time; its end will carry this message.
    Stopping { node: NodeIx, message: String },
    /// Retrying waits until then.
    Backoff { node: NodeIx, at: Time, until: Time, message: String },
    /// Somebody gave a suspended node values for its outputs, or a message, and let it wait on.
    Supplied {
        node: NodeIx,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parameters: Vec<(String, String)>,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
    },
    /// The node reached its final state.
    Finished(Box<NodeFinished>),
    /// The node and everything that hangs on it (exit handler, hooks) is over.
    Settled { node: NodeIx },
    /// The moment of a hook has come, of a node or of the run, but it cannot start yet. It will.
    Due {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<NodeIx>,
        hook: String,
    },
    /// A memoized node looked for its outputs in its cache. When it found them it is about to finish with them.
    Recalled { node: NodeIx, cache: String, key: String, hit: bool },
    /// What a memoized node gave is kept in its cache for the next one.
    Memoized {
        node: NodeIx,
        at: Time,
        cache: String,
        key: String,
        #[serde(default, skip_serializing_if = "OutputValues::is_empty")]
        outputs: OutputValues,
    },
    /// A value became visible as `workflow.outputs.*`.
    Exported { parameter: Option<(String, String)>, artifact: Option<OutputArtifactValue> },
    /// A custom metric of a node, or of the run, was read.
    Metered(Box<Metered>),
    /// A custom metric could not be read; the run goes on without it.
    Unmetered { message: String },
    /// The time of a whole attempt of a retried steps or DAG template is up: what is in it is being ended.
    Expired { node: NodeIx, at: Time },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeAdded {
    pub name: String,
    pub kind: NodeKind,
    pub role: Role,
    /// The node this one belongs to in the sense of who waits for it.
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
    /// Something must happen after its end before it counts as over: an exit handler or hook may follow.
    #[serde(default, skip_serializing_if = "is_false")]
    pub followed: bool,
    /// When the engine must look at it again without being told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake: Option<Time>,
    /// It may not go on before it holds its locks.
    #[serde(default, skip_serializing_if = "is_false")]
    pub barred: bool,
    /// Hooks other than the exit handler may fire while it runs and when it is over.
    #[serde(default, skip_serializing_if = "is_false")]
    pub hooked: bool,
    /// The name people see, where a template chose its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display: Option<String>,
    /// It was done before: it is over by this, with the result the run was submitted with.
    #[serde(default, skip_serializing_if = "is_false")]
    pub reused: bool,
}

/// What a node is to its parent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Role {
    /// The root of the run.
    Entry,
    /// The run's exit handler.
    Exit,
    /// A group of steps; the parent is the steps node.
    Group(u32),
    /// A step, by its place in the group, and which item of its loop.
    Step { step: u32, item: Option<u32> },
    /// A DAG task by its place in the list; the parent is the DAG node.
    Task(u32),
    /// An item of a looped task; the parent is the task group.
    Item(u32),
    /// One try of a retried call; the parent is the retry node.
    Attempt(u32),
    /// A hook of the parent; the one called `exit` follows its end.
    Hook(String),
    /// A container of a set, by its place in the list; the parent is the pod node.
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

/// Inputs as they were when the node was made.
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

/// Where an input artifact's bytes are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum ArtifactValue {
    Raw(String),
    Stored {
        artifact: StoredArtifact,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sub_path: Option<String>,
    },
    /// Somewhere else, with references to its credentials.
    Located {
        at: Box<ArtifactLocation>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sub_path: Option<String>,
        #[serde(default, skip_serializing_if = "is_false")]
        optional: bool,
    },
    /// Optional and not there.
    Absent,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OutputValues {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<(String, String)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<OutputArtifactValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<String>,
    /// What its inputs from elsewhere turned out to be.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fetched: Vec<(String, Fetched)>,
}

impl OutputValues {
    pub fn is_empty(&self) -> bool {
        self.parameters.is_empty()
            && self.artifacts.is_empty()
            && self.result.is_none()
            && self.exit_code.is_none()
            && self.fetched.is_empty()
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputArtifactValue {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    pub artifact: StoredArtifact,
}

fn is_false(flag: &bool) -> bool {
    !flag
}
