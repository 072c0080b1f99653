//! Reruns: what a retry or a resubmit of a finished run means in its dialect. Plans and builds manifests; never submits
//! them.

mod request;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use octoflow_model::{
    AttemptId, RunId, Time,
    previous::{EntryResult, NodeResult, PreviousRun},
    submission::Stored,
};
use serde_json::Value;

use crate::admit::Catalog;

pub use request::{RerunOptions, RerunRefusal, ResubmitOptions};

/// A rerun that is ready to be submitted.
#[derive(Debug)]
pub struct RerunManifest {
    pub manifest: Value,
    pub stored: Stored,
    /// Prefix of the generated name, where a new name is drawn.
    pub generate_name: String,
    /// Which results are reused and which nodes run again.
    pub plan: RerunPlan,
}

/// Implements retry and resubmit for a dialect. `object` is the old run's.
pub trait Reruns: fmt::Debug + Sync {
    /// Plans a retry: what would run again, and why.
    fn plan(&self, object: &Value, context: &RunContext, options: &RerunOptions) -> Result<RerunPlan, RerunRefusal>;

    /// Builds the run that replaces the old one.
    fn retry(
        &self,
        object: &Value,
        context: &RunContext,
        options: &RerunOptions,
        others: &dyn Catalog,
    ) -> Result<RerunManifest, RerunRefusal>;

    /// Builds a new, independent run.
    fn resubmit(
        &self,
        object: &Value,
        context: &RunContext,
        options: &ResubmitOptions,
        now: Time,
    ) -> Result<RerunManifest, RerunRefusal>;

    /// Describes a retry in one sentence, if it always repeats the whole run and there is no plan to show.
    fn whole(&self) -> Option<&'static str> {
        None
    }

    /// Reports whether a retry can name nodes that run again though they succeeded.
    fn takes_nodes(&self) -> bool {
        false
    }
}

/// Facts about a run that its object does not contain.
#[derive(Clone, Debug, Default)]
pub struct RunContext {
    /// Attempts whose logs belong to the nodes, by node id.
    pub attempts: BTreeMap<String, AttemptId>,
    /// Ids of nodes with artifacts that are being deleted.
    pub deleting: BTreeSet<String>,
}

/// Which nodes of a rerun keep their results and which run again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RerunPlan {
    /// Results that are kept, by node name without the run's name.
    pub reuse: BTreeMap<String, NodeResult>,
    pub rerun: Vec<Rerun>,
    /// What is kept of the entries of a flow, by name.
    pub entries: BTreeMap<String, EntryResult>,
}

impl RerunPlan {
    /// Returns the names of what keeps its result: nodes of a workflow, entries of a flow whose job was completed.
    pub fn kept(&self) -> impl Iterator<Item = &str> {
        let entries = self.entries.iter().filter(|(_, entry)| entry.job.is_some());
        self.reuse.keys().chain(entries.map(|(name, _)| name)).map(String::as_str)
    }

    /// Converts the plan into what the new run is submitted with.
    pub fn before(self, runs: Vec<RunId>) -> PreviousRun {
        PreviousRun { runs, results: self.reuse, entries: self.entries }
    }
}

/// A node that runs again, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rerun {
    pub node: String,
    pub display: String,
    pub why: Why,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The node failed.
    Ended { phase: String, message: String },
    /// The node was never over.
    Unfinished,
    /// The node was omitted because of a dependency that may end differently now.
    Omitted,
    /// The user selected the node.
    Chosen,
    /// The node comes after one that runs again.
    After(String),
    /// An artifact that the node produced was deleted.
    Gone { artifact: String },
    /// The node is a daemon of a boundary in which something runs again.
    Daemon,
    /// The node is a handler or hook of something that runs again.
    Handler,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended { phase, message } if message.is_empty() => write!(f, "it ended {phase}"),
            Self::Ended { phase, message } => write!(f, "it ended {phase}: {message}"),
            Self::Unfinished => f.write_str("it had not finished"),
            Self::Omitted => f.write_str("it was omitted and may run now"),
            Self::Chosen => f.write_str("it was chosen"),
            Self::After(node) => write!(f, "it comes after {node}"),
            Self::Gone { artifact } => write!(f, "its artifact '{artifact}' was deleted"),
            Self::Daemon => f.write_str("it is a daemon, and something beside it runs again"),
            Self::Handler => f.write_str("it is a handler or hook of something that runs again"),
        }
    }
}
