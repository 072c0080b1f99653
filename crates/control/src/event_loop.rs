//! The event loop as a function: a step takes the messages that have come in, lets the engine decide, and returns effects.
//! It reads the store and the clock through ports, and writes nothing itself: a commit is an effect, and whatever others
//! may learn of a decision follows the commit.

pub(crate) mod cache;
pub(crate) mod claim;
pub(crate) mod meters;
pub(crate) mod record;

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    sync::{Arc, Mutex, PoisonError, mpsc::Sender},
    time::Duration,
};

use octoflow_engine::{
    Engine, Input, Refusal, Setup,
    engine::Capacity,
    meters::Meters,
    schedule::spec::NodeSpec,
    slice::{SLICE, Work},
};
use octoflow_model::{AttemptId, IdMap, IdSet, Report, RunId, Task, Time};
use octoflow_store::{Batch, Change, Delivery, Error as StoreError};

use self::{
    archive::Archive,
    backpressure::Backpressure,
    claims::Claims,
    outage::Outage,
    pacing::Backlog,
    port::{Clock, Outlet, Storage},
    yielding::Yielding,
};
use crate::{
    Error,
    gauge::{Histogram, PhaseEntry, TURN_BUCKETS},
};

mod answer;
pub(crate) mod archive;
pub(crate) mod backpressure;
mod batch;
mod claims;
mod commit;
mod counts;
pub(crate) mod driver;
pub(crate) mod effect;
pub(crate) mod message;
mod outage;
mod owned;
mod pacing;
pub(crate) mod port;
pub(crate) mod restore;
mod row;
mod submit;
pub(crate) mod unit;
pub(crate) mod usage;
pub(crate) mod virtual_loop;
pub(crate) mod watcher;
mod yielding;

pub(crate) use backpressure::InFlight;
pub(crate) use driver::{DecidedBatch, Driver};
use effect::{Answer, Commit, Effect, Effects, Settlement};
pub(crate) use message::{Detail, Entered, Explained, Message, Reply, Shown, Terms};
pub(crate) use restore::{Restored, StartProgress};
pub(crate) use submit::reserved_in;
pub(crate) use watcher::{Audience, RunSignal, Watcher};

/// How long a decision nobody waits for may stay in memory.
const LINGER: Duration = Duration::from_millis(100);

/// How often the engine's time is written down while something happens.
const KEEP_CLOCK: Duration = Duration::from_secs(60);

/// How many messages one step may take; bounds how long the first of them waits for its commit.
pub(crate) const MAX_MESSAGES: usize = 512;

/// The most nodes or replicas of a run that is rendered and packed in a step: some ten milliseconds.
pub(crate) const LARGE_RUN: usize = 2_000;

/// Namespace, kind and name of a run.
pub(crate) type Name = (String, String, String);

pub(crate) type Watchers = Arc<Mutex<IdMap<RunId, Audience>>>;

/// The limits an event loop and its engine work within.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The nodes that are there from the beginning, as they were configured.
    pub nodes: Vec<NodeSpec>,
    /// How much one input may decide before others are served.
    pub slice: Work,
    pub max_nodes: usize,
    pub max_bytes: u64,
    /// Runs with more nodes or replicas than this are packed on another thread.
    pub large_run: usize,
    /// Commits carry the facts of every run, watched or not, for whoever checks them.
    pub all_facts: bool,
}

impl From<Capacity> for Limits {
    fn from(capacity: Capacity) -> Self {
        NodeSpec::from(capacity).into()
    }
}

impl From<NodeSpec> for Limits {
    fn from(node: NodeSpec) -> Self {
        let Setup { max_nodes, max_bytes, .. } = Capacity { slots: 0, cpu_milli: 0, memory_bytes: 0 }.into();
        Self { nodes: vec![node], slice: SLICE, max_nodes, max_bytes, large_run: LARGE_RUN, all_facts: false }
    }
}

impl Limits {
    pub(crate) fn engine(&self, nodes: Vec<NodeSpec>, meters: Meters) -> Engine {
        let Self { slice, max_nodes, max_bytes, .. } = *self;
        Engine::new(Setup { nodes, slice, max_nodes, max_bytes, meters })
    }
}

/// What an event loop is connected to.
pub(crate) struct Ports {
    pub storage: Box<dyn Storage>,
    pub clock: Box<dyn Clock>,
    pub outlet: Arc<dyn Outlet>,
    /// The loop's own inbox, for what a commit's outcome must tell it.
    pub inbox: Sender<Message>,
}

/// How the loop treats messages.
///
/// `Serving → Outage` when something cannot be written or read; `Outage → Serving` once everything was read back;
/// `Serving → Closing` on [`Message::Close`], and from there to [`Wait::Closed`]. A close during an outage, and an error
/// that cannot be repaired in place, end the loop with that error.
enum State {
    /// Decides and commits.
    Serving,
    /// Decides nothing and refuses callers until the store can be written again.
    Outage(Outage),
    /// Takes only the records of large runs that are still being packed.
    Closing,
}

pub(crate) struct EventLoop {
    driver: Driver,
    limits: Limits,
    state: State,
    storage: Box<dyn Storage>,
    clock: Box<dyn Clock>,
    outlet: Arc<dyn Outlet>,
    inbox: Sender<Message>,
    /// What the step under way asks for.
    effects: Vec<Effect>,
    watchers: Watchers,
    watched: IdSet<RunId>,
    /// Callers to be answered once what was decided for them, or is shown to them, is durable.
    waiting: Vec<Answer>,
    /// Submitters who want to see their run as the next commit leaves it.
    showing: Vec<(RunId, Reply<Entered>)>,
    in_flight: InFlight,
    backpressure: Backpressure,
    /// Runs that were accepted and have not begun. They wait under backpressure.
    accepted: VecDeque<RunId>,
    /// Reports that the engine has not seen. They wait under backpressure and during an outage.
    reports: VecDeque<Report>,
    backlog: Backlog,
    /// How a run with more to decide steps back for foreground requests.
    yielding: Yielding,
    /// Since when a commit waits for others to share it.
    gathering: Option<Time>,
    /// A slice was due but came after a commit somebody waited for; it is taken in the next step whoever waits then.
    slice_owed: bool,
    /// Pending while runs are still to be restored: nothing is decided then, because a report about one of them would
    /// find no run.
    progress: Arc<StartProgress>,
    /// Since when decisions are held that nobody waits for.
    held_since: Option<Time>,
    /// Whether the runtime knows which attempts are ours.
    adopted: bool,
    /// Names given out that the store may not have yet.
    names: Arc<Mutex<HashSet<Name>>>,
    /// Those of them that the next commit brings there.
    named: Vec<Name>,
    claims: Claims,
    /// How many runs entered a phase since the start.
    entered: BTreeMap<PhaseEntry, u64>,
    /// How long steps took.
    turns: Histogram,
    /// By new run: the one it replaces with its first commit.
    replaces: BTreeMap<RunId, RunId>,
    /// Runs that were replaced; the store may not know yet.
    replaced: IdSet<RunId>,
    /// By new run: changes that belong into the commit of its first facts.
    beside: BTreeMap<RunId, Vec<Change>>,
    /// Runs to forget once what was decided about them is handed to the store.
    leaving: Vec<(RunId, Reply<Vec<Delivery>>)>,
    /// When the engine's time was written down last.
    clock_kept: Time,
    /// Large runs that are over and whose records are being packed.
    archive: Archive,
    memory: outage::OutageMemory,
    /// The revision at which the store was last opened again.
    reopened: octoflow_model::Revision,
}

impl EventLoop {
    pub(crate) fn new(
        engine: Engine,
        limits: Limits,
        ports: Ports,
        in_flight: InFlight,
        progress: Arc<StartProgress>,
    ) -> Self {
        let Ports { storage, clock, outlet, inbox } = ports;
        let clock_kept = clock.now();
        Self {
            driver: Driver::new(engine),
            limits,
            state: State::Serving,
            storage,
            clock,
            outlet,
            inbox,
            effects: Vec::new(),
            watchers: Watchers::default(),
            watched: IdSet::default(),
            waiting: Vec::new(),
            showing: Vec::new(),
            in_flight,
            backpressure: Backpressure::default(),
            accepted: VecDeque::new(),
            reports: VecDeque::new(),
            backlog: Backlog::default(),
            yielding: Yielding::default(),
            gathering: None,
            slice_owed: false,
            progress,
            held_since: None,
            adopted: false,
            names: Arc::default(),
            named: Vec::new(),
            claims: Claims::default(),
            entered: BTreeMap::new(),
            turns: Histogram::new(TURN_BUCKETS),
            replaces: BTreeMap::new(),
            replaced: IdSet::default(),
            beside: BTreeMap::new(),
            leaving: Vec::new(),
            clock_kept,
            archive: Archive::default(),
            memory: outage::OutageMemory::default(),
            reopened: octoflow_model::Revision(0),
        }
    }

    /// Takes these messages and does what is due. An error is one that cannot be repaired in place, and the loop's last
    /// word.
    pub(crate) fn step(&mut self, mut messages: impl Iterator<Item = Message>) -> Result<Effects, Error> {
        let began = self.clock.now();
        if let State::Outage(_) = self.state {
            self.wait_out(&mut messages)?;
        }
        match self.state {
            State::Serving => self.serve(messages).or_else(|error| self.enter_outage(error))?,
            State::Outage(_) => {}
            State::Closing => self.drain(messages)?,
        }
        let now = self.clock.now();
        self.turns.add(now.since(began).as_secs_f64());
        Ok(Effects { list: std::mem::take(&mut self.effects), wait: self.wait(now) })
    }

    fn serve(&mut self, messages: impl Iterator<Item = Message>) -> Result<(), Error> {
        let closing = self.take_all(messages)?;
        let now = self.clock.now();
        if !self.starting() && (closing || self.busy(now).is_none()) {
            self.catch_up(now);
        }
        let due = self.driver.engine.wake_at().is_some_and(|at| at <= now) && self.held_back(now).is_none();
        // Whoever waits for a commit does not wait for another slice as well.
        let owed = due && self.driver.engine.has_more() && self.awaited() && !self.slice_owed;
        if due && !owed {
            self.tick(now);
        }
        self.slice_owed = owed;
        let lingered = closing || self.lingered(now) >= LINGER;
        let wanted = self.driver.urgent() && !self.shares(now) || self.awaited();
        if self.commits_piece(now) || lingered && self.driver.holds() || wanted && (closing || !self.gathers(now)) {
            self.commit()?;
        }
        self.forget_leaving()?;
        self.held_since = if self.driver.holds() { self.held_since.or(Some(now)) } else { None };
        if closing || now.since(self.clock_kept) >= KEEP_CLOCK {
            self.clock_kept = now;
            self.effects.push(Effect::KeepClock);
        }
        if closing {
            self.state = State::Closing;
        }
        Ok(())
    }

    /// Takes the messages up to a close; whether there was one.
    fn take_all(&mut self, messages: impl Iterator<Item = Message>) -> Result<bool, Error> {
        for message in messages {
            if self.take(message)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes only the records that are still being packed: nobody else is served any more.
    fn drain(&mut self, messages: impl Iterator<Item = Message>) -> Result<(), Error> {
        for message in messages {
            if let Message::Packed(packed) = message {
                self.finish(*packed);
            } else if let Message::Broken(why) = message {
                return Err(Error::Broken(why));
            } else if matches!(message, Message::Failed(_) | Message::Close) {
                // The store tells whoever closes it. The next process packs what is left.
                drop(self.archive.forget_all());
            }
        }
        Ok(())
    }

    fn input(&mut self, input: Input, now: Time) -> Result<(), Refusal> {
        let (watched, all) = (&self.watched, self.limits.all_facts);
        self.driver.take(input, now, |run| all || watched.contains(&run))
    }

    /// Restored runs go on; what is believed to be with the runtime.
    fn continue_runs(&mut self, runs: Vec<RunId>, now: Time) -> Vec<(AttemptId, Box<Task>)> {
        let (watched, all) = (&self.watched, self.limits.all_facts);
        self.driver.continue_runs(runs, now, |run| all || watched.contains(&run))
    }

    /// Notifies the watcher of every fact from number `next` on.
    fn watch(&mut self, run: RunId, watcher: Watcher, next: u64) {
        self.watched.insert(run);
        let mut watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        let audience = watchers.entry(run).or_insert_with(|| Audience { watchers: Vec::new(), next });
        audience.watchers.push(watcher);
    }

    /// Runs `then` once everything handed to the store so far has an outcome.
    fn after_commits(&mut self, then: impl FnOnce(Result<octoflow_model::Revision, StoreError>) + Send + 'static) {
        let then = Settlement::Call(Box::new(then));
        self.effects.push(Effect::Commit(Commit { batch: Batch::new(), then }));
    }

    fn forget_leaving(&mut self) -> Result<(), Error> {
        if self.leaving.is_empty() {
            return Ok(());
        }
        self.commit()?;
        for (run, reply) in std::mem::take(&mut self.leaving) {
            // Its end may have been decided in this step: nobody keeps a record of it any more.
            self.archive.forget(run);
            let (now, watched, all) = (self.clock.now(), &self.watched, self.limits.all_facts);
            let events = self.driver.events_of_deletion(run, now);
            self.driver.forget(run, now, |run| all || watched.contains(&run));
            self.memory.forget(run);
            self.watched.remove(&run);
            self.watchers.lock().unwrap_or_else(PoisonError::into_inner).remove(&run);
            self.after_commits(move |_| drop(reply.send(Ok(events))));
        }
        Ok(())
    }

    /// Tells the runtime what is ours. Open runs that nobody restored here are left as they are.
    fn adopt(&mut self, believed: Vec<(AttemptId, Box<Task>)>) -> Result<(), Error> {
        let open = self.storage.reader()?.unfinished()?.into_iter().map(|row| row.run);
        let leave: Vec<RunId> = open.filter(|run| self.driver.engine.run(*run).is_none()).collect();
        self.effects.push(Effect::Adopt { believed, leave });
        self.adopted = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
