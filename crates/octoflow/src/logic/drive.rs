//! Plays workflows against stubs: orders to start are answered from the case, timers move the virtual clock, and
//! nothing else does. The engine cannot tell this from a machine that takes no time.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use octoflow_control::keyed::KeyedObject;
use octoflow_engine::{Command, Engine, Input, Outcome, argo::refer, engine::fold, schedule::Capacity};
use octoflow_model::{
    AttemptId, Fact, Order, Report, RunId, Task, Time,
    fact::{ArtifactValue, Known, Role, Submission},
    order::Exit,
};

use super::{
    answer::{Answer, Ending, Given, Shelf},
    guard,
    sheet::Spot,
    snapshot::Snapshot,
    stub::{Fault, Stubs},
    subject::Entry,
};

/// More events than any test should need; a workflow that goes on for ever is noticed by it.
pub(crate) const MOST_EVENTS: usize = 200_000;
/// The final signal.
const KILLED: i32 = 9;

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
    pub shelf: Shelf,
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

#[derive(Clone, Copy)]
enum Event {
    Runs(AttemptId),
    Lands(AttemptId),
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
            shelf: Shelf::default(),
            refusals: vec![None; scene.deeds.len()],
            faults: Vec::new(),
        };
        Self {
            engine: engine(&scene),
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
        (0..self.scene.entries.len()).all(|run| self.engine.run(id(run)).is_none_or(|run| run.state.finished()))
    }

    fn next_event(&self) -> Option<Time> {
        self.queue.first_key_value().map(|((at, _), _)| *at).into_iter().chain(self.engine.wake_at()).min()
    }

    fn event(&mut self) {
        let due =
            self.queue.first_key_value().filter(|((at, _), _)| *at <= self.now).map(|(key, event)| (*key, *event));
        let Some((key, event)) = due else {
            self.input(Input::Tick);
            return;
        };
        self.queue.remove(&key);
        match event {
            Event::Runs(attempt) => {
                if let Some(flight) = self.flights.get_mut(&attempt) {
                    (flight.started, flight.runs_at) = (Some(self.now), None);
                    self.input(Input::Report(Report::Started { attempt, at: self.now }));
                }
            }
            Event::Lands(attempt) => self.land(attempt),
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
                    known: Known::default(),
                };
                let refused = self.input(Input::Submit { run: id(index), submission: Box::new(submission) });
                if let Some(why) = refused {
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
                self.engine.put_keyed(object.kind, &object.namespace, &object.name, object.data.clone());
                self.put.push(index);
                self.input(Input::Tick);
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
        if let Some(run) = self.engine.run(id(run)) {
            return Some(Snapshot::take(run, &self.engine));
        }
        // Over before a restart: only its journal is left.
        let run = fold(id(run), self.facts[run].iter().cloned()).ok()?;
        Some(Snapshot::take(&run, &self.engine))
    }

    fn land(&mut self, attempt: AttemptId) {
        let Some(flight) = self.flights.remove(&attempt) else { return };
        self.active[index(attempt.run)] -= 1;
        let Flight { answer, task, started, told, .. } = flight;
        let report = answer.report(attempt, self.now, started, told, &task, &mut self.played.shelf);
        self.input(Input::Report(report));
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
        for (run, facts) in outcome.facts {
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
            Fact::Added(added) => {
                let life = Life { begins: turn, ends: added.phase.fulfilled().then_some(turn) };
                self.played.lives.insert((run, self.made[run]), life);
                self.made[run] += 1;
            }
            Fact::Launched { node, .. } => {
                if let Some(life) = self.played.lives.get_mut(&(run, node.at())) {
                    life.begins = turn;
                }
            }
            Fact::Finished(finished) => {
                if let Some(life) = self.played.lives.get_mut(&(run, finished.node.at())) {
                    life.ends = Some(turn);
                }
            }
            _ => {}
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Start { attempt, task } => self.fly(attempt, task),
            Order::Stop { attempt } => {
                let Some(flight) = self.flights.get(&attempt) else { return };
                let (after, exit) = flight.answer.stopped.clone();
                self.end_early(attempt, after, exit);
            }
            Order::Kill { attempt } => self.end_early(attempt, Duration::ZERO, Exit::Signal(KILLED)),
            Order::Forget { .. } => {}
        }
    }

    /// Told to end, it ends then, unless it would be over before.
    fn end_early(&mut self, attempt: AttemptId, after: Duration, exit: Exit) {
        self.turn += 1;
        let key = (self.now.saturating_add(after), self.turn);
        let Some(flight) = self.flights.get_mut(&attempt) else { return };
        if flight.lands_at.is_some_and(|(at, _)| at <= key.0) {
            return;
        }
        for old in [flight.lands_at.replace(key), flight.runs_at.take()].into_iter().flatten() {
            self.queue.remove(&old);
        }
        flight.told = Some(exit);
        self.queue.insert(key, Event::Lands(attempt));
    }

    fn fly(&mut self, attempt: AttemptId, task: Box<Task>) {
        let run = index(attempt.run);
        let node = self.node_name(attempt);
        let answer = match self.answer(attempt, &task) {
            Ok(answer) => answer,
            Err(Fault::Unstubbed) => {
                let text = format!("no stub is for the task of node `{node}`, and `unstubbed: error` insists on one");
                self.played.faults.push((None, text));
                Answer::plain()
            }
            Err(Fault::Reference(spot, why)) => {
                self.played.faults.push((Some(spot), why));
                Answer::plain()
            }
        };
        self.played.launches.push(Launch { run, node, at: self.now, task: task.clone() });
        let begins = self.now.saturating_add(answer.pending);
        let lands = begins.saturating_add(answer.after);
        let mut plan = |at: Time, event: Event| {
            self.turn += 1;
            self.queue.insert((at, self.turn), event);
            (at, self.turn)
        };
        let runs_at = answer.runs().then(|| plan(begins, Event::Runs(attempt)));
        let lands_at = (!matches!(answer.ending, Ending::Never)).then(|| plan(lands, Event::Lands(attempt)));
        self.flights.insert(attempt, Flight { answer, task, runs_at, lands_at, started: None, told: None });
        self.active[run] += 1;
        self.played.crowds[run] = self.played.crowds[run].max(self.active[run]);
        self.played.crowd = self.played.crowd.max(self.flights.len());
    }

    fn node_name(&self, attempt: AttemptId) -> String {
        let run = self.engine.run(attempt.run);
        run.map_or_else(String::new, |run| run.state.node(attempt.task).name.to_string())
    }

    fn answer(&mut self, attempt: AttemptId, task: &Task) -> Result<Answer, Fault<'a>> {
        let run = self.engine.run(attempt.run).expect("a task that starts belongs to an open run");
        let state = &run.state;
        let node = state.node(attempt.task);
        // The attempt of a retried call may be a node far above the task that runs.
        let mut above = Some(attempt.task);
        let mut tries = 0;
        let mut inputs = node.inputs.as_deref();
        while let Some(at) = above {
            let node = state.node(at);
            if let Role::Attempt(number) = node.role {
                tries = number as usize;
                inputs = inputs.or_else(|| state.node(node.parent?).inputs.as_deref());
                break;
            }
            above = node.parent;
        }
        let artifacts = inputs.iter().flat_map(|inputs| &inputs.artifacts).filter_map(|artifact| {
            // What comes from elsewhere has no text here.
            let text = if let ArtifactValue::Raw(data) = &artifact.source {
                data
            } else if let ArtifactValue::Stored { artifact, .. } = &artifact.source {
                self.played.shelf.text(&artifact.digest)?
            } else {
                return None;
            };
            Some((artifact.name.clone(), text.to_owned()))
        });
        let given = Given {
            task,
            run: &state.name,
            node: &node.name,
            display: state.display_of(attempt.task),
            template: node.template.as_deref().map_or("", refer::bare),
            attempt: tries,
            call: 0,
            parameters: inputs.iter().flat_map(|inputs| inputs.parameters.iter().cloned()).collect(),
            artifacts: artifacts.collect(),
        };
        self.scene.stubs.answer(given)
    }

    fn restart(&mut self) {
        let before = std::mem::replace(&mut self.engine, engine(&self.scene));
        for index in &self.put {
            if let What::Put(object) = &self.scene.deeds[*index].what {
                self.engine.put_keyed(object.kind, &object.namespace, &object.name, object.data.clone());
            }
        }
        let begun: Vec<usize> = (0..self.facts.len()).filter(|run| !self.facts[*run].is_empty()).collect();
        for run in &begun {
            if let Err(why) = self.engine.restore(id(*run), self.facts[*run].iter().cloned()) {
                self.played.faults.push((None, format!("the journal cannot be read after a restart: {why}")));
            }
            if let (Some(old), Some(new)) = (before.run(id(*run)), self.engine.run(id(*run))) {
                assert!(old.state == new.state, "the journal of run {run} does not tell what became of it");
            }
        }
        for run in begun {
            let (believed, outcome) = self.engine.take_up(id(run), self.now);
            for (attempt, task) in believed {
                if !self.flights.contains_key(&attempt) {
                    self.fly(attempt, task);
                }
            }
            self.take(outcome);
        }
    }

    fn played(mut self) -> Played<'a> {
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

fn engine(scene: &Scene<'_>) -> Engine {
    let slots = scene.slots.unwrap_or(usize::MAX);
    let mut engine = Engine::new(Capacity { slots, cpu_milli: u64::MAX, memory_bytes: u64::MAX });
    for object in &scene.keyed {
        engine.put_keyed(object.kind, &object.namespace, &object.name, object.data.clone());
    }
    engine
}

fn id(run: usize) -> RunId {
    RunId(run as u64 + 1)
}

fn index(run: RunId) -> usize {
    usize::try_from(run.0 - 1).expect("runs are numbered from one, and few")
}
