//! How the event loop goes on after a write that failed: it lets go of everything that may not be on disk, turns callers
//! away with the reason, opens the store again with growing pauses, folds the journals and adopts what the runtime has,
//! as after a restart. Tasks go on all the time: what they report meanwhile is kept, and asked for again.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
        mpsc::RecvTimeoutError,
    },
    time::{Duration, Instant},
};

use octoflow_engine::{Engine, Setup, slice::SLICE};
use octoflow_model::{Fact, Revision, RunId};
use octoflow_store::{BusyTimer, Error as StoreError};

use super::{
    Audience, Message,
    claims::Claims,
    event_loop::{EventLoop, Next, SWEEP},
    reserve_locks,
    start::{self, unreadable},
};
use crate::{Capacity, Driver, Error, clock, meters, read, record};

/// The pause before the second try; each further one is twice as long. The first comes at once: the store may have
/// released its reserve.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Space may come back at any moment, and then everything is to go on within seconds.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A commit that is refused shows that memory and disk disagree, which reading back repairs. If it is refused as often as
/// this without any other in between, it is a bug that reading back does not repair.
const MOST_REFUSALS: u32 = 5;

/// Facts by run, in the order they were decided.
type Untold = Arc<Mutex<Vec<(RunId, Vec<Fact>)>>>;

/// What is remembered for it.
pub(super) struct Recovery {
    capacity: Capacity,
    /// Unfinished runs that are worked on here, as far as anybody knows; the others are left as they are.
    ours: Arc<Mutex<HashSet<RunId>>>,
    /// Facts that watchers were not told because nobody knew whether they are on disk.
    untold: Untold,
    /// How often it was tried since a commit succeeded.
    tries: Arc<AtomicU32>,
    /// Where the store stood when it was last opened again.
    reopened: Revision,
    busy: BusyTimer,
}

/// What a commit does for it once its outcome is known.
pub(super) struct Outcome {
    ours: Arc<Mutex<HashSet<RunId>>>,
    untold: Untold,
    tries: Arc<AtomicU32>,
}

impl Recovery {
    pub(super) fn new(capacity: Capacity, busy: BusyTimer) -> Self {
        Self {
            capacity,
            ours: Arc::default(),
            untold: Arc::default(),
            tries: Arc::default(),
            reopened: Revision(0),
            busy,
        }
    }

    pub(super) fn busy(&self) -> &BusyTimer {
        &self.busy
    }

    /// From now on this run is worked on here.
    pub(super) fn take(&self, run: RunId) {
        lock(&self.ours).insert(run);
    }

    pub(super) fn forget(&self, run: RunId) {
        lock(&self.ours).remove(&run);
    }

    pub(super) fn outcome(&self) -> Outcome {
        Outcome { ours: self.ours.clone(), untold: self.untold.clone(), tries: self.tries.clone() }
    }
}

impl Outcome {
    /// It is on disk, and with it the end of these runs.
    pub(super) fn kept<'a>(&self, ended: impl ExactSizeIterator<Item = &'a RunId>) {
        self.tries.store(0, Ordering::Relaxed);
        if ended.len() > 0 {
            let mut ours = lock(&self.ours);
            for run in ended {
                ours.remove(run);
            }
        }
    }

    /// Nobody knows whether it is on disk.
    pub(super) fn unknown(&self, watched: Vec<(RunId, Vec<Fact>)>) {
        lock(&self.untold).extend(watched);
    }
}

impl EventLoop {
    /// Works until it is told to close. An error is one that cannot be repaired here.
    pub(super) fn work(mut self) -> Result<(), Error> {
        loop {
            let Err(error) = self.work_on() else { return Ok(()) };
            self.recover(error)?;
        }
    }

    fn recover(&mut self, error: Error) -> Result<(), Error> {
        let began = Instant::now();
        // Others commit too: pauses grow only while nobody could.
        if self.store.reader().and_then(|reader| reader.revision()).is_ok_and(|now| now > self.recovery.reopened) {
            self.recovery.tries.store(0, Ordering::Relaxed);
        }
        let mut failure = self.repairable(error)?;
        tracing::error!("nothing is decided until the journal can be written again: {failure}");
        loop {
            self.let_go(&failure);
            self.recovery.busy.end();
            let tries = self.recovery.tries.fetch_add(1, Ordering::Relaxed);
            if let Next::Close = self.wait_out(&failure, pause(tries))? {
                return Err(failure.into());
            }
            self.recovery.busy.begin();
            let reopened = self.store.reopen().map_err(Error::from);
            match reopened.and_then(|revision| self.rebuild().map(|()| self.recovery.reopened = revision)) {
                Ok(()) => break,
                Err(error) => {
                    tracing::warn!(tries = tries + 1, "the journal cannot be written yet: {error}");
                    failure = self.repairable(error)?;
                }
            }
        }
        tracing::info!(seconds = began.elapsed().as_secs(), "the journal is written again, everything goes on");
        Ok(())
    }

    /// What may be over later, or can be repaired by reading back.
    fn repairable(&self, error: Error) -> Result<StoreError, Error> {
        match error {
            Error::Store(error) if error.is_outage() => Ok(error),
            Error::Store(error) if error.is_refusal() => {
                let tries = self.recovery.tries.load(Ordering::Relaxed);
                if tries < MOST_REFUSALS { Ok(error) } else { Err(error.into()) }
            }
            error => Err(error),
        }
    }

    /// Forgets everything that may not be on disk. Those who wait for it hear the reason.
    fn let_go(&mut self, failure: &StoreError) {
        for answer in std::mem::take(&mut self.waiting) {
            answer(Err(failure.clone().into()));
        }
        for (_, reply) in std::mem::take(&mut self.showing) {
            let _ = reply.send(Err(failure.clone().into()));
        }
        let leaving = std::mem::take(&mut self.leaving).into_iter().map(|(_, reply)| reply);
        for reply in leaving.chain(self.archiver.forget_all()) {
            let _ = reply.send(Err(failure.clone().into()));
        }
        // Metrics are still asked for, and show what is kept.
        let meters = self.store.reader().map_err(Error::from).and_then(|reader| meters::load(&reader));
        let meters = meters.map(|(meters, _)| meters).unwrap_or_default();
        self.driver = Driver::new(Engine::new(Setup { meters, slice: SLICE, ..self.recovery.capacity.into() }));
        self.fresh.clear();
        self.gathering = None;
        self.held_since = None;
        lock(&self.names).clear();
        self.named.clear();
        self.claims = Claims::default();
        self.replaces.clear();
        self.replaced.clear();
        self.beside.clear();
    }

    /// Turns away whoever comes meanwhile.
    fn wait_out(&mut self, failure: &StoreError, pause: Duration) -> Result<Next, Error> {
        let until = Instant::now() + pause;
        if let Some(message) = self.next.take() {
            self.turn_away(message, failure);
        }
        let mut turned_away = 0;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            // However many come, it is tried in time.
            if left.is_zero() && turned_away >= SWEEP {
                return Ok(Next::GoOn);
            }
            turned_away += 1;
            match self.inbox.recv_timeout(left) {
                Ok(Message::Close) | Err(RecvTimeoutError::Disconnected) => return Ok(Next::Close),
                Ok(Message::Broken(why)) => return Err(Error::Broken(why)),
                Ok(message) => self.turn_away(message, failure),
                Err(RecvTimeoutError::Timeout) => return Ok(Next::GoOn),
            }
        }
    }

    fn turn_away(&mut self, message: Message, failure: &StoreError) {
        fn say<T>(reply: super::Reply<T>, failure: &StoreError) {
            // Nobody has to listen any more.
            let _ = reply.send(Err(failure.clone().into()));
        }
        match message {
            // Truths about attempts: they are heard once the runs are read back.
            Message::Reports(reports) => self.later.extend(reports),
            Message::Submit { reply, .. } => say(reply, failure),
            Message::Command { reply, .. }
            | Message::TakeUp { reply, .. }
            | Message::TakeUpAll { reply, .. }
            | Message::Forget { reply, .. } => say(reply, failure),
            // Stored before, so it is read back with everything else.
            Message::Keyed { reply, .. } | Message::Unkeyed { reply, .. } => drop(reply.send(Ok(()))),
            Message::Watch { run, watcher } => self.watch(run, watcher, u64::MAX),
            Message::Object { reply, .. } => say(reply, failure),
            Message::Size { reply, .. } => say(reply, failure),
            Message::Tasks { reply, .. } => say(reply, failure),
            Message::Explain { reply, .. } => say(reply, failure),
            Message::LogSizes { reply, .. } => say(reply, failure),
            Message::Metrics { reply } => {
                let engine = &self.driver.engine;
                let _ = reply.send(Ok(engine.meters().render(&[])));
            }
            Message::Gauges { reply } => drop(reply.send(Ok(self.gauges()))),
            // Nobody knows whether the end it belongs to is on disk; it is packed again.
            Message::Packed(_) | Message::Failed(_) | Message::Broken(_) | Message::Close => {}
        }
    }

    /// Reads everything back, as at a start, and lets it go on.
    fn rebuild(&mut self) -> Result<(), Error> {
        let reader = self.store.reader()?;
        let (engine, _) = start::engine(&reader, self.recovery.capacity)?;
        self.driver = Driver::new(engine);
        if self.starting() {
            // Whoever starts it hands everything in.
            return Ok(());
        }
        let mut restored = Vec::new();
        let ours = lock(&self.recovery.ours).clone();
        for row in reader.unfinished()? {
            // As at a start: what cannot be read is left as it is, and keeps nobody else from going on.
            if !ours.contains(&row.run) {
                if let Some(notice) = reserve_locks(&mut self.driver.engine, &reader, &row)? {
                    tracing::error!("{notice}");
                }
                continue;
            }
            let read::Journal { facts, damage } = read::journal(&reader, row.run)?;
            let taken = match damage {
                Some(why) => record::reserve_locks(&mut self.driver.engine, row.run, facts).and(Err(why)),
                None => {
                    self.catch_up_watchers(row.run, &facts);
                    let count = facts.len() as u64;
                    record::fold(row.run, facts).map(|run| restored.push((row.run, self.restore(run, count))))
                }
            };
            if let Err(why) = taken {
                tracing::error!("{}", unreadable(&row, &why));
            }
        }
        drop(reader);
        self.settle_watchers();
        *lock(&self.recovery.ours) = restored.iter().map(|(run, _)| *run).collect();
        let restored: Vec<RunId> = restored.into_iter().filter(|(_, open)| *open).map(|(run, _)| run).collect();
        let (now, watched) = (clock::steady(), &self.watched);
        let believed = self.driver.go_on(restored, now, |run| watched.contains(&run));
        self.adopt(believed)
    }

    /// Watchers hear what turned out to be on disk and was not told.
    fn catch_up_watchers(&mut self, run: RunId, facts: &[Fact]) {
        let mut watchers = lock(&self.watchers);
        let Some(audience) = watchers.get_mut(&run) else { return };
        let next = usize::try_from(audience.next).unwrap_or(usize::MAX);
        let untold = facts.get(next..).unwrap_or_default();
        audience.tell(untold);
        audience.next = facts.len() as u64;
    }

    /// Those who watch a run that is over hear its last facts, and those of a run that never was hear nothing more.
    fn settle_watchers(&mut self) {
        let untold = std::mem::take(&mut *lock(&self.recovery.untold));
        let mut watchers = lock(&self.watchers);
        let open = &self.driver.engine;
        let archived = |run: RunId| self.store.reader().and_then(|reader| reader.run(run)).ok().flatten().is_some();
        // Those of a run that is being packed have heard everything, and hear when it is done.
        let gone = |run: &RunId| open.run(*run).is_none() && !self.archiver.has(*run);
        let gone: Vec<RunId> = watchers.keys().copied().filter(gone).collect();
        for run in gone {
            let Some(mut audience) = watchers.remove(&run) else { continue };
            if archived(run) {
                untold.iter().filter(|(of, _)| *of == run).for_each(|(_, facts)| audience.tell(facts));
            }
        }
        // Whoever only wants to look again looks again.
        watchers.values_mut().for_each(Audience::ring);
        self.watched = watchers.keys().copied().collect();
    }
}

fn pause(tries: u32) -> Duration {
    match tries {
        0 => Duration::ZERO,
        tries => FIRST_PAUSE.saturating_mul(1 << (tries - 1).min(10)).min(LONGEST_PAUSE),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_stay_short_enough_to_go_on_soon_after_space_is_back() {
        let pauses: Vec<u128> = (0..9).map(|tries| pause(tries).as_millis()).collect();
        assert_eq!(pauses, [0, 100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(pause(u32::MAX), LONGEST_PAUSE);
    }
}
