//! Rows of the run index, from which lists are made, and stored objects. Owns how both map to columns; never interprets
//! phases and kinds.

use std::{collections::BTreeMap, sync::Arc};

use octoflow_model::{Revision, RunId, Time};
use rusqlite::Row;

use crate::Error;

/// One row of the run index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRow {
    pub run: RunId,
    pub namespace: String,
    pub kind: String,
    /// Unique within namespace and kind.
    pub name: String,
    pub uid: String,
    pub phase: String,
    pub message: String,
    /// Creation time, which never changes: lists are ordered by it.
    pub created: Time,
    pub started: Option<Time>,
    pub finished: Option<Time>,
    pub labels: BTreeMap<String, String>,
    /// Done and total as the dialect writes them, such as `3/10`.
    pub progress: String,
    pub priority: i64,
    /// The arguments as JSON, opaque to the store. Lists leave them empty.
    pub parameters: String,
    /// Run that started this one.
    pub parent: Option<RunId>,
    /// True if the final record is in the archive. Set by the store; a new run never is archived.
    pub archived: bool,
    /// Revision of the commit that last touched this row. Set by the store.
    pub revision: Revision,
}

/// New values for a run's row; `None` keeps the old value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunUpdate {
    pub phase: Option<String>,
    pub message: Option<String>,
    pub started: Option<Time>,
    pub finished: Option<Time>,
    /// All labels of the run, not only the new ones.
    pub labels: Option<BTreeMap<String, String>>,
    pub progress: Option<String>,
    pub priority: Option<i64>,
}

/// An object as it was submitted, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    pub kind: String,
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub revision: Revision,
    pub body: Vec<u8>,
}

impl RunRow {
    pub fn new(run: RunId, namespace: &str, kind: &str, name: &str, uid: &str, created: Time) -> Self {
        Self {
            run,
            namespace: namespace.to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
            uid: uid.to_owned(),
            phase: String::new(),
            message: String::new(),
            created,
            started: None,
            finished: None,
            labels: BTreeMap::new(),
            progress: String::new(),
            priority: 0,
            parameters: "{}".to_owned(),
            parent: None,
            archived: false,
            revision: Revision(0),
        }
    }
}

pub(crate) const RUN_COLUMNS: &str = "run, namespace, kind, name, uid, phase, message, created, started, finished, \
     labels, progress, priority, parameters, parent, open, revision";

/// The same without the parameters.
pub(crate) const LISTED_COLUMNS: &str = "run, namespace, kind, name, uid, phase, message, created, started, finished, \
     labels, progress, priority, '', parent, open, revision";

/// A row as stored. Labels are still text because a damaged text is not an error of the database.
pub(crate) struct RawRun {
    row: RunRow,
    labels: String,
}

impl RawRun {
    pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            row: RunRow {
                run: RunId(unsigned(row.get(0)?)),
                namespace: row.get(1)?,
                kind: row.get(2)?,
                name: row.get(3)?,
                uid: row.get(4)?,
                phase: row.get(5)?,
                message: row.get(6)?,
                created: Time(row.get(7)?),
                started: row.get::<_, Option<i64>>(8)?.map(Time),
                finished: row.get::<_, Option<i64>>(9)?.map(Time),
                labels: BTreeMap::new(),
                progress: row.get(11)?,
                priority: row.get(12)?,
                parameters: row.get(13)?,
                parent: row.get::<_, Option<i64>>(14)?.map(|parent| RunId(unsigned(parent))),
                archived: row.get::<_, i64>(15)? == 0,
                revision: Revision(unsigned(row.get(16)?)),
            },
            labels: row.get(10)?,
        })
    }

    pub(crate) fn decode(mut self) -> Result<RunRow, Error> {
        self.row.labels = decode_labels(self.row.run, &self.labels)?;
        Ok(self.row)
    }
}

pub(crate) fn read_object(row: &Row<'_>) -> rusqlite::Result<Object> {
    Ok(Object {
        kind: row.get(0)?,
        namespace: row.get(1)?,
        name: row.get(2)?,
        uid: row.get(3)?,
        revision: Revision(unsigned(row.get(4)?)),
        body: row.get(5)?,
    })
}

pub(crate) fn encode_labels(labels: &BTreeMap<String, String>) -> String {
    serde_json::to_string(labels).expect("a map of texts is always valid JSON")
}

pub(crate) fn decode_labels(run: RunId, text: &str) -> Result<BTreeMap<String, String>, Error> {
    serde_json::from_str(text)
        .map_err(|source| Error::Damaged { what: format!("the labels of run {run}"), source: Arc::new(source) })
}

/// Converts to the signed integers of the database. Ids and sequence numbers count up from zero and never come near the
/// limit.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).expect("ids and sequence numbers stay below 2^63")
}

pub(crate) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).expect("ids and sequence numbers are never negative")
}
