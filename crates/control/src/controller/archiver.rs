//! The archiver: packs the final records of large runs on a thread of its own, so that nobody waits for it, and writes them
//! to the store in parts. The event loop hands it a run whose end is in the journal, and commits what comes back: the record
//! takes the place of the facts in one transaction, as it does for small runs. What a crash interrupts is packed again from
//! the journal.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{
        PoisonError,
        mpsc::{self, Receiver, Sender},
    },
};

use octoflow_engine::{Command, Refusal, Run};
use octoflow_model::{RunId, garbage::GcStrategy};
use octoflow_store::{Batch, Change, Error as StoreError, Store};
use serde_json::Value;

use super::{
    Message, Reply,
    event_loop::{DRAWN_HERE, EventLoop},
    message::{Detail, Shown},
    row::{packed, update},
};
use crate::{Error, Supervisor, sweep::QueuedDeletion};

/// Tells the archiving of a run from an earlier one, which an outage interrupted.
type Ticket = u64;

/// What the store is to keep of a run that is over, and what is to be deleted with its end.
pub(crate) struct Packed {
    ticket: Ticket,
    run: RunId,
    /// An error is why the record could not be written.
    changes: Result<Vec<Change>, StoreError>,
    doomed: Option<QueuedDeletion>,
}

struct Job {
    ticket: Ticket,
    run: Box<Run>,
}

/// What the event loop knows of runs that are being packed.
pub(super) struct Archiver {
    supervisor: Supervisor,
    results: Sender<Message>,
    store: Store,
    /// Started for the first large run: most processes never see one.
    jobs: Option<Sender<Job>>,
    next: Ticket,
    pending: HashMap<RunId, Pending>,
}

/// A run that is being packed, for those who ask for it meanwhile.
struct Pending {
    ticket: Ticket,
    size: usize,
    kind: &'static str,
    name: String,
    /// The run without its nodes.
    summary: Value,
    /// They go on once the record is there.
    waiting: Vec<Reply<()>>,
}

/// Its end is journaled first and its record is packed elsewhere: drawing and packing it takes more than some ten
/// milliseconds.
pub(super) fn is_large(run: &Run) -> bool {
    run.size() > DRAWN_HERE
}

impl Archiver {
    pub(super) fn new(supervisor: Supervisor, results: Sender<Message>, store: Store) -> Self {
        let (jobs, pending) = (None, HashMap::new());
        Self { supervisor, results, store, jobs, next: 0, pending }
    }

    /// Packs a run that is over. The record comes back as a message.
    pub(super) fn pack(&mut self, run: Box<Run>) {
        let ticket = self.next;
        self.next += 1;
        let (size, kind, name, summary) = (run.size(), run.kind().noun, run.name().to_owned(), run.summary());
        self.pending.insert(run.id(), Pending { ticket, size, kind, name, summary, waiting: Vec::new() });
        let job = Job { ticket, run };
        let unsent = match self.thread() {
            Some(jobs) => jobs.send(job).err().map(|unsent| unsent.0),
            None => Some(job),
        };
        // Without a thread everybody waits, which is better than a run that never comes to its end.
        if let Some(job) = unsent {
            let _ = self.results.send(Message::Packed(Box::new(pack(&job, &self.store))));
        }
    }

    fn thread(&mut self) -> Option<&Sender<Job>> {
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

    /// The run is being packed.
    pub(super) fn has(&self, run: RunId) -> bool {
        self.pending.contains_key(&run)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.pending.is_empty()
    }

    pub(super) fn size(&self, run: RunId) -> Option<usize> {
        Some(self.pending.get(&run)?.size)
    }

    pub(super) fn look(&self, run: RunId, detail: Detail) -> Option<Shown> {
        let pending = self.pending.get(&run)?;
        Some(match detail {
            Detail::Summary => Shown::Here(pending.summary.clone()),
            Detail::Whole => Shown::Elsewhere(pending.size),
        })
    }

    /// Why a run that is being packed cannot be told to do this: it is over.
    pub(super) fn refusal(&self, run: RunId, command: &Command) -> Option<Refusal> {
        let Pending { kind, name, .. } = self.pending.get(&run)?;
        Some(Refusal::Finished { kind, name: name.clone(), verb: command.verb() })
    }

    /// Answers once the run's record is there, which can then be written on.
    pub(super) fn wait(&mut self, run: RunId, reply: Reply<()>) {
        if let Some(pending) = self.pending.get_mut(&run) {
            pending.waiting.push(reply);
        }
    }

    /// Nobody wants the run to be kept: what comes back for it counts for nothing.
    pub(super) fn forget(&mut self, run: RunId) {
        self.pending.remove(&run);
    }

    /// The same for all of them; these wait for one.
    pub(super) fn forget_all(&mut self) -> impl Iterator<Item = Reply<()>> {
        std::mem::take(&mut self.pending).into_values().flat_map(|pending| pending.waiting)
    }
}

impl EventLoop {
    /// The record of a large run is ready: it takes the place of the run's facts.
    pub(super) fn finish(&mut self, packed: Packed) {
        let Packed { ticket, run, changes, doomed } = packed;
        let Entry::Occupied(pending) = self.archiver.pending.entry(run) else { return };
        if pending.get().ticket != ticket {
            return;
        }
        let waiting = pending.remove().waiting;
        let changes = match changes {
            Ok(changes) => changes,
            Err(error) => return self.not_written(run, waiting, error),
        };
        let mission = doomed.map(|doomed| doomed.locate(self.driver.engine.world()));
        let (watchers, own, sweeper) = (self.watchers.clone(), self.own.clone(), self.keeper.sweeper.clone());
        let outcome = self.recovery.outcome();
        self.store.commit(Batch::from_iter(changes), move |kept| {
            if let Err(error) = kept {
                for reply in waiting {
                    let _ = reply.send(Err(error.clone().into()));
                }
                if error.is_refusal() {
                    let _ = own.send(Message::Failed(error));
                }
                return;
            }
            outcome.kept([run].iter());
            // Whoever has a mark to write asks again, and finds the record.
            for reply in waiting {
                let _ = reply.send(Err(Refusal::UnknownRun(run).into()));
            }
            watchers.lock().unwrap_or_else(PoisonError::into_inner).remove(&run);
            if let Some(mission) = mission {
                sweeper.lock().unwrap_or_else(PoisonError::into_inner).send(mission);
            }
        });
    }

    /// The record of a large run could not be written.
    fn not_written(&mut self, run: RunId, waiting: Vec<Reply<()>>, error: StoreError) {
        // The run was deleted, or the database opened again, before the event loop heard of it.
        let gone = matches!(error, StoreError::UnknownRun { .. } | StoreError::RecordDropped { .. });
        for reply in waiting {
            let _ = reply.send(Err(if gone { Refusal::UnknownRun(run).into() } else { error.clone().into() }));
        }
        // After a failure of the disk the run is taken up from its journal, and packed again.
        if error.is_refusal() && !gone {
            let _ = self.own.send(Message::Failed(error));
        }
    }

    /// Waits for the records that are being packed. Nobody else is served any more.
    pub(super) fn finish_all(&mut self) -> Result<(), Error> {
        while !self.archiver.is_idle() {
            match self.inbox.recv() {
                Ok(Message::Packed(packed)) => self.finish(*packed),
                Ok(Message::Broken(why)) => return Err(Error::Broken(why)),
                // The store tells whoever closes it. The next process packs what is left.
                Ok(Message::Failed(_)) | Err(_) => return Ok(()),
                Ok(_) => {}
            }
        }
        Ok(())
    }
}

fn pack_all(work: &Receiver<Job>, results: &Sender<Message>, store: &Store) {
    while let Ok(job) = work.recv() {
        let packed = pack(&job, store);
        // The event loop is gone when nobody listens; the next one packs the run again.
        if results.send(Message::Packed(Box::new(packed))).is_err() {
            return;
        }
    }
}

fn pack(job: &Job, store: &Store) -> Packed {
    let Job { ticket, run } = job;
    // What the run's end deletes is written down before the end takes the place of the journal, so that a crash forgets
    // none of it.
    let garbage = run.garbage(Some(GcStrategy::OnWorkflowCompletion));
    let doomed = (!garbage.is_empty())
        .then(|| QueuedDeletion::new(run.id(), run.namespace(), GcStrategy::OnWorkflowCompletion, garbage));
    if let Some(doomed) = &doomed {
        // Not written down it is still done now; only a crash in between would leave the bytes behind.
        let _ = doomed.write(store.data_dir());
    }
    let changes = store.stage(run.id(), packed(run)).map(|archive| {
        let finish = Change::Finish { run: run.id(), archive, row: update(run) };
        let expire = run.expires().map(|due| Change::Expire { run: run.id(), due: Some(due) });
        [finish].into_iter().chain(expire).collect()
    });
    Packed { ticket: *ticket, run: run.id(), changes, doomed }
}
