//! Several runs in one engine, with a journal each: they can be submitted, told, ended and read back, and after every
//! input the table of locks is compared with what the journals tell.

use std::{collections::BTreeMap, time::Duration};

use octoflow_engine::{
    Command, Engine, Input, Outcome, Refusal,
    argo::{
        explain::{Reason, explain_with},
        status,
    },
    engine::Keyed,
    locks::Holder,
};
use octoflow_model::{
    AttemptId, Claim, Fact, Limit, Order, Report, RunId, Time,
    meta::KeyedData,
    order::{Collected, End, Exit},
    submission::Submission,
};
use serde_json::Value;

use crate::{
    inputs,
    lives::Lives,
    play::{DAWN, ROOMY},
    text::manifest,
};

#[derive(Default)]
pub(crate) struct Town {
    pub(crate) lives: Lives,
    engine: Option<Engine>,
    pub(crate) facts: BTreeMap<RunId, Vec<Fact>>,
    pub(crate) flights: Vec<AttemptId>,
    pub(crate) now: Time,
    maps: BTreeMap<(String, String), KeyedData>,
    /// Namespaces of runs that are not in `default`.
    pub(crate) namespaces: BTreeMap<u64, String>,
    /// Runs that other runs have made.
    pub(crate) parents: BTreeMap<u64, u64>,
}

impl Town {
    pub(crate) fn new() -> Self {
        Self { engine: Some(Engine::new(ROOMY)), now: DAWN, ..Self::default() }
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.engine.as_ref().expect("there is always an engine")
    }

    fn engine_mut(&mut self) -> &mut Engine {
        self.engine.as_mut().expect("there is always an engine")
    }

    /// A key of a ConfigMap in the namespace `default`.
    pub(crate) fn map(&mut self, map: &str, key: &str, value: &str) {
        let data = self.maps.entry(("default".to_owned(), map.to_owned())).or_default();
        data.entries.insert(key.to_owned(), value.as_bytes().to_vec());
        let data = data.clone();
        self.input(inputs::object(Keyed::ConfigMap, map, data));
    }

    /// Runs are named `w` and their number.
    pub(crate) fn submit(&mut self, run: u64, spec: &str) {
        self.now = self.now.saturating_add(Duration::from_secs(1));
        let mut manifest = manifest(spec);
        let name = format!("w{run}");
        manifest["metadata"]["name"] = name.clone().into();
        let submission = Submission {
            name,
            namespace: self.namespaces.get(&run).cloned().unwrap_or_else(|| "default".into()),
            uid: run.to_string(),
            at: self.now,
            manifest,
            stored: Default::default(),
            previous: None,
            parent: self.parents.get(&run).copied().map(RunId),
            ordered_by: None,
            context: Default::default(),
        };
        let (run, submission) = (RunId(run), Box::new(submission));
        let now = self.now;
        let submitted = self.engine_mut().handle(Input::Submit { run, submission, program: None }, now);
        assert_eq!(self.take(submitted), None);
        // Only now: a run that was submitted and has not begun begins when it is read back.
        assert_eq!(self.input(Input::Begin { run }), None);
    }

    pub(crate) fn command(&mut self, run: u64, command: Command) {
        assert_eq!(self.input(Input::Command { run: RunId(run), command }), None);
    }

    /// The task that was started first among those still running ends.
    pub(crate) fn end_first(&mut self, code: i32) -> AttemptId {
        self.end(0, code)
    }

    pub(crate) fn end(&mut self, flight: usize, code: i32) -> AttemptId {
        let attempt = self.flights.remove(flight);
        self.now = self.now.saturating_add(Duration::from_secs(1));
        let exit = Exit::Code(code);
        let end = End {
            exit,
            started: None,
            collected: Collected::default(),
            log_truncated: false,
            log_bytes: 0,
            members: Vec::new(),
        };
        self.input(Input::Report(Report::Ended { attempt, at: self.now, end: Box::new(end) }));
        attempt
    }

    pub(crate) fn tick(&mut self, seconds: u64) {
        self.now = self.now.saturating_add(Duration::from_secs(seconds));
        self.input(Input::Tick);
    }

    fn input(&mut self, input: Input) -> Option<Refusal> {
        let now = self.now;
        let outcome = self.engine_mut().handle(input, now);
        let refusal = self.take(outcome);
        let again = self.engine_mut().handle(Input::Tick, now);
        assert!(
            again.decided.is_empty() && again.orders.is_empty(),
            "deciding twice decided something twice: {again:?}"
        );
        self.check();
        refusal
    }

    fn take(&mut self, outcome: Outcome) -> Option<Refusal> {
        outcome.decided.iter().for_each(|decided| self.lives.take(decided));
        for octoflow_engine::Decided { run, facts, .. } in outcome.decided {
            self.facts.entry(run).or_default().extend(facts);
        }
        for order in outcome.orders {
            match order {
                Order::Start { attempt, .. } => self.flights.push(attempt),
                Order::Stop { attempt } | Order::Kill { attempt } => assert!(self.flights.contains(&attempt)),
                Order::Forget { .. } => {}
            }
        }
        outcome.refusal
    }

    /// The locks as one list that can be compared: the holders and the waiters of each.
    pub(crate) fn table(&self) -> Vec<(Claim, Vec<Holder>, Vec<Holder>)> {
        self.engine().locks().all().map(|(claim, held, queue)| (claim.clone(), held, queue)).collect()
    }

    /// No lock has more holders than it may, and a new engine that reads the journals has the same table and nothing
    /// to decide.
    fn check(&mut self) {
        for (claim, holders, _) in self.table() {
            let limit = self.limit(&claim);
            assert!(holders.len() <= limit, "{} allows {limit} and is held by {holders:?}", claim.key);
        }
        let before = self.table();
        let old = self.engine.take();
        self.restart();
        assert_eq!(self.table(), before, "a restart changes who holds what");
        self.engine = old;
    }

    fn limit(&self, claim: &Claim) -> usize {
        match &claim.limit {
            Limit::One => 1,
            Limit::Key { map, key, otherwise, .. } => {
                let data = self.maps.get(&("default".to_owned(), map.clone())).and_then(|data| data.entries.get(key));
                let given = data.map(|text| String::from_utf8_lossy(text).parse().expect("a number"));
                given.or(otherwise.map(|limit| limit as usize)).expect("a limit")
            }
        }
    }

    /// The engine is gone; a new one reads the journals.
    pub(crate) fn restart(&mut self) {
        let mut engine = Engine::new(ROOMY);
        for ((namespace, map), data) in &self.maps {
            assert_eq!(namespace, "default");
            engine.handle(inputs::object(Keyed::ConfigMap, map, data.clone()), self.now);
        }
        let written = |fact: &Fact| -> Fact {
            serde_json::to_string(fact).and_then(|text| serde_json::from_str(&text)).expect("a fact can be written")
        };
        for (run, facts) in &self.facts {
            inputs::restore(&mut engine, *run, facts.iter().map(written));
        }
        let runs: Vec<RunId> = self.facts.keys().copied().filter(|run| engine.run(*run).is_some()).collect();
        for run in runs {
            let (_, outcome) = inputs::go_on(&mut engine, &[run], self.now);
            assert!(outcome.decided.is_empty(), "going on decides {:?}", outcome.decided);
        }
        self.engine = Some(engine);
    }

    pub(crate) fn status(&self, run: u64) -> Value {
        let run = self.engine().run_of::<octoflow_engine::argo::Run>(RunId(run)).expect("the run is there");
        status::object(run)["status"].take()
    }

    pub(crate) fn phase(&self, run: u64) -> String {
        self.status(run)["phase"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn message(&self, run: u64) -> String {
        self.status(run)["message"].as_str().unwrap_or_default().to_owned()
    }

    /// By full name.
    pub(crate) fn node(&self, run: u64, name: &str) -> Value {
        let status = self.status(run);
        let nodes = status["nodes"].as_object().expect("nodes are a map");
        nodes.values().find(|node| node["name"] == name).unwrap_or_else(|| panic!("no {name} in {nodes:#?}")).clone()
    }

    pub(crate) fn reasons(&self, run: u64) -> Vec<(String, Reason)> {
        let engine = self.engine();
        let run = engine.run_of::<octoflow_engine::argo::Run>(RunId(run)).expect("the run is there");
        let all = explain_with(run, Some(engine.scheduler()), Some(engine.locks()));
        all.into_iter().map(|one| (one.node, one.reason)).collect()
    }
}
