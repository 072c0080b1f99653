//! Large runs that are over: their ends are journaled, and their records are packed elsewhere. Whoever asks for such a run
//! meanwhile is answered from here. When the record comes back, it takes the place of the run's facts in one commit.

use std::{
    collections::hash_map::Entry,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use octoflow_engine::{Command, Refusal, Run};
use octoflow_model::{IdMap, IdSet, RunId, garbage::GcStrategy};
use octoflow_store::{Archive as Packing, Batch, Change, Error as StoreError};
use serde_json::Value;

use super::{
    EventLoop, Message, Reply,
    effect::{Commit, Effect, Settlement},
    message::{Detail, Shown},
    row::{packed, update},
};
use crate::maintenance::sweep::QueuedDeletion;

/// Tells the archiving of a run from an earlier one, which an outage interrupted.
type PackId = u64;

/// A large run that is over, to be packed away from the event loop.
pub(crate) struct PackJob {
    pack_id: PackId,
    run: Box<Run>,
}

/// The record of a large run, and what is to be deleted with its end.
pub(crate) struct Packed {
    pack_id: PackId,
    run: RunId,
    /// An error is why the record could not be written.
    changes: Result<Vec<Change>, StoreError>,
    deletion: Option<QueuedDeletion>,
}

/// What the event loop knows of runs that are being packed.
#[derive(Default)]
pub(super) struct Archive {
    next: PackId,
    pending: IdMap<RunId, Pending>,
    /// Runs whose records were handed to the store, until it has answered.
    finishing: Finishing,
}

/// A set of runs that the event loop enters and the thread that settles commits leaves.
#[derive(Clone, Default)]
struct Finishing(Arc<Mutex<IdSet<RunId>>>);

impl Finishing {
    fn lock(&self) -> MutexGuard<'_, IdSet<RunId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Pending {
    pack_id: PackId,
    size: usize,
    kind: &'static str,
    name: String,
    /// The run without its nodes.
    summary: Value,
    /// Callers who go on once the record is there.
    waiting: Vec<Reply<()>>,
}

impl PackJob {
    /// Packs the record. `queue` writes down what the run's end deletes, before the end takes the place of the journal, so
    /// that a crash forgets none of it; `stage` writes a record in parts if it is large.
    pub(crate) fn pack(
        self,
        queue: impl FnOnce(&QueuedDeletion),
        stage: impl FnOnce(RunId, Packing) -> Result<Packing, StoreError>,
    ) -> Packed {
        let Self { pack_id, run } = self;
        let garbage = run.garbage(Some(GcStrategy::OnWorkflowCompletion));
        let deletion = (!garbage.is_empty())
            .then(|| QueuedDeletion::new(run.id(), run.namespace(), GcStrategy::OnWorkflowCompletion, garbage));
        if let Some(deletion) = &deletion {
            queue(deletion);
        }
        let changes = stage(run.id(), packed(&run)).map(|archive| {
            let finish = Change::Finish { run: run.id(), archive, row: update(&run) };
            let expire = run.expires().map(|due| Change::Expire { run: run.id(), due: Some(due) });
            [finish].into_iter().chain(expire).collect()
        });
        Packed { pack_id, run: run.id(), changes, deletion }
    }
}

impl Archive {
    /// Notes a run that is over and makes the job of packing it.
    pub(super) fn pack(&mut self, run: Box<Run>) -> PackJob {
        let pack_id = self.next;
        self.next += 1;
        let (size, kind, name, summary) = (run.size(), run.kind().noun, run.name().to_owned(), run.summary());
        self.pending.insert(run.id(), Pending { pack_id, size, kind, name, summary, waiting: Vec::new() });
        PackJob { pack_id, run }
    }

    /// The run is being packed.
    pub(super) fn has(&self, run: RunId) -> bool {
        self.pending.contains_key(&run)
    }

    /// The run is being packed, or its record is on its way to the disk: it is not packed again.
    pub(super) fn takes_care_of(&self, run: RunId) -> bool {
        self.has(run) || self.finishing.lock().contains(&run)
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

    /// Why a run that is being packed refuses this command: it is over.
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

    /// Ignores the record of a run that is deleted.
    pub(super) fn forget(&mut self, run: RunId) {
        self.pending.remove(&run);
    }

    /// Ignores every record under way; gives back those who wait for one.
    pub(super) fn forget_all(&mut self) -> impl Iterator<Item = Reply<()>> + use<> {
        std::mem::take(&mut self.pending).into_values().flat_map(|pending| pending.waiting)
    }
}

impl EventLoop {
    /// Has a large run that is over packed.
    pub(super) fn pack(&mut self, run: Box<Run>) {
        let job = self.archive.pack(run);
        self.effects.push(Effect::Pack(job));
    }

    /// Commits the record of a large run: it takes the place of the run's facts.
    pub(super) fn finish(&mut self, packed: Packed) {
        let Packed { pack_id, run, changes, deletion } = packed;
        let Entry::Occupied(pending) = self.archive.pending.entry(run) else { return };
        if pending.get().pack_id != pack_id {
            return;
        }
        let waiting = pending.remove().waiting;
        let changes = match changes {
            Ok(changes) => changes,
            Err(error) => return self.not_written(run, waiting, error),
        };
        let located = deletion.map(|deletion| deletion.locate(self.driver.engine.shared()));
        let (watchers, inbox, outlet) = (self.watchers.clone(), self.inbox.clone(), self.outlet.clone());
        let memory = self.memory.clone();
        let finishing = self.archive.finishing.clone();
        finishing.lock().insert(run);
        let then = move |kept: Result<_, StoreError>| {
            finishing.lock().remove(&run);
            if let Err(error) = kept {
                for reply in waiting {
                    let _ = reply.send(Err(error.clone().into()));
                }
                if error.is_refusal() {
                    let _ = inbox.send(Message::Failed(error));
                }
                return;
            }
            memory.kept([run].iter());
            // Whoever has a mark to write asks again, and finds the record.
            for reply in waiting {
                let _ = reply.send(Err(Refusal::UnknownRun(run).into()));
            }
            watchers.lock().unwrap_or_else(PoisonError::into_inner).remove(&run);
            if let Some(located) = located {
                outlet.sweep(located);
            }
        };
        let (batch, then) = (Batch::from_iter(changes), Settlement::Call(Box::new(then)));
        self.effects.push(Effect::Commit(Commit { batch, then }));
    }

    /// The record of a large run could not be written.
    fn not_written(&mut self, run: RunId, waiting: Vec<Reply<()>>, error: StoreError) {
        // The run was deleted, or the database opened again, before the event loop heard of it.
        let gone = matches!(error, StoreError::UnknownRun { .. } | StoreError::RecordDropped { .. });
        for reply in waiting {
            let _ = reply.send(Err(if gone { Refusal::UnknownRun(run).into() } else { error.clone().into() }));
        }
        // After a failure of the disk the run is restored from its journal, and packed again.
        if error.is_refusal() && !gone {
            let _ = self.inbox.send(Message::Failed(error));
        }
    }
}
