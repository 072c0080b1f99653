//! Random jobs: tasks, minima, policies, whom tasks wait for, and how each pod will end. Everything follows from a seed.

use serde_json::{Value, json};

use crate::plan::Dice;

#[derive(Clone, Debug)]
pub(super) struct Scheme {
    seed: u64,
    pub(super) tasks: Vec<Task>,
    pub(super) policies: Vec<Rule>,
    min_available: Option<u32>,
    pub(super) min_success: Option<u32>,
    max_retry: u32,
    /// How often a pod fails, in percent.
    failing: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Task {
    name: String,
    pub(super) replicas: u32,
    min_available: Option<u32>,
    pub(super) policies: Vec<Rule>,
    pub(super) after: Vec<usize>,
    pub(super) any: bool,
    pub(super) restart: &'static str,
    max_retry: i64,
    pub(super) partition: Option<u32>,
    /// Its pods are ready when their probes say so.
    pub(super) probed: bool,
}

/// Numbers of pods that somebody changes a job to: its minimum, and replicas and minimum of each task.
#[derive(Clone, Debug)]
pub(super) struct Sizes {
    pub(super) least: u32,
    pub(super) tasks: Vec<(u32, u32)>,
}

#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) events: Vec<&'static str>,
    pub(super) code: Option<i32>,
    pub(super) action: &'static str,
    /// Seconds; none at all when 0.
    pub(super) timeout: u64,
}

const EVENTS: [&str; 6] = ["PodFailed", "PodEvicted", "PodPending", "TaskCompleted", "TaskFailed", "JobUpdated"];
const ACTIONS: [&str; 8] = [
    "AbortJob",
    "RestartJob",
    "RestartTask",
    "RestartPod",
    "RestartPartition",
    "TerminateJob",
    "CompleteJob",
    "ResumeJob",
];

fn rules(dice: &mut Dice) -> Vec<Rule> {
    let timeout = |dice: &mut Dice| if dice.chance(40) { 1 + dice.below(12) as u64 } else { 0 };
    if dice.chance(10) {
        let action = ACTIONS[dice.below(8)];
        return vec![Rule { events: vec!["*"], code: None, action, timeout: timeout(dice) }];
    }
    let mut rules = Vec::new();
    for event in EVENTS {
        if dice.chance(20) {
            rules.push(Rule {
                events: vec![event],
                code: None,
                action: ACTIONS[dice.below(8)],
                timeout: timeout(dice),
            });
        }
    }
    if rules.len() > 1 && dice.chance(30) {
        // Two events in one policy.
        let other = rules.pop().map(|rule| rule.events).unwrap_or_default();
        rules[0].events.extend(other);
    }
    for code in 1..4 {
        if dice.chance(15) {
            let place = dice.below(rules.len() + 1);
            let action = ACTIONS[dice.below(8)];
            rules.insert(place, Rule { events: Vec::new(), code: Some(code), action, timeout: timeout(dice) });
        }
    }
    rules
}

impl Scheme {
    pub(super) fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let dice = &mut dice;
        let mut tasks: Vec<Task> = Vec::new();
        for at in 0..1 + dice.below(3) {
            let partition = dice.chance(15).then(|| 1 + dice.below(2) as u32);
            let parts = 1 + dice.below(2) as u32;
            let free = if at > 0 && dice.chance(5) { 0 } else { 1 + dice.below(3) as u32 };
            let replicas = partition.map_or(free, |size| size * parts);
            let after: Vec<usize> = (0..at).filter(|_| dice.chance(25)).collect();
            tasks.push(Task {
                name: format!("t{at}"),
                replicas,
                min_available: dice.chance(30).then(|| dice.below(replicas as usize + 1) as u32),
                policies: rules(dice),
                any: dice.chance(50),
                after,
                restart: ["Never", "Never", "Never", "OnFailure", "Always"][dice.below(5)],
                max_retry: [0, 1, 2, -1][dice.below(4)],
                partition,
                probed: dice.chance(20),
            });
        }
        let all: u32 = tasks.iter().map(|task| task.replicas).sum();
        Self {
            seed,
            tasks,
            policies: rules(dice),
            min_available: dice.chance(40).then(|| 1 + dice.below(all as usize) as u32),
            min_success: dice.chance(20).then(|| 1 + dice.below(all as usize) as u32),
            max_retry: 1 + dice.below(5) as u32,
            failing: [5, 20, 50, 80][dice.below(4)],
        }
    }

    /// Other numbers of pods, which are possible. Partitions stay as they are.
    pub(super) fn other_sizes(&self, dice: &mut Dice) -> Sizes {
        let size = |task: &Task| {
            let replicas = if task.partition.is_some() { task.replicas } else { dice.below(5) as u32 };
            (replicas, dice.below(replicas as usize + 1) as u32)
        };
        let mut tasks: Vec<(u32, u32)> = self.tasks.iter().map(size).collect();
        if tasks.iter().all(|(replicas, _)| *replicas == 0) {
            tasks[0].0 = 1;
        }
        let all: u32 = tasks.iter().map(|(replicas, _)| *replicas).sum();
        Sizes { least: 1 + dice.below(all as usize) as u32, tasks }
    }

    pub(super) fn resize(&mut self, sizes: &Sizes) {
        self.min_available = Some(sizes.least);
        for (task, (replicas, least)) in self.tasks.iter_mut().zip(&sizes.tasks) {
            (task.replicas, task.min_available) = (*replicas, Some(*least));
        }
    }

    pub(super) fn spec(&self) -> Value {
        let written = |rules: &[Rule]| -> Vec<Value> {
            let one = |rule: &Rule| {
                let mut policy = json!({"action": rule.action});
                match (rule.events.as_slice(), rule.code) {
                    (_, Some(code)) => policy["exitCode"] = json!(code),
                    ([event], None) => policy["event"] = json!(event),
                    (events, None) => policy["events"] = json!(events),
                }
                if rule.timeout > 0 {
                    policy["timeout"] = json!(format!("{}s", rule.timeout));
                }
                policy
            };
            rules.iter().map(one).collect()
        };
        let task = |task: &Task| {
            let names: Vec<&str> = task.after.iter().map(|up| self.tasks[*up].name.as_str()).collect();
            let mut made = json!({
                "name": task.name,
                "replicas": task.replicas,
                "maxRetry": task.max_retry,
                "policies": written(&task.policies),
                "dependsOn": {"name": names, "iteration": if task.any { "any" } else { "all" }},
                "template": {"spec": {"restartPolicy": task.restart}},
            });
            if task.probed {
                let probe = json!({"tcpSocket": {"port": 80}});
                made["template"]["spec"]["containers"] =
                    json!([{"name": "main", "image": "i", "command": ["c"], "readinessProbe": probe}]);
            }
            if let Some(least) = task.min_available {
                made["minAvailable"] = json!(least);
            }
            if let Some(size) = task.partition {
                made["partitionPolicy"] = json!({"totalPartitions": task.replicas / size, "partitionSize": size});
            }
            made
        };
        let tasks: Vec<Value> = self.tasks.iter().map(task).collect();
        let mut spec = json!({"tasks": tasks, "policies": written(&self.policies), "maxRetry": self.max_retry});
        if let Some(least) = self.min_available {
            spec["minAvailable"] = json!(least);
        }
        if let Some(least) = self.min_success {
            spec["minSuccess"] = json!(least);
        }
        spec
    }

    /// So many of a task's pods must be there.
    pub(super) fn least_of(&self, task: usize) -> u32 {
        self.tasks[task].min_available.unwrap_or(self.tasks[task].replicas)
    }

    /// So many pods must be there.
    pub(super) fn least(&self) -> u32 {
        self.min_available.unwrap_or_else(|| self.sum_of_least())
    }

    pub(super) fn sum_of_least(&self) -> u32 {
        (0..self.tasks.len()).map(|task| self.least_of(task)).sum()
    }

    pub(super) fn attempts(&self) -> u32 {
        self.max_retry
    }

    /// So many restarts make a task fail.
    pub(super) fn restarts(&self, task: usize) -> Option<u32> {
        match self.tasks[task].max_retry {
            0 => Some(3),
            most => u32::try_from(most).ok(),
        }
    }

    /// How the next try of a pod ends when nobody tells it to; nothing when it is lost.
    pub(super) fn code(&self, pod: &str, number: usize) -> Option<i32> {
        let start = self.seed.wrapping_add(number as u64);
        let mut dice = Dice(pod.bytes().fold(start, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte))));
        match dice.chance(self.failing) {
            false => Some(0),
            true if dice.chance(15) => None,
            true => Some(1 + dice.below(4) as i32),
        }
    }
}
