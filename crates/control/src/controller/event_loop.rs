//! The event loop's thread: takes what has come in, lets the engine decide, hands the decisions to the store, and lets the
//! world know only once they are on disk.

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError},
    },
    time::{Duration, Instant},
};

use octoflow_engine::{Command, Input, Program, Refusal, Run, dialect, rerun};
use octoflow_model::{AttemptId, Report, Revision, RunId, Task, Time, submission::Submission};
use octoflow_store::{Batch, Change, Store};

use super::{
    Archiver, Audience, StartProgress, Watcher, Watchers,
    archiver::is_large,
    backpressure::{Backpressure, InFlight},
    claims::Claims,
    dispatch::OrderQueue,
    message::{Detail, Entered, Message, Reply, Shown, Terms},
    recover::Recovery,
    wait::{Backlog, NAP},
    yielding::Yielding,
};
use crate::{
    Cut, Driver, Error, clock,
    gauge::{Entering, Histogram, TURNS},
    keyed::KeyedObject,
    meters,
    sweep::Sweeper,
};

/// How long a decision nobody waits for may stay in memory.
pub(super) const LINGER: Duration = Duration::from_millis(100);
/// How often the engine's time is written down while something happens.
const KEEP_CLOCK: Duration = Duration::from_secs(60);
/// How many messages are taken before decisions are handed on; bounds how long the first of them waits.
pub(super) const SWEEP: usize = 512;

/// The most nodes or replicas of a run that is drawn on this thread: some ten milliseconds.
pub(crate) const DRAWN_HERE: usize = 2_000;

pub(super) struct EventLoop {
    pub(super) driver: Driver,
    pub(super) store: Store,
    runtime: OrderQueue,
    pub(super) inbox: Receiver<Message>,
    /// Taken from the inbox but left for the next sweep.
    pub(super) next: Option<Message>,
    pub(super) own: Sender<Message>,
    pub(super) watchers: Watchers,
    pub(super) watched: HashSet<RunId>,
    /// Callers to be answered once what was decided for them, or is shown to them, is on disk.
    pub(super) waiting: Vec<Answer>,
    /// Those of them who want to see the run they handed in, as the next commit leaves it.
    pub(super) showing: Vec<(RunId, Reply<Entered>)>,
    pub(super) in_flight: InFlight,
    pub(super) backpressure: Backpressure,
    /// Runs that were accepted and have not begun, and what the runtime said: both wait under backpressure.
    pub(super) fresh: VecDeque<RunId>,
    pub(super) later: VecDeque<Report>,
    pub(super) backlog: Backlog,
    /// How a run with more to decide steps back for others.
    pub(super) yielding: Yielding,
    /// Since when a commit waits for more to share it.
    pub(super) gathering: Option<Instant>,
    /// While runs are still to be taken up, nothing is decided: a report about one of them would find no run.
    pub(super) progress: Arc<StartProgress>,
    pub(super) held_since: Option<Instant>,
    /// The runtime has been told what is ours and what is not.
    adopted: bool,
    /// Names given out that the store may not have yet.
    pub(super) names: Arc<Mutex<HashSet<Name>>>,
    /// Those of them that the next commit brings there.
    pub(super) named: Vec<Name>,
    pub(super) claims: Claims,
    /// How many runs entered a phase here.
    pub(super) entered: BTreeMap<Entering, u64>,
    pub(super) turns: Histogram,
    /// By new run: the one whose place it takes with its first commit.
    pub(super) replaces: BTreeMap<RunId, RunId>,
    /// Runs whose place was taken; the store may not know yet.
    pub(super) replaced: HashSet<RunId>,
    /// What is kept in the commit of a run's first facts.
    pub(super) beside: BTreeMap<RunId, Vec<Change>>,
    /// Runs to forget, once what was decided about them is on its way to the disk.
    pub(super) leaving: Vec<(RunId, Reply<()>)>,
    /// When the engine's time was written down last.
    clock_kept: Instant,
    pub(super) keeper: Keeper,
    /// Large runs that are over and whose records are not there yet.
    pub(super) archiver: Archiver,
    pub(super) recovery: Recovery,
}

/// Who deletes artifacts, and where it is written down.
pub(super) struct Keeper {
    pub(super) data_dir: PathBuf,
    pub(super) sweeper: Arc<Mutex<Sweeper>>,
}

/// Namespace, kind and name of a run.
type Name = (String, String, String);
/// Hears which commit it is that everything decided so far is part of, once that is on disk.
pub(super) type Answer = Box<dyn FnOnce(Result<Revision, Error>) + Send>;

pub(super) enum Next {
    GoOn,
    Close,
}

impl EventLoop {
    #[expect(clippy::too_many_arguments, reason = "each is something the event loop owns, handed over once")]
    pub(super) fn new(
        driver: Driver,
        store: Store,
        runtime: OrderQueue,
        inbox: Receiver<Message>,
        own: Sender<Message>,
        in_flight: InFlight,
        keeper: Keeper,
        archiver: Archiver,
        recovery: Recovery,
    ) -> Self {
        Self {
            driver,
            store,
            runtime,
            inbox,
            next: None,
            own,
            watchers: Watchers::default(),
            watched: HashSet::new(),
            waiting: Vec::new(),
            showing: Vec::new(),
            in_flight,
            backpressure: Backpressure::default(),
            fresh: VecDeque::new(),
            later: VecDeque::new(),
            backlog: Backlog::default(),
            yielding: Yielding::default(),
            gathering: None,
            progress: Arc::default(),
            held_since: None,
            adopted: false,
            names: Arc::default(),
            named: Vec::new(),
            claims: Claims::default(),
            entered: BTreeMap::new(),
            turns: Histogram::new(TURNS),
            replaces: BTreeMap::new(),
            replaced: HashSet::new(),
            beside: BTreeMap::new(),
            leaving: Vec::new(),
            clock_kept: Instant::now(),
            keeper,
            archiver,
            recovery,
        }
    }

    pub(super) fn following(self, progress: Arc<StartProgress>) -> Self {
        Self { progress, ..self }
    }

    /// Works until it is told to close, or until something cannot be kept.
    pub(super) fn work_on(&mut self) -> Result<(), Error> {
        loop {
            let first = self.first();
            self.recovery.pulse().begin();
            let began = Instant::now();
            let next = match first {
                Ok(message) => self.sweep(message)?,
                Err(RecvTimeoutError::Timeout) => Next::GoOn,
                Err(RecvTimeoutError::Disconnected) => Next::Close,
            };
            let now = clock::steady();
            let closing = matches!(next, Next::Close);
            let starting = self.starting();
            if !starting && (closing || self.busy(Instant::now()).is_none()) {
                self.catch_up(now);
            }
            let due = self.driver.engine.wake_at().is_some_and(|at| at <= now) && self.held_back().is_none();
            // Whoever waits for a commit does not wait for another slice as well.
            let after = due && self.driver.engine.has_more() && self.awaited();
            if due && !after {
                self.tick(now);
            }
            let lingered = closing || self.lingered() >= LINGER;
            let wanted = self.driver.urgent() && !self.shares() || self.awaited();
            let piece = self.commits_piece();
            if piece || lingered && self.driver.holds() || wanted && (closing || !self.gathers(Instant::now())) {
                self.commit()?;
            }
            if after {
                self.tick(now);
            }
            self.forget_leaving()?;
            self.held_since = if self.driver.holds() { self.held_since.or_else(|| Some(Instant::now())) } else { None };
            self.turns.add(began.elapsed().as_secs_f64());
            if closing || self.clock_kept.elapsed() >= KEEP_CLOCK {
                self.keep_clock();
            }
            self.recovery.pulse().end();
            if let Next::Close = next {
                return self.finish_all();
            }
        }
    }

    /// Nothing breaks without it, so failing is no reason to stop; what it costs is told in `clock`.
    fn keep_clock(&mut self) {
        self.clock_kept = Instant::now();
        if let Err(error) = clock::keep(&self.keeper.data_dir) {
            tracing::warn!(%error, "the engine's time could not be written down");
        }
    }

    /// The next message, when there is one before something else is to be done.
    fn first(&mut self) -> Result<Message, RecvTimeoutError> {
        if let Some(message) = self.next.take() {
            return Ok(message);
        }
        let patience = self.patience();
        if self.gathering.is_some() {
            // Nobody is waked for each of those who come now.
            std::thread::sleep(patience.min(NAP));
            return self.inbox.try_recv().map_err(|error| match error {
                TryRecvError::Empty => RecvTimeoutError::Timeout,
                TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
            });
        }
        self.inbox.recv_timeout(patience)
    }

    /// How long something nobody waits for has been held.
    pub(super) fn lingered(&self) -> Duration {
        self.held_since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    fn sweep(&mut self, first: Message) -> Result<Next, Error> {
        let mut message = first;
        let mut taken = 1;
        loop {
            match message {
                Message::Close => return Ok(Next::Close),
                Message::Failed(error) => return Err(error.into()),
                Message::Broken(why) => return Err(Error::Broken(why)),
                message => self.take(message),
            }
            match self.inbox.try_recv() {
                Ok(next) if taken < SWEEP => (message, taken) = (next, taken + 1),
                Ok(next) => {
                    self.next = Some(next);
                    return Ok(Next::GoOn);
                }
                Err(_) => return Ok(Next::GoOn),
            }
        }
    }

    fn take(&mut self, message: Message) {
        let now = clock::steady();
        match message {
            Message::Reports(reports) => self.later.extend(reports),
            Message::Packed(packed) => self.finish(*packed),
            Message::Submit { run, submission, program, terms, watcher, show, reply } => {
                match self.submit(run, submission, program, terms, watcher, now) {
                    Ok(()) if show => self.showing.push((run, reply)),
                    answer => self.answer(reply, answer.map(|()| move |_| Entered { run, shown: None })),
                }
            }
            Message::Command { run, command: Command::Mark { .. }, reply } if self.archiver.has(run) => {
                self.archiver.wait(run, reply);
            }
            Message::Command { run, command, reply } => {
                if let Some(refusal) = self.archiver.refusal(run, &command) {
                    let refused: Result<fn(Revision), Error> = Err(refusal.into());
                    return self.answer(reply, refused);
                }
                let answer = self.input(Input::Command { run, command }, now).map_err(Error::from);
                self.answer(reply, answer.map(|()| |_| ()));
            }
            Message::TakeUp { run, past, watcher, reply } => {
                self.watch(run, watcher, past.len() as u64);
                let answer = self.take_up(run, past, now);
                self.answer(reply, answer.map(|()| |_| ()));
            }
            Message::TakeUpAll { runs, unreadable, reply } => {
                let answer = self.take_up_all(runs, unreadable, now);
                self.answer(reply, answer.map(|()| |_| ()));
            }
            Message::Keyed { object, reply } => {
                let KeyedObject { kind, namespace, name, data } = *object;
                self.input(Input::Object { kind, namespace, name, data: Some(data) }, now).ok();
                let _ = reply.send(Ok(()));
            }
            Message::Unkeyed { kind, namespace, name, reply } => {
                self.input(Input::Object { kind, namespace, name, data: None }, now).ok();
                let _ = reply.send(Ok(()));
            }
            Message::Forget { run, name, reply } => {
                self.names.lock().unwrap_or_else(PoisonError::into_inner).remove(&name);
                self.archiver.forget(run);
                self.leaving.push((run, reply));
            }
            Message::Watch { run, watcher } => {
                if self.driver.engine.run(run).is_some() {
                    self.watch(run, watcher, self.driver.decided(run));
                } else if self.archiver.has(run) {
                    // Everything has been told; the watch closes when the run's record is there.
                    self.watch(run, watcher, u64::MAX);
                } else {
                    // The run is over: the watch closes once its end is certainly on disk.
                    self.store.commit(Batch::new(), move |_| drop(watcher));
                }
            }
            Message::Object { run, detail, reply } => {
                // Told once it is on disk: what is shown must not be taken back by a crash.
                let shown = self.driver.engine.run(run).map(|run| match detail {
                    Detail::Summary => Shown::Here(run.summary()),
                    Detail::Whole if run.size() > DRAWN_HERE => Shown::Elsewhere(run.size()),
                    Detail::Whole => Shown::Here(run.object()),
                });
                let shown = shown.or_else(|| self.archiver.look(run, detail));
                self.answer(reply, Ok(|_| shown));
            }
            Message::Size { run, reply } => {
                let size = self.driver.engine.run(run).map(|run| run.size()).or_else(|| self.archiver.size(run));
                self.answer(reply, Ok(move |_| size));
            }
            // All of these show decisions too, so they are told once those are on disk.
            Message::Tasks { run, reply } => {
                let attempts = self.drawn(run).map(|run| run.attempts());
                self.answer(reply, Ok(|_| attempts));
            }
            Message::LogSizes { run, reply } => {
                let sizes = self.drawn(run).map(|run| run.log_sizes());
                self.answer(reply, Ok(|_| sizes));
            }
            Message::Explain { run, reply } => {
                let engine = &self.driver.engine;
                let told = |run: &Run| run.explain(Some(engine.scheduler()), Some(engine.locks()));
                let reasons = self.drawn(run).map(told);
                self.answer(reply, Ok(|_| reasons));
            }
            Message::Metrics { reply } => {
                let engine = &self.driver.engine;
                let text = engine.meters().render(&engine.live_meters(now));
                self.answer(reply, Ok(|_| text));
            }
            Message::Gauges { reply } => {
                // Levels of this process and no fact of a run; they are wanted most while nothing can be written.
                let _ = reply.send(Ok(self.gauges()));
            }
            Message::Failed(_) | Message::Broken(_) | Message::Close => unreachable!("the sweep ends with these"),
        }
    }

    /// An open run that is small enough to be looked at from end to end while everybody waits. Others are read from the
    /// store by whoever asks, once what was decided so far is there.
    fn drawn(&self, run: RunId) -> Option<&Run> {
        self.driver.engine.run(run).filter(|run| run.size() <= DRAWN_HERE)
    }

    /// Tells the outcome once what was decided so far is on disk.
    fn answer<T: Send + 'static>(
        &mut self,
        reply: Reply<T>,
        outcome: Result<impl FnOnce(Revision) -> T + Send + 'static, Error>,
    ) {
        // Nobody has to listen any more.
        self.waiting.push(Box::new(move |kept| drop(reply.send(kept.and_then(|revision| Ok(outcome?(revision)))))));
    }

    pub(super) fn input(&mut self, input: Input, now: Time) -> Result<(), Refusal> {
        let watched = &self.watched;
        self.driver.take(input, now, |run| watched.contains(&run))
    }

    /// Facts before number `next` are none of the watcher's business, or it knows them already.
    pub(super) fn watch(&mut self, run: RunId, watcher: Watcher, next: u64) {
        self.watched.insert(run);
        let mut watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        let audience = watchers.entry(run).or_insert_with(|| Audience { watchers: Vec::new(), next });
        audience.watchers.push(watcher);
    }

    fn submit(
        &mut self,
        run: RunId,
        submission: Box<Submission>,
        program: Option<Program>,
        terms: Terms,
        watcher: Option<Watcher>,
        now: Time,
    ) -> Result<(), Error> {
        let Terms { claim, replaces, beside } = terms;
        if let Some(claim) = &claim
            && let Some(run) = self.claims.made(claim, &self.store)?
        {
            return Err(Error::Made { run });
        }
        let known =
            dialect::of(&submission.manifest).map_err(|why| Error::Object { what: submission.name.clone(), why })?;
        let kind = known.kind.key.to_owned();
        let name: Name = (submission.namespace.clone(), kind, submission.name.clone());
        // In this order: a name leaves the set when the store has it.
        let pending = self.names.lock().unwrap_or_else(PoisonError::into_inner).contains(&name);
        let holder = self.store.reader()?.run_by_name(&name.0, Some(&name.1), &name.2)?;
        match replaces {
            // Somebody may have retried it, or deleted it, at the same time.
            Some(old) if self.replaced.contains(&old) => {
                return Err(rerun::Refusal::Open { phase: "Running".to_owned() }.into());
            }
            Some(old) if holder.as_ref().is_none_or(|holder| holder.run != old || !holder.archived) => {
                return Err(Error::UnknownRun(old));
            }
            Some(_) => {}
            None if pending || holder.is_some() => {
                let (namespace, kind, name) = name;
                return Err(Error::NameTaken { namespace, kind, name });
            }
            None => {}
        }
        self.check_beside(&beside)?;
        if !self.adopted {
            self.adopt(Vec::new())?;
        }
        if let Some(watcher) = watcher {
            self.watch(run, watcher, 0);
        }
        self.input(Input::Submit { run, submission, program }, now)?;
        self.recovery.take(run);
        self.fresh.push_back(run);
        if let Some(old) = replaces {
            self.replaces.insert(run, old);
            self.replaced.insert(old);
        }
        if !beside.is_empty() {
            self.beside.insert(run, beside);
        }
        self.names.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone());
        self.named.push(name);
        if let Some(claim) = claim {
            self.claims.hold(run, claim);
        }
        Ok(())
    }

    /// A commit that is refused would take everything else of it along, so that is found out before.
    fn check_beside(&self, beside: &[Change]) -> Result<(), Error> {
        for change in beside {
            if let Change::Tick(tick) = change
                && self.store.reader()?.tick(&tick.uid, tick.nominal)?.is_some()
            {
                let (uid, nominal) = (tick.uid.clone(), tick.nominal);
                return Err(octoflow_store::Error::TickTaken { uid, nominal }.into());
            }
        }
        Ok(())
    }

    fn forget_leaving(&mut self) -> Result<(), Error> {
        if self.leaving.is_empty() {
            return Ok(());
        }
        self.commit()?;
        for (run, reply) in std::mem::take(&mut self.leaving) {
            self.driver.forget(run);
            self.recovery.forget(run);
            self.watched.remove(&run);
            self.watchers.lock().unwrap_or_else(PoisonError::into_inner).remove(&run);
            self.store.commit(Batch::new(), move |_| drop(reply.send(Ok(()))));
        }
        Ok(())
    }

    /// Tells the runtime what is ours. Open runs that nobody has taken up here are left as they are.
    pub(super) fn adopt(&mut self, believed: Vec<(AttemptId, Box<Task>)>) -> Result<(), Error> {
        let open = self.store.reader()?.unfinished()?.into_iter().map(|row| row.run);
        let leave: Vec<RunId> = open.filter(|run| self.driver.engine.run(*run).is_none()).collect();
        self.runtime.adopt(believed, leave);
        self.adopted = true;
        Ok(())
    }

    /// Prepares the answers to those who want to see the run they handed in.
    fn show(&mut self, cut: &mut Cut, batch: &Batch) {
        if self.showing.is_empty() {
            return;
        }
        let behind = batch.revisions_behind();
        for (run, reply) in std::mem::take(&mut self.showing) {
            let object = self.driver.engine.run(run).map(|open| match cut.manifests.remove(&run) {
                Some(manifest) => open.object_of(manifest),
                None => open.object(),
            });
            let behind = behind.get(&run).copied().unwrap_or_default();
            let shown = move |last: Revision| Some((Revision(last.0 - behind), object?));
            self.answer(reply, Ok(move |last| Entered { run, shown: shown(last) }));
        }
    }

    /// Hands what was decided to the store; the world hears of it from the store's thread, once it is on disk.
    fn commit(&mut self) -> Result<(), Error> {
        let mut cut = self.driver.cut();
        self.gathering = None;
        let mut batch = self.batch(&cut)?;
        let claimed = self.claims.put(&cut.submitted, &mut batch);
        batch.extend(cut.series.values().map(meters::put));
        self.show(&mut cut, &batch);
        self.replaces.retain(|run, _| !cut.submitted.contains(run));
        let missions = self.doom(&cut);
        self.count(&cut);
        let Cut { watched, orders, mut ended, .. } = cut;
        // Of those that are packed elsewhere the store keeps the facts until that is done.
        ended.retain(|run| {
            self.watched.remove(run);
            let over = self.driver.release(*run);
            over.filter(|over| is_large(over)).map(|over| self.archiver.pack(over)).is_none()
        });
        let (runtime, watchers, own) = (self.runtime.clone(), self.watchers.clone(), self.own.clone());
        let waiting = std::mem::take(&mut self.waiting);
        let (names, named) = (self.names.clone(), std::mem::take(&mut self.named));
        let sweeper = self.keeper.sweeper.clone();
        let outcome = self.recovery.outcome();
        let outstanding = self.backlog.enter();
        self.store.commit(batch, move |kept| {
            drop(outstanding);
            let revision = match kept {
                Ok(revision) => revision,
                Err(error) => {
                    waiting.into_iter().for_each(|answer| answer(Err(error.clone().into())));
                    outcome.unknown(watched);
                    // Of any other failure the store itself has told.
                    if error.is_refusal() {
                        let _ = own.send(Message::Failed(error));
                    }
                    return;
                }
            };
            outcome.kept(ended.iter());
            if !named.is_empty() {
                let mut names = names.lock().unwrap_or_else(PoisonError::into_inner);
                for name in &named {
                    names.remove(name);
                }
            }
            runtime.send(orders);
            waiting.into_iter().for_each(|answer| answer(Ok(revision)));
            claimed.settle();
            let mut watchers = watchers.lock().unwrap_or_else(PoisonError::into_inner);
            for (run, facts) in watched {
                if let Some(audience) = watchers.get_mut(&run) {
                    audience.tell(&facts);
                }
            }
            for run in ended {
                watchers.remove(&run);
            }
            for mission in missions {
                sweeper.lock().unwrap_or_else(PoisonError::into_inner).send(mission);
            }
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests;
