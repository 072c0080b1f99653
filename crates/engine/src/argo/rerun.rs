//! Doing a finished run again: which of its results stay, what runs again and why.
//! It works on the run as people see it, so that it works for runs of any age. It only looks; nothing is changed here.

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
    rerun::{self, Reruns},
};
use choose::Choice;
use graph::Graph;
pub use manifest::{Fresh, renewed, resubmitted};
pub use parameter::allows;

/// What somebody wants of a retry. What kept the run from succeeding is always run again; the rest adds to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RerunOptions {
    /// The nodes the selector chooses run again though they succeeded, and everything after them.
    pub restart_successful: bool,
    /// A node field selector. It counts only with `restart_successful`.
    pub selector: Option<String>,
    /// These run again, by name, id or display name; nothing after them does for that.
    pub nodes: Vec<String>,
    /// These run again and everything after them.
    pub from: Vec<String>,
    /// Failures that did no harm, and what came after them, run again too.
    pub failed: bool,
    /// Arguments to be replaced by name, or added.
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

/// What somebody wants of a new run made from an old one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResubmitOptions {
    /// Tasks that succeeded are not run again.
    pub memoized: bool,
    /// Arguments to be replaced by name, or added.
    pub parameters: Vec<(String, String)>,
}

/// Why a run cannot be done again as it was asked for.
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
    /// Of another dialect, in its own words.
    #[error("{0}")]
    Said(String),
}

/// What retry and resubmit mean for a workflow.
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
        let Fresh { manifest, stored, generate_name } = renewed(object, &options.parameters);
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
        let Fresh { manifest, stored, generate_name } = resubmitted(object, &options.parameters);
        Ok(rerun::RerunManifest { manifest, stored, generate_name, plan })
    }
}

/// A long list is told in part.
fn listed(choices: &[String]) -> String {
    const MOST: usize = 20;
    let told: Vec<String> = choices.iter().take(MOST).map(|choice| format!("'{choice}'")).collect();
    let more = if choices.len() > MOST { ", …" } else { "" };
    told.join(", ") + more
}

/// What is known of a run beside its object.
#[derive(Clone, Debug, Default)]
pub struct RunContext {
    /// By node id: the attempt whose log belongs to it.
    pub attempts: BTreeMap<String, AttemptId>,
    /// The ids of nodes with artifacts that are being deleted.
    pub doomed: BTreeSet<String>,
}

/// What will become of the nodes of a run that is done again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RerunPlan {
    /// Results that stay, by the node's name without the run's.
    pub reuse: BTreeMap<String, NodeResult>,
    pub rerun: Vec<Rerun>,
}

impl RerunPlan {
    /// What the new run is submitted with.
    pub fn before(self, runs: Vec<RunId>) -> PreviousRun {
        PreviousRun { runs, results: self.reuse }
    }
}

/// A node that runs again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rerun {
    pub node: String,
    pub display: String,
    pub why: Why,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It ended badly.
    Ended { phase: String, message: String },
    /// It was never over.
    Unfinished,
    /// What it waited for did not come to pass, and may now.
    Omitted,
    /// Somebody asked for it.
    Chosen,
    /// It comes after a node that runs again.
    After(String),
    /// Something it made is not there any more.
    Gone { artifact: String },
    /// It is needed beside a node that runs again.
    Daemon,
    /// It follows or watches something that runs again.
    Handler,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended { phase, message } if message.is_empty() => write!(f, "it ended {phase}"),
            Self::Ended { phase, message } => write!(f, "it ended {phase}: {message}"),
            Self::Unfinished => f.write_str("it was never over"),
            Self::Omitted => f.write_str("it was omitted and may have its turn now"),
            Self::Chosen => f.write_str("it was chosen"),
            Self::After(node) => write!(f, "it comes after {node}"),
            Self::Gone { artifact } => write!(f, "its artifact '{artifact}' was deleted"),
            Self::Daemon => f.write_str("it is a daemon, and something beside it runs again"),
            Self::Handler => f.write_str("it is a handler or hook of something that runs again"),
        }
    }
}

/// What a retry of this run will do, or why there can be none.
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
    Ok(RerunPlan { reuse: kept(&graph, &choice, context), rerun: choice.told(&graph) })
}

/// What a new run of this one takes over: tasks that succeeded, shown as skipped.
pub fn memoized(object: &Value, context: &RunContext, now: Time) -> Result<RerunPlan, Refusal> {
    if !matches!(object["status"]["phase"].as_str(), Some("Failed" | "Error")) {
        return Err(Refusal::NotFailed);
    }
    let graph = Graph::of(object);
    let choice = Choice::make(&graph, context, &RerunOptions::default())?;
    let mut plan = RerunPlan { reuse: BTreeMap::new(), rerun: choice.told(&graph) };
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
        // However often it was tried, one attempt is enough to say that it is done.
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
