//! A batch: changes that the store makes durable together or not at all. Changes are plain data; the writer applies
//! them.

use octoflow_model::{IdMap, Revision, RunId, Time};

use crate::{Archive, Delivery, IdempotencyKey, Password, RecordId, RunRow, RunUpdate, Tick, Token};

/// Changes that become durable together, applied in order.
#[derive(Debug, Default)]
pub struct Batch {
    pub(crate) changes: Vec<Change>,
    pub(crate) bytes: usize,
}

#[derive(Debug)]
pub enum Change {
    /// Creates or replaces the object. Its revision is one of the batch's own.
    PutObject {
        kind: String,
        namespace: String,
        name: String,
        uid: String,
        body: Vec<u8>,
    },
    /// Deletes the object. Deleting a missing one is no error.
    DeleteObject {
        kind: String,
        namespace: String,
        name: String,
    },
    /// Refuses the batch unless the object is still at this revision; `None`: unless there is no such object.
    Expect {
        kind: String,
        namespace: String,
        name: String,
        revision: Option<Revision>,
    },
    /// Refuses the batch unless the run's row is still at this revision.
    ExpectRun {
        run: RunId,
        revision: Revision,
    },
    /// Sets the owners (by uid) of the object or run of that name, and whether it is being deleted. Replaces earlier
    /// values; removed together with the object or run.
    SetOwners {
        kind: String,
        namespace: String,
        name: String,
        owners: Vec<String>,
        deleting: bool,
    },
    /// Creates a run. Refused if the id is taken, or the name within namespace and kind.
    NewRun(Box<RunRow>),
    /// Creates a run that replaces another, which is deleted as by `DeleteRun`. The child runs of the old run become
    /// children of the new one. The old run may be gone already.
    ReplaceRun {
        old: RunId,
        row: Box<RunRow>,
    },
    /// Appends facts: `lines` are `count` lines of JSON, each ended by a newline. The first fact of a run may have any
    /// number; every later one must continue without a gap.
    AppendFacts {
        run: RunId,
        first: u64,
        count: u32,
        lines: Vec<u8>,
    },
    UpdateRun {
        run: RunId,
        row: RunUpdate,
    },
    /// Stores the final record and drops the facts. Afterwards the run takes no more facts. Above a limit the facts are
    /// only hidden by this change and deleted later, in chunks.
    Finish {
        run: RunId,
        archive: Archive,
        row: RunUpdate,
    },
    /// Writes one part of a run's final record, which is invisible until `Finish` or `Rewrite` names it. Made by
    /// `Store::stage`. Refused if the run is gone, or if the earlier parts were discarded.
    StageRecord {
        record: RecordId,
        run: RunId,
        part: u32,
        body: Vec<u8>,
    },
    /// Replaces the final record of a finished run. Does nothing if there is none.
    Rewrite {
        run: RunId,
        archive: Archive,
    },
    /// Records how a tick of a schedule was handled. Refused if that tick was handled before.
    Tick(Box<Tick>),
    /// Deletes all ticks of a schedule.
    DropTicks {
        uid: String,
    },
    /// Sets when a finished run is to be deleted; `None`: never.
    Expire {
        run: RunId,
        due: Option<Time>,
    },
    /// Deletes the run in whatever state it is: index, labels, facts, archive. Its object is deleted separately.
    DeleteRun {
        run: RunId,
    },
    /// Stores an idempotency key with the run that it created, and deletes keys that have expired by `now`.
    PutIdempotencyKey {
        key: Box<IdempotencyKey>,
        now: Time,
    },
    /// Creates the token or replaces the one with its id.
    PutToken(Box<Token>),
    /// Deletes the token. Deleting a missing one is no error.
    DeleteToken {
        id: String,
    },
    PutPassword(Box<Password>),
    PutTimestamp {
        name: String,
        at: Time,
    },
    /// Stores an event for a life hook behind the earlier ones of its run. One that is known already stays as it is.
    PutDelivery(Box<Delivery>),
    /// Deletes a delivery, dead or not; the next of its run may be sent. Deleting a missing one is no error.
    DeleteDelivery {
        event: String,
    },
    /// Has a delivery sent again at that time. Does nothing if there is none.
    RetryDelivery {
        event: String,
        due: Time,
        reason: String,
    },
    /// Makes a delivery a dead letter; the next of its run may be sent. Of more than `keep` dead letters of its plugin the
    /// oldest are deleted.
    BuryDelivery {
        event: String,
        reason: String,
        keep: u32,
    },
    /// Has a dead letter sent again, as if it had never been tried.
    ReplayDelivery {
        event: String,
        due: Time,
    },
    /// Deletes all deliveries of a plugin.
    DropDeliveries {
        plugin: String,
    },
}

impl Batch {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn push(&mut self, change: Change) {
        match &change {
            Change::AppendFacts { count, lines, .. } => {
                assert!(*count > 0, "appending facts means appending at least one");
                assert!(lines.ends_with(b"\n"), "every fact is a line, so the bytes of facts end with a newline");
            }
            Change::NewRun(row) | Change::ReplaceRun { row, .. } => {
                assert!(!row.kind.is_empty(), "every run is of some kind")
            }
            Change::PutObject { .. }
            | Change::DeleteObject { .. }
            | Change::Expect { .. }
            | Change::ExpectRun { .. }
            | Change::SetOwners { .. }
            | Change::Tick(_)
            | Change::DropTicks { .. }
            | Change::Expire { .. }
            | Change::UpdateRun { .. }
            | Change::Finish { .. }
            | Change::StageRecord { .. }
            | Change::Rewrite { .. }
            | Change::DeleteRun { .. }
            | Change::PutIdempotencyKey { .. }
            | Change::PutToken(_)
            | Change::DeleteToken { .. }
            | Change::PutPassword(_)
            | Change::PutTimestamp { .. }
            | Change::PutDelivery(_)
            | Change::DeleteDelivery { .. }
            | Change::RetryDelivery { .. }
            | Change::BuryDelivery { .. }
            | Change::ReplayDelivery { .. }
            | Change::DropDeliveries { .. } => {}
        }
        self.bytes += change.weight();
        self.changes.push(change);
    }

    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Returns, for each run that the batch touches, how many revisions of the batch come after the run's own. A batch
    /// has one revision per touched item, and the committer gets the last of them.
    pub fn revisions_behind(&self) -> IdMap<RunId, u64> {
        let mut behind = IdMap::default();
        let (mut count, mut later) = (0, None);
        for target in self.changes.iter().rev().filter_map(Change::target) {
            count += u64::from(later.is_some_and(|later| later != target));
            later = Some(target);
            if let Target::Run(run) = target {
                behind.entry(run).or_insert(count);
            }
        }
        behind
    }
}

/// The one item whose state a change alters, as watchers see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target<'a> {
    Object { kind: &'a str, namespace: &'a str, name: &'a str },
    Run(RunId),
}

impl From<Change> for Batch {
    fn from(change: Change) -> Self {
        Self::from_iter([change])
    }
}

impl FromIterator<Change> for Batch {
    fn from_iter<I: IntoIterator<Item = Change>>(changes: I) -> Self {
        let mut batch = Self::new();
        batch.extend(changes);
        batch
    }
}

impl Extend<Change> for Batch {
    fn extend<I: IntoIterator<Item = Change>>(&mut self, changes: I) {
        changes.into_iter().for_each(|change| self.push(change));
    }
}

impl Change {
    /// Returns the staged record that this change names.
    pub(crate) fn staged(&self) -> Option<RecordId> {
        match self {
            Self::Finish { archive, .. } | Self::Rewrite { archive, .. } => archive.staged(),
            _ => None,
        }
    }

    /// Returns the item that watchers are notified of when this change is committed; `None` for what cannot be watched.
    pub(crate) fn target(&self) -> Option<Target<'_>> {
        match self {
            Self::PutObject { kind, namespace, name, .. } | Self::DeleteObject { kind, namespace, name } => {
                Some(Target::Object { kind, namespace, name })
            }
            Self::NewRun(row) | Self::ReplaceRun { row, .. } => Some(Target::Run(row.run)),
            Self::AppendFacts { run, .. }
            | Self::UpdateRun { run, .. }
            | Self::Finish { run, .. }
            | Self::Rewrite { run, .. }
            | Self::DeleteRun { run } => Some(Target::Run(*run)),
            Self::StageRecord { .. } => None,
            Self::Expect { .. } | Self::ExpectRun { .. } | Self::SetOwners { .. } => None,
            Self::Tick(_) | Self::DropTicks { .. } | Self::Expire { .. } => None,
            Self::PutIdempotencyKey { .. }
            | Self::PutToken(_)
            | Self::DeleteToken { .. }
            | Self::PutPassword(_)
            | Self::PutTimestamp { .. } => None,
            Self::PutDelivery(_)
            | Self::DeleteDelivery { .. }
            | Self::RetryDelivery { .. }
            | Self::BuryDelivery { .. }
            | Self::ReplayDelivery { .. }
            | Self::DropDeliveries { .. } => None,
        }
    }

    /// Estimates the memory that the change holds while it is queued.
    fn weight(&self) -> usize {
        let payload = match self {
            Self::PutObject { body, .. } => body.len(),
            Self::AppendFacts { lines, .. } => lines.len(),
            Self::Finish { archive, .. } | Self::Rewrite { archive, .. } => archive.weight(),
            Self::StageRecord { body, .. } => body.len(),
            Self::NewRun(row) | Self::ReplaceRun { row, .. } => row.parameters.len() + row.message.len(),
            Self::SetOwners { owners, .. } => owners.iter().map(String::len).sum(),
            Self::DeleteObject { .. }
            | Self::Expect { .. }
            | Self::ExpectRun { .. }
            | Self::UpdateRun { .. }
            | Self::DeleteRun { .. } => 0,
            Self::Tick(tick) => tick.outcome.len(),
            Self::DropTicks { .. } | Self::Expire { .. } => 0,
            Self::PutIdempotencyKey { .. }
            | Self::PutToken(_)
            | Self::DeleteToken { .. }
            | Self::PutPassword(_)
            | Self::PutTimestamp { .. } => 0,
            Self::PutDelivery(delivery) => delivery.body.len(),
            Self::RetryDelivery { reason, .. } | Self::BuryDelivery { reason, .. } => reason.len(),
            Self::DeleteDelivery { .. } | Self::ReplayDelivery { .. } | Self::DropDeliveries { .. } => 0,
        };
        payload + 256
    }
}
