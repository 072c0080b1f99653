//! A compiled job: pods numbered across tasks, defaults and policies resolved, dependent tasks linked. Immutable.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use octoflow_model::{
    podspec::Container,
    task::Resources,
    volcano::{Action, Event, Iteration, Job, JobSpec, Policy, TaskSpec},
};
use serde_json::Value;

use super::{defaults, phase::Rules, plugin::Plugins};
use crate::{
    dialects::argo::duration,
    graph::{self, TieBreak},
    pod::together,
};

/// Maximum number of pods of a job: a manifest must not be able to exhaust memory.
pub const MAX_PODS: u32 = 100_000;

#[derive(Debug)]
pub struct Program {
    /// With its defaults.
    pub job: Job,
    pub tasks: Vec<Plan>,
    /// The tasks, each after those it waits for.
    pub order: Vec<usize>,
    /// Number of pods of all tasks.
    pub pods: u32,
    pub(super) rules: Rules,
    /// True if each task has a minimum of successes: the minima of all together do not exceed the job's.
    pub minima: bool,
    pub(super) plugins: Plugins,
    /// How many pods start together before any other, and how many of each task are among them. Tasks that wait for others
    /// are not.
    pub gang_least: u32,
    pub gang_parts: Arc<BTreeMap<String, u32>>,
    /// How long the job runs, as its author estimates.
    pub estimate: Option<Duration>,
}

/// One task, resolved.
#[derive(Debug)]
pub struct Plan {
    /// Number of its first pod.
    pub first: u32,
    pub count: u32,
    pub least: u32,
    /// So many container restarts make it fail; `None`: never.
    pub max_retry: Option<u32>,
    /// Its policies, then those of the job.
    pub policies: Vec<Rule>,
    /// Tasks it waits for, and whether one of them suffices.
    pub after: Vec<usize>,
    pub any: bool,
    pub resources: Resources,
    /// Pods of each partition, if it has partitions.
    pub partition: Option<u32>,
    pub restart: RestartPolicy,
}

/// What follows events and exit codes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub events: Vec<Event>,
    pub code: Option<i32>,
    pub action: Option<Action>,
    pub timeout: Option<Duration>,
}

/// When a container is started again in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartPolicy {
    Never,
    OnFailure,
    Always,
}

impl Program {
    /// Compiles a manifest. `Err` is a sentence; an admitted manifest always compiles.
    pub fn compile(manifest: &Value) -> Result<Self, String> {
        let job = defaults::read(manifest).map_err(|error| format!("the Job cannot be read: {error}"))?;
        let spec = &job.spec;
        let mut tasks: Vec<Plan> = Vec::with_capacity(spec.tasks.len());
        let places: HashMap<&str, usize> =
            spec.tasks.iter().enumerate().map(|(at, task)| (task.name.as_str(), at)).collect();
        let mut first = 0u32;
        for task in &spec.tasks {
            let mut after = Vec::new();
            for name in task.depends_on.iter().flat_map(|needs| &needs.name) {
                let at = places.get(name.as_str()).copied();
                after.push(at.ok_or_else(|| format!("task '{}' waits for '{name}', which is not there", task.name))?);
            }
            tasks.push(plan(&spec.policies, task, first, after));
            first = first
                .checked_add(task.replicas)
                .filter(|all| *all <= MAX_PODS)
                .ok_or_else(|| format!("more than {MAX_PODS} pods"))?;
        }
        let least = spec.min_available.unwrap_or(0);
        let sum: u64 = tasks.iter().map(|plan| u64::from(plan.least)).sum();
        let minima = sum <= u64::from(least);
        Ok(Self {
            gang_least: gang_least(&tasks, least),
            gang_parts: Arc::new(gang_parts(&tasks, spec).filter(|_| minima).collect()),
            rules: Rules {
                least,
                min_success: spec.min_success,
                max_retry: u32::try_from(spec.max_retry.unwrap_or(0)).unwrap_or(0),
            },
            minima,
            plugins: Plugins::read(spec)?,
            estimate: spec.running_estimate.as_deref().and_then(duration::units),
            order: graph::sort(tasks.len(), TieBreak::Index, |at| tasks[at].after.iter().copied()).order,
            pods: first,
            tasks,
            job,
        })
    }

    /// Returns the task of a pod.
    pub fn task_of(&self, pod: u32) -> usize {
        self.tasks.partition_point(|plan| plan.first + plan.count <= pod)
    }

    /// Returns the index of a pod within its task.
    pub fn index_of(&self, pod: u32) -> u32 {
        pod - self.tasks[self.task_of(pod)].first
    }

    pub fn spec(&self, task: usize) -> &TaskSpec {
        &self.job.spec.tasks[task]
    }

    /// Returns the first pod and the number of pods of the partition that a pod belongs to.
    pub fn partition_of(&self, pod: u32) -> (u32, u32) {
        let plan = &self.tasks[self.task_of(pod)];
        match plan.partition.filter(|size| *size > 0) {
            Some(size) => (plan.first + (pod - plan.first) / size * size, size),
            None => (pod, 1),
        }
    }

    pub fn least(&self) -> u32 {
        self.rules.least
    }
}

impl Plan {
    /// Returns the first policy for an event and an exit code.
    pub fn rule(&self, event: Event, code: Option<i32>) -> Option<&Rule> {
        let fits = |rule: &&Rule| {
            let named = rule.events.contains(&event) || rule.events.contains(&Event::Any);
            let coded = rule.code.is_some() && rule.code == code;
            // That a pod waits is nothing to act on; that it waits too long may be.
            (named || coded) && (event != Event::PodPending || rule.timeout.is_some())
        };
        self.policies.iter().find(fits)
    }
}

fn gang_least(tasks: &[Plan], least: u32) -> u32 {
    let (mut free, mut owed) = (0u32, 0u32);
    for plan in tasks {
        if plan.after.is_empty() {
            free = free.saturating_add(plan.count);
        } else {
            owed = owed.saturating_add(plan.least);
        }
    }
    least.saturating_sub(owed).min(free)
}

fn gang_parts<'p>(tasks: &'p [Plan], spec: &'p JobSpec) -> impl Iterator<Item = (String, u32)> + 'p {
    let free = tasks.iter().zip(&spec.tasks).filter(|(plan, _)| plan.after.is_empty() && plan.least > 0);
    free.map(|(plan, task)| (task.name.clone(), plan.least))
}

fn plan(of_job: &[Policy], task: &TaskSpec, first: u32, after: Vec<usize>) -> Plan {
    let pod = &task.template.spec;
    let init: Vec<&Container> = pod.init_containers.iter().map(|one| &one.container).collect();
    let main: Vec<&Container> = pod.containers.iter().map(|one| &one.container).collect();
    // Without a second name there is nothing to choose from.
    let any = after.len() > 1 && task.depends_on.as_ref().is_some_and(|needs| needs.iteration == Iteration::Any);
    Plan {
        first,
        count: task.replicas,
        least: task.min_available.unwrap_or(task.replicas),
        max_retry: task.max_retry.and_then(|most| u32::try_from(most).ok()),
        policies: task.policies.iter().chain(of_job).map(rule).collect(),
        after,
        any,
        resources: together(init.into_iter(), main.into_iter()),
        partition: task.partition_policy.map(|policy| policy.partition_size),
        restart: match pod.restart_policy.as_deref() {
            Some("OnFailure") => RestartPolicy::OnFailure,
            Some("Always") => RestartPolicy::Always,
            Some(_) | None => RestartPolicy::Never,
        },
    }
}

fn rule(policy: &Policy) -> Rule {
    let timeout = policy.timeout.as_deref().and_then(duration::units).filter(|span| !span.is_zero());
    Rule { events: policy.all_events().collect(), code: policy.exit_code, action: policy.action, timeout }
}
