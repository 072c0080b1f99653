//! A run played in virtual time: orders are answered by a script, timers move the clock, and after every input the
//! promises of the engine are checked. Nothing here knows how the engine decides.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use octoflow_engine::{
    Capacity, Command, Engine, Input, Outcome, Refusal, Setup,
    argo::{
        admit::{Catalog, admit},
        explain::explain,
        node::Leaf,
        refer::Reach,
    },
    engine::{Keyed, fold},
    kinds::Kind,
    meters::{Meters, Series, SeriesLabels},
};
use octoflow_model::{
    AttemptId, Fact, NodeIx, Order, Report, RunId, Task, Time,
    argo::WorkflowFact,
    meta::KeyedData,
    order::{Collected, End, Exit, Found},
    pod::{MemberEnd, Part},
    previous::PreviousRun,
    submission::{Stored, Submission, SubmitContext},
    task::StoredArtifact,
};
use serde_json::Value;

use crate::{
    answer::{Answer, Ending, Script},
    done::Done,
    inputs,
    lives::Lives,
    text::manifest,
};

pub(crate) const RUN: RunId = RunId(1);
/// When every run is submitted.
pub(crate) const DAWN: Time = Time(1_700_000_000_000_000);
pub(crate) const ROOMY: Capacity = Capacity { slots: 100_000, cpu_milli: 1_000_000_000, memory_bytes: u64::MAX };

pub(crate) struct Play {
    pub(crate) lives: Lives,
    pub(crate) engine: Engine,
    pub(crate) now: Time,
    pub(crate) facts: Vec<Fact>,
    /// Custom metrics persisted together with the facts.
    pub(crate) series: BTreeMap<(String, SeriesLabels), Series>,
    pub(crate) orders: Vec<Order>,
    /// Node names in the order their tasks were started, with the time.
    pub(crate) starts: Vec<(Time, String)>,
    /// The most tasks that were with the runtime at once.
    pub(crate) crowd: usize,
    pub(crate) tasks: BTreeMap<String, Task>,
    script: Script,
    begun: BTreeSet<AttemptId>,
    flights: BTreeMap<AttemptId, Flight>,
    arrivals: u64,
    /// Every other task is reported to run before it ends.
    tells: Vec<AttemptId>,
    /// Every task is.
    all_told: bool,
    /// Tasks the last input started: lost if the engine dies before it could say so.
    fresh: Vec<AttemptId>,
    /// Checking everything after every input is too much for large runs.
    pub(crate) checked: bool,
}

/// A task at the runtime.
struct Flight {
    lands: Option<Time>,
    /// Ties are broken by this.
    turn: u64,
    answer: Answer,
    task: Box<Task>,
    stopped: bool,
}

/// Returns the problems of a refused spec.
pub(crate) fn refused(spec: &str) -> String {
    let problems = admit(&manifest(spec), &Everything::default()).err();
    let problems = problems.unwrap_or_else(|| panic!("it was let in: {spec}"));
    problems.0.iter().map(|problem| format!("{problem:?}")).collect::<Vec<_>>().join("\n")
}

/// A catalog with everything a manifest may name.
#[derive(Default)]
pub(crate) struct Everything {
    templates: Vec<Value>,
}

impl Catalog for Everything {
    fn has_object(&self, _: &'static Kind, _: &str, _: &str) -> bool {
        true
    }
    fn template(&self, reach: Reach, _: &str, name: &str) -> Option<Value> {
        let named = |object: &&Value| object["kind"] == reach.kind() && object["metadata"]["name"] == name;
        self.templates.iter().find(named).cloned()
    }
    fn template_names(&self, reach: Reach, _: &str) -> Vec<String> {
        let kept = self.templates.iter().filter(|object| object["kind"] == reach.kind());
        kept.filter_map(|object| object["metadata"]["name"].as_str().map(str::to_owned)).collect()
    }
}

impl Play {
    /// A workflow named `w` with this spec; the usual templates are added.
    pub(crate) fn new(spec: &str) -> Self {
        Self::of(manifest(spec), Script::default())
    }

    pub(crate) fn with(spec: &str, script: Script) -> Self {
        Self::of(manifest(spec), script)
    }

    pub(crate) fn of(manifest: Value, script: Script) -> Self {
        let admitted = admit(&manifest, &Everything::default())
            .unwrap_or_else(|problems| panic!("the manifest is refused: {problems:?}"));
        Self::unchecked(admitted.manifest().clone(), script)
    }

    /// With these WorkflowTemplates and ClusterWorkflowTemplates loaded.
    pub(crate) fn beside(templates: Vec<Value>, manifest: Value, script: Script) -> Self {
        let admitted = admit(&manifest, &Everything { templates })
            .unwrap_or_else(|problems| panic!("the manifest is refused: {problems:?}"));
        Self::stocked(admitted.manifest().clone(), admitted.stored().clone(), script, ROOMY, &[])
    }

    /// Without admission: for what can only go wrong at run time.
    pub(crate) fn unchecked(manifest: Value, script: Script) -> Self {
        Self::prepared(manifest, script, ROOMY, &[])
    }

    pub(crate) fn prepared(manifest: Value, script: Script, capacity: Capacity, maps: &[(&str, &str, &str)]) -> Self {
        Self::stocked(manifest, Stored::default(), script, capacity, maps)
    }

    /// With one ConfigMap, labels and all.
    pub(crate) fn keyed(manifest: Value, map: &str, data: KeyedData) -> Self {
        let mut engine = Engine::new(ROOMY);
        engine.handle(inputs::object(Keyed::ConfigMap, map, data), DAWN);
        Self::begun(engine, manifest, Stored::default(), Script::default(), None)
    }

    /// A run that comes after another one and takes its results over.
    pub(crate) fn after(
        manifest: Value,
        stored: Stored,
        before: PreviousRun,
        script: Script,
        capacity: Capacity,
    ) -> Self {
        Self::begun(Engine::new(capacity), manifest, stored, script, Some(Box::new(before)))
    }

    fn stocked(
        manifest: Value,
        stored: Stored,
        script: Script,
        capacity: Capacity,
        maps: &[(&str, &str, &str)],
    ) -> Self {
        let mut engine = Engine::new(capacity);
        let mut data: BTreeMap<&str, KeyedData> = BTreeMap::new();
        for (map, key, value) in maps {
            data.entry(map).or_default().entries.insert((*key).to_owned(), value.as_bytes().to_vec());
        }
        for (map, data) in data {
            engine.handle(inputs::object(Keyed::ConfigMap, map, data), DAWN);
        }
        Self::begun(engine, manifest, stored, script, None)
    }

    fn begun(
        engine: Engine,
        manifest: Value,
        stored: Stored,
        script: Script,
        before: Option<Box<PreviousRun>>,
    ) -> Self {
        // What comes after another run comes a day later.
        let now = if before.is_some() { DAWN.saturating_add(Duration::from_secs(24 * 3600)) } else { DAWN };
        let mut play = Self {
            lives: Lives::default(),
            engine,
            now,
            facts: Vec::new(),
            series: BTreeMap::new(),
            orders: Vec::new(),
            starts: Vec::new(),
            crowd: 0,
            tasks: BTreeMap::new(),
            script,
            begun: BTreeSet::new(),
            flights: BTreeMap::new(),
            arrivals: 0,
            tells: Vec::new(),
            all_told: false,
            fresh: Vec::new(),
            checked: true,
        };
        let (name, namespace, uid) = ("w".into(), "default".into(), "u-1".into());
        let known = SubmitContext::default();
        let submission = Submission {
            name,
            namespace,
            uid,
            at: DAWN,
            manifest,
            stored,
            context: known,
            parent: None,
            ordered_by: None,
            previous: before,
        };
        play.submit(submission);
        play
    }

    pub(crate) fn submit(&mut self, submission: Submission) {
        let submission = Box::new(submission);
        let refused = self.input(Input::Submit { run: RUN, submission, program: None });
        assert_eq!(refused, None, "the submission is refused");
        self.input(Input::Begin { run: RUN });
    }

    pub(crate) fn command(&mut self, command: Command) -> Result<(), Refusal> {
        self.input(Input::Command { run: RUN, command }).map_or(Ok(()), Err)
    }

    /// Plays until the run is over.
    pub(crate) fn finish(mut self) -> Done {
        while !self.over() {
            self.step();
        }
        self.done()
    }

    pub(crate) fn done(self) -> Done {
        let again = |fact: &Fact| {
            serde_json::to_string(fact).and_then(|text| serde_json::from_str(&text)).expect("a fact can be written")
        };
        let written: Vec<Fact> = self.facts.iter().map(again).collect();
        assert_eq!(written, self.facts, "a fact does not survive being written down");
        let run = self.engine.run_of::<octoflow_engine::argo::Run>(RUN).expect("the run is kept until it is forgotten");
        Done::new(run, self.facts, self.starts, self.crowd, self.tasks)
    }

    /// From here on every task is reported to run before it ends.
    pub(crate) fn tell_all(&mut self) {
        self.all_told = true;
        let flying = self.flights.keys().copied().collect::<Vec<_>>();
        for attempt in flying {
            let told = self.engine.handle(Input::Report(Report::Started { attempt, at: self.now }), self.now);
            self.take(told);
        }
        self.input(Input::Tick);
    }

    pub(crate) fn over(&self) -> bool {
        self.engine.run_of::<octoflow_engine::argo::Run>(RUN).is_none_or(|run| run.state.finished())
    }

    /// Plays everything that happens within this span.
    pub(crate) fn advance(&mut self, span: Duration) {
        let until = self.now.saturating_add(span);
        while !self.over() && self.next_event().is_some_and(|at| at <= until) {
            self.step();
        }
        self.now = until;
        self.input(Input::Tick);
    }

    /// The next thing happens: a task ends, or a timer is due.
    pub(crate) fn step(&mut self) {
        let Some(at) = self.next_event() else {
            let run = self.engine.run_of::<octoflow_engine::argo::Run>(RUN).expect("an open run is there");
            let waiting: Vec<String> = explain(run, Some(self.engine.scheduler()))
                .iter()
                .map(|why| format!("{}: {}", why.node, why.reason))
                .collect();
            panic!("nothing will ever happen again and the run is not over: {waiting:#?}");
        };
        self.now = self.now.max(at);
        match self.landing().filter(|(lands, _)| *lands <= self.now) {
            Some((_, attempt)) => self.land(attempt),
            None => {
                self.input(Input::Tick);
            }
        }
    }

    fn next_event(&self) -> Option<Time> {
        self.landing().map(|(at, _)| at).into_iter().chain(self.engine.wake_at()).min()
    }

    fn landing(&self) -> Option<(Time, AttemptId)> {
        let landing = self.flights.iter().filter_map(|(attempt, flight)| Some((flight.lands?, flight.turn, *attempt)));
        landing.min().map(|(at, _, attempt)| (at, attempt))
    }

    fn land(&mut self, attempt: AttemptId) {
        let flight = self.flights.remove(&attempt).expect("only flights land");
        let report = flight.report(attempt, self.now);
        self.input(Input::Report(report.clone()));
        for late in [report, Report::Started { attempt, at: self.now }] {
            let outcome = self.engine.handle(Input::Report(late), self.now);
            assert!(outcome.decided.is_empty(), "a report that comes twice decided something: {:?}", outcome.decided);
        }
    }

    pub(crate) fn input(&mut self, input: Input) -> Option<Refusal> {
        self.fresh.clear();
        let outcome = self.engine.handle(input, self.now);
        let refusal = self.take(outcome);
        let due = self.engine.handle(Input::Tick, self.now);
        self.take(due);
        let again = self.engine.handle(Input::Tick, self.now);
        assert!(
            again.decided.is_empty() && again.orders.is_empty(),
            "deciding twice decided something twice: {again:?}"
        );
        self.check();
        while let Some(attempt) = self.tells.pop() {
            if self.flights.contains_key(&attempt) {
                let told = self.engine.handle(Input::Report(Report::Started { attempt, at: self.now }), self.now);
                self.take(told);
            }
        }
        refusal
    }

    fn take(&mut self, outcome: Outcome) -> Option<Refusal> {
        outcome.decided.iter().for_each(|decided| self.lives.take(decided));
        for octoflow_engine::Decided { run, facts, .. } in outcome.decided {
            assert_eq!(run, RUN);
            self.facts.extend(facts);
        }
        let series = outcome.series.into_iter();
        self.series.extend(series.map(|series| ((series.name.clone(), series.labels.clone()), series)));
        for order in outcome.orders {
            self.obey(order.clone());
            self.orders.push(order);
        }
        outcome.refusal
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Start { attempt, task } => {
                assert!(self.begun.insert(attempt), "{attempt} was started twice");
                self.fly(attempt, task);
            }
            Order::Stop { attempt } | Order::Kill { attempt } => {
                if let Some(flight) = self.flights.get_mut(&attempt) {
                    flight.stopped = true;
                    flight.lands = Some(self.now.saturating_add(Duration::from_millis(10)));
                }
            }
            Order::Forget { attempt } => {
                assert!(!self.flights.contains_key(&attempt), "{attempt} is forgotten while it runs")
            }
        }
    }

    fn fly(&mut self, attempt: AttemptId, task: Box<Task>) {
        let state = &self
            .engine
            .run_of::<octoflow_engine::argo::Run>(RUN)
            .expect("a started task belongs to an open run")
            .state;
        let node = state.node(attempt.task);
        let names = [state.display_of(attempt.task), &node.name, node.template.as_deref().unwrap_or_default()];
        let answer = self.script.answer(names);
        self.starts.push((self.now, node.name.to_string()));
        self.tasks.insert(node.name.to_string(), (*task).clone());
        self.arrivals += 1;
        self.fresh.push(attempt);
        if self.all_told || self.arrivals.is_multiple_of(2) || self.is_daemon(attempt) && answer.runs() {
            self.tells.push(attempt);
        }
        let lands = (answer.ending != Ending::Never).then(|| self.now.saturating_add(answer.after));
        self.flights.insert(attempt, Flight { lands, turn: self.arrivals, answer, task, stopped: false });
        self.crowd = self.crowd.max(self.flights.len());
    }

    fn is_daemon(&self, attempt: AttemptId) -> bool {
        let run = self.engine.run_of::<octoflow_engine::argo::Run>(RUN).expect("a started task belongs to an open run");
        let template = run.state.node(attempt.task).template.as_deref().and_then(|name| run.program.compiled(name));
        template.is_some_and(|compiled| compiled.template.daemon == Some(true))
    }

    /// The engine is gone; a new one reads the facts and goes on. What the runtime has, it still has. With `early` the
    /// engine died before its last orders to start went out: they are sent again.
    pub(crate) fn restart(&mut self, capacity: Capacity, early: bool) {
        let mut meters = Meters::default();
        self.series.values().for_each(|series| meters.restore(series.clone()).expect("a series of ours is read back"));
        let mut engine = Engine::new(Setup { meters, ..capacity.into() });
        for fact in &self.facts {
            // The caches are persisted together with the facts that fill them.
            if let Fact::Workflow(WorkflowFact::Memoized { cache, .. }) = fact {
                let data = self.engine.keyed(Keyed::ConfigMap, "default", cache).cloned().unwrap_or_default();
                engine.handle(inputs::object(Keyed::ConfigMap, cache, data), self.now);
            }
        }
        inputs::restore(&mut engine, RUN, self.facts.iter().cloned());
        if engine.run_of::<octoflow_engine::argo::Run>(RUN).is_none() {
            return;
        }
        self.engine = engine;
        let unsent = if early { std::mem::take(&mut self.fresh) } else { Vec::new() };
        let mut unsent: BTreeMap<AttemptId, Flight> =
            unsent.into_iter().filter_map(|attempt| Some((attempt, self.flights.remove(&attempt)?))).collect();
        let (believed, outcome) = inputs::go_on(&mut self.engine, &[RUN], self.now);
        let mut known = BTreeSet::new();
        for (attempt, task) in believed {
            known.insert(attempt);
            if let Some(flight) = unsent.remove(&attempt) {
                assert_eq!(flight.task, task, "the same task is started again after a restart");
                self.flights.insert(attempt, flight);
            }
        }
        let flying: BTreeSet<AttemptId> = self.flights.keys().copied().collect();
        assert_eq!(known, flying, "the engine and the runtime know the same tasks after a restart");
        self.take(outcome);
        self.check();
    }

    fn check(&self) {
        let Some(run) = self.engine.run_of::<octoflow_engine::argo::Run>(RUN).filter(|_| self.checked) else { return };
        self.check_owners();
        // Folding everything after every input would take the square of the run's length.
        if run.state.nodes.len() < 30 || self.facts.len().is_multiple_of(7) || run.state.finished() {
            let folded = fold(RUN, self.facts.iter().cloned()).expect("an own journal can be read");
            assert_eq!(
                folded.of::<octoflow_engine::argo::Run>().expect("a workflow").state,
                run.state,
                "the fold of the facts is not the live state"
            );
        }
    }

    /// Every unfinished node has someone who will act on it: the scheduler, the runtime, a timer, or a person.
    fn check_owners(&self) {
        let run = self.engine.run_of::<octoflow_engine::argo::Run>(RUN).expect("checked for an open run");
        let state = &run.state;
        let queued = run.open_leaves().filter(|(_, leaf)| *leaf == Leaf::Queued).count();
        assert!(queued <= self.engine.scheduler().waiting(), "a queued task is not in the scheduler's queue");
        if state.finished() {
            assert!(
                state.nodes.iter().all(|node| node.phase.fulfilled() && node.settled),
                "a finished run has open nodes"
            );
            assert!(self.flights.is_empty(), "a finished run has tasks at the runtime");
            return;
        }
        let mut has_open_child = vec![false; state.nodes.len()];
        for node in state.nodes.iter().filter(|node| !node.settled) {
            if let Some(parent) = node.parent {
                has_open_child[parent.at()] = true;
            }
        }
        for (at, node) in state.nodes.iter().enumerate().filter(|(_, node)| !node.settled) {
            let number = state.attempt_number(NodeIx(at as u32));
            let attempt = AttemptId { run: RUN, task: NodeIx(at as u32), attempt: number };
            let owned = match node.leaf() {
                Some(Leaf::Barred | Leaf::Queued) => true,
                Some(Leaf::Launched | Leaf::Running | Leaf::Preempting | Leaf::Stopping) => {
                    self.flights.contains_key(&attempt)
                }
                None if has_open_child[at] || state.held() || node.barred => true,
                None if state.daemons.contains_key(&NodeIx(at as u32)) => true,
                None if node.kind == octoflow_model::argo::NodeKind::Suspend => true,
                None => match node.wake {
                    Some(wake) if wake > self.now => self.engine.wake_at().is_some_and(|at| at <= wake),
                    // It is queued, so the scheduler owns it.
                    Some(_) | None => {
                        let boundary = node.boundary.and_then(|boundary| state.active_children.get(&boundary));
                        state.active_pods > 0 || boundary.is_some_and(|children| *children > 0)
                    }
                },
            };
            assert!(
                owned,
                "nobody will ever act on {} at {:?}, next wake-up {:?}: {node:?}",
                node.name,
                self.now,
                self.engine.wake_at()
            );
        }
    }
}

impl Flight {
    fn report(self, attempt: AttemptId, now: Time) -> Report {
        let ended = |exit| Report::Ended {
            attempt,
            at: now,
            end: Box::new(End {
                exit,
                started: Some(now),
                collected: self.collected(),
                log_truncated: false,
                log_bytes: 0,
                members: self.members(now),
            }),
        };
        let answered = |answer: &octoflow_model::request::Answer| Report::Answered {
            attempt,
            at: now,
            answer: Box::new(answer.clone()),
        };
        if self.stopped && self.task.call.is_some() {
            return answered(&octoflow_model::request::Answer::Stopped);
        }
        if self.stopped {
            return ended(Exit::Signal(15));
        }
        match &self.answer.ending {
            Ending::Exit(code) => ended(Exit::Code(*code)),
            Ending::Signal(signal) => ended(Exit::Signal(*signal)),
            Ending::NotStarted(why) => ended(Exit::NotStarted(why.clone())),
            Ending::Catalog(why) => ended(Exit::Environment(why.clone())),
            Ending::Lost(why) => Report::Lost { attempt, at: now, why: why.clone() },
            Ending::Answered(answer) => answered(answer),
            Ending::Never => unreachable!("what never ends never lands"),
        }
    }

    /// The ends of its containers, unless it ended before it had any.
    fn members(&self, now: Time) -> Vec<MemberEnd> {
        let members = self.task.pod.iter().flat_map(|pod| &pod.members);
        let lived = matches!(self.answer.ending, Ending::Exit(_) | Ending::Never) || self.stopped;
        members
            .filter(|_| lived)
            .map(|member| {
                let name = &member.container.name;
                let told = self.answer.containers.iter().find(|(told, _)| told == name).map(|(_, code)| *code);
                let exit = match (told, self.stopped) {
                    (_, true) => Some(Exit::Signal(15)),
                    (Some(code), _) => code.map(Exit::Code),
                    (None, _) if member.part == Part::Sidecar => Some(Exit::Signal(15)),
                    (None, _) => Some(Exit::Code(0)),
                };
                let at = exit.as_ref().map(|_| now);
                MemberEnd { name: name.clone(), started: at, ended: at, exit }
            })
            .collect()
    }

    /// Returns the requested outputs, unless the script says otherwise: the task's last argument.
    fn collected(&self) -> Collected {
        let said = self.task.main.args.last().cloned().unwrap_or_default();
        let wanted = &self.task.wanted;
        let parameter = |name: &String| match self.answer.parameters.iter().find(|(given, _)| given == name) {
            Some((_, Some(value))) => Found::Here(value.clone()),
            Some((_, None)) => Found::Missing,
            None => Found::Here(said.clone()),
        };
        let artifact = |wanted: &octoflow_model::task::ArtifactOutput| {
            if self.answer.no_artifacts.contains(&wanted.name) {
                return Found::Missing;
            }
            let digest = format!("sha256:{}", wanted.key);
            Found::Here(StoredArtifact {
                digest,
                size: 1,
                archive: wanted.archive,
                key: wanted.key.clone(),
                noted: wanted.noted.clone(),
                deleted: false,
            })
        };
        Collected {
            result: wanted.result.then(|| self.answer.result.clone().unwrap_or_else(|| said.clone())),
            parameters: wanted.parameters.iter().map(|(name, _)| (name.clone(), parameter(name))).collect(),
            artifacts: wanted.artifacts.iter().map(|wanted| (wanted.name.clone(), artifact(wanted))).collect(),
            log: wanted.log.as_deref().map(artifact),
            ..Collected::default()
        }
    }
}
