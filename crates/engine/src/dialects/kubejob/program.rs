//! A compiled job: defaults and policies resolved. Immutable; what may change while the job runs is part of its state.

use std::fmt::Write;
use std::sync::Arc;

use octoflow_model::{
    RunId,
    kubejob::{Amendment, CompletionMode, FailureRule, Job, ReplacementPolicy},
    podspec::Container,
    task::Resources,
};
use serde_json::Value;

use super::{defaults, ident, indexes::Indexes};
use crate::pod::{address::address, together};

/// Maximum number of pods that a job wants at once, and of its completions: a manifest must not be able to exhaust
/// memory.
pub const MAX_PODS: u32 = 100_000;

#[derive(Debug)]
pub struct Program {
    /// With its defaults.
    pub job: Job,
    /// True if every pod has an index.
    pub indexed: bool,
    /// True if failed containers are started again in their place.
    pub restarts: bool,
    pub replacement: ReplacementPolicy,
    /// The most failures of an index; `None`: indexes are not counted apart.
    pub limit_per_index: Option<u32>,
    pub rules: Vec<FailureRule>,
    pub success: Vec<SuccessRule>,
    pub resources: Resources,
    /// True if containers have readiness probes: pods are not ready because they run.
    probed: bool,
    /// What may change while the job is open, as the manifest has it.
    pub settings: Amendment,
}

/// A rule of the success policy, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuccessRule {
    /// `None`: all indexes.
    pub indexes: Option<Indexes>,
    /// `None`: all of them.
    pub count: Option<u32>,
}

impl Program {
    /// Reports whether pods are ready when their readiness probes say so, and not because they run.
    pub fn is_probed(&self) -> bool {
        self.probed
    }

    /// Compiles a manifest. `Err` is a sentence; an admitted manifest always compiles.
    pub fn compile(manifest: &Value) -> Result<Self, String> {
        let job = defaults::read(manifest).map_err(|error| format!("the Job cannot be read: {error}"))?;
        let spec = &job.spec;
        let pod = &spec.template.spec;
        let init: Vec<&Container> = pod.init_containers.iter().map(|one| &one.container).collect();
        let main: Vec<&Container> = pod.containers.iter().map(|one| &one.container).collect();
        let mut success = Vec::new();
        for rule in spec.success_policy.iter().flat_map(|policy| &policy.rules) {
            let indexes = rule.succeeded_indexes.as_deref().map(Indexes::parse).transpose()?;
            success.push(SuccessRule { indexes, count: rule.succeeded_count });
        }
        let settings = Amendment {
            parallelism: spec.parallelism.unwrap_or(1),
            completions: spec.completions,
            backoff_limit: spec.backoff_limit.unwrap_or(defaults::BACKOFF_LIMIT),
            max_failed_indexes: spec.max_failed_indexes,
            active_deadline_seconds: spec.active_deadline_seconds,
            ttl_seconds_after_finished: spec.ttl_seconds_after_finished,
        };
        if settings.parallelism > MAX_PODS || settings.completions.is_some_and(|count| count > MAX_PODS) {
            return Err(format!("more than {MAX_PODS} pods"));
        }
        Ok(Self {
            indexed: spec.completion_mode == Some(CompletionMode::Indexed),
            restarts: pod.restart_policy.as_deref() == Some("OnFailure"),
            replacement: spec.pod_replacement_policy.unwrap_or_default(),
            limit_per_index: spec.backoff_limit_per_index,
            rules: spec.pod_failure_policy.iter().flat_map(|policy| policy.rules.clone()).collect(),
            success,
            resources: together(init.into_iter(), main.into_iter()),
            probed: pod.containers.iter().any(|container| container.readiness_probe.is_some()),
            settings,
            job,
        })
    }

    /// Reports whether a pod that is being deleted keeps its place until it has ended.
    pub fn waits_for_ends(&self) -> bool {
        self.replacement == ReplacementPolicy::Failed
    }

    /// Returns the name of the container whose end is shown for the pod.
    pub fn main_container(&self) -> &str {
        let first = self.job.spec.template.spec.containers.first();
        first.and_then(|one| one.container.name.as_deref()).unwrap_or(crate::pod::MAIN)
    }

    /// Returns the hosts file with the addresses of all indexes, so that pods find each other by name.
    pub(super) fn hosts(&self, run: RunId, job: &str) -> Option<Arc<str>> {
        let count = self.settings.completions.filter(|count| self.indexed && *count > 1)?;
        let domain = self.job.spec.template.spec.rest.get("subdomain").and_then(Value::as_str).unwrap_or_default();
        let mut text = String::new();
        for index in 0..count {
            let (address, host) = (address(run, index), ident::host_name(job, index));
            let long = if domain.is_empty() { String::new() } else { format!(" {host}.{domain}") };
            writeln!(text, "{address}\t{host}{long}").expect("writing to memory does not fail");
        }
        Some(text.into())
    }
}
