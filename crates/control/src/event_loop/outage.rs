//! How the event loop goes on after a write that failed: it drops everything that may not be durable, refuses callers with
//! the reason, has the store opened again with growing pauses, folds the journals and adopts what the runtime has, as
//! after a restart. Tasks go on all the time: what they report meanwhile is kept until the engine can see it.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use octoflow_model::{Fact, IdSet, Revision, RunId, Time};
use octoflow_store::Error as StoreError;

use super::{
    Audience, Driver, EventLoop, Message, Reply, State,
    claims::Claims,
    effect::Effect,
    restore::{self, reserve_locks, unreadable},
};
use crate::{
    Error,
    event_loop::{meters, record},
    hooks::HookSignal,
    read,
};

/// The pause before the second try; each further one is twice as long. The first comes at once: the store may have
/// released its reserve.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Space may come back at any moment, and then everything is to go on within seconds.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// A commit that is refused shows that memory and disk disagree, which reading back repairs. If it is refused as often as
/// this without any other in between, it is a bug that reading back does not repair.
const MAX_REFUSALS: u32 = 5;

/// An outage under way.
pub(super) struct Outage {
    failure: StoreError,
    since: Time,
    /// When the store is opened again.
    retry_at: Time,
    /// The store is being opened.
    reopening: bool,
}

impl Outage {
    /// How long until the store is opened again. Nothing while that is under way.
    pub(super) fn retry_in(&self, now: Time) -> Option<Duration> {
        (!self.reopening).then(|| self.retry_at.since(now))
    }
}

/// Facts, by run and in order, that watchers were not told because their commit has no known outcome.
type UndeliveredFacts = Arc<Mutex<Vec<(RunId, Vec<Fact>)>>>;

/// What an outage must know of the commits before it. Settlements share it with the loop.
#[derive(Clone, Default)]
pub(super) struct OutageMemory {
    /// Unfinished runs that are worked on here, as far as anybody knows; the others are left as they are.
    ours: Arc<Mutex<IdSet<RunId>>>,
    undelivered: UndeliveredFacts,
    /// Tries to open the store since a commit succeeded.
    tries: Arc<AtomicU32>,
}

impl OutageMemory {
    /// From now on this run is worked on here.
    pub(super) fn take(&self, run: RunId) {
        lock(&self.ours).insert(run);
    }

    pub(super) fn forget(&self, run: RunId) {
        lock(&self.ours).remove(&run);
    }

    /// A commit is durable, and with it the end of these runs.
    pub(super) fn kept<'a>(&self, ended: impl ExactSizeIterator<Item = &'a RunId>) {
        self.tries.store(0, Ordering::Relaxed);
        if ended.len() > 0 {
            let mut ours = lock(&self.ours);
            for run in ended {
                ours.remove(run);
            }
        }
    }

    /// Nobody knows whether a commit with these facts is durable.
    pub(super) fn unknown(&self, watched: Vec<(RunId, Vec<Fact>)>) {
        lock(&self.undelivered).extend(watched);
    }
}

impl EventLoop {
    /// Stops deciding because of this error, or gives it back when it cannot be repaired in place.
    pub(super) fn enter_outage(&mut self, error: Error) -> Result<(), Error> {
        // Others commit too: pauses grow only while nobody could.
        if self.storage.reader().and_then(|reader| reader.revision()).is_ok_and(|now| now > self.reopened) {
            self.memory.tries.store(0, Ordering::Relaxed);
        }
        let failure = self.repairable(error)?;
        tracing::error!("nothing is decided until the journal can be written again: {failure}");
        self.pause(failure, self.clock.now());
        Ok(())
    }

    /// Drops what may not be durable and waits before the store is opened again.
    fn pause(&mut self, failure: StoreError, since: Time) {
        self.drop_undurable(&failure);
        let tries = self.memory.tries.fetch_add(1, Ordering::Relaxed);
        let retry_at = self.clock.now().saturating_add(pause(tries));
        self.state = State::Outage(Outage { failure, since, retry_at, reopening: false });
    }

    /// Refuses whoever comes during an outage, and ends it when it can. Messages behind its end stay in the iterator. An
    /// error ends the loop.
    pub(super) fn wait_out(&mut self, messages: &mut impl Iterator<Item = Message>) -> Result<(), Error> {
        while let State::Outage(outage) = &self.state
            && let Some(message) = messages.next()
        {
            let (failure, since) = (outage.failure.clone(), outage.since);
            self.refuse_in_outage(message, &failure, since)?;
        }
        if let State::Outage(outage) = &mut self.state
            && !outage.reopening
            && outage.retry_at <= self.clock.now()
        {
            outage.reopening = true;
            self.effects.push(Effect::Reopen);
        }
        Ok(())
    }

    fn reopened(&mut self, outcome: Result<Revision, StoreError>, since: Time) -> Result<(), Error> {
        let rebuilt = outcome.map_err(Error::from).and_then(|revision| {
            self.rebuild()?;
            self.reopened = revision;
            Ok(())
        });
        match rebuilt {
            Ok(()) => {
                self.state = State::Serving;
                let seconds = self.clock.now().since(since).as_secs();
                tracing::info!(seconds, "the journal is written again, everything goes on");
            }
            Err(error) => {
                let tries = self.memory.tries.load(Ordering::Relaxed);
                tracing::warn!(tries, "the journal cannot be written yet: {error}");
                let failure = self.repairable(error)?;
                self.pause(failure, since);
            }
        }
        Ok(())
    }

    /// What may be over later, or can be repaired by reading back.
    fn repairable(&self, error: Error) -> Result<StoreError, Error> {
        let Error::Store(error) = error else { return Err(error) };
        let refused_too_often = || self.memory.tries.load(Ordering::Relaxed) >= MAX_REFUSALS;
        if error.is_outage() || error.is_refusal() && !refused_too_often() { Ok(error) } else { Err(error.into()) }
    }

    /// Drops everything that may not be durable. Callers who wait for it get the reason.
    fn drop_undurable(&mut self, failure: &StoreError) {
        for answer in std::mem::take(&mut self.waiting) {
            answer(Err(failure.clone().into()));
        }
        for (_, reply) in std::mem::take(&mut self.showing) {
            let _ = reply.send(Err(failure.clone().into()));
        }
        for (_, reply) in std::mem::take(&mut self.leaving) {
            let _ = reply.send(Err(failure.clone().into()));
        }
        for reply in self.archive.forget_all() {
            let _ = reply.send(Err(failure.clone().into()));
        }
        // Metrics are still asked for, and show what is durable.
        let meters = self.storage.reader().map_err(Error::from).and_then(|reader| meters::load(&reader));
        let meters = meters.map(|(meters, _)| meters).unwrap_or_default();
        self.driver = Driver::new(self.limits.engine(self.limits.nodes.clone(), meters));
        self.accepted.clear();
        self.gathering = None;
        self.slice_owed = false;
        self.held_since = None;
        lock(&self.names).clear();
        self.named.clear();
        self.claims = Claims::default();
        self.replaces.clear();
        self.replaced.clear();
        self.beside.clear();
    }

    fn refuse_in_outage(&mut self, message: Message, failure: &StoreError, since: Time) -> Result<(), Error> {
        fn say<T>(reply: Reply<T>, failure: &StoreError) {
            // Nobody has to listen any more.
            let _ = reply.send(Err(failure.clone().into()));
        }
        match message {
            // Truths about attempts: the engine sees them once the runs are read back.
            Message::Reports(reports) => self.reports.extend(reports),
            Message::Submit { reply, .. } => say(reply, failure),
            Message::Command { reply, .. } | Message::Restore { reply, .. } | Message::RestoreAll { reply, .. } => {
                say(reply, failure)
            }
            Message::Forget { reply, .. } => say(reply, failure),
            // Stored before, so it is read back with everything else.
            Message::Keyed { reply, .. } | Message::Unkeyed { reply, .. } | Message::Plugins { reply, .. } => {
                let _ = reply.send(Ok(()));
            }
            Message::Scheduling { change, reply } if change.is_kept() => {
                self.keep_node(&change);
                let _ = reply.send(Ok(()));
            }
            Message::Scheduling { reply, .. } => say(reply, failure),
            // Nobody knows what runs.
            Message::Look(look) => look(None)(Ok(())),
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
            // Nobody knows whether the end it belongs to is durable; it is packed again. A failure is known.
            Message::Packed(_) | Message::Failed(_) => {}
            Message::Reopened(outcome) => self.reopened(outcome, since)?,
            Message::Broken(why) => return Err(Error::Broken(why)),
            Message::Close => return Err(failure.clone().into()),
        }
        Ok(())
    }

    /// Reads everything back, as at a start, and lets it go on.
    fn rebuild(&mut self) -> Result<(), Error> {
        let reader = self.storage.reader()?;
        let (engine, _) = restore::engine(&reader, &self.limits, self.clock.now())?;
        self.driver = Driver::new(engine);
        self.outlet.hooks(HookSignal::Table(self.driver.engine.plugins().clone()));
        if self.starting() {
            // Whoever starts the loop hands everything in.
            return Ok(());
        }
        let mut restored = Vec::new();
        let ours = lock(&self.memory.ours).clone();
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
        *lock(&self.memory.ours) = restored.iter().map(|(run, _)| *run).collect();
        let restored: Vec<RunId> = restored.into_iter().filter(|(_, open)| *open).map(|(run, _)| run).collect();
        let believed = self.continue_runs(restored, self.clock.now());
        self.adopt(believed)
    }

    /// Tells watchers what turned out to be durable and was not told.
    fn catch_up_watchers(&mut self, run: RunId, facts: &[Fact]) {
        let mut watchers = lock(&self.watchers);
        let Some(audience) = watchers.get_mut(&run) else { return };
        let next = usize::try_from(audience.next).unwrap_or(usize::MAX);
        let undelivered = facts.get(next..).unwrap_or_default();
        audience.tell(undelivered.to_vec(), true);
        audience.next = facts.len() as u64;
    }

    /// Tells those who watch a run that is over its last facts, and lets go of those who watch a run that never was.
    fn settle_watchers(&mut self) {
        let undelivered = std::mem::take(&mut *lock(&self.memory.undelivered));
        let mut watchers = lock(&self.watchers);
        let open = &self.driver.engine;
        let archived = |run: RunId| self.storage.reader().and_then(|reader| reader.run(run)).ok().flatten().is_some();
        // Those of a run that is being packed were told everything, and the end of packing comes to them.
        let gone = |run: &RunId| open.run(*run).is_none() && !self.archive.has(*run);
        let gone: Vec<RunId> = watchers.keys().copied().filter(gone).collect();
        for run in gone {
            let Some(mut audience) = watchers.remove(&run) else { continue };
            if archived(run) {
                undelivered
                    .iter()
                    .filter(|(of, _)| *of == run)
                    .for_each(|(_, facts)| audience.tell(facts.clone(), true));
            }
        }
        // Whoever only wants to look again looks again.
        watchers.values_mut().for_each(Audience::signal);
        self.watched = watchers.keys().copied().collect();
    }
}

fn pause(tries: u32) -> Duration {
    match tries {
        0 => Duration::ZERO,
        tries => FIRST_PAUSE.saturating_mul(1 << (tries - 1).min(10)).min(MAX_PAUSE),
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
        assert_eq!(pause(u32::MAX), MAX_PAUSE);
    }
}
