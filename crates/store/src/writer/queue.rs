//! The queue of batches in front of the writer thread. The writer takes what is queued as one group, as far as it fits
//! into one transaction. Never touches the disk; it only knows whether the writer still accepts work.

use std::{
    collections::VecDeque,
    mem,
    sync::{Condvar, Mutex, MutexGuard, mpsc},
    time::Duration,
};

use octoflow_model::Revision;

use crate::{Batch, Error};

/// Bytes queued in memory before committers block (backpressure). A disk that is this far behind is not helped by more.
const LIMIT_BYTES: usize = 64 << 20;

/// Bytes per transaction, unless a single batch has more: about ten milliseconds' work. The first committers are
/// answered before later ones are written, and a sync costs little compared to this much.
const GROUP_BYTES: usize = 1 << 20;

pub(crate) type Then = Box<dyn FnOnce(Result<Revision, Error>) + Send>;

pub(crate) struct Job {
    pub(crate) batch: Batch,
    pub(crate) then: Then,
}

#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    work: Condvar,
    room: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// Nobody waits for these soon: each shares the transaction of a job, or has its own after a while.
    background: VecDeque<Job>,
    bytes: usize,
    /// Reason why nothing is written any more, for good.
    ended: Option<Error>,
    /// Reason why nothing is written until the database has been reopened.
    failed: Option<Error>,
    /// Sender for the outcome of a requested reopen.
    reopen: Option<Reopened>,
}

/// Channel for the outcome of reopening the database.
pub(crate) type Reopened = mpsc::Sender<Result<Revision, Error>>;

/// Next work of the writer.
pub(crate) enum Work {
    /// What has waited longest, in order, and behind it a background job if there is one.
    Jobs(Vec<Job>),
    /// Nothing but background jobs, which can wait.
    Background,
    Reopen(Reopened),
    /// The queue has ended and is empty.
    End,
}

impl State {
    /// Nothing is to be done at once.
    fn is_calm(&self) -> bool {
        self.jobs.is_empty() && self.ended.is_none() && self.reopen.is_none()
    }

    fn is_idle(&self) -> bool {
        self.is_calm() && self.background.is_empty()
    }

    fn refusal(&self) -> Option<&Error> {
        self.ended.as_ref().or(self.failed.as_ref())
    }
}

impl Queue {
    /// Queues a job. Calls it back at once with an error if the writer accepts no more. With `patient` it waits for
    /// room; the writer's own thread must not.
    pub(crate) fn push(&self, job: Job, patient: bool) {
        let mut state = self.lock();
        while patient && state.bytes >= LIMIT_BYTES && state.refusal().is_none() {
            state = self.room.wait(state).expect(UNBROKEN);
        }
        if let Some(reason) = state.refusal().cloned() {
            drop(state);
            return (job.then)(Err(reason));
        }
        state.bytes += job.batch.bytes;
        state.jobs.push_back(job);
        drop(state);
        self.work.notify_one();
    }

    /// The same for a job that shares a transaction with others. Its order among other jobs does not matter, and who waits
    /// for it has time.
    pub(crate) fn push_background(&self, job: Job) {
        let mut state = self.lock();
        if let Some(reason) = state.refusal().cloned() {
            drop(state);
            return (job.then)(Err(reason));
        }
        state.background.push_back(job);
        drop(state);
        self.work.notify_one();
    }

    /// The background job that has waited longest.
    pub(crate) fn take_background(&self) -> Option<Job> {
        self.lock().background.pop_front()
    }

    /// Background jobs wait.
    pub(crate) fn has_background(&self) -> bool {
        !self.lock().background.is_empty()
    }

    /// What is to be done next.
    pub(crate) fn take(&self) -> Work {
        let state = self.lock();
        let state = self.work.wait_while(state, |state| state.is_idle()).expect(UNBROKEN);
        self.next(state)
    }

    /// The same, or nothing when nobody came for so long. Background jobs are nobody.
    pub(crate) fn take_within(&self, patience: Duration) -> Option<Work> {
        let state = self.lock();
        let (state, late) = self.work.wait_timeout_while(state, patience, |state| state.is_calm()).expect(UNBROKEN);
        (!late.timed_out()).then(|| self.next(state))
    }

    fn next(&self, mut state: MutexGuard<'_, State>) -> Work {
        if !state.jobs.is_empty() {
            return Work::Jobs(self.group(state));
        }
        match state.reopen.take() {
            Some(reopened) => Work::Reopen(reopened),
            None if state.background.is_empty() => Work::End,
            None if state.ended.is_some() => Work::Jobs(state.background.drain(..).collect()),
            None => Work::Background,
        }
    }

    fn group(&self, mut state: MutexGuard<'_, State>) -> Vec<Job> {
        let mut bytes = 0;
        let fits = |job: &&Job| {
            bytes += job.batch.bytes;
            bytes <= GROUP_BYTES
        };
        let count = state.jobs.iter().take_while(fits).count().max(1);
        let mut jobs: Vec<Job> = state.jobs.drain(..count).collect();
        state.bytes -= jobs.iter().map(|job| job.batch.bytes).sum::<usize>();
        jobs.extend(state.background.pop_front());
        drop(state);
        self.room.notify_all();
        jobs
    }

    /// Takes everything that is queued, without waiting.
    pub(crate) fn drain(&self) -> Vec<Job> {
        let mut state = self.lock();
        state.bytes = 0;
        let mut jobs = mem::take(&mut state.jobs);
        jobs.append(&mut state.background);
        drop(state);
        self.room.notify_all();
        jobs.into()
    }

    /// Refuses every push with `reason` until `recover`.
    pub(crate) fn fail(&self, reason: Error) {
        self.lock().failed = Some(reason);
        self.room.notify_all();
    }

    /// Accepts pushes again: the database has been reopened.
    pub(crate) fn recover(&self) {
        self.lock().failed = None;
    }

    /// Returns why pushes are refused at present.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.lock().refusal().cloned()
    }

    /// Asks the writer to reopen the database, after everything that is queued. Refused if the queue has ended.
    pub(crate) fn ask_reopen(&self, reopened: Reopened) -> Result<(), Error> {
        let mut state = self.lock();
        if let Some(reason) = state.ended.clone() {
            return Err(reason);
        }
        // There is one caller. An earlier request that was not taken up ends when its sender is dropped here.
        state.reopen = Some(reopened);
        drop(state);
        self.work.notify_one();
        Ok(())
    }

    /// Refuses every push with `reason` for good. The first reason stays, except that a failure while the last batches
    /// are written replaces `Closed`.
    pub(crate) fn end(&self, reason: Error) {
        let mut state = self.lock();
        if matches!(state.ended, None | Some(Error::Closed)) {
            state.ended = Some(reason);
        }
        // Drops the sender, so that a caller waiting for a reopen stops waiting.
        state.reopen = None;
        drop(state);
        self.work.notify_all();
        self.room.notify_all();
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().jobs.len()
    }

    pub(crate) fn ended(&self) -> Option<Error> {
        self.lock().ended.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect(UNBROKEN)
    }
}

const UNBROKEN: &str = "nothing panics while it holds the queue";

#[cfg(test)]
mod tests {
    use octoflow_model::RunId;

    use super::*;
    use crate::Change;

    fn job(bytes: usize) -> Job {
        let mut lines = vec![b'x'; bytes - 1];
        lines.push(b'\n');
        let batch = Batch::from(Change::AppendFacts { run: RunId(1), first: 0, count: 1, lines });
        Job { batch, then: Box::new(|_| {}) }
    }

    fn sizes(queue: &Queue) -> Vec<usize> {
        match queue.take() {
            Work::Jobs(jobs) => jobs.iter().map(|job| job.batch.bytes >> 10).collect(),
            Work::Reopen(_) | Work::End | Work::Background => panic!("there are jobs"),
        }
    }

    #[test]
    fn a_group_is_bounded_and_what_is_too_large_for_one_goes_alone() {
        let queue = Queue::default();
        for kib in [300, 300, 300, 300, 3_000, 10, 10] {
            queue.push(job(kib << 10), true);
        }
        assert_eq!(sizes(&queue), [300, 300, 300]);
        assert_eq!(sizes(&queue), [300]);
        assert_eq!(sizes(&queue), [3_000]);
        assert_eq!(sizes(&queue), [10, 10]);
        assert_eq!((queue.len(), queue.lock().bytes), (0, 0));
    }

    #[test]
    fn the_end_comes_after_everything_that_waits() {
        let queue = Queue::default();
        for _ in 0..3 {
            queue.push(job(800 << 10), true);
        }
        queue.end(Error::Closed);
        for _ in 0..3 {
            assert_eq!(sizes(&queue), [800]);
        }
        assert!(matches!(queue.take(), Work::End));
    }

    #[test]
    fn a_background_job_shares_a_group_or_waits_to_be_asked_for() {
        let queue = Queue::default();
        queue.push_background(job(64 << 10));
        queue.push_background(job(32 << 10));
        assert!(matches!(queue.take(), Work::Background));
        assert!(queue.take_within(Duration::ZERO).is_none(), "nobody has come");
        queue.push(job(10 << 10), true);
        assert_eq!(sizes(&queue), [10, 64], "one of them in each group");
        assert_eq!(queue.take_background().map(|job| job.batch.bytes >> 10), Some(32));
        assert!(!queue.has_background() && queue.take_background().is_none());
    }

    #[test]
    fn background_jobs_are_written_before_the_end_and_told_of_a_failure() {
        let queue = Queue::default();
        queue.push_background(job(1 << 10));
        queue.fail(Error::Closed);
        assert_eq!(queue.drain().len(), 1);
        queue.recover();
        queue.push_background(job(2 << 10));
        queue.end(Error::Closed);
        assert_eq!(sizes(&queue), [2]);
        assert!(matches!(queue.take(), Work::End));
    }
}
