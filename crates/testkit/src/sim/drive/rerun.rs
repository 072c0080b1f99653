//! Once everything is over, people retry what failed. What was done must not be done again, whenever the controller crashes.

use octoflow_control::Acceptance;
use octoflow_engine::argo::{
    rerun::{RerunOptions, RunContext, Why, plan, retry_manifest},
    status,
};
use octoflow_model::{AttemptId, NodeIx, RunId, RunPhase, previous::PreviousRun, submission::Submission};

use super::Sim;
use crate::sim::{
    draw::Draw,
    failure::{Broken, Guarantee, broken},
};

/// The number of a retry is that of the run and so much more.
const NEXT: u64 = 100;
/// How often one run is retried.
const MAX_RETRIES: u64 = 2;

impl Sim<'_> {
    /// Submits the next retry, if somebody wants one. False when nobody does.
    pub(super) fn retry(&mut self) -> Result<bool, Broken> {
        let Some(old) = self.disk.runs().into_iter().find(|run| self.wants_again(*run)) else { return Ok(false) };
        let Some(seen) = self.disk.seen(old).and_then(|run| run.of::<octoflow_engine::argo::Run>()) else {
            return Ok(false);
        };
        let object = status::object(seen);
        let attempt = |at: NodeIx| AttemptId { run: old, task: at, attempt: 0 };
        let nodes = (0..seen.state.nodes.len() as u32).map(NodeIx);
        let attempts = nodes.map(|at| (seen.state.id_of(at), seen.attempt_of(at).unwrap_or(attempt(at)))).collect();
        let options = wish(self.world.seed, old);
        let catalog = RunContext { attempts, ..RunContext::default() };
        let plan = plan(&object, &catalog, &options).or_else(|why| {
            broken(Guarantee::Acknowledged, format!("run {old} failed, and yet its retry is refused: {why}"))
        })?;
        // Handlers and what comes after a failure that counts may have succeeded for nothing; all else is kept.
        let excused = |name: &str| {
            let told = plan.rerun.iter().filter(|one| !matches!(one.why, Why::Ended { .. } | Why::Unfinished));
            told.into_iter().any(|one| name.starts_with(&one.node))
        };
        for node in object["status"]["nodes"].as_object().into_iter().flat_map(|nodes| nodes.values()) {
            let name = node["name"].as_str().unwrap_or_default();
            let suffix = name.strip_prefix(&*seen.state.head.name).unwrap_or(name);
            if node["type"] == "Pod"
                && node["phase"] == "Succeeded"
                && !excused(name)
                && !plan.reuse.contains_key(suffix)
            {
                return broken(Guarantee::Twice, format!("{name} succeeded and is forgotten by a retry: {plan:?}"));
            }
        }
        let fresh = retry_manifest(&object, &[]);
        let runs = seen.replaced_runs().iter().copied().chain([old]).collect();
        let before: PreviousRun = plan.before(runs);
        let submission = Submission {
            name: seen.state.head.name.to_string(),
            namespace: seen.state.head.namespace.to_string(),
            uid: seen.state.head.uid.to_string(),
            at: seen.state.head.created,
            manifest: fresh.manifest,
            stored: fresh.stored,
            context: Default::default(),
            parent: None,
            ordered_by: None,
            previous: Some(Box::new(before)),
        };
        let run = RunId(old.0 + NEXT);
        self.tell(|| format!("person   retries run {old} as run {run} with {options:?}"));
        let Some(life) = &mut self.life else {
            return broken(Guarantee::Owned, "the controller is down and nobody brings it up");
        };
        let acceptance = Acceptance { replaces: Some(old), ..Acceptance::default() };
        drop(life.event_loop.submit(run, Box::new(submission), None, acceptance));
        self.step()?;
        Ok(true)
    }

    fn wants_again(&self, run: RunId) -> bool {
        let seen = self.disk.seen(run).and_then(|run| run.of::<octoflow_engine::argo::Run>());
        let failed = seen.is_some_and(|run| run.state.phase != RunPhase::Succeeded);
        let mut draw = Draw::new(self.world.seed, "again");
        failed && run.0 < NEXT * MAX_RETRIES && draw.chance(40) && !self.disk.knows(RunId(run.0 + NEXT))
    }
}

/// The same whenever it is asked for.
fn wish(seed: u64, run: RunId) -> RerunOptions {
    let mut draw = Draw::new(seed ^ run.0, "wish");
    RerunOptions { failed: draw.chance(20), ..RerunOptions::default() }
}
