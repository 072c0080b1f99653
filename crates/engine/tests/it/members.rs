//! Runs of very many members, of every dialect that has them: one input decides only so much, whatever the limit is the same
//! comes of it, also through crashes between two slices, and a command in the middle is obeyed.

use std::collections::{BTreeMap, BTreeSet};

use octoflow_engine::{
    Command, Decided, Engine, Input, Outcome, Setup, admit::admit, engine::fold, jobflow, kinds, kubejob, taskset,
    volcano,
};
use octoflow_model::{
    AttemptId, Fact, Order, Report, RunId, Task, Time,
    order::{Collected, End, Exit},
    request::{Answer, MakeRequest, Request},
    submission::{Submission, SubmitContext},
    volcano::JobFact,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::play::{DAWN, Everything, ROOMY};

const RUN: RunId = RunId(1);

/// A runtime's task: a pod, or a job that a flow wants to be made.
#[derive(Clone)]
enum Work {
    Pod { told: bool },
    Make(Box<MakeRequest>),
}

struct World {
    engine: Engine,
    slice: u64,
    now: Time,
    journals: BTreeMap<RunId, Vec<Fact>>,
    work: BTreeMap<AttemptId, Work>,
    killed: BTreeSet<AttemptId>,
    /// Jobs that are not to be made after all.
    unmade: BTreeSet<AttemptId>,
    next: u64,
    /// The most facts, and the most orders, that came of one input.
    most: (usize, usize),
    /// In how many ticks the controller crashes, if it does.
    crash: Option<u64>,
}

fn pod(name: &str) -> Value {
    json!({"spec": {"restartPolicy": "Never", "containers": [{"name": name, "image": "i", "command": ["c"]}]}})
}

fn task_set(count: u32) -> Value {
    let role = |name: &str, count: u32| {
        json!({"name": name, "replicas": count, "completionPolicy": {"maxFailed": 3, "minSucceeded": count},
               "retryPolicy": {"retry": true, "maxRetryCount": 1}, "template": pod("main")})
    };
    json!({"apiVersion": "octopus.openi.pcl.cn/v1alpha1", "kind": "TaskSet", "metadata": {"name": "m"},
           "spec": {"roles": [role("a", count - count / 3), role("b", count / 3)]}})
}

fn volcano_job(count: u32) -> Value {
    let task = |name: &str, count: u32| json!({"name": name, "replicas": count, "template": pod("main")});
    json!({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "m"},
           "spec": {"minAvailable": 1, "maxRetry": 3, "tasks": [task("a", count - count / 3), task("b", count / 3)],
                    "policies": [{"event": "PodFailed", "action": "RestartJob"},
                                 {"event": "PodPending", "action": "AbortJob", "timeout": "1h"}]}})
}

fn kubernetes_job(count: u32) -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "m"},
           "spec": {"parallelism": count, "completions": count, "completionMode": "Indexed", "template": pod("main")}})
}

fn flow(count: u32) -> Value {
    let entry = |at| json!({"name": format!("j{at}"), "retry": {"maxRetries": 1, "backoff": "1s"}});
    let flows: Vec<Value> = (0..count).map(entry).collect();
    json!({"apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobFlow", "metadata": {"name": "m"},
           "spec": {"flows": flows}})
}

const ENDS: [Command; 2] = [Command::Stop, Command::Terminate];
const KINDS: [fn(u32) -> Value; 4] = [task_set, volcano_job, kubernetes_job, flow];

impl World {
    fn new(slice: u64, crash: Option<u64>) -> Self {
        Self {
            engine: Engine::new(Setup { slice, ..ROOMY.into() }),
            slice,
            now: DAWN,
            journals: BTreeMap::new(),
            work: BTreeMap::new(),
            killed: BTreeSet::new(),
            unmade: BTreeSet::new(),
            next: 2,
            most: (0, 0),
            crash,
        }
    }

    fn submit(&mut self, run: RunId, name: &str, manifest: &Value, by: Option<AttemptId>) {
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
        self.only(Input::Submit { run, submission, program: None });
        self.only(Input::Begin { run });
    }

    /// Hands one input in, and nothing that is left of it.
    fn only(&mut self, input: Input) -> bool {
        let outcome = self.engine.handle(input, self.now);
        self.take(outcome)
    }

    /// Hands an input in, and lets everything follow from it.
    fn input(&mut self, input: Input) {
        self.only(input);
        self.settle();
    }

    fn settle(&mut self) {
        while self.engine.has_more() {
            if let Some(left) = &mut self.crash {
                *left = left.saturating_sub(1);
                if *left == 0 {
                    self.crash = None;
                    self.restart();
                    continue;
                }
            }
            self.only(Input::Tick);
        }
    }

    fn take(&mut self, outcome: Outcome) -> bool {
        let facts = outcome.decided.iter().map(|decided| decided.facts.len()).sum();
        self.most = (self.most.0.max(facts), self.most.1.max(outcome.orders.len()));
        for Decided { run, facts, .. } in outcome.decided {
            self.journals.entry(run).or_default().extend(facts);
        }
        for order in outcome.orders {
            match order {
                Order::Start { attempt, task } => self.begin(attempt, &task),
                Order::Stop { attempt } | Order::Kill { attempt } => {
                    if matches!(order, Order::Kill { .. }) {
                        self.killed.insert(attempt);
                    }
                    match self.work.get_mut(&attempt) {
                        Some(Work::Pod { told }) => *told = true,
                        Some(Work::Make(_)) => drop(self.unmade.insert(attempt)),
                        None => {}
                    }
                }
                Order::Forget { attempt } => drop(self.work.remove(&attempt)),
            }
        }
        outcome.refusal.is_none()
    }

    fn begin(&mut self, attempt: AttemptId, task: &Task) {
        let work = match task.call.as_deref() {
            Some(Request::Make(request)) if request.child.is_some() => return,
            Some(Request::Make(request)) => Work::Make(Box::new(request.clone())),
            Some(other) => panic!("nobody asks for {other:?}"),
            None => Work::Pod { told: false },
        };
        self.work.entry(attempt).or_insert(work);
    }

    /// Drops everything but the journals.
    fn restart(&mut self) {
        self.engine = Engine::new(Setup { slice: self.slice, ..ROOMY.into() });
        let mut open = Vec::new();
        for (run, facts) in &self.journals {
            let folded = fold(*run, facts.iter().cloned()).expect("the journal folds");
            if !folded.finished() {
                open.push(*run);
                self.engine.handle(Input::Restore(Box::new(folded)), self.now);
            }
        }
        let outcome = self.engine.handle(Input::Continue { runs: open }, self.now);
        let running: Vec<(AttemptId, Box<Task>)> = outcome.assumed_running.clone();
        let alive: BTreeSet<AttemptId> = running.iter().map(|(attempt, _)| *attempt).collect();
        self.work.retain(|attempt, _| alive.contains(attempt));
        running.iter().for_each(|(attempt, task)| self.begin(*attempt, task));
        self.take(outcome);
    }

    /// Makes the jobs that flows want.
    fn make_jobs(&mut self) {
        let wanted = self.work.iter().filter_map(|(attempt, work)| match work {
            Work::Make(request) => Some((*attempt, request.clone())),
            Work::Pod { .. } => None,
        });
        let wanted: Vec<(AttemptId, Box<MakeRequest>)> = wanted.collect();
        for (attempt, request) in wanted {
            let make = kinds::of_key("JobTemplate").and_then(|kind| kind.make).expect("jobs are made of templates");
            let template = json!({"spec": {"tasks": [{"name": "main", "replicas": 1, "template": pod("main")}]}});
            let manifest = make(&template, &request);
            let run = RunId(self.next);
            self.next += 1;
            self.work.remove(&attempt);
            self.submit(run, &request.name, &manifest, Some(attempt));
            self.settle();
        }
    }

    fn pods(&self, told: bool) -> Vec<AttemptId> {
        let all = self.work.iter().filter(|(_, work)| matches!(work, Work::Pod { told: is } if *is == told));
        all.map(|(attempt, _)| *attempt).collect()
    }

    fn end(&mut self, attempt: AttemptId, exit: Exit) {
        let end = End {
            exit,
            started: Some(self.now),
            collected: Collected::default(),
            log_truncated: false,
            log_bytes: 0,
            members: Vec::new(),
        };
        self.input(Input::Report(Report::Ended { attempt, at: self.now, end: Box::new(end) }));
    }

    /// Pods that were told to end do.
    fn leave(&mut self) {
        while let Some(attempt) = self.unmade.pop_first() {
            self.work.remove(&attempt);
            let answer = Box::new(Answer::Stopped);
            self.input(Input::Report(Report::Answered { attempt, at: self.now, answer }));
        }
        self.pods(true).into_iter().for_each(|attempt| self.end(attempt, Exit::Signal(15)));
    }

    fn command(&mut self, command: Command) {
        self.input(Input::Command { run: RUN, command });
    }

    fn finished(&self) -> bool {
        self.folded(RUN).finished()
    }

    fn folded(&self, run: RunId) -> octoflow_engine::Run {
        fold(run, self.journals[&run].iter().cloned()).expect("the journal folds")
    }

    /// What came of everything: the state of each run, which is what its journal folds to.
    fn states(&self) -> Vec<String> {
        let state = |run: &RunId| {
            let folded = self.folded(*run);
            if let Some(live) = self.engine.run(*run) {
                assert_eq!(text_of(live), text_of(&folded), "the fold of the journal is the live state");
            }
            text_of(&folded)
        };
        self.journals.keys().map(state).collect()
    }
}

fn text_of(run: &octoflow_engine::Run) -> String {
    let of = [
        run.of::<taskset::Run>().map(|run| format!("{:?}", run.state)),
        run.of::<volcano::Run>().map(|run| format!("{:?}", run.state)),
        run.of::<kubejob::Run>().map(|run| format!("{:?}", run.state)),
        run.of::<jobflow::Run>().map(|run| format!("{:?}", run.state)),
    ];
    of.into_iter().flatten().next().expect("the run has members")
}

/// A story with all that concerns very many members at once: begin, failures, suspension, and an end, by itself or by
/// these commands.
fn play(slice: u64, crash: Option<u64>, manifest: &Value, last: &[Command]) -> World {
    let mut world = World::new(slice, crash);
    world.submit(RUN, "m", manifest, None);
    world.settle();
    world.make_jobs();
    for attempt in world.pods(false) {
        world.input(Input::Report(Report::Started { attempt, at: world.now }));
    }
    let pods = world.pods(false);
    for attempt in pods.iter().take(20) {
        world.end(*attempt, Exit::Code(0));
    }
    world.end(pods[30], Exit::Code(1));
    world.leave();
    world.command(Command::Suspend);
    world.leave();
    world.command(Command::Resume { selector: None, supplied: BTreeMap::new() });
    last.iter().for_each(|command| world.command(command.clone()));
    let mut rounds = 0;
    while !world.finished() {
        rounds += 1;
        assert!(rounds < 50, "the run does not end");
        world.leave();
        world.make_jobs();
        world.pods(false).into_iter().for_each(|attempt| world.end(attempt, Exit::Code(0)));
        if let Some(at) = world.engine.wake_at() {
            world.now = world.now.max(at);
            world.input(Input::Tick);
        }
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn slices_of_any_size_decide_the_same(slice in 1_u64..300, kind in 0..KINDS.len(), commands in 0..3_usize) {
        let manifest = KINDS[kind](700);
        let whole = play(u64::MAX, None, &manifest, &ENDS[..commands]);
        let sliced = play(slice, None, &manifest, &ENDS[..commands]);
        prop_assert_eq!(sliced.states(), whole.states());
        prop_assert_eq!(sliced.killed, whole.killed);
    }

    #[test]
    fn a_crash_between_two_slices_changes_nothing(slice in 1_u64..100, kind in 0..KINDS.len(), crash in 1_u64..400) {
        let manifest = KINDS[kind](700);
        let whole = play(u64::MAX, None, &manifest, &ENDS);
        let crashed = play(slice, Some(crash), &manifest, &ENDS);
        prop_assert_eq!(crashed.states(), whole.states());
    }
}

#[test]
fn every_dialect_is_sliced_and_crashes_in_each() {
    for kind in KINDS {
        let manifest = kind(700);
        let whole = play(u64::MAX, None, &manifest, &ENDS[..1]).states();
        for (slice, crash) in [(1, None), (40, Some(2)), (40, Some(60)), (90, Some(11))] {
            let sliced = play(slice, crash, &manifest, &ENDS[..1]);
            assert_eq!(sliced.crash, None, "{} has fewer slices", manifest["kind"]);
            assert!(sliced.states() == whole, "{} in slices of {slice}, crash {crash:?}", manifest["kind"]);
            let left = |fact: &Fact| matches!(fact, Fact::VolcanoJob(JobFact::Left { .. }));
            let is_volcano = manifest["apiVersion"] == "batch.volcano.sh/v1alpha1";
            assert_eq!(sliced.journals[&RUN].iter().any(left), is_volcano, "what a slice leaves is written down");
        }
    }
}

#[test]
fn a_run_that_begins_is_terminated_in_the_middle() {
    for kind in KINDS {
        let manifest = kind(6_000);
        let mut world = World::new(400, None);
        world.submit(RUN, "m", &manifest, None);
        assert!(world.engine.has_more(), "{} begins in one input", manifest["kind"]);
        assert!(world.engine.is_unsettled(RUN));
        assert!(world.only(Input::Command { run: RUN, command: Command::Terminate }), "it is obeyed");
        let begun = world.engine.run(RUN).map(|run| run.open_tasks().len()).unwrap_or_default();
        assert!(begun < 600, "{} began {begun} members", manifest["kind"]);
        world.settle();
        world.leave();
        assert_eq!(world.work.len(), 0, "nothing was started");
        assert!(world.finished(), "{} goes on", manifest["kind"]);
        assert!(world.most.0 < 200, "{}: {:?} facts and orders came of one input", manifest["kind"], world.most);
    }
}

#[test]
fn very_many_running_members_are_ended_in_slices() {
    for (kind, crash) in KINDS.into_iter().flat_map(|kind| [(kind, None), (kind, Some(3))]) {
        let manifest = kind(1_500);
        let mut world = World::new(400, None);
        world.submit(RUN, "m", &manifest, None);
        world.settle();
        world.make_jobs();
        assert_eq!(world.pods(false).len(), 1_500);
        world.most = (0, 0);
        assert!(world.only(Input::Command { run: RUN, command: Command::Stop }));
        assert!(world.engine.has_more(), "{} ends in one input", manifest["kind"]);
        world.crash = crash;
        world.settle();
        assert_eq!(world.crash, None);
        assert_eq!(world.pods(true).len(), 1_500, "every pod of {} is told", manifest["kind"]);
        // What is being ended is ended faster.
        assert!(world.only(Input::Command { run: RUN, command: Command::Terminate }));
        world.settle();
        assert_eq!(world.killed.len(), 1_500, "{}", manifest["kind"]);
        // After a restart every order to end a pod is given once more, all at once.
        let (facts, orders) = world.most;
        assert!(facts < 200, "{}: {facts} facts came of one input", manifest["kind"]);
        assert!(orders < 500 || crash.is_some(), "{}: {orders} orders came of one input", manifest["kind"]);
        world.leave();
        assert!(world.finished(), "{} goes on", manifest["kind"]);
    }
}
