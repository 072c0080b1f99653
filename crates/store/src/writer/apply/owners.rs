//! Writes owner references and pending deletions, for objects and runs alike.

use octoflow_model::{Revision, RunId};
use rusqlite::{Connection, OptionalExtension};

use crate::{
    Error,
    error::Doing,
    rows::row::{signed, unsigned},
};

/// Kind, namespace and name.
type Key<'a> = (&'a str, &'a str, &'a str);

/// Replaces the owners and the deletion flag of an object or run.
pub(super) fn set(conn: &Connection, key: Key<'_>, owners: &[String], deleting: bool) -> Result<(), Error> {
    remove(conn, key)?;
    for owner in owners {
        conn.prepare_cached("INSERT OR IGNORE INTO owners (owner, kind, namespace, name) VALUES (?1, ?2, ?3, ?4)")
            .and_then(|mut put| put.execute((owner, key.0, key.1, key.2)))
            .doing("store the owners of an object")?;
    }
    if deleting {
        conn.prepare_cached("INSERT OR IGNORE INTO leaving (kind, namespace, name) VALUES (?1, ?2, ?3)")
            .and_then(|mut put| put.execute(key))
            .doing("note a deletion")?;
    }
    Ok(())
}

/// Removes all owner references and the deletion flag of an object or run.
pub(super) fn remove(conn: &Connection, key: Key<'_>) -> Result<(), Error> {
    for sql in [
        "DELETE FROM owners WHERE kind = ?1 AND namespace = ?2 AND name = ?3",
        "DELETE FROM leaving WHERE kind = ?1 AND namespace = ?2 AND name = ?3",
    ] {
        conn.prepare_cached(sql).and_then(|mut delete| delete.execute(key)).doing("forget the owners of an object")?;
    }
    Ok(())
}

/// Does the same for a run that is about to be deleted.
pub(super) fn remove_run(conn: &Connection, run: RunId) -> Result<(), Error> {
    let found: Option<(String, String, String)> = conn
        .prepare_cached("SELECT kind, namespace, name FROM runs WHERE run = ?1")
        .and_then(|mut find| {
            find.query_row([signed(run.0)], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()
        })
        .doing("find a run")?;
    match found {
        Some((kind, namespace, name)) => remove(conn, (&kind, &namespace, &name)),
        None => Ok(()),
    }
}

/// Refuses the batch unless the run's row is still at this revision.
pub(super) fn expect_run(conn: &Connection, run: RunId, revision: Revision) -> Result<(), Error> {
    let found: Option<(i64, String, String, String)> = conn
        .prepare_cached("SELECT revision, kind, namespace, name FROM runs WHERE run = ?1")
        .and_then(|mut find| {
            let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
            find.query_row([signed(run.0)], read).optional()
        })
        .doing("look at a run")?;
    let (found, kind, namespace, name) = found.ok_or(Error::UnknownRun { run })?;
    if Revision(unsigned(found)) == revision { Ok(()) } else { Err(Error::Stale { kind, namespace, name }) }
}
