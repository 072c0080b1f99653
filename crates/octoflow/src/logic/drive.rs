//! Plays runs against stubs: orders to start are answered from the case, timers move the virtual clock, and
//! nothing else does. The engine cannot tell this from a machine that takes no time.

mod active_task;
mod make;
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
use serde_json::Value;

use super::{
    answer::{Answer, ArtifactTexts},
    guard,
    snapshot::Snapshot,
    stub::Stubs,
    subject::Entry,
    test_document::Located,
};

/// More events than any test should need; a workflow that goes on for ever is noticed by it.
pub(crate) const MAX_EVENTS: usize = 200_000;

/// A case as it is run.
pub(crate) struct Scenario<'a> {
    pub start: Time,
    pub until: Option<Duration>,
    pub slots: Option<usize>,
    pub keyed: Vec<KeyedObject>,
    /// Templates that runs make others of, by name, as they are now.
    pub templates: BTreeMap<String, Value>,
    pub entries: Vec<Entry>,
    pub stubs: Stubs<'a>,
    pub actions: Vec<ScriptedAction<'a>>,
    /// When to look at all runs.
    pub moments: Vec<Duration>,
}

/// An action of a user at a set time.
pub(crate) struct ScriptedAction<'a> {
    pub at: Duration,
    /// All runs when there is none.
    pub run: Option<String>,
    pub what: What,
    pub located: Located<'a>,
}

pub(crate) enum What {
    Command(Command),
    /// The engine is gone; a new one reads the journal and goes on.
    Restart,
    Put(Box<KeyedObject>),
    PutTemplate(Box<Value>),
}

/// A task that was started.
#[derive(Debug)]
pub(crate) struct Launch {
    pub run: usize,
    pub node: String,
    pub at: Time,
    pub task: Box<Task>,
}

/// The result of a scenario.
pub(crate) struct ScenarioResult<'a> {
    pub start: Time,
    /// How many runs the case has submitted. Those that runs have made follow them.
    pub submitted: usize,
    pub names: Vec<String>,
    pub last: Vec<Snapshot>,
    /// By moment, then by run; nothing for a run that was not there yet.
    pub moments: Vec<(Duration, Vec<Option<Snapshot>>)>,
    pub launches: Vec<Launch>,
    /// The most tasks at once: of each run, and of all.
    pub peaks: Vec<usize>,
    pub peak: usize,
    /// When nodes begin and end, in the order of what was decided.
    pub lives: HashMap<(usize, usize), Life>,
    pub artifact_texts: ArtifactTexts,
    /// As Prometheus reads them.
    pub metrics: String,
    /// What was said to each action, by its place in the list: refusals.
    pub refusals: Vec<Option<String>>,
    pub faults: Vec<(Option<Located<'a>>, String)>,
}

/// The order of things matters where the clock stands still.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Life {
    pub begins: u64,
    pub ends: Option<u64>,
}

pub(crate) fn drive(scenario: Scenario<'_>) -> Result<ScenarioResult<'_>, Error> {
    let mut simulation = Simulation::new(scenario)?;
    simulation.run()?;
    Ok(simulation.into_outcome())
}

/// What the clock waits for beside the engine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Scheduled {
    Submit(usize),
    Action(usize),
    Look,
}

enum Event {
    Runs(AttemptId),
    Ends(AttemptId),
    /// It tells of itself while it runs.
    Tells(Report),
}

struct ActiveTask {
    answer: Answer,
    task: Box<Task>,
    runs_at: Option<(Time, u64)>,
    ends_at: Option<(Time, u64)>,
    started: Option<Time>,
    /// How it ends though it was meant to end otherwise.
    told: Option<Exit>,
}

struct Simulation<'a> {
    event_loop: VirtualLoop,
    disk: VirtualDisk,
    now: Time,
    scenario: Scenario<'a>,
    scheduled: BTreeMap<(Duration, u8, usize), Scheduled>,
    queue: BTreeMap<(Time, u64), Event>,
    active_tasks: HashMap<AttemptId, ActiveTask>,
    facts: Vec<Vec<Fact>>,
    /// How many nodes each run has, to know the index of the next.
    made: Vec<usize>,
    active: Vec<usize>,
    /// Runs that are being made, or wait for their template.
    orders: Vec<make::MakeOrder>,
    turn: u64,
    events: usize,
    outcome: ScenarioResult<'a>,
}

impl<'a> Simulation<'a> {
    fn new(scenario: Scenario<'a>) -> Result<Self, Error> {
        let submits =
            scenario.entries.iter().enumerate().map(|(index, entry)| ((entry.at, 0, index), Scheduled::Submit(index)));
        let actions = scenario
            .actions
            .iter()
            .enumerate()
            .map(|(index, action)| ((action.at, 1, index), Scheduled::Action(index)));
        let looks = scenario.moments.iter().enumerate().map(|(index, at)| ((*at, 2, index), Scheduled::Look));
        let count = scenario.entries.len();
        let outcome = ScenarioResult {
            start: scenario.start,
            submitted: count,
            names: scenario.entries.iter().map(|entry| entry.name.clone()).collect(),
            last: Vec::new(),
            moments: Vec::new(),
            launches: Vec::new(),
            peaks: vec![0; count],
            peak: 0,
            lives: HashMap::new(),
            artifact_texts: ArtifactTexts::default(),
            metrics: String::new(),
            refusals: vec![None; scenario.actions.len()],
            faults: Vec::new(),
        };
        let disk = VirtualDisk::new()?;
        let mut event_loop = VirtualLoop::open(disk.clone(), limits(&scenario), scenario.start)?.0;
        for object in &scenario.keyed {
            event_loop.put_object(object)?;
        }
        Ok(Self {
            event_loop,
            disk,
            now: scenario.start,
            scheduled: submits.chain(actions).chain(looks).collect(),
            queue: BTreeMap::new(),
            active_tasks: HashMap::new(),
            facts: vec![Vec::new(); count],
            made: vec![0; count],
            active: vec![0; count],
            orders: Vec::new(),
            turn: 0,
            events: 0,
            outcome,
            scenario,
        })
    }

    fn run(&mut self) -> Result<(), Error> {
        self.settle()?;
        loop {
            self.events += 1;
            if self.events > MAX_EVENTS {
                let text =
                    format!("it is not over after {MAX_EVENTS} events; say `until:` to look at it before its end");
                self.outcome.faults.push((None, text));
                return Ok(());
            }
            let act = self.scheduled.first_key_value().map(|(key, act)| (*key, *act));
            let act_at = act.map(|((at, _, _), _)| self.scenario.start.saturating_add(at));
            let event_at = if self.over() { None } else { self.next_event() };
            let Some(next) = act_at.into_iter().chain(event_at).min() else { return Ok(()) };
            if self.scenario.until.is_some_and(|until| next > self.scenario.start.saturating_add(until)) {
                return Ok(());
            }
            self.now = self.now.max(next);
            match act {
                // What is due at the same moment comes first.
                Some((key, act)) if event_at.is_none_or(|at| at > next) => {
                    self.scheduled.remove(&key);
                    self.act(act, key.0)?;
                }
                _ => self.event()?,
            }
        }
    }

    fn over(&self) -> bool {
        let engine = self.event_loop.engine();
        (0..self.scenario.entries.len()).all(|run| engine.run(id(run)).is_none_or(|run| run.finished()))
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
                if let Some(active_task) = self.active_tasks.get_mut(&attempt) {
                    (active_task.started, active_task.runs_at) = (Some(self.now), None);
                    self.event_loop.report(Report::Started { attempt, at: self.now });
                }
            }
            Event::Ends(attempt) => self.end(attempt),
            Event::Tells(report) => {
                if self.active_tasks.contains_key(&report.attempt()) {
                    self.event_loop.report(report);
                }
            }
        }
        self.settle()
    }

    fn act(&mut self, act: Scheduled, at: Duration) -> Result<(), Error> {
        match act {
            Scheduled::Submit(index) => {
                let entry = &self.scenario.entries[index];
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
                    ordered_by: None,
                };
                let ticket = self.event_loop.submit(id(index), Box::new(submission), None, Acceptance::default());
                if let Some(why) = self.answer_to(ticket)? {
                    self.outcome.faults.push((None, format!("the engine refuses the run: {why}")));
                }
            }
            Scheduled::Action(index) => self.action(index)?,
            Scheduled::Look => {
                let seen = (0..self.facts.len()).map(|run| self.look(run)).collect();
                self.outcome.moments.push((at, seen));
            }
        }
        Ok(())
    }

    fn action(&mut self, index: usize) -> Result<(), Error> {
        let action = &self.scenario.actions[index];
        match &action.what {
            What::Restart => self.restart()?,
            What::Put(object) => {
                self.event_loop.put_object(object)?;
                self.settle()?;
            }
            What::PutTemplate(template) => {
                let template = (**template).clone();
                self.put_template(template)?;
            }
            What::Command(command) => {
                let command = command.clone();
                // Runs that others have made are only meant by their names.
                let meant = |run: &usize| match &action.run {
                    Some(wanted) => *wanted == self.outcome.names[*run],
                    None => *run < self.outcome.submitted,
                };
                let runs: Vec<usize> = (0..self.outcome.names.len()).filter(meant).collect();
                for run in runs {
                    // Whoever serves people looks a run that is over up in the store.
                    let over = self.finished(run, &command);
                    let ticket = self.event_loop.command(id(run), command.clone());
                    let answer = self.answer_to(ticket)?;
                    if let Some(refused) = over.or(answer) {
                        self.outcome.refusals[index] = Some(refused);
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
        if let Some(run) = engine.run(id(run)) {
            return Some(Snapshot::take(run, engine));
        }
        // Over: only its journal is left.
        let run = fold(id(run), self.facts[run].iter().cloned()).ok()?;
        Some(Snapshot::take(&run, engine))
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
                    if !self.active_tasks.contains_key(&attempt) {
                        self.start(attempt, task);
                    }
                }
            }
            self.read_answers();
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
                self.outcome.lives.insert((run, self.made[run]), life);
                self.made[run] += 1;
            }
            Fact::Workflow(WorkflowFact::Launched { node, .. }) => {
                if let Some(life) = self.outcome.lives.get_mut(&(run, node.at())) {
                    life.begins = turn;
                }
            }
            Fact::Workflow(WorkflowFact::Finished(finished)) => {
                if let Some(life) = self.outcome.lives.get_mut(&(run, finished.node.at())) {
                    life.ends = Some(turn);
                }
            }
            _ => {}
        }
    }

    fn into_outcome(mut self) -> ScenarioResult<'a> {
        let engine = self.event_loop.engine();
        self.outcome.metrics = engine.meters().render(&engine.live_meters(self.now));
        for run in 0..self.facts.len() {
            match self.look(run) {
                Some(seen) => self.outcome.last.push(seen),
                None => {
                    let text =
                        format!("run `{}` was never submitted: the case was over before", self.outcome.names[run]);
                    self.outcome.faults.push((None, text));
                    self.outcome.last.push(Snapshot::nothing());
                }
            }
        }
        self.outcome
    }
}

fn limits(scenario: &Scenario<'_>) -> Limits {
    let slots = scenario.slots.unwrap_or(usize::MAX);
    Limits::from(Capacity { slots, cpu_milli: u64::MAX, memory_bytes: u64::MAX })
}

fn id(run: usize) -> RunId {
    RunId(run as u64 + 1)
}

fn index(run: RunId) -> usize {
    usize::try_from(run.0 - 1).expect("runs are numbered from one, and few")
}
