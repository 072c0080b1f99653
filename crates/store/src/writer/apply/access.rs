//! Writes tokens, passwords, idempotency keys and named timestamps. None of these changes is ever refused.

use octoflow_model::Time;
use rusqlite::Connection;

use crate::{Error, IdempotencyKey, Password, Token, error::Doing, rows::row::signed};

/// Stores an idempotency key in the place of an expired one, and deletes some others that have expired.
pub(super) fn put_idempotency_key(conn: &Connection, key: &IdempotencyKey, now: Time) -> Result<(), Error> {
    const AT_ONCE: u32 = 64;
    conn.prepare_cached(
        "DELETE FROM claims WHERE (scope, key) IN (SELECT scope, key FROM claims WHERE expires <= ?1 LIMIT ?2)",
    )
    .and_then(|mut delete| delete.execute((now.0, AT_ONCE)))
    .doing("delete expired keys")?;
    conn.prepare_cached("INSERT OR REPLACE INTO claims (scope, key, print, run, expires) VALUES (?1, ?2, ?3, ?4, ?5)")
        .and_then(|mut put| put.execute((&key.scope, &key.key, &key.fingerprint, signed(key.run.0), key.expires.0)))
        .map(drop)
        .doing("store a key")
}

pub(super) fn put_token(conn: &Connection, token: &Token) -> Result<(), Error> {
    conn.prepare_cached(
        "INSERT OR REPLACE INTO tokens (id, hash, who, note, privileges, created, expires)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )
    .and_then(|mut put| {
        put.execute((
            &token.id,
            &token.hash,
            &token.who,
            &token.note,
            &token.privileges,
            token.created.0,
            token.expires.map(|at| at.0),
        ))
    })
    .map(drop)
    .doing("store a token")
}

pub(super) fn delete_token(conn: &Connection, id: &str) -> Result<(), Error> {
    conn.prepare_cached("DELETE FROM tokens WHERE id = ?1")
        .and_then(|mut delete| delete.execute([id]))
        .map(drop)
        .doing("delete a token")
}

pub(super) fn put_password(conn: &Connection, password: &Password) -> Result<(), Error> {
    conn.prepare_cached(
        "INSERT OR REPLACE INTO passwords (who, salt, rounds, hash, changed) VALUES (?1, ?2, ?3, ?4, ?5)",
    )
    .and_then(|mut put| {
        put.execute((&password.who, &password.salt, password.rounds, &password.hash, password.changed.0))
    })
    .map(drop)
    .doing("store a password")
}

pub(super) fn put_timestamp(conn: &Connection, name: &str, at: Time) -> Result<(), Error> {
    conn.prepare_cached("INSERT OR REPLACE INTO marks (name, at) VALUES (?1, ?2)")
        .and_then(|mut put| put.execute((name, at.0)))
        .map(drop)
        .doing("store a timestamp")
}
