//! A compiled job: pods numbered across tasks, defaults and policies resolved, dependent tasks linked. Immutable.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
    sync::Arc,
    time::Duration,
};

use octoflow_model::{
    podspec::Container,
    task::Resources,
    volcano::{Action, Event, Iteration, Job, JobSpec, Policy, Sizes, TaskSpec},
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
    /// Number of pods that have a number: those of now, and those that tasks had before they shrank.
    pub slots: u32,
    /// Where the numbers of tasks begin: the first number of a range, its task, and the index of that pod.
    ranges: Vec<(u32, usize, u32)>,
    /// What follows events of the job as a whole.
    pub policies: Vec<Rule>,
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
    /// Numbers of its pods by index. A task that grows gets another range; one that shrinks keeps its own.
    pub ranges: Vec<Range<u32>>,
    /// Number of pods that it should have.
    pub count: u32,
    pub least: u32,
    /// True if containers have readiness probes: its pods are not ready because they run.
    pub probed: bool,
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
        Self::of_job(job, &[])
    }

    /// Returns the program of the same job with other numbers of pods. The pods that there are keep their numbers.
    pub(super) fn resized(&self, sizes: &Sizes) -> Result<Self, String> {
        let mut job = self.job.clone();
        job.spec.min_available = Some(sizes.min_available);
        job.spec.priority_class_name.clone_from(&sizes.class);
        for (task, size) in job.spec.tasks.iter_mut().zip(&sizes.tasks) {
            task.replicas = size.replicas;
            task.min_available = Some(size.min_available);
        }
        let before: Vec<Vec<Range<u32>>> = self.tasks.iter().map(|plan| plan.ranges.clone()).collect();
        Self::of_job(job, &before)
    }

    /// Compiles a job whose tasks have these pods already.
    fn of_job(job: Job, before: &[Vec<Range<u32>>]) -> Result<Self, String> {
        let spec = &job.spec;
        let mut tasks: Vec<Plan> = Vec::with_capacity(spec.tasks.len());
        let places: HashMap<&str, usize> =
            spec.tasks.iter().enumerate().map(|(at, task)| (task.name.as_str(), at)).collect();
        let mut slots = before.iter().flatten().map(|range| range.end).max().unwrap_or(0);
        let mut pods = 0u32;
        for (at, task) in spec.tasks.iter().enumerate() {
            let mut after = Vec::new();
            for name in task.depends_on.iter().flat_map(|needs| &needs.name) {
                let at = places.get(name.as_str()).copied();
                after.push(at.ok_or_else(|| format!("task '{}' waits for '{name}', which is not there", task.name))?);
            }
            let mut ranges = before.get(at).cloned().unwrap_or_default();
            let has: u32 = ranges.iter().map(|range| range.end - range.start).sum();
            let end = slots.checked_add(task.replicas.saturating_sub(has)).filter(|all| *all <= MAX_PODS);
            let end = end.ok_or_else(|| format!("more than {MAX_PODS} pods"))?;
            if end > slots {
                ranges.push(slots..end);
            }
            slots = end;
            pods += task.replicas;
            tasks.push(plan(&spec.policies, task, ranges, after));
        }
        let mut ranges = Vec::new();
        for (task, plan) in tasks.iter().enumerate() {
            let mut index = 0;
            for range in &plan.ranges {
                ranges.push((range.start, task, index));
                index += range.end - range.start;
            }
        }
        ranges.sort_unstable();
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
            policies: spec.policies.iter().map(rule).collect(),
            pods,
            slots,
            ranges,
            tasks,
            job,
        })
    }

    /// Returns the task of a pod.
    pub fn task_of(&self, pod: u32) -> usize {
        self.place_of(pod).0
    }

    /// Returns the task of a pod, and its index there.
    fn place_of(&self, pod: u32) -> (usize, u32) {
        let (first, task, index) = self.ranges[self.ranges.partition_point(|(first, ..)| *first <= pod) - 1];
        (task, index + pod - first)
    }

    /// Reports whether the task of a pod has become so small that the pod is not part of it any more.
    pub fn is_surplus(&self, pod: u32) -> bool {
        let (task, index) = self.place_of(pod);
        index >= self.tasks[task].count
    }

    /// Returns the index of a pod within its task.
    pub fn index_of(&self, pod: u32) -> u32 {
        self.place_of(pod).1
    }

    pub fn spec(&self, task: usize) -> &TaskSpec {
        &self.job.spec.tasks[task]
    }

    /// Returns the pods of the partition that a pod belongs to.
    pub fn partition_of(&self, pod: u32) -> Vec<u32> {
        let (task, index) = self.place_of(pod);
        match self.tasks[task].partition.filter(|size| *size > 0) {
            Some(size) => self.tasks[task].pods().skip((index / size * size) as usize).take(size as usize).collect(),
            None => vec![pod],
        }
    }

    pub fn least(&self) -> u32 {
        self.rules.least
    }
}

impl Plan {
    /// Iterates over the numbers of all pods it ever had, by index.
    pub fn slots(&self) -> impl Iterator<Item = u32> + use<> {
        self.ranges.clone().into_iter().flatten()
    }

    /// Iterates over the numbers of its pods, by index.
    pub fn pods(&self) -> impl Iterator<Item = u32> + use<> {
        self.slots().take(self.count as usize)
    }

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

fn plan(of_job: &[Policy], task: &TaskSpec, ranges: Vec<Range<u32>>, after: Vec<usize>) -> Plan {
    let pod = &task.template.spec;
    let init: Vec<&Container> = pod.init_containers.iter().map(|one| &one.container).collect();
    let main: Vec<&Container> = pod.containers.iter().map(|one| &one.container).collect();
    // Without a second name there is nothing to choose from.
    let any = after.len() > 1 && task.depends_on.as_ref().is_some_and(|needs| needs.iteration == Iteration::Any);
    Plan {
        probed: pod.containers.iter().any(|container| container.readiness_probe.is_some()),
        ranges,
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
