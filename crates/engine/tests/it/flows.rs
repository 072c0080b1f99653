//! Random flows with their jobs in one engine, played with a controller that is slow, refuses, and crashes before and after
//! every commit. An oracle works out from how jobs end which are made and how the flow ends; it keeps no state.

use std::collections::{BTreeMap, BTreeSet};

use octoflow_engine::{Command, Engine, Input, Outcome, Refusal, admit::admit, engine::fold, jobflow, kinds, volcano};
use octoflow_model::{
    AttemptId, Fact, Order, Report, RunId, Task, Time,
    jobflow::{JobEnd, Strategy},
    order::{Collected, End, Exit},
    request::{Answer, MakeRequest, Request},
    submission::{Submission, SubmitContext},
    volcano::JobPhase,
};
use serde_json::{Value, json};

use crate::lives::Lives;
use crate::play::{DAWN, Everything, ROOMY};

const FLOW: RunId = RunId(1);

/// A small generator of numbers: the same seed gives the same story.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// What a runtime was told to do and has not done yet.
enum Work {
    Make(Box<MakeRequest>),
    /// Jobs are to be deleted.
    Remove,
    Pod {
        started: bool,
        ending: bool,
    },
}

/// An engine with its journals, the controller and the runtime beside it.
struct World {
    engine: Engine,
    journals: BTreeMap<RunId, Vec<Fact>>,
    lives: Lives,
    work: BTreeMap<AttemptId, Work>,
    /// Names of the jobs that were made, by run.
    jobs: BTreeMap<RunId, String>,
    now: Time,
    next: u64,
    numbers: Numbers,
    /// How the tries of each entry end.
    ends: Vec<Vec<JobEnd>>,
    crashes: u32,
    /// How often the flow was suspended.
    suspensions: u32,
}

/// The lists of the status, recomputed from what the flow knows of its jobs: each is in the list of its phase, and in no other.
fn lists(flow: &jobflow::Run) {
    let status = jobflow::status::object(flow)["status"].take();
    for (list, phase) in [("runningJobs", JobPhase::Running), ("pendingJobs", JobPhase::Pending)] {
        let active = flow.state.flow.entries.iter().filter(|entry| entry.stage == jobflow::state::Stage::Active);
        let jobs = active.filter_map(|entry| entry.job.as_ref()).filter(|job| job.phase == phase);
        let expected: Vec<&str> = jobs.map(|job| job.name.as_str()).collect();
        assert_eq!(status[list], json!(expected), "{list}: {status:#}");
    }
    let count = |list: &str| status[list].as_array().map_or(0, Vec::len);
    let done = flow.state.flow.entries.iter().filter(|entry| entry.is_completed()).count();
    assert_eq!(count("completedJobs"), done, "{status:#}");
    assert_eq!(status["conditions"].as_object().map_or(0, serde_json::Map::len), flow.program.entries.len());
}

impl World {
    fn new(seed: u64) -> Self {
        let mut numbers = Numbers(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let count = 1 + numbers.below(7);
        let all = [
            JobEnd::Completed,
            JobEnd::Completed,
            JobEnd::Completed,
            JobEnd::Failed,
            JobEnd::Refused,
            JobEnd::Terminated,
            JobEnd::Deleted,
        ];
        let mut flows = Vec::new();
        for at in 0..count {
            let targets: Vec<String> = (0..at).filter(|_| numbers.chance(40)).map(|up| format!("j{up}")).collect();
            let strategy = if numbers.chance(50) { "all" } else { "any" };
            let mut entry = json!({"name": format!("j{at}"), "dependsOn": {"targets": targets, "strategy": strategy},
                                   "retry": {"maxRetries": numbers.below(3), "backoff": "1s"}});
            if !targets.is_empty() && numbers.chance(30) {
                entry["dependsOn"]["probe"] = json!({"taskStatusList": [{"taskName": "main", "phase": "Running"}]});
            }
            flows.push(entry);
        }
        let ends = (0..count).map(|_| (0..1 + numbers.below(3)).map(|_| all[numbers.below(all.len())]).collect());
        let ends = ends.collect();
        let engine = Engine::new(ROOMY);
        let mut world = Self {
            engine,
            journals: BTreeMap::new(),
            lives: Lives::default(),
            work: BTreeMap::new(),
            jobs: BTreeMap::new(),
            now: DAWN,
            next: 2,
            numbers,
            ends,
            crashes: 0,
            suspensions: 0,
        };
        let policy = if world.numbers.chance(30) { "delete" } else { "retain" };
        let manifest = json!({"apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobFlow", "metadata": {"name": "f"},
                              "spec": {"flows": flows, "jobRetainPolicy": policy}});
        assert_eq!(world.submit(FLOW, "f", &manifest, None).and_then(|outcome| outcome.refusal), None);
        world.input(Input::Begin { run: FLOW });
        world
    }

    fn submit(&mut self, run: RunId, name: &str, manifest: &Value, by: Option<AttemptId>) -> Option<Outcome> {
        let admitted = admit(manifest, &Everything::default()).expect("the manifest is admitted");
        let submission = Box::new(Submission {
            name: name.to_owned(),
            namespace: "default".to_owned(),
            uid: format!("u-{run}"),
            at: self.now,
            manifest: admitted.manifest,
            stored: admitted.stored,
            parent: by.map(|attempt| attempt.run),
            ordered_by: by,
            context: SubmitContext::default(),
            previous: None,
        });
        self.input(Input::Submit { run, submission, program: None })
    }

    /// Hands an input in. Its facts are one commit; a crash comes before it, after it, or not at all. Nothing is returned
    /// if everything that followed from it was lost.
    fn input(&mut self, input: Input) -> Option<Outcome> {
        let released = if let Input::Release { run } = &input { Some(*run) } else { None };
        let mut outcome = self.engine.handle(input, self.now);
        while self.engine.has_more() {
            let more = self.engine.handle(Input::Tick, self.now);
            outcome.decided.extend(more.decided);
            outcome.orders.extend(more.orders);
        }
        let begun = self.journals.contains_key(&FLOW);
        if begun && self.numbers.chance(4) {
            self.restart();
            return None;
        }
        for decided in &outcome.decided {
            self.lives.take(decided);
            self.journals.entry(decided.run).or_default().extend(decided.facts.iter().cloned());
        }
        // What is deleted goes in the commit in which its parent is told.
        if let Some(run) = released {
            self.journals.remove(&run);
            self.work.retain(|attempt, _| attempt.run != run);
        }
        self.check();
        if begun && self.numbers.chance(4) {
            self.restart();
            return None;
        }
        let orders = std::mem::take(&mut outcome.orders);
        orders.into_iter().for_each(|order| self.take(order));
        Some(outcome)
    }

    fn take(&mut self, order: Order) {
        match order {
            Order::Start { attempt, task } => self.begin(attempt, &task),
            Order::Stop { attempt } | Order::Kill { attempt } => match self.work.get_mut(&attempt) {
                Some(Work::Pod { ending, .. }) => *ending = true,
                Some(Work::Make(_) | Work::Remove) | None => {}
            },
            Order::Forget { attempt } => drop(self.work.remove(&attempt)),
        }
    }

    fn begin(&mut self, attempt: AttemptId, task: &Task) {
        let work = match task.call.as_deref() {
            Some(Request::Make(request)) if request.child.is_some() => return,
            Some(Request::Make(request)) => Work::Make(Box::new(request.clone())),
            Some(Request::Remove(uids)) => {
                let named: BTreeSet<String> = uids.iter().cloned().collect();
                let made: BTreeSet<String> = self.jobs.keys().map(|run| format!("u-{run}")).collect();
                assert_eq!(named, made, "every job that was ever made is deleted");
                Work::Remove
            }
            Some(other) => panic!("a flow without such conditions asks for {other:?}"),
            None => Work::Pod { started: false, ending: false },
        };
        self.work.entry(attempt).or_insert(work);
    }

    /// The controller is lost, and restored from the journals of what is open. Pods go on meanwhile.
    fn restart(&mut self) {
        self.crashes += 1;
        self.engine = Engine::new(ROOMY);
        self.work.retain(|_, work| matches!(work, Work::Pod { .. }));
        let mut open = Vec::new();
        for (run, facts) in &self.journals {
            let folded = fold(*run, facts.iter().cloned()).expect("the journal folds");
            if !folded.finished() {
                open.push(*run);
                self.engine.handle(Input::Restore(Box::new(folded)), self.now);
            }
        }
        let outcome = self.engine.handle(Input::Continue { runs: open }, self.now);
        for decided in &outcome.decided {
            self.lives.take(decided);
            self.journals.entry(decided.run).or_default().extend(decided.facts.iter().cloned());
        }
        let alive: BTreeSet<AttemptId> = outcome.assumed_running.iter().map(|(attempt, _)| *attempt).collect();
        self.work.retain(|attempt, _| alive.contains(attempt));
        for (attempt, task) in &outcome.assumed_running {
            self.begin(*attempt, task);
        }
        outcome.orders.into_iter().for_each(|order| self.take(order));
    }

    fn flow(&self) -> &jobflow::Run {
        self.engine.run_of::<jobflow::Run>(FLOW).expect("the flow is there")
    }

    /// What must hold after every commit.
    fn check(&self) {
        let Some(flow) = self.engine.run_of::<jobflow::Run>(FLOW) else { return };
        let folded = fold(FLOW, self.journals[&FLOW].iter().cloned()).expect("the journal folds");
        let folded = folded.into_inner::<jobflow::Run>().expect("it is a flow");
        assert_eq!(folded.state, flow.state, "the fold differs from the state");
        for entry in &flow.state.flow.entries {
            let Some(job) = &entry.job else { continue };
            let Some(child) = job.run.and_then(|run| self.engine.run_of::<volcano::Run>(run)) else { continue };
            assert_eq!(job.phase, child.state.phase, "what the flow knows of {} is what it is", job.name);
            let (known, own) = (&entry.history, &child.state.history);
            let passed: Vec<JobPhase> = own.iter().map(|(phase, _)| *phase).collect();
            let told: Vec<JobPhase> = known.iter().map(|(phase, _)| *phase).collect();
            assert!(told.ends_with(&passed), "the flow knows every phase of {}: {told:?} and {passed:?}", job.name);
            assert_eq!(job.restarts, child.state.retries, "{}", job.name);
        }
        lists(flow);
        if flow.state.finished.is_some() {
            let open = |run: &&RunId| self.engine.run(**run).is_some_and(|run| !run.finished());
            assert_eq!(self.jobs.keys().find(open), None, "a flow that is over has no open job");
        }
    }

    fn end_of_try(&self, entry: usize, number: u32) -> JobEnd {
        let ends = &self.ends[entry];
        *ends.get(number as usize).or(ends.last()).expect("there is a plan")
    }

    /// One thing happens: a job is made or refused, a pod starts or ends, somebody ends or deletes a job, time passes.
    fn step(&mut self) {
        let all: Vec<AttemptId> = self.work.keys().copied().collect();
        let suspended = self.flow().told().suspended;
        if suspended && (all.is_empty() || self.numbers.chance(10)) {
            let command = Command::Resume { selector: None, supplied: BTreeMap::new() };
            self.input(Input::Command { run: FLOW, command });
            return;
        }
        if !suspended && self.suspensions < 2 && self.numbers.chance(3) {
            self.suspensions += 1;
            self.input(Input::Command { run: FLOW, command: Command::Suspend });
            return;
        }
        if all.is_empty() || self.numbers.chance(5) {
            let wake = self.engine.wake_at();
            assert!(wake.is_some() || !all.is_empty(), "nothing is under way, and nobody waits for a time");
            self.now = self.now.max(wake.unwrap_or(self.now));
            self.input(Input::Tick);
            return;
        }
        let attempt = all[self.numbers.below(all.len())];
        match self.work.get(&attempt) {
            Some(Work::Make(request)) => {
                let request = request.clone();
                self.make(attempt, &request);
            }
            Some(Work::Remove) => {
                let answer = Box::new(Answer::Object(Value::Null));
                self.input(Input::Report(Report::Answered { attempt, at: self.now, answer }));
            }
            Some(Work::Pod { started, ending }) => {
                let (started, ending) = (*started, *ending);
                self.live(attempt, started, ending);
            }
            None => {}
        }
    }

    fn make(&mut self, attempt: AttemptId, request: &MakeRequest) {
        if self.numbers.chance(30) {
            let why = "the template is missing".to_owned();
            self.input(Input::Report(Report::Waiting { attempt, at: self.now, why }));
            return;
        }
        if self.end_of_try(attempt.task.at(), attempt.attempt) == JobEnd::Refused {
            let answer = Box::new(Answer::Refused("no".to_owned()));
            self.input(Input::Report(Report::Answered { attempt, at: self.now, answer }));
            return;
        }
        let pod = json!({"spec": {"containers": [{"name": "main", "image": "i", "command": ["c"]}]}});
        // The same entry has the same template in every try.
        let action = [None, Some("RestartPod"), Some("RestartTask"), Some("RestartJob")][attempt.task.at() % 4];
        let policies: Vec<Value> =
            action.iter().map(|action| json!({"event": "PodFailed", "action": action})).collect();
        let task = json!({"name": "main", "replicas": 1 + attempt.task.at() % 3, "minAvailable": 1, "template": pod});
        let template = json!({"spec": {"tasks": [task], "policies": policies, "maxRetry": 8}});
        let make = kinds::of_key("JobTemplate").and_then(|kind| kind.make).expect("jobs are made of templates");
        let manifest = make(&template, request);
        let run = RunId(self.next);
        self.next += 1;
        let made = self.submit(run, &request.name, &manifest, Some(attempt));
        if self.journals.contains_key(&run) {
            let double = self.jobs.values().any(|name| *name == request.name);
            assert!(!double, "{} is made twice", request.name);
            self.jobs.insert(run, request.name.clone());
            self.work.remove(&attempt);
            self.input(Input::Begin { run });
        }
        if made.is_some_and(|outcome| outcome.refusal.is_none()) {
            // A controller that forgot tries again, and is refused.
            let again = RunId(self.next);
            self.next += 1;
            let refused = self.submit(again, &request.name, &manifest, Some(attempt));
            let refused = refused.is_none_or(|outcome| matches!(outcome.refusal, Some(Refusal::Unwanted { .. })));
            assert!(refused && !self.journals.contains_key(&again), "a second job is made for one try");
        }
    }

    fn live(&mut self, attempt: AttemptId, started: bool, ending: bool) {
        let exit = |code| End {
            exit: code,
            started: None,
            collected: Collected::default(),
            log_truncated: false,
            log_bytes: 0,
            members: Vec::new(),
        };
        let now = self.now;
        let ended = |code| Input::Report(Report::Ended { attempt, at: now, end: Box::new(exit(code)) });
        if ending {
            let input = ended(Exit::Signal(15));
            self.input(input);
            return;
        }
        if !started {
            if let Some(Work::Pod { started, .. }) = self.work.get_mut(&attempt) {
                *started = true;
            }
            self.input(Input::Report(Report::Started { attempt, at: self.now }));
            return;
        }
        // The runtime reports again what the controller may have lost.
        self.input(Input::Report(Report::Started { attempt, at: self.now }));
        let Some(of) = self.entry_of(attempt.run) else { return };
        let input = match self.end_of_try(of.0, of.1) {
            JobEnd::Completed => ended(Exit::Code(0)),
            JobEnd::Failed => ended(Exit::Code(1)),
            JobEnd::Terminated => Input::Command { run: attempt.run, command: Command::Stop },
            JobEnd::Deleted => {
                self.delete(attempt.run);
                return;
            }
            end @ (JobEnd::Refused | JobEnd::Stopped) => panic!("no job ends so: {end:?}"),
        };
        self.input(input);
    }

    /// Somebody deletes a job that runs: it leaves the engine, and its pods with it.
    fn delete(&mut self, run: RunId) {
        self.input(Input::Release { run });
    }

    /// The entry and the try that a job is of.
    fn entry_of(&self, run: RunId) -> Option<(usize, u32)> {
        let entries = self.flow().state.flow.entries.iter().enumerate();
        let mut own = entries.filter(|(_, entry)| entry.job.as_ref().is_some_and(|job| job.run == Some(run)));
        own.next().map(|(at, entry)| (at, entry.tries - 1))
    }
}

/// The oracle: what becomes of an entry follows from how its tries end and what becomes of those it waits for.
struct Oracle<'w> {
    plans: &'w [jobflow::program::Plan],
    ends: &'w [Vec<JobEnd>],
}

impl Oracle<'_> {
    /// Returns how the tries of an entry end that is started.
    fn tries(&self, at: usize) -> Vec<JobEnd> {
        let mut tries = Vec::new();
        loop {
            let ends = &self.ends[at];
            let end = *ends.get(tries.len()).or(ends.last()).expect("there is a plan");
            tries.push(end);
            let again = matches!(end, JobEnd::Failed | JobEnd::Refused) && tries.len() as u32 <= self.plans[at].retries;
            if !again {
                return tries;
            }
        }
    }

    fn is_started(&self, at: usize) -> bool {
        let plan = &self.plans[at];
        let far_enough = |up: &usize| if plan.conditions == 0 { self.is_completed(*up) } else { self.has_job(*up) };
        match plan.strategy {
            Strategy::All => plan.needs.iter().all(far_enough),
            Strategy::Any => plan.needs.is_empty() || plan.needs.iter().any(far_enough),
        }
    }

    fn is_completed(&self, at: usize) -> bool {
        self.is_started(at) && self.tries(at).last() == Some(&JobEnd::Completed)
    }

    /// Returns whether a job is made; every job of these stories has a pod that runs at some time.
    fn has_job(&self, at: usize) -> bool {
        self.is_started(at) && self.tries(at).iter().any(|end| *end != JobEnd::Refused)
    }
}

#[test]
fn random_flows_with_their_jobs_end_as_the_oracle_says_through_crashes() {
    let (mut failed, mut succeeded, mut crashes) = (0, 0, 0);
    for seed in 1..=400 {
        let mut world = World::new(seed);
        let mut steps = 0;
        while world.engine.run(FLOW).is_some_and(|flow| !flow.finished()) {
            steps += 1;
            assert!(steps < 20_000, "seed {seed} is stuck");
            world.step();
        }
        let done = fold(FLOW, world.journals[&FLOW].iter().cloned()).expect("the journal folds");
        let phase = done.phase();
        let done = done.into_inner::<jobflow::Run>().expect("it is a flow");
        let oracle = Oracle { plans: &done.program.entries, ends: &world.ends };
        for (at, entry) in done.state.flow.entries.iter().enumerate() {
            let tries = if oracle.is_started(at) { oracle.tries(at).len() } else { 0 };
            assert_eq!(entry.tries as usize, tries, "seed {seed}, entry {at}: {entry:?}");
            assert_eq!(entry.is_completed(), oracle.is_completed(at), "seed {seed}, entry {at}: {entry:?}");
        }
        let all = (0..world.ends.len()).all(|at| oracle.is_completed(at));
        assert_eq!(phase, if all { "Succeed" } else { "Failed" }, "seed {seed}");
        *(if all { &mut succeeded } else { &mut failed }) += 1;
        crashes += world.crashes;
    }
    assert!(failed > 50 && succeeded > 50 && crashes > 500, "{failed} fail, {succeeded} succeed, {crashes} crashes");
}
