//! Plays workflows against stubs: orders to start are answered from the case, timers move the virtual clock, and
//! nothing else does. The engine cannot tell this from a machine that takes no time.

mod flight;
mod restart;

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use octoflow_control::keyed::KeyedObject;
use octoflow_engine::{Command, Engine, Input, Outcome, Setup, engine::fold, meters::Meters, schedule::Capacity};
use octoflow_model::{
    AttemptId, Fact, Report, RunId, Task, Time,
    argo::WorkflowFact,
    order::Exit,
    submission::{Submission, SubmitContext},
};

use super::{
    answer::{Answer, ArtifactTexts},
    guard,
    sheet::Spot,
    snapshot::Snapshot,
    stub::Stubs,
    subject::Entry,
};

/// More events than any test should need; a workflow that goes on for ever is noticed by it.
pub(crate) const MOST_EVENTS: usize = 200_000;

/// What is played.
pub(crate) struct Scene<'a> {
    pub start: Time,
    pub until: Option<Duration>,
    pub slots: Option<usize>,
    pub keyed: Vec<KeyedObject>,
    pub entries: Vec<Entry>,
    pub stubs: Stubs<'a>,
    pub deeds: Vec<Deed<'a>>,
    /// When to look at all runs.
    pub moments: Vec<Duration>,
}

/// Something people do at a moment.
pub(crate) struct Deed<'a> {
    pub at: Duration,
    /// All runs when there is none.
    pub run: Option<String>,
    pub what: What,
    pub spot: Spot<'a>,
}

pub(crate) enum What {
    Command(Command),
    /// The engine is gone; a new one reads the journal and goes on.
    Restart,
    Put(Box<KeyedObject>),
}

/// A task that was started.
#[derive(Debug)]
pub(crate) struct Launch {
    pub run: usize,
    pub node: String,
    pub at: Time,
    pub task: Box<Task>,
}

/// What came of it.
pub(crate) struct Played<'a> {
    pub start: Time,
    pub names: Vec<String>,
    pub last: Vec<Snapshot>,
    /// By moment, then by run; nothing for a run that was not there yet.
    pub moments: Vec<(Duration, Vec<Option<Snapshot>>)>,
    pub launches: Vec<Launch>,
    /// The most tasks at once: of each run, and of all.
    pub crowds: Vec<usize>,
    pub crowd: usize,
    /// When nodes begin and end, in the order of what was decided.
    pub lives: HashMap<(usize, usize), Life>,
    pub artifact_texts: ArtifactTexts,
    /// As Prometheus reads them.
    pub metrics: String,
    /// What was said to each deed, by its place in the list: refusals.
    pub refusals: Vec<Option<String>>,
    pub faults: Vec<(Option<Spot<'a>>, String)>,
}

/// The order of things matters where the clock stands still.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Life {
    pub begins: u64,
    pub ends: Option<u64>,
}

pub(crate) fn drive(scene: Scene<'_>) -> Played<'_> {
    let mut stage = Stage::new(scene);
    stage.play();
    stage.played()
}

/// What the clock waits for beside the engine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Act {
    Submit(usize),
    Deed(usize),
    Look,
}

enum Event {
    Runs(AttemptId),
    Lands(AttemptId),
    /// It tells of itself while it runs.
    Tells(Report),
}

struct Flight {
    answer: Answer,
    task: Box<Task>,
    runs_at: Option<(Time, u64)>,
    lands_at: Option<(Time, u64)>,
    started: Option<Time>,
    /// How it ends though it was meant to end otherwise.
    told: Option<Exit>,
}

struct Stage<'a> {
    engine: Engine,
    now: Time,
    scene: Scene<'a>,
    acts: BTreeMap<(Duration, u8, usize), Act>,
    queue: BTreeMap<(Time, u64), Event>,
    flights: HashMap<AttemptId, Flight>,
    facts: Vec<Vec<Fact>>,
    /// How many nodes each run has, to know the index of the next.
    made: Vec<usize>,
    active: Vec<usize>,
    turn: u64,
    events: usize,
    /// Deeds that have changed what workflows may refer to.
    put: Vec<usize>,
    played: Played<'a>,
}

impl<'a> Stage<'a> {
    fn new(scene: Scene<'a>) -> Self {
        let submits = scene.entries.iter().enumerate().map(|(index, entry)| ((entry.at, 0, index), Act::Submit(index)));
        let deeds = scene.deeds.iter().enumerate().map(|(index, deed)| ((deed.at, 1, index), Act::Deed(index)));
        let looks = scene.moments.iter().enumerate().map(|(index, at)| ((*at, 2, index), Act::Look));
        let count = scene.entries.len();
        let played = Played {
            start: scene.start,
            names: scene.entries.iter().map(|entry| entry.name.clone()).collect(),
            last: Vec::new(),
            moments: Vec::new(),
            launches: Vec::new(),
            crowds: vec![0; count],
            crowd: 0,
            lives: HashMap::new(),
            artifact_texts: ArtifactTexts::default(),
            metrics: String::new(),
            refusals: vec![None; scene.deeds.len()],
            faults: Vec::new(),
        };
        Self {
            engine: engine(&scene, Meters::default()),
            now: scene.start,
            acts: submits.chain(deeds).chain(looks).collect(),
            queue: BTreeMap::new(),
            flights: HashMap::new(),
            facts: vec![Vec::new(); count],
            made: vec![0; count],
            active: vec![0; count],
            turn: 0,
            events: 0,
            put: Vec::new(),
            played,
            scene,
        }
    }

    fn play(&mut self) {
        loop {
            self.events += 1;
            if self.events > MOST_EVENTS {
                let text =
                    format!("it is not over after {MOST_EVENTS} events; say `until:` to look at it before its end");
                self.played.faults.push((None, text));
                return;
            }
            let act = self.acts.first_key_value().map(|(key, act)| (*key, *act));
            let act_at = act.map(|((at, _, _), _)| self.scene.start.saturating_add(at));
            let event_at = if self.over() { None } else { self.next_event() };
            let Some(next) = act_at.into_iter().chain(event_at).min() else { return };
            if self.scene.until.is_some_and(|until| next > self.scene.start.saturating_add(until)) {
                return;
            }
            self.now = self.now.max(next);
            match act {
                // What is due at the same moment comes first.
                Some((key, act)) if event_at.is_none_or(|at| at > next) => {
                    self.acts.remove(&key);
                    self.act(act, key.0);
                }
                _ => self.event(),
            }
        }
    }

    fn over(&self) -> bool {
        (0..self.scene.entries.len())
            .all(|run| self.engine.run_of::<octoflow_engine::argo::Run>(id(run)).is_none_or(|run| run.state.finished()))
    }

    fn next_event(&self) -> Option<Time> {
        self.queue.first_key_value().map(|((at, _), _)| *at).into_iter().chain(self.engine.wake_at()).min()
    }

    fn event(&mut self) {
        let due = self.queue.first_key_value().is_some_and(|((at, _), _)| *at <= self.now);
        let Some((_, event)) = due.then(|| self.queue.pop_first()).flatten() else {
            self.input(Input::Tick);
            return;
        };
        match event {
            Event::Runs(attempt) => {
                if let Some(flight) = self.flights.get_mut(&attempt) {
                    (flight.started, flight.runs_at) = (Some(self.now), None);
                    self.input(Input::Report(Report::Started { attempt, at: self.now }));
                }
            }
            Event::Lands(attempt) => self.land(attempt),
            Event::Tells(report) => {
                if self.flights.contains_key(&report.attempt()) {
                    self.input(Input::Report(report));
                }
            }
        }
    }

    fn act(&mut self, act: Act, at: Duration) {
        match act {
            Act::Submit(index) => {
                let entry = &self.scene.entries[index];
                let submission = Submission {
                    name: entry.name.clone(),
                    namespace: entry.namespace.clone(),
                    uid: format!("00000000-0000-4000-8000-{:012}", index + 1),
                    at: self.now,
                    manifest: entry.manifest.clone(),
                    stored: entry.stored.clone(),
                    context: SubmitContext::default(),
                    previous: None,
                    parent: None,
                };
                let (run, submission) = (id(index), Box::new(submission));
                let refused = self.input(Input::Submit { run, submission, program: None });
                if let Some(why) = refused.or_else(|| self.input(Input::Begin { run })) {
                    self.played.faults.push((None, format!("the engine refuses the run: {why}")));
                }
            }
            Act::Deed(index) => self.deed(index),
            Act::Look => {
                let seen = (0..self.scene.entries.len()).map(|run| self.look(run)).collect();
                self.played.moments.push((at, seen));
            }
        }
    }

    fn deed(&mut self, index: usize) {
        let deed = &self.scene.deeds[index];
        match &deed.what {
            What::Restart => self.restart(),
            What::Put(object) => {
                let input = put(object);
                self.put.push(index);
                self.input(input);
            }
            What::Command(command) => {
                let command = command.clone();
                let meant = |name: &String| deed.run.as_ref().is_none_or(|wanted| wanted == name);
                let runs: Vec<usize> =
                    (0..self.played.names.len()).filter(|run| meant(&self.played.names[*run])).collect();
                for run in runs {
                    if let Some(refused) = self.input(Input::Command { run: id(run), command: command.clone() }) {
                        self.played.refusals[index] = Some(refused);
                    }
                }
            }
        }
    }

    fn look(&self, run: usize) -> Option<Snapshot> {
        if let Some(run) = self.engine.run_of::<octoflow_engine::argo::Run>(id(run)) {
            return Some(Snapshot::take(run, &self.engine));
        }
        // Over before a restart: only its journal is left.
        let run = fold(id(run), self.facts[run].iter().cloned()).ok()?;
        Some(Snapshot::take(run.of::<octoflow_engine::argo::Run>()?, &self.engine))
    }

    /// Why it was refused, if it was.
    fn input(&mut self, input: Input) -> Option<String> {
        let outcome = self.engine.handle(input, self.now);
        let refusal = self.take(outcome);
        if guard::ON {
            let due = self.engine.handle(Input::Tick, self.now);
            self.take(due);
            guard::is_settled(&mut self.engine, self.now);
            (0..self.facts.len()).for_each(|run| guard::is_told(&self.engine, id(run), &self.facts[run]));
        }
        refusal
    }

    fn take(&mut self, outcome: Outcome) -> Option<String> {
        for octoflow_engine::Decided { run, facts, .. } in outcome.decided {
            let run = index(run);
            facts.iter().for_each(|fact| self.note(run, fact));
            self.facts[run].extend(facts);
        }
        outcome.orders.into_iter().for_each(|order| self.obey(order));
        outcome.refusal.map(|refusal| refusal.to_string())
    }

    /// Remembers in which order nodes began and ended.
    fn note(&mut self, run: usize, fact: &Fact) {
        self.turn += 1;
        let turn = self.turn;
        match fact {
            Fact::Workflow(WorkflowFact::Added(added)) => {
                let life = Life { begins: turn, ends: added.phase.fulfilled().then_some(turn) };
                self.played.lives.insert((run, self.made[run]), life);
                self.made[run] += 1;
            }
            Fact::Workflow(WorkflowFact::Launched { node, .. }) => {
                if let Some(life) = self.played.lives.get_mut(&(run, node.at())) {
                    life.begins = turn;
                }
            }
            Fact::Workflow(WorkflowFact::Finished(finished)) => {
                if let Some(life) = self.played.lives.get_mut(&(run, finished.node.at())) {
                    life.ends = Some(turn);
                }
            }
            _ => {}
        }
    }

    fn played(mut self) -> Played<'a> {
        self.played.metrics = self.engine.meters().render(&self.engine.live_meters(self.now));
        for run in 0..self.scene.entries.len() {
            match self.look(run) {
                Some(seen) => self.played.last.push(seen),
                None => {
                    let text =
                        format!("run `{}` was never submitted: the case was over before", self.played.names[run]);
                    self.played.faults.push((None, text));
                    self.played.last.push(Snapshot::nothing());
                }
            }
        }
        self.played
    }
}

/// An object as the engine is told of it.
fn put(object: &KeyedObject) -> Input {
    let KeyedObject { kind, namespace, name, data } = object.clone();
    Input::Object { kind, namespace, name, data: Some(data) }
}

fn engine(scene: &Scene<'_>, meters: Meters) -> Engine {
    let slots = scene.slots.unwrap_or(usize::MAX);
    let capacity = Capacity { slots, cpu_milli: u64::MAX, memory_bytes: u64::MAX };
    let mut engine = Engine::new(Setup { meters, ..capacity.into() });
    for object in &scene.keyed {
        engine.handle(put(object), scene.start);
    }
    engine
}

fn id(run: usize) -> RunId {
    RunId(run as u64 + 1)
}

fn index(run: RunId) -> usize {
    usize::try_from(run.0 - 1).expect("runs are numbered from one, and few")
}
