//! A naive reading of the contract: after every event all pods are counted anew, and rules are applied until none applies.
//! It keeps no counters and knows nothing of facts, folds or schedulers; the engine tells it only what it has started.

use std::{collections::BTreeMap, time::Duration};

use octoflow_model::Time;

use super::scheme::{Rule, Scheme, Sizes};

#[derive(Clone, Debug)]
pub(super) struct Oracle {
    job: Scheme,
    pub(super) now: Time,
    pub(super) phase: &'static str,
    pub(super) attempts: u32,
    pub(super) kills: u32,
    pub(super) pods: Vec<Pod>,
    /// Actions that wait, by pod: when, after which event, what.
    pub(super) later: BTreeMap<usize, (Time, &'static str, &'static str)>,
    /// Tasks whose pods were created since everything was ended last.
    created: Vec<bool>,
    /// A pod was started since everything was ended last.
    let_in: bool,
    pub(super) over: bool,
    /// Pods that were started again in their places; the engine tells of them afterwards.
    revived: Vec<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Pod {
    pub(super) name: String,
    task: usize,
    index: u32,
    pub(super) is: Is,
    restarts: u32,
    /// Its probes say that it is ready.
    ready: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Is {
    Gone,
    Waiting,
    Starting,
    Up,
    /// Ended by the job, or taken away from it.
    Dying {
        taken: bool,
    },
    /// Started again at this time.
    Resting(Time),
    Good,
    Bad,
}

impl Is {
    fn live(self) -> bool {
        matches!(self, Self::Starting | Self::Up | Self::Dying { .. })
    }
}

impl Oracle {
    pub(super) fn new(job: &Scheme, now: Time) -> Self {
        let mut pods = Vec::new();
        for (task, spec) in job.tasks.iter().enumerate() {
            for index in 0..spec.replicas {
                pods.push(Pod {
                    name: format!("j-t{task}-{index}"),
                    task,
                    index,
                    is: Is::Gone,
                    restarts: 0,
                    ready: false,
                });
            }
        }
        let created = vec![false; job.tasks.len()];
        let mut oracle = Self {
            job: job.clone(),
            now,
            phase: "Pending",
            attempts: 0,
            kills: 0,
            pods,
            later: BTreeMap::new(),
            created,
            let_in: false,
            over: false,
            revived: Vec::new(),
        };
        oracle.settle();
        oracle
    }

    fn at(&self, name: &str) -> usize {
        self.pods.iter().position(|pod| pod.name == name).unwrap_or_else(|| panic!("{name} is no pod"))
    }

    fn count(&self, test: impl Fn(&Pod) -> bool) -> u32 {
        self.pods.iter().filter(|pod| test(pod)).count() as u32
    }

    fn has_ended(&self) -> bool {
        matches!(self.phase, "Completed" | "Failed" | "Terminated")
    }

    // What happens.

    pub(super) fn launched(&mut self, names: &[String]) {
        let mut names = names.to_vec();
        for name in self.revived.drain(..) {
            let place = names.iter().position(|known| *known == name);
            names.remove(place.unwrap_or_else(|| panic!("{name} was not started again")));
        }
        let first = !self.let_in;
        for name in &names {
            let at = self.at(name);
            assert_eq!(self.pods[at].is, Is::Waiting, "{name} is started");
            self.pods[at].is = Is::Starting;
        }
        self.let_in |= !names.is_empty();
        if first && self.let_in {
            assert!(names.len() as u32 >= self.gang(), "{names:?} start, and {} belong together", self.gang());
            for at in 0..self.pods.len() {
                if matches!(self.pods[at].is, Is::Waiting | Is::Starting) {
                    self.raise("PodPending", at, None);
                }
            }
        }
        self.settle();
    }

    /// So many pods start together, or none.
    fn gang(&self) -> u32 {
        let waits = |task: &usize| !self.job.tasks[*task].after.is_empty();
        let of_waiting: u32 =
            (0..self.job.tasks.len()).filter(|task| waits(task)).map(|task| self.job.least_of(task)).sum();
        let free = self.count(|pod| !waits(&pod.task) && !self.is_surplus(pod));
        self.job.least().saturating_sub(of_waiting).min(free)
    }

    pub(super) fn up(&mut self, name: &str) {
        let at = self.at(name);
        if self.pods[at].is == Is::Starting {
            (self.pods[at].is, self.pods[at].ready) = (Is::Up, false);
            self.call_off(at, &["PodPending", "PodFailed", "PodEvicted"]);
        }
        self.settle();
    }

    /// The probes of a pod say something.
    pub(super) fn ready(&mut self, name: &str, ready: bool) {
        let at = self.at(name);
        if self.pods[at].is == Is::Up {
            self.pods[at].ready = ready;
        }
        self.settle();
    }

    pub(super) fn is_probed(&self, name: &str) -> bool {
        let pod = &self.pods[self.at(name)];
        pod.is == Is::Up && self.job.tasks[pod.task].probed
    }

    /// Whether the task of a pod has become too small for it.
    fn is_surplus(&self, pod: &Pod) -> bool {
        pod.index >= self.job.tasks[pod.task].replicas
    }

    /// A pod is over; without a code it is lost.
    pub(super) fn ended(&mut self, name: &str, code: Option<i32>) {
        let at = self.at(name);
        let was = self.pods[at].is;
        if let Is::Dying { taken } = was {
            self.pods[at].is = Is::Gone;
            self.call_off(at, &["PodPending"]);
            if taken {
                self.raise("PodEvicted", at, None);
            }
            return self.settle();
        }
        // One that ended had run, unless it was lost before.
        if was == Is::Up || code.is_some() {
            self.call_off(at, &["PodFailed", "PodEvicted"]);
        }
        let task = self.pods[at].task;
        let again = match self.job.tasks[task].restart {
            "Always" => code.is_some(),
            "OnFailure" => code.is_some_and(|code| code != 0),
            _ => false,
        };
        if again {
            let before = self.pods[at].restarts;
            let wait = if before == 0 { 0 } else { (10u64 << (before - 1).min(20)).min(300) };
            self.pods[at].is = Is::Resting(self.now.saturating_add(Duration::from_secs(wait)));
            self.pods[at].restarts += 1;
            self.call_off(at, &["PodPending"]);
            let open =
                |pod: &&Pod| pod.task == task && !matches!(pod.is, Is::Gone | Is::Good | Is::Bad | Is::Dying { .. });
            let all: u32 = self.pods.iter().filter(open).map(|pod| pod.restarts).sum();
            if self.job.restarts(task).is_some_and(|most| all >= most) {
                self.raise("TaskFailed", at, None);
            }
            self.revive(at);
        } else {
            self.pods[at].is = if code == Some(0) { Is::Good } else { Is::Bad };
            self.call_off(at, &["PodPending"]);
            if code != Some(0) {
                self.raise("PodFailed", at, code);
            } else if self.pods.iter().all(|pod| pod.task != task || pod.is == Is::Good || self.is_surplus(pod)) {
                self.raise("TaskCompleted", at, None);
            }
        }
        self.settle();
    }

    /// Somebody takes a pod away.
    pub(super) fn taken(&mut self, name: &str) {
        let at = self.at(name);
        match self.pods[at].is {
            Is::Starting | Is::Up => self.pods[at].is = Is::Dying { taken: true },
            Is::Resting(_) => {
                self.pods[at].is = Is::Gone;
                self.raise("PodEvicted", at, None);
            }
            Is::Gone | Is::Waiting | Is::Dying { .. } | Is::Good | Is::Bad => {}
        }
        self.settle();
    }

    /// Time passes, up to something that is due at most.
    pub(super) fn pass(&mut self, now: Time) {
        self.now = now;
        for at in 0..self.pods.len() {
            self.revive(at);
            if let Some((_, event, action)) = self.later.get(&at).copied().filter(|(due, _, _)| *due <= now) {
                self.later.remove(&at);
                self.act(action, at, event);
            }
            self.settle();
        }
    }

    /// Starts a pod again whose rest is over.
    fn revive(&mut self, at: usize) {
        if matches!(self.pods[at].is, Is::Resting(until) if until <= self.now) {
            // Its pod has been running all the time.
            (self.pods[at].is, self.pods[at].ready) = (Is::Up, false);
            self.revived.push(self.pods[at].name.clone());
        }
    }

    // What people ask for.

    pub(super) fn suspend(&mut self) {
        if matches!(self.phase, "Pending" | "Running" | "Restarting") {
            self.kill(|_| true, true);
            self.kills += 1;
            self.phase = "Aborting";
        }
        self.settle();
    }

    pub(super) fn resume(&mut self) {
        if matches!(self.phase, "Aborting" | "Aborted") {
            self.restart_all();
        }
        self.settle();
    }

    pub(super) fn stop(&mut self) {
        if matches!(self.phase, "Pending" | "Running" | "Restarting" | "Aborting" | "Aborted") {
            self.kill(|_| true, true);
            self.kills += 1;
            self.phase = "Terminating";
        }
        self.settle();
    }

    /// Somebody asks for an action by its name.
    pub(super) fn perform(&mut self, action: &'static str) {
        match (action, self.phase) {
            ("AbortJob", _) => self.suspend(),
            ("ResumeJob", _) => self.resume(),
            ("TerminateJob", _) => self.stop(),
            ("CompleteJob", "Restarting") => {
                self.kill(|_| true, true);
                self.kills += 1;
                self.phase = "Completing";
            }
            _ => self.act(action, 0, "CommandIssued"),
        }
        self.settle();
    }

    /// Somebody changes the numbers of pods.
    pub(super) fn amend(&mut self, sizes: &Sizes) {
        self.job.resize(sizes);
        for (task, (replicas, _)) in sizes.tasks.iter().enumerate() {
            let has = self.count(|pod| pod.task == task);
            for index in has..*replicas {
                let name = format!("j-t{task}-{index}");
                self.pods.push(Pod { name, task, index, is: Is::Gone, restarts: 0, ready: false });
            }
        }
        let surplus: Vec<String> =
            self.pods.iter().filter(|pod| self.is_surplus(pod)).map(|pod| pod.name.clone()).collect();
        let pods = &self.pods;
        self.later.retain(|at, _| !surplus.contains(&pods[*at].name));
        self.kill_some(|pod| surplus.contains(&pod.name), false);
        if matches!(self.phase, "Pending" | "Running" | "Restarting") {
            let meant = |rule: &&Rule| rule.events.contains(&"*") || rule.events.contains(&"JobUpdated");
            let action = self.job.policies.iter().find(meant).map(|rule| rule.action);
            if let Some(action) = action.filter(|action| action.ends_with("Job")) {
                self.act(action, 0, "JobUpdated");
            }
        }
        self.settle();
    }

    // What follows.

    fn raise(&mut self, event: &'static str, at: usize, code: Option<i32>) {
        if !matches!(self.phase, "Pending" | "Running" | "Restarting") {
            return;
        }
        let of_task = self.job.tasks[self.pods[at].task].policies.clone();
        let rules = of_task.into_iter().chain(self.job.policies.clone());
        for rule in rules {
            let meant =
                rule.events.contains(&event) || rule.events.contains(&"*") || rule.code.is_some() && rule.code == code;
            if !meant || event == "PodPending" && rule.timeout == 0 {
                continue;
            }
            if rule.timeout == 0 {
                self.act(rule.action, at, event);
            } else if self.later.get(&at).is_none_or(|(_, _, action)| *action != rule.action) {
                let due = self.now.saturating_add(Duration::from_secs(rule.timeout));
                self.later.insert(at, (due, event, rule.action));
            }
            return;
        }
    }

    fn call_off(&mut self, at: usize, events: &[&str]) {
        if self.later.get(&at).is_some_and(|(_, event, _)| events.contains(event)) {
            self.later.remove(&at);
        }
    }

    fn act(&mut self, action: &'static str, at: usize, _: &str) {
        let targeted = matches!(action, "RestartTask" | "RestartPod" | "RestartPartition");
        match (self.phase, action) {
            ("Pending" | "Running", "RestartJob") => self.restart_all(),
            ("Pending" | "Running", _) if targeted => {
                self.attempts += 1;
                self.phase = "Restarting";
                let last = self.attempts >= self.job.attempts();
                self.kill_target(action, at, last);
            }
            ("Pending" | "Running", "AbortJob" | "CompleteJob" | "TerminateJob") => {
                self.kill(|_| true, true);
                self.kills += 1;
                self.phase = match action {
                    "AbortJob" => "Aborting",
                    "CompleteJob" => "Completing",
                    _ => "Terminating",
                };
            }
            ("Restarting", _) if targeted => {
                let last = self.attempts >= self.job.attempts();
                self.kill_target(action, at, last);
            }
            ("Restarting", _) => {
                let last = self.attempts >= self.job.attempts();
                self.kill(|_| true, last);
                self.kills += 1;
            }
            ("Aborting" | "Aborted", "ResumeJob") => self.restart_all(),
            _ => {}
        }
    }

    fn restart_all(&mut self) {
        self.attempts += 1;
        self.kills += 1;
        let last = self.attempts >= self.job.attempts();
        self.kill(|_| true, last);
        self.phase = "Restarting";
    }

    fn kill_target(&mut self, action: &'static str, at: usize, keep: bool) {
        let own = self.pods[at].clone();
        let size = self.job.tasks[own.task].partition.unwrap_or(1);
        let meant = move |pod: &Pod| {
            pod.task == own.task
                && match action {
                    "RestartTask" => true,
                    "RestartPod" => pod.index == own.index,
                    _ => pod.index / size == own.index / size,
                }
        };
        for other in 0..self.pods.len() {
            if meant(&self.pods[other]) && self.later.get(&other).is_some_and(|(_, _, waiting)| *waiting == action) {
                self.later.remove(&other);
            }
        }
        self.kill_some(meant, keep);
    }

    /// Everything is ended.
    fn kill(&mut self, meant: impl Fn(&Pod) -> bool, keep: bool) {
        self.kill_some(meant, keep);
        self.later.clear();
        self.created.fill(false);
        self.let_in = false;
    }

    fn kill_some(&mut self, meant: impl Fn(&Pod) -> bool, keep: bool) {
        for at in 0..self.pods.len() {
            if !meant(&self.pods[at]) {
                continue;
            }
            let was = self.pods[at].is;
            self.pods[at].is = match was {
                Is::Starting | Is::Up | Is::Dying { .. } => Is::Dying { taken: false },
                Is::Good | Is::Bad if keep => was,
                Is::Gone | Is::Waiting | Is::Resting(_) | Is::Good | Is::Bad => Is::Gone,
            };
            if !was.live() || matches!(was, Is::Starting | Is::Up) {
                let is_kept = keep && matches!(was, Is::Good | Is::Bad);
                if !is_kept {
                    self.call_off(at, &["PodPending"]);
                }
            }
        }
    }

    /// Whether the tasks that a task waits for have come so far: yes, no, or never.
    fn may_start(&self, task: usize) -> Option<bool> {
        let spec = &self.job.tasks[task];
        if self.created[task] || spec.after.is_empty() {
            return Some(true);
        }
        let of = |up: usize| {
            let least = self.job.least_of(up);
            let probed = self.job.tasks[up].probed;
            let is_up = |pod: &Pod| pod.is == Is::Up && (pod.ready || !probed);
            let ready = self.count(|pod| pod.task == up && (is_up(pod) || pod.is == Is::Good));
            let bad = self.count(|pod| pod.task == up && pod.is == Is::Bad);
            if ready >= least {
                Some(true)
            } else if self.job.tasks[up].replicas.saturating_sub(bad) < least || self.may_start(up).is_none() {
                None
            } else {
                Some(false)
            }
        };
        let all: Vec<Option<bool>> = spec.after.iter().map(|up| of(*up)).collect();
        if spec.any && all.len() > 1 {
            if all.contains(&Some(true)) {
                Some(true)
            } else if all.iter().all(Option::is_none) {
                None
            } else {
                Some(false)
            }
        } else if all.contains(&None) {
            None
        } else {
            Some(all.iter().all(|one| *one == Some(true)))
        }
    }

    fn settle(&mut self) {
        while !self.over && self.step() {}
    }

    /// Applies one rule; whether one applied.
    fn step(&mut self) -> bool {
        let dying = self.count(|pod| matches!(pod.is, Is::Dying { .. }));
        if self.has_ended() {
            self.over = dying == 0;
            return false;
        }
        if matches!(self.phase, "Pending" | "Running") && self.create() {
            return true;
        }
        let before = self.phase;
        let (all, least) = (self.count(|pod| !self.is_surplus(pod)), self.job.least());
        let good = self.count(|pod| pod.is == Is::Good);
        let bad = self.count(|pod| pod.is == Is::Bad);
        let up = self.count(|pod| matches!(pod.is, Is::Up | Is::Resting(_)));
        let waiting = self.count(|pod| matches!(pod.is, Is::Waiting | Is::Starting));
        let never = |pod: &Pod| pod.is == Is::Gone && !self.is_surplus(pod) && self.may_start(pod.task).is_none();
        let never = if self.later.is_empty() { self.count(never) } else { 0 };
        match self.phase {
            "Pending" if up + good + bad + never >= least => self.phase = "Running",
            "Running" if self.job.min_success.is_some_and(|least| good >= least) => self.finish("Completed"),
            "Running" if good + bad + never == all && self.later.is_empty() => {
                let few =
                    |task: usize| self.count(|pod| pod.task == task && pod.is == Is::Good) < self.job.least_of(task);
                let lacks = self.job.sum_of_least() <= least && (0..self.job.tasks.len()).any(few);
                let well = !lacks && self.job.min_success.is_none() && good >= least;
                self.finish(if well { "Completed" } else { "Failed" });
            }
            "Running" if waiting > all - least => self.phase = "Pending",
            "Restarting" if self.attempts >= self.job.attempts() => self.finish("Failed"),
            "Restarting" if all.saturating_sub(dying) >= least => self.phase = "Pending",
            "Aborting" if dying == 0 => self.phase = "Aborted",
            "Completing" if dying == 0 => self.finish("Completed"),
            "Terminating" if dying == 0 => self.finish("Terminated"),
            _ => {}
        }
        self.phase != before
    }

    /// Creates what is missing; whether anything was.
    fn create(&mut self) -> bool {
        let tasks: Vec<usize> = (0..self.job.tasks.len()).filter(|task| self.may_start(*task) == Some(true)).collect();
        let missing: Vec<usize> = (0..self.pods.len())
            .filter(|at| self.pods[*at].is == Is::Gone && tasks.contains(&self.pods[*at].task))
            .filter(|at| !self.is_surplus(&self.pods[*at]))
            .collect();
        for at in &missing {
            self.pods[*at].is = Is::Waiting;
            self.pods[*at].restarts = 0;
            self.created[self.pods[*at].task] = true;
        }
        for at in &missing {
            if self.let_in {
                self.raise("PodPending", *at, None);
            }
        }
        !missing.is_empty()
    }

    fn finish(&mut self, phase: &'static str) {
        let left = self.count(|pod| !matches!(pod.is, Is::Gone | Is::Good | Is::Bad));
        if left > 0 {
            self.kills += 1;
        }
        self.kill(|_| true, true);
        self.phase = phase;
    }
}
