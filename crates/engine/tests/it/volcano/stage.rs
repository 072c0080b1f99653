//! Jobs on a stage: the test says when a pod starts, ends or is lost and when time passes, and after every input the
//! promises of the engine are checked. Nothing here knows how the engine decides.

mod check;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use octoflow_engine::{
    Capacity, Command, Engine, Input, Outcome, Refusal,
    admit::Catalog,
    engine::Keyed,
    kinds::Kind,
    volcano::{Run, State, admit::examine, status},
};
use octoflow_model::{
    AttemptId, Fact, Order, Report, RunId, Task, Time,
    order::{Collected, End, Exit},
    submission::{Stored, Submission},
    taskset::StopReason,
};
use serde_json::{Value, json};

use crate::{
    inputs,
    lives::Lives,
    play::{DAWN, ROOMY, RUN},
    text::yaml,
};

pub(crate) struct Stage {
    pub(crate) lives: Lives,
    pub(crate) engine: Engine,
    pub(crate) now: Time,
    pub(crate) facts: BTreeMap<RunId, Vec<Fact>>,
    /// Pods the runtime has.
    pub(crate) pods: BTreeMap<AttemptId, Pod>,
    /// Pods in the order they were started, with the time.
    pub(crate) starts: Vec<(Time, String)>,
    pub(crate) tasks: BTreeMap<AttemptId, Box<Task>>,
    /// Inputs that decided something.
    pub(crate) turns: usize,
    /// Checking everything after every input is too much for large jobs.
    pub(crate) checked: bool,
    capacity: Capacity,
    /// Claims that are there.
    claims: BTreeSet<String>,
    begun: BTreeSet<AttemptId>,
    /// The last word on jobs that are over.
    last: BTreeMap<RunId, Value>,
    /// How everything was before the last input, for a crash that loses it.
    before: Option<Box<Before>>,
}

struct Before {
    facts: BTreeMap<RunId, usize>,
    pods: BTreeMap<AttemptId, Pod>,
    begun: BTreeSet<AttemptId>,
    starts: usize,
    last: BTreeMap<RunId, Value>,
}

/// A pod at the runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pod {
    pub(crate) name: String,
    pub(crate) told: Option<Told>,
}

/// The last stop order a pod got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Stop,
    Kill,
}

/// A catalog with everything a job may name.
pub(crate) struct Everything;

impl Catalog for Everything {
    fn has_object(&self, _: &'static Kind, _: &str, _: &str) -> bool {
        true
    }
}

/// A spec becomes a job whose tasks have a pod.
pub(crate) fn manifest(name: &str, mut spec: Value) -> Value {
    for task in spec["tasks"].as_array_mut().into_iter().flatten() {
        if task["template"]["spec"]["containers"].is_null() {
            task["template"]["spec"]["containers"] = json!([{"name": "main", "image": "i", "command": ["c"]}]);
        }
    }
    json!({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": spec})
}

impl Stage {
    /// One job named `j` where there is room for everybody.
    pub(crate) fn new(spec: &str) -> Self {
        let mut stage = Self::empty(ROOMY);
        stage.submit(1, spec);
        stage
    }

    pub(crate) fn with_slots(slots: usize, spec: &str) -> Self {
        let mut stage = Self::empty(Capacity { slots, ..ROOMY });
        stage.submit(1, spec);
        stage
    }

    pub(crate) fn empty(capacity: Capacity) -> Self {
        Self {
            engine: Engine::new(capacity),
            lives: Lives::default(),
            now: DAWN,
            facts: BTreeMap::new(),
            pods: BTreeMap::new(),
            starts: Vec::new(),
            tasks: BTreeMap::new(),
            turns: 0,
            checked: true,
            capacity,
            claims: BTreeSet::new(),
            begun: BTreeSet::new(),
            last: BTreeMap::new(),
            before: None,
        }
    }

    /// The first is named `j`, others `j2` and so on.
    pub(crate) fn submit(&mut self, run: u64, spec: &str) {
        let name = if run == 1 { "j".to_owned() } else { format!("j{run}") };
        let admitted = examine(&manifest(&name, yaml(spec).remove(0)), &Everything)
            .unwrap_or_else(|problems| panic!("the manifest is refused: {problems:?}"));
        self.submit_as(run, name, admitted.manifest, admitted.stored);
    }

    pub(crate) fn submit_as(&mut self, run: u64, name: String, manifest: Value, stored: Stored) {
        let submission = Submission {
            uid: format!("u-{run}"),
            namespace: "default".into(),
            at: self.now,
            context: Default::default(),
            parent: None,
            ordered_by: None,
            previous: None,
            name,
            manifest,
            stored,
        };
        let (run, submission) = (RunId(run), Box::new(submission));
        let submitted = self.engine.handle(Input::Submit { run, submission, program: None }, self.now);
        // Not checked yet: a run that was submitted and has not begun begins when it is read back.
        assert_eq!(self.take(submitted), None, "the submission is refused");
        self.input(Input::Begin { run });
    }

    pub(crate) fn command(&mut self, command: Command) -> Result<(), Refusal> {
        self.command_to(RUN, command)
    }

    pub(crate) fn command_to(&mut self, run: RunId, command: Command) -> Result<(), Refusal> {
        self.input(Input::Command { run, command }).map_or(Ok(()), Err)
    }

    pub(crate) fn suspend(&mut self) {
        self.command(Command::Suspend).expect("it can be suspended");
    }

    pub(crate) fn resume(&mut self) {
        self.command(Command::Resume { selector: None, supplied: BTreeMap::new() }).expect("it can be resumed");
    }

    pub(crate) fn evict(&mut self, pod: &str, why: StopReason) {
        self.command(Command::Evict { pod: pod.to_owned(), why }).expect("the pod is there");
    }

    /// A claim is there from now on.
    pub(crate) fn claim(&mut self, name: &str) {
        self.claims.insert(name.to_owned());
        self.input(inputs::object(Keyed::Claim, name, Default::default()));
    }

    /// The readiness probes of a pod say that it is ready, or no longer.
    pub(crate) fn ready(&mut self, pod: &str, ready: bool) {
        let (attempt, at) = (self.attempt(pod), self.now);
        self.input(Input::Report(Report::Ready { attempt, at, ready }));
    }

    /// Changes the numbers of pods.
    pub(crate) fn amend(&mut self, change: impl FnOnce(&mut Value)) -> Result<(), Refusal> {
        let mut spec = status::object(self.run(RUN))["spec"].take();
        change(&mut spec);
        self.command(Command::Amend { spec: Box::new(spec) })
    }

    /// Lets this many seconds pass, one at a time as far as timers are due.
    pub(crate) fn tick(&mut self, seconds: u64) {
        let until = self.now.saturating_add(Duration::from_secs(seconds));
        loop {
            self.now = self.engine.wake_at().filter(|at| *at <= until && *at > self.now).unwrap_or(until);
            self.input(Input::Tick);
            if self.now == until {
                return;
            }
        }
    }

    pub(crate) fn attempt(&self, pod: &str) -> AttemptId {
        let found = self.pods.iter().find(|(_, live)| live.name == pod).map(|(attempt, _)| *attempt);
        found.unwrap_or_else(|| panic!("there is no pod {pod} among {:?}", self.live()))
    }

    /// The pod's main container runs.
    pub(crate) fn up(&mut self, pod: &str) {
        let (attempt, at) = (self.attempt(pod), self.now);
        self.input(Input::Report(Report::Started { attempt, at }));
    }

    pub(crate) fn up_all(&mut self) {
        self.live().iter().for_each(|pod| self.up(pod));
    }

    /// The pod ends with this code.
    pub(crate) fn exit(&mut self, pod: &str, code: i32) {
        self.end(pod, Exit::Code(code), None);
    }

    pub(crate) fn end(&mut self, pod: &str, exit: Exit, message: Option<&str>) {
        let (attempt, at) = (self.attempt(pod), self.now);
        let ran = matches!(exit, Exit::Code(_) | Exit::Signal(_));
        let end = End {
            exit,
            started: ran.then_some(at),
            collected: Collected { message: message.map(str::to_owned), ..Collected::default() },
            log_truncated: false,
            log_bytes: 0,
            members: Vec::new(),
        };
        self.gone(Report::Ended { attempt, at, end: Box::new(end) });
    }

    pub(crate) fn lose(&mut self, pod: &str) {
        let (attempt, at) = (self.attempt(pod), self.now);
        self.gone(Report::Lost { attempt, at, why: "the machine is gone".to_owned() });
    }

    /// Ends all pods that were ordered to stop, by the signal.
    pub(crate) fn leave(&mut self) {
        let told: Vec<String> = self.told().map(str::to_owned).collect();
        told.iter().for_each(|pod| self.end(pod, Exit::Signal(15), None));
    }

    fn gone(&mut self, report: Report) {
        let attempt = report.attempt();
        let pod = self.pods.get(&attempt).cloned();
        self.keep_before();
        self.pods.remove(&attempt);
        self.input_kept(Input::Report(report.clone()));
        for late in [report, Report::Started { attempt, at: self.now }] {
            let outcome = self.engine.handle(Input::Report(late), self.now);
            assert!(outcome.decided.is_empty(), "a late report of {pod:?} decided something: {:?}", outcome.decided);
        }
    }

    pub(crate) fn input(&mut self, input: Input) -> Option<Refusal> {
        self.keep_before();
        self.input_kept(input)
    }

    fn input_kept(&mut self, input: Input) -> Option<Refusal> {
        let outcome = self.engine.handle(input, self.now);
        self.turns += usize::from(!outcome.decided.is_empty());
        let refusal = self.take(outcome);
        self.tick_now();
        if self.checked {
            self.check();
        }
        refusal
    }

    /// Handles everything that is due.
    fn tick_now(&mut self) {
        // Delays of nothing are over at once.
        for _ in 0..100 {
            let due = self.engine.handle(Input::Tick, self.now);
            if due.decided.is_empty() && due.orders.is_empty() {
                break;
            }
            self.take(due);
        }
    }

    fn take(&mut self, outcome: Outcome) -> Option<Refusal> {
        outcome.decided.iter().for_each(|decided| self.lives.take(decided));
        for octoflow_engine::Decided { run, facts, .. } in outcome.decided {
            for fact in &facts {
                let text = serde_json::to_string(fact).expect("a fact can be written");
                let read: Fact = serde_json::from_str(&text).expect("a fact can be read");
                assert_eq!(read, *fact, "a fact does not survive being written down");
            }
            self.facts.entry(run).or_default().extend(facts);
        }
        outcome.orders.into_iter().for_each(|order| self.obey(order));
        outcome.refusal
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Start { attempt, task } => {
                assert!(self.begun.insert(attempt), "{attempt} was started twice");
                assert!(!self.live().contains(&task.name), "a second pod is called {}", task.name);
                self.starts.push((self.now, task.name.clone()));
                self.pods.insert(attempt, Pod { name: task.name.clone(), told: None });
                self.tasks.insert(attempt, task);
            }
            Order::Stop { attempt } | Order::Kill { attempt } => {
                let kills = matches!(order, Order::Kill { .. });
                let pod = self.pods.get_mut(&attempt).unwrap_or_else(|| panic!("{attempt} is ended and not there"));
                pod.told = Some(if kills { Told::Kill } else { Told::Stop });
            }
            Order::Forget { attempt } => assert!(!self.pods.contains_key(&attempt), "{attempt} is forgotten alive"),
        }
    }

    fn keep_before(&mut self) {
        self.before = self.checked.then(|| {
            Box::new(Before {
                facts: self.facts.iter().map(|(run, facts)| (*run, facts.len())).collect(),
                pods: self.pods.clone(),
                begun: self.begun.clone(),
                starts: self.starts.len(),
                last: self.last.clone(),
            })
        });
    }

    /// There is a last input that could be lost.
    pub(crate) fn crashable(&self) -> bool {
        self.before.as_ref().is_some_and(|before| before.facts.contains_key(&RUN))
    }

    /// The engine is gone with everything the last input decided: it never happened, only the runtime knows better.
    ///
    /// How many pods had been started before it is the answer.
    pub(crate) fn crash_before(&mut self) -> usize {
        let before = *self.before.take().expect("something happened before");
        self.facts.retain(|run, _| before.facts.contains_key(run));
        for (run, facts) in &mut self.facts {
            facts.truncate(before.facts[run]);
        }
        self.lives.reread(&self.facts);
        self.starts.truncate(before.starts);
        self.tasks.retain(|attempt, _| before.begun.contains(attempt));
        (self.pods, self.begun) = (before.pods, before.begun);
        self.last = before.last;
        self.restart();
        before.starts
    }

    /// The engine is gone; a new one reads the facts and goes on. What the runtime has, it still has.
    pub(crate) fn restart(&mut self) {
        self.restart_without(&BTreeSet::new());
    }

    /// The engine died before these pods were ordered to start.
    pub(crate) fn restart_without(&mut self, unsent: &BTreeSet<AttemptId>) {
        let (engine, believed, outcome) = self.restored(self.capacity);
        self.engine = engine;
        let known: BTreeSet<AttemptId> = believed.iter().map(|(attempt, _)| *attempt).collect();
        let there: BTreeSet<AttemptId> = self.pods.keys().copied().collect();
        assert!(unsent.is_subset(&there), "what was not sent was never decided");
        assert_eq!(known, there, "the engine and the runtime know the same pods after a restart");
        for (attempt, task) in believed {
            assert_eq!(self.tasks.get(&attempt), Some(&task), "the same pod is asked for again after a restart");
        }
        self.take(outcome);
        self.tick_now();
        self.check();
    }

    /// A second engine that has read the facts, what it believes to be alive, and what it decides on going on.
    pub(crate) fn restored(&self, capacity: Capacity) -> (Engine, Vec<(AttemptId, Box<Task>)>, Outcome) {
        let mut engine = Engine::new(capacity);
        for claim in &self.claims {
            engine.handle(inputs::object(Keyed::Claim, claim, Default::default()), self.now);
        }
        for (run, facts) in &self.facts {
            inputs::restore(&mut engine, *run, facts.iter().cloned());
        }
        let open: Vec<RunId> = self.facts.keys().copied().filter(|run| engine.run(*run).is_some()).collect();
        let (believed, outcome) = inputs::go_on(&mut engine, &open, self.now);
        (engine, believed, outcome)
    }

    pub(crate) fn run(&self, run: RunId) -> &Run {
        self.engine.run(run).and_then(|run| run.of::<Run>()).expect("the run is there")
    }

    pub(crate) fn state(&self) -> &State {
        &self.run(RUN).state
    }

    pub(crate) fn status(&self) -> Value {
        status::status(self.run(RUN))
    }

    /// The phase of the job.
    pub(crate) fn phase(&self) -> String {
        self.status()["state"]["phase"].as_str().unwrap_or_default().to_owned()
    }

    /// What the status says of a pod.
    pub(crate) fn pod(&self, name: &str) -> Value {
        let status = self.status();
        let pods = status["pods"].as_array().expect("pods are a list");
        pods.iter().find(|pod| pod["name"] == name).cloned().unwrap_or_default()
    }

    pub(crate) fn task(&self, pod: &str) -> &Task {
        &self.tasks[&self.attempt(pod)]
    }

    pub(crate) fn over(&self) -> bool {
        // A run that was over when the engine came back is not read again.
        self.engine.run(RUN).is_none_or(|run| run.finished())
    }

    /// The names of all pods the runtime has.
    pub(crate) fn live(&self) -> Vec<String> {
        self.pods.values().map(|pod| pod.name.clone()).collect()
    }

    /// The pods that were told to end.
    pub(crate) fn told(&self) -> impl Iterator<Item = &str> {
        self.pods.values().filter(|pod| pod.told.is_some()).map(|pod| pod.name.as_str())
    }

    pub(crate) fn told_all(&self) -> Vec<String> {
        self.told().map(str::to_owned).collect()
    }

    /// Every pod that was ever started, in order.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.starts.iter().map(|(_, name)| name.as_str()).collect()
    }

    /// The job is over like this, and nothing is left of it.
    pub(crate) fn ends(&self, phase: &str) {
        let status = self.status();
        assert_eq!(status["state"]["phase"], phase, "{}", status["state"]["message"]);
        assert!(self.over() && status["finishedAt"].is_string(), "it is not over: {status:#}");
        assert_eq!(self.live(), [] as [&str; 0]);
    }

    /// The phases it had, in order.
    pub(crate) fn history(&self) -> Vec<&'static str> {
        self.state().history.iter().map(|(phase, _)| phase.word()).collect()
    }
}
