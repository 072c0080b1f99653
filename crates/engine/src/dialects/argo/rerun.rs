//! Plans reruns of a finished run: which results are kept, what runs again and why.
//! Works on the run's object, so that it works for runs of any age, and only reads it.

use std::collections::BTreeMap;

use octoflow_model::{
    Time,
    argo::{NodeKind, Phase},
    previous::NodeResult,
};
use serde_json::Value;

mod choose;
mod graph;
mod manifest;
mod parameter;
mod result;

pub use crate::run::rerun::{Rerun, RerunOptions, RerunPlan, RerunRefusal, ResubmitOptions, RunContext, Why};
use crate::{
    admit::Catalog,
    run::rerun::{self, Reruns},
};
use choose::Choice;
use graph::NodeGraph;
pub use manifest::{WorkflowManifest, resubmit_manifest, retry_manifest};
pub use parameter::allows;

/// Implements retry and resubmit for workflows.
#[derive(Debug)]
pub(super) struct Retries;

impl Reruns for Retries {
    fn plan(&self, object: &Value, context: &RunContext, options: &RerunOptions) -> Result<RerunPlan, RerunRefusal> {
        plan(object, context, options)
    }

    fn retry(
        &self,
        object: &Value,
        context: &RunContext,
        options: &RerunOptions,
        _: &dyn Catalog,
    ) -> Result<rerun::RerunManifest, RerunRefusal> {
        let plan = plan(object, context, options)?;
        let WorkflowManifest { manifest, stored, generate_name } = retry_manifest(object, &options.parameters);
        Ok(rerun::RerunManifest { manifest, stored, generate_name, plan })
    }

    fn resubmit(
        &self,
        object: &Value,
        context: &RunContext,
        options: &ResubmitOptions,
        now: Time,
    ) -> Result<rerun::RerunManifest, RerunRefusal> {
        allows(object, &options.parameters)?;
        let plan = if options.memoized { memoized(object, context, now)? } else { RerunPlan::default() };
        let WorkflowManifest { manifest, stored, generate_name } = resubmit_manifest(object, &options.parameters);
        Ok(rerun::RerunManifest { manifest, stored, generate_name, plan })
    }

    fn takes_nodes(&self) -> bool {
        true
    }
}

/// Plans a retry of this run, or refuses it.
pub fn plan(object: &Value, context: &RunContext, options: &RerunOptions) -> Result<RerunPlan, RerunRefusal> {
    let phase = object["status"]["phase"].as_str().unwrap_or_default();
    match phase {
        "Failed" | "Error" => {}
        "Succeeded" if options.chooses() => {}
        "Succeeded" => return Err(RerunRefusal::Succeeded),
        open => {
            let phase = if open.is_empty() { "Pending" } else { open };
            return Err(RerunRefusal::Open { phase: phase.to_owned() });
        }
    }
    allows(object, &options.parameters)?;
    let graph = NodeGraph::of(object);
    let choice = Choice::make(&graph, context, options)?;
    Ok(RerunPlan { reuse: kept(&graph, &choice, context), rerun: choice.list(&graph), entries: BTreeMap::new() })
}

/// Plans a memoized resubmit: tasks that succeeded are reused and shown as skipped.
pub fn memoized(object: &Value, context: &RunContext, now: Time) -> Result<RerunPlan, RerunRefusal> {
    if !matches!(object["status"]["phase"].as_str(), Some("Failed" | "Error")) {
        return Err(RerunRefusal::NotFailed);
    }
    let graph = NodeGraph::of(object);
    let choice = Choice::make(&graph, context, &RerunOptions::default())?;
    let mut plan = RerunPlan { rerun: choice.list(&graph), ..RerunPlan::default() };
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

fn kept(graph: &NodeGraph<'_>, choice: &Choice, context: &RunContext) -> BTreeMap<String, NodeResult> {
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
