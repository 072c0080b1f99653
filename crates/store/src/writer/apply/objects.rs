//! Writes stored objects, and determines which item a change touches before it is applied.

use std::sync::Arc;

use octoflow_model::Revision;
use rusqlite::{Connection, OptionalExtension};

use crate::{
    Change, ChangedItem, Error, Object,
    database::seal::{self, SecretsKey},
    error::Doing,
    rows::row::{RUN_COLUMNS, RawRun, read_object, signed, unsigned},
};

/// Kind, namespace and name.
type Key<'a> = (&'a str, &'a str, &'a str);

/// Stores a Secret encrypted, and destroys its previous value.
pub(super) fn put_sealed(
    conn: &Connection,
    master: Option<&SecretsKey>,
    revision: Revision,
    key: Key<'_>,
    uid: &str,
    body: &[u8],
) -> Result<(), Error> {
    seal::set_secure_delete(conn, true)?;
    let put = seal::seal(conn, master, key, uid, body).and_then(|sealed| put(conn, revision, key, uid, &sealed));
    seal::set_secure_delete(conn, false)?;
    put
}

pub(super) fn delete_sealed(conn: &Connection, key: Key<'_>) -> Result<(), Error> {
    seal::set_secure_delete(conn, true)?;
    let deleted = seal::destroy(conn, key).and_then(|()| delete(conn, key));
    seal::set_secure_delete(conn, false)?;
    deleted
}

pub(super) fn put(conn: &Connection, revision: Revision, key: Key<'_>, uid: &str, body: &[u8]) -> Result<(), Error> {
    conn.prepare_cached(
        "INSERT INTO objects (kind, namespace, name, uid, revision, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (kind, namespace, name) DO UPDATE
         SET uid = excluded.uid, revision = excluded.revision, body = excluded.body",
    )
    .and_then(|mut put| put.execute((key.0, key.1, key.2, uid, signed(revision.0), body)))
    .map(drop)
    .doing("store an object")
}

pub(super) fn delete(conn: &Connection, key: Key<'_>) -> Result<(), Error> {
    conn.prepare_cached("DELETE FROM objects WHERE kind = ?1 AND namespace = ?2 AND name = ?3")
        .and_then(|mut delete| delete.execute(key))
        .map(drop)
        .doing("delete an object")
}

pub(super) fn expect(conn: &Connection, key: Key<'_>, revision: Option<Revision>) -> Result<(), Error> {
    let found: Option<i64> = conn
        .prepare_cached("SELECT revision FROM objects WHERE kind = ?1 AND namespace = ?2 AND name = ?3")
        .and_then(|mut find| find.query_row(key, |row| row.get(0)).optional())
        .doing("look at an object")?;
    if found.map(|found| Revision(unsigned(found))) == revision {
        return Ok(());
    }
    let (kind, namespace, name) = (key.0.to_owned(), key.1.to_owned(), key.2.to_owned());
    Err(Error::Stale { kind, namespace, name })
}

/// Returns the item that the change is about to touch. Called before the change, while a deleted item can still be
/// read.
pub(super) fn touched(
    conn: &Connection,
    master: Option<&SecretsKey>,
    change: &Change,
) -> Result<Option<ChangedItem>, Error> {
    Ok(match change {
        Change::PutObject { kind, namespace, name, .. } => {
            let new = !exists(conn, (kind, namespace, name))?;
            Some(ChangedItem::Put { kind: kind.clone(), namespace: namespace.clone(), name: name.clone(), new })
        }
        Change::DeleteObject { kind, namespace, name } => {
            let found = find(conn, (kind, namespace, name))?;
            let found = found.map(|object| seal::open(conn, master, object)).transpose()?;
            found.map(|object| ChangedItem::Deleted(Arc::new(object)))
        }
        Change::NewRun(row) => Some(ChangedItem::NewRun {
            run: row.run,
            kind: row.kind.clone(),
            namespace: row.namespace.clone(),
            name: row.name.clone(),
        }),
        // Watchers see the same run as before, in another state.
        Change::ReplaceRun { row, .. } => Some(ChangedItem::Run(row.run)),
        Change::AppendFacts { run, .. }
        | Change::UpdateRun { run, .. }
        | Change::Finish { run, .. }
        | Change::Rewrite { run, .. } => Some(ChangedItem::Run(*run)),
        Change::DeleteRun { run } => {
            let raw = conn
                .prepare_cached(&format!("SELECT {RUN_COLUMNS} FROM runs WHERE run = ?1"))
                .and_then(|mut find| find.query_row([signed(run.0)], RawRun::read).optional())
                .doing("read a run")?;
            raw.map(RawRun::decode).transpose()?.map(|row| ChangedItem::DeletedRun(Arc::new(row)))
        }
        Change::StageRecord { .. } => None,
        Change::Expect { .. } | Change::ExpectRun { .. } | Change::SetOwners { .. } => None,
        Change::Tick(_) | Change::DropTicks { .. } | Change::Expire { .. } => None,
        Change::PutIdempotencyKey { .. }
        | Change::PutToken(_)
        | Change::DeleteToken { .. }
        | Change::PutPassword(_)
        | Change::PutTimestamp { .. } => None,
        Change::PutDelivery(_)
        | Change::DeleteDelivery { .. }
        | Change::RetryDelivery { .. }
        | Change::BuryDelivery { .. }
        | Change::ReplayDelivery { .. }
        | Change::DropDeliveries { .. } => None,
    })
}

/// Returns whether the object exists, without reading its body, which may be large.
fn exists(conn: &Connection, key: Key<'_>) -> Result<bool, Error> {
    conn.prepare_cached("SELECT 1 FROM objects WHERE kind = ?1 AND namespace = ?2 AND name = ?3")
        .and_then(|mut find| find.exists(key))
        .doing("look at an object")
}

fn find(conn: &Connection, key: Key<'_>) -> Result<Option<Object>, Error> {
    conn.prepare_cached(
        "SELECT kind, namespace, name, uid, revision, body FROM objects
         WHERE kind = ?1 AND namespace = ?2 AND name = ?3",
    )
    .and_then(|mut find| find.query_row(key, read_object).optional())
    .doing("read an object")
}
