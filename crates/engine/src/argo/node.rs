//! One node of a run: what it is, how it stands, and what its kind needs to remember.
//! Only the fold writes it.

use octoflow_model::{
    AttemptId, Claim, NodeIx, Time,
    argo::{InputValues, Items, NodeKind, NodeList, OutputValues, Phase, Role},
    phases,
};

#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub name: Box<str>,
    pub kind: NodeKind,
    pub role: Role,
    pub phase: Phase,
    /// Nothing about it is open any more: it is final and whatever follows its end is over.
    pub settled: bool,
    /// An exit handler or hook may follow its end.
    pub followed: bool,
    /// Hooks other than the exit handler may fire while it runs and when it is over.
    pub hooked: bool,
    /// It belongs to an exit handler, so stopping and deadlines pass it by.
    pub after_end: bool,
    /// Calls between it and the root.
    pub depth: u16,
    pub parent: Option<NodeIx>,
    pub boundary: Option<NodeIx>,
    pub template: Option<std::sync::Arc<str>>,
    pub message: Option<Box<str>>,
    pub display: Option<Box<str>>,
    /// When it came into being.
    pub born: Time,
    pub started: Time,
    /// A runtime said that its task began.
    pub ran: bool,
    pub finished: Option<Time>,
    /// When the engine must look at it again without being told.
    pub wake: Option<Time>,
    pub children: Vec<NodeIx>,
    pub outbound: NodeList,
    pub inputs: Option<Box<InputValues>>,
    pub outputs: Option<Box<OutputValues>>,
    /// How far its task says it is: so much of so much.
    pub progress: Option<Box<(u32, u32)>>,
    /// It may not go on before it holds its locks.
    pub barred: bool,
    /// The locks it wants or holds; none once it is over.
    pub lock: Option<Box<Lock>>,
    /// It is up beside the others, who do not wait for it any more.
    pub daemoned: bool,
    /// It is being ended because nobody needs it any more.
    pub dismissed: bool,
    /// What its cache said, when it is memoized and has asked.
    pub memo: Option<Box<Memo>>,
    /// What is left of the run this one comes after, at this node and below it.
    pub past: Option<Box<Past>>,
    pub body: Body,
}

/// How a node stands to the results its run was submitted with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Past {
    /// It was done before and is not done again.
    pub own: bool,
    /// It is shown as skipped, because another run did it.
    pub skipped: bool,
    /// The machine it ran on then.
    pub host: Option<Box<str>>,
    /// Whose log is its log.
    pub attempt: Option<AttemptId>,
    /// When the last of what is below it was over then.
    pub until: Option<Time>,
    /// Something below it is done anew.
    pub fresh: bool,
}

/// What a memoized node asked its cache for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memo {
    pub cache: String,
    pub key: String,
    pub hit: bool,
}

/// Locks that belong together: all of them are held, or none is.
#[derive(Clone, Debug, PartialEq)]
pub struct Lock {
    pub claims: Vec<Claim>,
    pub held: bool,
    /// While it waits: the lock that keeps it, and who held that when it began to wait for it.
    pub waits: Option<(String, Vec<String>)>,
}

impl Lock {
    pub(super) fn wanted(claims: &[Claim]) -> Self {
        Self { claims: claims.to_vec(), held: false, waits: None }
    }
}

/// What a kind of node remembers while it is open.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// Nothing: skipped and suspended nodes, and everything that is over.
    Plain,
    Leaf(Leaf),
    Steps {
        groups: Vec<NodeIx>,
    },
    Group(Group),
    Dag(Box<Dag>),
    /// The items of a looped task.
    Fan(Fan),
    Retry {
        attempts: Vec<NodeIx>,
    },
}

phases! {
    /// Where a task is on its way. It ends with its node wherever it is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Leaf {
        /// Waits for its locks. Its owner is the table of locks.
        Barred = "Barred" -> [Queued],
        /// Waits for the scheduler. Its owner is the scheduler's queue.
        Queued = "Queued" -> [Launched],
        /// Given to a runtime, which has not said yet that it runs. Its owner is the runtime.
        Launched = "Launched" -> [Running, Stopping],
        /// The runtime says it runs.
        Running = "Running" -> [Stopping],
        /// Told to end; the end it reports will be taken as the one it was told.
        Stopping = "Stopping" -> [],
    }
}

impl Leaf {
    pub fn owned_by_runtime(self) -> bool {
        matches!(self, Self::Launched | Self::Running | Self::Stopping)
    }
}

/// The calls of one step group.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    pub calls: Vec<Fan>,
    /// Calls before this one have all their nodes.
    pub cursor: u32,
    /// Children that are there and not settled.
    pub open: u32,
}

/// One call and the nodes made for it: one, or one per item of its loop.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fan {
    /// `None` until the loop is expanded, or when there is none.
    pub items: Option<Items>,
    /// In order of their items.
    pub nodes: Vec<NodeIx>,
    /// Of these, how many are not settled.
    pub open: u32,
}

impl Fan {
    /// Every node the call will ever have is there.
    pub fn complete(&self) -> bool {
        match &self.items {
            Some(items) => self.nodes.len() == items.len(),
            None => !self.nodes.is_empty(),
        }
    }
}

/// The tasks of one DAG.
#[derive(Clone, Debug, PartialEq)]
pub struct Dag {
    /// By task: its node, once it has one.
    pub nodes: Vec<Option<NodeIx>>,
    /// By task: how many of the tasks it waits for are not settled.
    pub waits: Vec<u32>,
    /// How many tasks have a node.
    pub made: u32,
    /// Nodes that are there and not settled.
    pub open: u32,
}

impl Node {
    pub fn input(&self, name: &str) -> Option<&str> {
        self.inputs.as_ref()?.parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub fn leaf(&self) -> Option<Leaf> {
        match &self.body {
            Body::Leaf(leaf) => Some(*leaf),
            _ => None,
        }
    }

    /// Its own share of the work, done and in all, when progress counts it.
    pub fn share(&self) -> (u64, u64) {
        let (done, total) = self.progress.as_deref().copied().unwrap_or((0, 1));
        let well = matches!(self.phase, Phase::Succeeded | Phase::Skipped | Phase::Omitted);
        (u64::from(if well { total } else { done }), u64::from(total))
    }

    /// It was done before and is not done again.
    pub fn reused(&self) -> bool {
        self.past.as_ref().is_some_and(|past| past.own)
    }

    /// It has results, and all of them are from before.
    pub fn untouched(&self) -> bool {
        self.past.as_ref().is_some_and(|past| past.own || !past.fresh)
    }

    /// Counted against parallelism limits while it is not final.
    pub fn counts_as_child(&self) -> bool {
        matches!(self.kind, NodeKind::Pod | NodeKind::Steps | NodeKind::Dag)
    }
}
