//! Reads tokens, passwords, idempotency keys and named timestamps.

use octoflow_model::{RunId, Time};
use rusqlite::OptionalExtension;

use super::Reader;
use crate::{Error, IdempotencyKey, Password, Token, error::Doing, rows::row::unsigned};

impl Reader {
    /// Returns all tokens, oldest first.
    pub fn tokens(&self) -> Result<Vec<Token>, Error> {
        self.conn
            .prepare_cached("SELECT id, hash, who, note, privileges, created, expires FROM tokens ORDER BY created, id")
            .and_then(|mut find| {
                find.query_map([], |row| {
                    Ok(Token {
                        id: row.get(0)?,
                        hash: row.get(1)?,
                        who: row.get(2)?,
                        note: row.get(3)?,
                        privileges: row.get(4)?,
                        created: Time(row.get(5)?),
                        expires: row.get::<_, Option<i64>>(6)?.map(Time),
                    })
                })?
                .collect()
            })
            .doing("list tokens")
    }

    pub fn password(&self, who: &str) -> Result<Option<Password>, Error> {
        self.conn
            .prepare_cached("SELECT who, salt, rounds, hash, changed FROM passwords WHERE who = ?1")
            .and_then(|mut find| {
                find.query_row([who], |row| {
                    Ok(Password {
                        who: row.get(0)?,
                        salt: row.get(1)?,
                        rounds: row.get(2)?,
                        hash: row.get(3)?,
                        changed: Time(row.get(4)?),
                    })
                })
                .optional()
            })
            .doing("read a password")
    }

    /// Returns the run that was created for this key, unless the key has expired.
    pub fn idempotency_key(&self, scope: &str, key: &str, now: Time) -> Result<Option<IdempotencyKey>, Error> {
        let found: Option<(Vec<u8>, i64, i64)> = self
            .conn
            .prepare_cached("SELECT print, run, expires FROM claims WHERE scope = ?1 AND key = ?2 AND expires > ?3")
            .and_then(|mut find| {
                find.query_row((scope, key, now.0), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()
            })
            .doing("look for a key")?;
        Ok(found.map(|(fingerprint, run, expires)| IdempotencyKey {
            scope: scope.to_owned(),
            key: key.to_owned(),
            fingerprint,
            run: RunId(unsigned(run)),
            expires: Time(expires),
        }))
    }

    pub fn timestamp(&self, name: &str) -> Result<Option<Time>, Error> {
        self.conn
            .prepare_cached("SELECT at FROM marks WHERE name = ?1")
            .and_then(|mut find| find.query_row([name], |row| row.get(0)).optional())
            .doing("read a timestamp")
            .map(|found| found.map(Time))
    }
}
