//! Plays workflows against stubs: orders to start are answered from the case, timers move the virtual clock, and
//! nothing else does. The engine cannot tell this from a machine that takes no time.

mod flight;
mod restart;

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use octoflow_control::{
    Acceptance, Adoption, Capacity, Error, Limits, Ticket, VirtualDisk, VirtualLoop, keyed::KeyedObject,
};
use octoflow_engine::{Command, Refusal, engine::fold};
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

pub(crate) fn drive(scene: Scene<'_>) -> Result<Played<'_>, Error> {
    let mut stage = Stage::new(scene)?;
    stage.play()?;
    Ok(stage.played())
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
    event_loop: VirtualLoop,
    disk: VirtualDisk,
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
    played: Played<'a>,
}

impl<'a> Stage<'a> {
    fn new(scene: Scene<'a>) -> Result<Self, Error> {
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
        let disk = VirtualDisk::new()?;
        let mut event_loop = VirtualLoop::open(disk.clone(), limits(&scene), scene.start)?.0;
        for object in &scene.keyed {
            event_loop.put_object(object)?;
        }
        Ok(Self {
            event_loop,
            disk,
            now: scene.start,
            acts: submits.chain(deeds).chain(looks).collect(),
            queue: BTreeMap::new(),
            flights: HashMap::new(),
            facts: vec![Vec::new(); count],
            made: vec![0; count],
            active: vec![0; count],
            turn: 0,
            events: 0,
            played,
            scene,
        })
    }

    fn play(&mut self) -> Result<(), Error> {
        self.settle()?;
        loop {
            self.events += 1;
            if self.events > MOST_EVENTS {
                let text =
                    format!("it is not over after {MOST_EVENTS} events; say `until:` to look at it before its end");
                self.played.faults.push((None, text));
                return Ok(());
            }
            let act = self.acts.first_key_value().map(|(key, act)| (*key, *act));
            let act_at = act.map(|((at, _, _), _)| self.scene.start.saturating_add(at));
            let event_at = if self.over() { None } else { self.next_event() };
            let Some(next) = act_at.into_iter().chain(event_at).min() else { return Ok(()) };
            if self.scene.until.is_some_and(|until| next > self.scene.start.saturating_add(until)) {
                return Ok(());
            }
            self.now = self.now.max(next);
            match act {
                // What is due at the same moment comes first.
                Some((key, act)) if event_at.is_none_or(|at| at > next) => {
                    self.acts.remove(&key);
                    self.act(act, key.0)?;
                }
                _ => self.event()?,
            }
        }
    }

    fn over(&self) -> bool {
        let engine = self.event_loop.engine();
        (0..self.scene.entries.len())
            .all(|run| engine.run_of::<octoflow_engine::argo::Run>(id(run)).is_none_or(|run| run.state.finished()))
    }

    fn next_event(&self) -> Option<Time> {
        self.queue.first_key_value().map(|((at, _), _)| *at).into_iter().chain(self.event_loop.engine().wake_at()).min()
    }

    fn event(&mut self) -> Result<(), Error> {
        let due = self.queue.first_key_value().is_some_and(|((at, _), _)| *at <= self.now);
        let Some((_, event)) = due.then(|| self.queue.pop_first()).flatten() else {
            // A timer of the engine.
            return self.settle();
        };
        match event {
            Event::Runs(attempt) => {
                if let Some(flight) = self.flights.get_mut(&attempt) {
                    (flight.started, flight.runs_at) = (Some(self.now), None);
                    self.event_loop.report(Report::Started { attempt, at: self.now });
                }
            }
            Event::Lands(attempt) => self.land(attempt),
            Event::Tells(report) => {
                if self.flights.contains_key(&report.attempt()) {
                    self.event_loop.report(report);
                }
            }
        }
        self.settle()
    }

    fn act(&mut self, act: Act, at: Duration) -> Result<(), Error> {
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
                let ticket = self.event_loop.submit(id(index), Box::new(submission), None, Acceptance::default());
                if let Some(why) = self.answer_to(ticket)? {
                    self.played.faults.push((None, format!("the engine refuses the run: {why}")));
                }
            }
            Act::Deed(index) => self.deed(index)?,
            Act::Look => {
                let seen = (0..self.scene.entries.len()).map(|run| self.look(run)).collect();
                self.played.moments.push((at, seen));
            }
        }
        Ok(())
    }

    fn deed(&mut self, index: usize) -> Result<(), Error> {
        let deed = &self.scene.deeds[index];
        match &deed.what {
            What::Restart => self.restart()?,
            What::Put(object) => {
                self.event_loop.put_object(object)?;
                self.settle()?;
            }
            What::Command(command) => {
                let command = command.clone();
                let meant = |name: &String| deed.run.as_ref().is_none_or(|wanted| wanted == name);
                let runs: Vec<usize> =
                    (0..self.played.names.len()).filter(|run| meant(&self.played.names[*run])).collect();
                for run in runs {
                    // Whoever serves people looks a run that is over up in the store.
                    let over = self.finished(run, &command);
                    let ticket = self.event_loop.command(id(run), command.clone());
                    let answer = self.answer_to(ticket)?;
                    if let Some(refused) = over.or(answer) {
                        self.played.refusals[index] = Some(refused);
                    }
                }
            }
        }
        Ok(())
    }

    /// Why a run that is over refuses a command, if it is.
    fn finished(&self, run: usize, command: &Command) -> Option<String> {
        if self.facts[run].is_empty() || self.event_loop.engine().run(id(run)).is_some() {
            return None;
        }
        let run = fold(id(run), self.facts[run].iter().cloned()).ok()?;
        let (kind, name, verb) = (run.kind().noun, run.name().to_owned(), command.verb());
        Some(Refusal::Finished { kind, name, verb }.to_string())
    }

    fn look(&self, run: usize) -> Option<Snapshot> {
        let engine = self.event_loop.engine();
        if let Some(run) = engine.run_of::<octoflow_engine::argo::Run>(id(run)) {
            return Some(Snapshot::take(run, engine));
        }
        // Over: only its journal is left.
        let run = fold(id(run), self.facts[run].iter().cloned()).ok()?;
        Some(Snapshot::take(run.of::<octoflow_engine::argo::Run>()?, engine))
    }

    /// Why it was refused, if it was.
    fn answer_to(&mut self, mut ticket: Ticket) -> Result<Option<String>, Error> {
        self.settle()?;
        Ok(ticket.poll().and_then(Result::err).map(|why| why.to_string()))
    }

    /// Lets the event loop take steps until nothing is left to do at this moment. Every commit is durable at once.
    fn settle(&mut self) -> Result<(), Error> {
        // Nothing is held back for a later commit: what people look at is what was decided.
        self.event_loop.flush();
        while self.event_loop.next_step().is_some_and(|at| at <= self.now) {
            self.event_loop.step(self.now)?;
            while let Some(written) = self.event_loop.write() {
                for (run, facts) in written.facts() {
                    let run = index(*run);
                    facts.iter().for_each(|fact| self.note(run, fact));
                    self.facts[run].extend(facts.iter().cloned());
                }
                self.event_loop.settle(written);
            }
            self.event_loop.take_orders().into_iter().for_each(|order| self.obey(order));
            for Adoption { believed, .. } in self.event_loop.take_adoptions() {
                for (attempt, task) in believed {
                    if !self.flights.contains_key(&attempt) {
                        self.fly(attempt, task);
                    }
                }
            }
        }
        if guard::ON {
            let engine = self.event_loop.engine();
            (0..self.facts.len()).for_each(|run| guard::is_told(engine, id(run), &self.facts[run]));
        }
        Ok(())
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
        let engine = self.event_loop.engine();
        self.played.metrics = engine.meters().render(&engine.live_meters(self.now));
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

fn limits(scene: &Scene<'_>) -> Limits {
    let slots = scene.slots.unwrap_or(usize::MAX);
    Limits::from(Capacity { slots, cpu_milli: u64::MAX, memory_bytes: u64::MAX })
}

fn id(run: usize) -> RunId {
    RunId(run as u64 + 1)
}

fn index(run: RunId) -> usize {
    usize::try_from(run.0 - 1).expect("runs are numbered from one, and few")
}
