//! The line of batches in front of the writer thread. Whatever stands in it when the writer looks is one group.
//! It never touches the disk; it only remembers whether the writer may still go on.

use std::{
    mem,
    sync::{Condvar, Mutex, MutexGuard},
    time::Duration,
};

use octoflow_model::Revision;

use crate::{Batch, Error};

/// What may wait in memory before committers are held back. A disk that is this far behind will not be helped by
/// more, and one group of this size still commits in well under a second.
const LIMIT_BYTES: usize = 64 << 20;

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
    jobs: Vec<Job>,
    bytes: usize,
    ended: Option<Error>,
}

impl State {
    fn is_idle(&self) -> bool {
        self.jobs.is_empty() && self.ended.is_none()
    }
}

impl Queue {
    /// Tells the job at once when the writer takes no more.
    /// With `patient` it waits for room; the writer's own thread must not.
    pub(crate) fn push(&self, job: Job, patient: bool) {
        let mut state = self.lock();
        while patient && state.bytes >= LIMIT_BYTES && state.ended.is_none() {
            state = self.room.wait(state).expect(UNBROKEN);
        }
        if let Some(reason) = state.ended.clone() {
            drop(state);
            return (job.then)(Err(reason));
        }
        state.bytes += job.batch.bytes;
        state.jobs.push(job);
        drop(state);
        self.work.notify_one();
    }

    /// Everything that waits, in order; an empty group means that the queue has ended and nothing is left.
    pub(crate) fn take(&self) -> Vec<Job> {
        let state = self.lock();
        let state = self.work.wait_while(state, |state| state.is_idle()).expect(UNBROKEN);
        self.all(state)
    }

    /// The same, or nothing when nobody came for so long.
    pub(crate) fn take_within(&self, patience: Duration) -> Option<Vec<Job>> {
        let state = self.lock();
        let (state, late) = self.work.wait_timeout_while(state, patience, |state| state.is_idle()).expect(UNBROKEN);
        (!late.timed_out()).then(|| self.all(state))
    }

    fn all(&self, mut state: MutexGuard<'_, State>) -> Vec<Job> {
        state.bytes = 0;
        let jobs = mem::take(&mut state.jobs);
        drop(state);
        self.room.notify_all();
        jobs
    }

    /// From now on every push is turned down with `reason`. The first reason stays, except that a failure
    /// while the last batches are written is more than the wish to close.
    pub(crate) fn end(&self, reason: Error) {
        let mut state = self.lock();
        if matches!(state.ended, None | Some(Error::Closed)) {
            state.ended = Some(reason);
        }
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
