//! Delayed jobs, run on a thread that is started when it is first needed. The thread only waits; whatever takes time is
//! passed on to a pool.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::threads::ThreadOwner;

type Job = Box<dyn FnOnce() + Send>;

pub(crate) struct DelayQueue {
    queue: Mutex<Queue>,
    changed: Condvar,
    owner: ThreadOwner,
}

#[derive(Default)]
struct Queue {
    due: Vec<(Instant, Job)>,
    has_thread: bool,
    closed: bool,
}

impl DelayQueue {
    pub(crate) fn new(owner: ThreadOwner) -> Arc<Self> {
        Arc::new(Self { queue: Mutex::default(), changed: Condvar::new(), owner })
    }

    pub(crate) fn after(self: &Arc<Self>, pause: Duration, job: impl FnOnce() + Send + 'static) {
        let mut queue = self.lock();
        if queue.closed {
            return;
        }
        queue.due.push((Instant::now() + pause, Box::new(job)));
        if !queue.has_thread {
            let queue_handle = Arc::clone(self);
            // Without a thread the job stays queued until the next call, when a thread may be available.
            queue.has_thread = self.owner.spawn("later", move || queue_handle.work()).is_ok();
        }
        self.changed.notify_all();
    }

    /// Drops all jobs that are not due yet.
    pub(crate) fn close(&self) {
        let mut queue = self.lock();
        queue.closed = true;
        queue.due.clear();
        self.changed.notify_all();
    }

    fn work(&self) {
        let mut queue = self.lock();
        while !queue.closed {
            let now = Instant::now();
            let first =
                queue.due.iter().enumerate().min_by_key(|(_, (at, _))| *at).map(|(index, (at, _))| (index, *at));
            queue = match first {
                Some((index, at)) if at <= now => {
                    let (_, job) = queue.due.swap_remove(index);
                    drop(queue);
                    // A panic in a job is a bug; it must not end the thread for the others.
                    drop(catch_unwind(AssertUnwindSafe(job)));
                    self.lock()
                }
                Some((_, at)) => self.changed.wait_timeout(queue, at - now).unwrap_or_else(PoisonError::into_inner).0,
                None => self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
