//! What a caller asks the store to make durable, all of it or nothing.
//! Changes are plain data; applying them is the writer's business.

use std::collections::HashMap;

use octoflow_model::{Revision, RunId, Time};

use crate::{Archive, Claim, Password, RecordId, RunRow, RunUpdate, Tick, Token};

/// Changes that become durable together, applied in order.
#[derive(Debug, Default)]
pub struct Batch {
    pub(crate) changes: Vec<Change>,
    pub(crate) bytes: usize,
}

#[derive(Debug)]
pub enum Change {
    /// Creates the object or replaces it. Its revision is one of the batch's own.
    PutObject {
        kind: String,
        namespace: String,
        name: String,
        uid: String,
        body: Vec<u8>,
    },
    /// Deleting what is not there is no error.
    DeleteObject {
        kind: String,
        namespace: String,
        name: String,
    },
    /// Refused unless the object is just as it was at this revision; `None`: unless there is no such object.
    Expect {
        kind: String,
        namespace: String,
        name: String,
        revision: Option<Revision>,
    },
    /// Refused unless the run's row is just as it was at this revision.
    ExpectRun {
        run: RunId,
        revision: Revision,
    },
    /// The object or run of that name belongs to whoever has these uids, and is or is not on its way out. Replaces what
    /// was said before; forgotten with the object or the run.
    Tie {
        kind: String,
        namespace: String,
        name: String,
        owners: Vec<String>,
        leaving: bool,
    },
    /// Refused when the id is taken, or the name within namespace and kind.
    NewRun(Box<RunRow>),
    /// The same for a run that takes the place of another, which is forgotten as by `DeleteRun`. The runs the other one
    /// started are its own from then on. The other one may be gone already.
    ReplaceRun {
        old: RunId,
        row: Box<RunRow>,
    },
    /// `lines` are `count` lines of JSON, each ended by a newline. The first fact of a run may have any number,
    /// every later one must go on where the last ended.
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
    /// Stores the final record and drops the facts. Afterwards the run takes no more facts. Many facts are only hidden by
    /// it and deleted later, piece by piece.
    Finish {
        run: RunId,
        archive: Archive,
        row: RunUpdate,
    },
    /// Writes one part of a run's final record, which means nothing until `Finish` or `Rewrite` names it. `Store::stage`
    /// makes these. Refused when the run is gone, or when what was written before was thrown away.
    StageRecord {
        record: RecordId,
        run: RunId,
        part: u32,
        body: Vec<u8>,
    },
    /// Replaces the final record of a finished run. Nothing happens when there is none.
    Rewrite {
        run: RunId,
        archive: Archive,
    },
    /// Notes what was done about a time of a schedule. Refused when something was done about it before.
    Tick(Box<Tick>),
    /// Forgets everything done about the times of a schedule.
    DropTicks {
        uid: String,
    },
    /// When a finished run is to be deleted; `None`: never.
    Expire {
        run: RunId,
        due: Option<Time>,
    },
    /// Forgets the run wherever it stands: index, labels, facts, archive. Its object is deleted separately.
    DeleteRun {
        run: RunId,
    },
    /// Remembers what was made for a key; what has expired by `now` is forgotten.
    Claim {
        claim: Box<Claim>,
        now: Time,
    },
    /// Creates the token or replaces the one with its id.
    PutToken(Box<Token>),
    /// Deleting what is not there is no error.
    DeleteToken {
        id: String,
    },
    PutPassword(Box<Password>),
    Mark {
        name: String,
        at: Time,
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
            | Change::Tie { .. }
            | Change::Tick(_)
            | Change::DropTicks { .. }
            | Change::Expire { .. }
            | Change::UpdateRun { .. }
            | Change::Finish { .. }
            | Change::StageRecord { .. }
            | Change::Rewrite { .. }
            | Change::DeleteRun { .. }
            | Change::Claim { .. }
            | Change::PutToken(_)
            | Change::DeleteToken { .. }
            | Change::PutPassword(_)
            | Change::Mark { .. } => {}
        }
        self.bytes += change.weight();
        self.changes.push(change);
    }

    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// By run that the batch touches: how many revisions of the batch come after the run's own. A batch has one revision
    /// for each thing that it touches, and whoever commits it is told the last of them.
    pub fn revisions_behind(&self) -> HashMap<RunId, u64> {
        let mut behind = HashMap::new();
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

/// The one thing whose state a change alters, as watchers see it.
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
    /// The record in parts that this names.
    pub(crate) fn staged(&self) -> Option<RecordId> {
        match self {
            Self::Finish { archive, .. } | Self::Rewrite { archive, .. } => archive.staged(),
            _ => None,
        }
    }

    /// What watchers hear of when this is committed; nothing for what nobody can watch.
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
            Self::Expect { .. } | Self::ExpectRun { .. } | Self::Tie { .. } => None,
            Self::Tick(_) | Self::DropTicks { .. } | Self::Expire { .. } => None,
            Self::Claim { .. }
            | Self::PutToken(_)
            | Self::DeleteToken { .. }
            | Self::PutPassword(_)
            | Self::Mark { .. } => None,
        }
    }

    /// Roughly the memory it holds while it waits for the writer.
    fn weight(&self) -> usize {
        let payload = match self {
            Self::PutObject { body, .. } => body.len(),
            Self::AppendFacts { lines, .. } => lines.len(),
            Self::Finish { archive, .. } | Self::Rewrite { archive, .. } => archive.weight(),
            Self::StageRecord { body, .. } => body.len(),
            Self::NewRun(row) | Self::ReplaceRun { row, .. } => row.parameters.len() + row.message.len(),
            Self::Tie { owners, .. } => owners.iter().map(String::len).sum(),
            Self::DeleteObject { .. }
            | Self::Expect { .. }
            | Self::ExpectRun { .. }
            | Self::UpdateRun { .. }
            | Self::DeleteRun { .. } => 0,
            Self::Tick(tick) => tick.outcome.len(),
            Self::DropTicks { .. } | Self::Expire { .. } => 0,
            Self::Claim { .. }
            | Self::PutToken(_)
            | Self::DeleteToken { .. }
            | Self::PutPassword(_)
            | Self::Mark { .. } => 0,
        };
        payload + 256
    }
}
