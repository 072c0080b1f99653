//! Plans reruns of a finished run: which results are kept, what runs again and why.
//! Works on the run's object, so that it works for runs of any age, and only reads it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use octoflow_model::{
    AttemptId, RunId, Time,
    argo::{NodeKind, Phase},
    previous::{NodeResult, PreviousRun},
};
use serde_json::Value;
use thiserror::Error;

mod choose;
mod graph;
mod manifest;
mod parameter;
mod result;

use crate::{
    admit::Catalog,
    run::rerun::{self, Reruns},
};
use choose::Choice;
use graph::Graph;
pub use manifest::{RerunManifest, resubmit_manifest, retry_manifest};
pub use parameter::allows;

/// Options of a retry. Whatever kept the run from succeeding always runs again; the options add to that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RerunOptions {
    /// True if nodes that the selector matches run again though they succeeded, with everything after them.
    pub restart_successful: bool,
    /// Node field selector. Ignored without `restart_successful`.
    pub selector: Option<String>,
    /// Nodes to run again, by name, id or display name, without what comes after them.
    pub nodes: Vec<String>,
    /// Nodes to run again with everything after them.
    pub from: Vec<String>,
    /// True if failures that `continueOn` excused, and what came after them, run again too.
    pub failed: bool,
    /// Arguments to replace by name, or to add.
    pub parameters: Vec<(String, String)>,
}

impl RerunOptions {
    fn chooses(&self) -> bool {
        self.restart_successful && self.selector.is_some()
            || !self.nodes.is_empty()
            || !self.from.is_empty()
            || self.failed
    }
}

/// Options of a resubmit: a new run made from an old one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResubmitOptions {
    /// True if tasks that succeeded do not run again.
    pub memoized: bool,
    /// Arguments to replace by name, or to add.
    pub parameters: Vec<(String, String)>,
}

/// Why a run cannot be rerun as requested.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Refusal {
    #[error("Cannot retry a workflow in phase {phase}")]
    Open { phase: String },
    #[error("To retry a succeeded workflow, set the options restartSuccessful and nodeFieldSelector")]
    Succeeded,
    #[error("Workflow must be Failed/Error to resubmit in memoized mode")]
    NotFailed,
    #[error("'{text}' is not a node field selector; write key=value terms joined by commas")]
    Selector { text: String },
    #[error("no node matches the nodeFieldSelector '{selector}'")]
    NoMatch { selector: String },
    #[error("the workflow has no node '{node}'; give its name, id or display name")]
    NoNode { node: String },
    #[error("the parameter '{name}' cannot be '{value}'; its enum allows: {}", listed(choices))]
    NotAllowed { name: String, value: String, choices: Vec<String> },
    /// Refusal of another dialect, in its own words.
    #[error("{0}")]
    Said(String),
}

/// Implements retry and resubmit for workflows.
#[derive(Debug)]
pub(super) struct Retries;

impl Reruns for Retries {
    fn plan(&self, object: &Value, context: &RunContext, options: &RerunOptions) -> Result<RerunPlan, Refusal> {
        plan(object, context, options)
    }

    fn retry(
        &self,
        object: &Value,
        context: &RunContext,
        options: &RerunOptions,
        _: &dyn Catalog,
    ) -> Result<rerun::RerunManifest, Refusal> {
        let plan = plan(object, context, options)?;
        let RerunManifest { manifest, stored, generate_name } = retry_manifest(object, &options.parameters);
        Ok(rerun::RerunManifest { manifest, stored, generate_name, plan })
    }

    fn resubmit(
        &self,
        object: &Value,
        context: &RunContext,
        options: &ResubmitOptions,
        now: Time,
    ) -> Result<rerun::RerunManifest, Refusal> {
        allows(object, &options.parameters)?;
        let plan = if options.memoized { memoized(object, context, now)? } else { RerunPlan::default() };
        let RerunManifest { manifest, stored, generate_name } = resubmit_manifest(object, &options.parameters);
        Ok(rerun::RerunManifest { manifest, stored, generate_name, plan })
    }
}

/// Lists the choices, a long list in part.
fn listed(choices: &[String]) -> String {
    const MAX_SHOWN: usize = 20;
    let shown: Vec<String> = choices.iter().take(MAX_SHOWN).map(|choice| format!("'{choice}'")).collect();
    let more = if choices.len() > MAX_SHOWN { ", …" } else { "" };
    shown.join(", ") + more
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
}

impl RerunPlan {
    /// Converts the plan into what the new run is submitted with.
    pub fn before(self, runs: Vec<RunId>) -> PreviousRun {
        PreviousRun { runs, results: self.reuse }
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

/// Plans a retry of this run, or refuses it.
pub fn plan(object: &Value, context: &RunContext, options: &RerunOptions) -> Result<RerunPlan, Refusal> {
    let phase = object["status"]["phase"].as_str().unwrap_or_default();
    match phase {
        "Failed" | "Error" => {}
        "Succeeded" if options.chooses() => {}
        "Succeeded" => return Err(Refusal::Succeeded),
        open => {
            let phase = if open.is_empty() { "Pending" } else { open };
            return Err(Refusal::Open { phase: phase.to_owned() });
        }
    }
    allows(object, &options.parameters)?;
    let graph = Graph::of(object);
    let choice = Choice::make(&graph, context, options)?;
    Ok(RerunPlan { reuse: kept(&graph, &choice, context), rerun: choice.list(&graph) })
}

/// Plans a memoized resubmit: tasks that succeeded are reused and shown as skipped.
pub fn memoized(object: &Value, context: &RunContext, now: Time) -> Result<RerunPlan, Refusal> {
    if !matches!(object["status"]["phase"].as_str(), Some("Failed" | "Error")) {
        return Err(Refusal::NotFailed);
    }
    let graph = Graph::of(object);
    let choice = Choice::make(&graph, context, &RerunOptions::default())?;
    let mut plan = RerunPlan { reuse: BTreeMap::new(), rerun: choice.list(&graph) };
    for (at, node) in graph.nodes.iter().enumerate() {
        let task = node.kind == "Pod" || node.carried;
        let well = node.phase == "Succeeded" || node.carried;
        if !task || !well || choice.reruns(at) || graph.in_hook(at) || node.daemon {
            continue;
        }
        let done = NodeResult {
            kind: NodeKind::Pod,
            phase: Phase::Succeeded,
            message: format!("original pod: {}", node.id),
            started: now,
            finished: now,
            ran: false,
            skipped: true,
            host: None,
            attempt: context.attempts.get(node.id).copied(),
            outputs: result::outputs(node.value),
            progress: None,
            memo: None,
        };
        // Of a retried call, one attempt is enough to carry the result.
        let name = match graph.retry_of(at) {
            Some(retry) => format!("{}(0)", graph.nodes[retry].name),
            None => node.name.to_owned(),
        };
        plan.reuse.insert(graph.suffix(&name).to_owned(), done);
    }
    Ok(plan)
}

fn kept(graph: &Graph<'_>, choice: &Choice, context: &RunContext) -> BTreeMap<String, NodeResult> {
    let mut kept = BTreeMap::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        let stays = match node.kind {
            "Container" => graph.pod_of(at).is_some_and(|pod| choice.keeps(pod)),
            "Retry" => choice.keeps(at),
            _ => graph.is_leaf(at) && choice.keeps(at),
        };
        if stays && let Some(done) = result::done(node, context.attempts.get(node.id).copied()) {
            kept.insert(graph.suffix(node.name).to_owned(), done);
        }
    }
    kept
}
