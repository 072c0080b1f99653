//! The archiver's thread: packs the final records of large runs away from the event loop, and writes them to the store in
//! parts. What a crash interrupts is packed again from the journal.

use std::sync::mpsc::{self, Receiver, Sender};

use octoflow_store::Store;

use crate::{
    Supervisor,
    event_loop::{Message, archive::PackJob},
};

pub(super) struct Archiver {
    supervisor: Supervisor,
    results: Sender<Message>,
    store: Store,
    /// Started for the first large run: most processes never see one.
    jobs: Option<Sender<PackJob>>,
}

impl Archiver {
    /// Sends what was packed to `results`, the event loop's inbox.
    pub(super) fn new(supervisor: Supervisor, results: Sender<Message>, store: Store) -> Self {
        Self { supervisor, results, store, jobs: None }
    }

    pub(super) fn pack(&mut self, job: PackJob) {
        let unsent = match self.thread() {
            Some(jobs) => jobs.send(job).err().map(|unsent| unsent.0),
            None => Some(job),
        };
        // Without a thread everybody waits, which is better than a run that never comes to its end.
        if let Some(job) = unsent {
            let _ = self.results.send(pack(job, &self.store));
        }
    }

    fn thread(&mut self) -> Option<&Sender<PackJob>> {
        if self.jobs.is_none() {
            let (jobs, work) = mpsc::channel();
            let (results, store) = (self.results.clone(), self.store.clone());
            let started = self.supervisor.spawn("archiver", move || {
                pack_all(&work, &results, &store);
                Ok(())
            });
            match started {
                Ok(_) => self.jobs = Some(jobs),
                Err(error) => tracing::warn!(%error, "a large run is packed by the event loop"),
            }
        }
        self.jobs.as_ref()
    }
}

fn pack_all(work: &Receiver<PackJob>, results: &Sender<Message>, store: &Store) {
    while let Ok(job) = work.recv() {
        // The event loop is gone when nobody listens; the next one packs the run again.
        if results.send(pack(job, store)).is_err() {
            return;
        }
    }
}

fn pack(job: PackJob, store: &Store) -> Message {
    let packed = job.pack(
        |deletion| {
            // Not written down it is still done now; only a crash in between would leave the bytes behind.
            let _ = deletion.write(store.data_dir());
        },
        |run, archive| store.stage(run, archive),
    );
    Message::Packed(Box::new(packed))
}
