//! Writes large final records in parts, and keeps the list of garbage that is deleted later. Parts are invisible until
//! an archive row names their record; garbage is invisible from the commit that lists it.

use octoflow_model::RunId;
use rusqlite::{Connection, OptionalExtension, ToSql, params};

use crate::{
    Error, RecordId,
    error::Doing,
    rows::row::{signed, unsigned},
};

/// Rows that are deleted in chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Garbage {
    /// Facts of a finished or deleted run.
    Facts(RunId),
    /// Parts of a record that no archive row names.
    Record(RecordId),
}

/// Limits of one deleting transaction, in rows and in bytes: less than a millisecond's work. A single row of facts may
/// exceed the bytes.
const PIECE_ROWS: u32 = 256;
const PIECE_BYTES: i64 = 256 << 10;

pub(super) fn stage(conn: &Connection, record: RecordId, run: RunId, part: u32, body: &[u8]) -> Result<(), Error> {
    let doing = "write a part of a record";
    let key = (signed(record.0), signed(run.0));
    if part == 0 {
        conn.prepare_cached("INSERT INTO staged_records (record, run) SELECT ?1, run FROM runs WHERE run = ?2")
            .and_then(|mut insert| insert.execute(key))
            .doing(doing)
            .and_then(|known| if known == 1 { Ok(()) } else { Err(Error::UnknownRun { run }) })?;
    } else {
        let staged = conn
            .prepare_cached("SELECT 1 FROM staged_records WHERE record = ?1 AND run = ?2")
            .and_then(|mut find| find.exists(key))
            .doing(doing)?;
        if !staged {
            return Err(Error::RecordDropped { run });
        }
    }
    conn.prepare_cached("INSERT INTO record_parts (record, part, body) VALUES (?1, ?2, ?3)")
        .and_then(|mut insert| insert.execute((signed(record.0), part, body)))
        .map(drop)
        .doing(doing)
}

/// Marks the record as complete. An archive row names it in the same transaction.
pub(super) fn publish(conn: &Connection, record: RecordId, run: RunId) -> Result<(), Error> {
    let published = conn
        .prepare_cached("DELETE FROM staged_records WHERE record = ?1 AND run = ?2")
        .and_then(|mut delete| delete.execute((signed(record.0), signed(run.0))))
        .doing("complete a record")?;
    if published == 1 { Ok(()) } else { Err(Error::RecordDropped { run }) }
}

/// Turns an incomplete record into garbage. Does nothing if the record is not being staged.
pub(super) fn discard(conn: &Connection, record: RecordId) -> Result<(), Error> {
    let unstaged = conn
        .prepare_cached("DELETE FROM staged_records WHERE record = ?1")
        .and_then(|mut delete| delete.execute([signed(record.0)]))
        .doing("discard a record")?;
    if unstaged == 1 { list(conn, Garbage::Record(record)) } else { Ok(()) }
}

/// Turns all staged records of a run into garbage, because the run is about to be deleted.
pub(super) fn discard_of(conn: &Connection, run: RunId) -> Result<(), Error> {
    discard_where(conn, "run = ?1", params![signed(run.0)])
}

/// Turns every staged record into garbage, because the process that staged them is gone. Returns whether there is any
/// garbage.
pub(super) fn discard_all(conn: &Connection) -> Result<bool, Error> {
    let doing = "look for garbage";
    let (garbage, staged): (bool, bool) = conn
        .query_row("SELECT EXISTS (SELECT 1 FROM garbage), EXISTS (SELECT 1 FROM staged_records)", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .doing(doing)?;
    if staged {
        let txn = conn.unchecked_transaction().doing(doing)?;
        discard_where(&txn, "true", params![])?;
        txn.commit().doing(doing)?;
    }
    Ok(garbage || staged)
}

fn discard_where(conn: &Connection, which: &str, values: &[&dyn ToSql]) -> Result<(), Error> {
    let all = [
        format!("INSERT INTO garbage (kind, id) SELECT 'record', record FROM staged_records WHERE {which}"),
        format!("DELETE FROM staged_records WHERE {which}"),
    ];
    for sql in all {
        conn.prepare_cached(&sql).and_then(|mut run| run.execute(values)).doing("discard a record")?;
    }
    Ok(())
}

/// Lists rows as garbage. They are invisible from this commit on.
pub(super) fn list(conn: &Connection, garbage: Garbage) -> Result<(), Error> {
    conn.prepare_cached("INSERT OR IGNORE INTO garbage (kind, id) VALUES (?1, ?2)")
        .and_then(|mut insert| insert.execute(garbage.key()))
        .map(drop)
        .doing("list garbage")
}

/// Deletes one chunk of the listed garbage. Returns whether there may be more.
pub(super) fn delete_piece(conn: &Connection) -> rusqlite::Result<bool> {
    let Some(garbage) = first(conn)? else { return Ok(false) };
    let (find, delete) = match garbage {
        Garbage::Facts(_) => (
            "SELECT rowid, length(lines) FROM facts WHERE run = ?1 ORDER BY first LIMIT ?2",
            "DELETE FROM facts WHERE rowid = ?1",
        ),
        Garbage::Record(_) => (
            "SELECT rowid, length(body) FROM record_parts WHERE record = ?1 ORDER BY part LIMIT ?2",
            "DELETE FROM record_parts WHERE rowid = ?1",
        ),
    };
    let (_, id) = garbage.key();
    let rows: Vec<(i64, i64)> = conn
        .prepare_cached(find)?
        .query_map((id, PIECE_ROWS), |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    if rows.is_empty() {
        conn.prepare_cached("DELETE FROM garbage WHERE kind = ?1 AND id = ?2")?.execute(garbage.key())?;
        return Ok(true);
    }
    let mut delete = conn.prepare_cached(delete)?;
    let mut bytes = 0;
    for (row, size) in rows {
        // A row that exceeds the rest of the chunk waits for a chunk of its own.
        if bytes > 0 && bytes + size > PIECE_BYTES {
            break;
        }
        delete.execute([row])?;
        bytes += size;
    }
    Ok(true)
}

pub(super) fn has_garbage(conn: &Connection) -> rusqlite::Result<bool> {
    first(conn).map(|first| first.is_some())
}

fn first(conn: &Connection) -> rusqlite::Result<Option<Garbage>> {
    conn.prepare_cached("SELECT kind = 'facts', id FROM garbage LIMIT 1")?
        .query_row([], |row| {
            let id = unsigned(row.get(1)?);
            Ok(if row.get(0)? { Garbage::Facts(RunId(id)) } else { Garbage::Record(RecordId(id)) })
        })
        .optional()
}

impl Garbage {
    fn key(self) -> (&'static str, i64) {
        match self {
            Self::Facts(run) => ("facts", signed(run.0)),
            Self::Record(record) => ("record", signed(record.0)),
        }
    }
}
