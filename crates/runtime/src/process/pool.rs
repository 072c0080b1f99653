//! A small thread pool for work with files: collecting outputs, staging inputs. Jobs are queued.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError, mpsc},
};

use crate::threads::ThreadOwner;

type Job = Box<dyn FnOnce() + Send>;

/// Dropped, it finishes the queued jobs and ends its threads.
pub(crate) struct Pool {
    jobs: Mutex<mpsc::Sender<Job>>,
}

/// Threads for files. Packing is bound by one core and the disk; more threads would only take cores from the tasks.
pub(crate) const FOR_FILES: usize = 3;
/// Threads for transfers, which mostly wait for the network and must not block work with files.
pub(crate) const FOR_TRANSFERS: usize = 8;

impl Pool {
    pub(crate) fn new(name: &'static str, threads: usize, owner: &ThreadOwner) -> io::Result<Self> {
        let (jobs, line) = mpsc::channel::<Job>();
        let line = Arc::new(Mutex::new(line));
        for _ in 0..threads {
            let line = Arc::clone(&line);
            owner.spawn(name, move || {
                loop {
                    let job = line.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    match job {
                        // A panic in a job is a bug; it must not end the thread for the others.
                        Ok(job) => drop(catch_unwind(AssertUnwindSafe(job))),
                        Err(_) => return,
                    }
                }
            })?;
        }
        Ok(Self { jobs: Mutex::new(jobs) })
    }

    pub(crate) fn run(&self, job: impl FnOnce() + Send + 'static) {
        let sent = self.jobs.lock().unwrap_or_else(PoisonError::into_inner).send(Box::new(job));
        assert!(sent.is_ok(), "the pool's threads live as long as the pool");
    }
}
