//! Writes deliveries. Of the events of one run for one plugin, exactly one is next as long as any is to be sent. They go out
//! in the order in which they were stored: a run that is done again has its uid, and counts its events anew.

use octoflow_model::Time;
use rusqlite::{Connection, OptionalExtension, Params};

use crate::{Delivery, Error, error::Doing, rows::delivery::DeliveryStatus};

pub(super) fn put(conn: &Connection, delivery: &Delivery) -> Result<(), Error> {
    let Delivery { event, plugin, run, job, namespace, sequence, state, body, created, due, .. } = delivery;
    let values = (event, plugin, run, job, namespace, sequence, state, body, created.0, due.0);
    write(
        conn,
        "INSERT OR IGNORE INTO deliveries
             (event, plugin, run, job, namespace, sequence, state, body, created, due, tries, status, reason)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 0,
                 NOT EXISTS (SELECT 1 FROM deliveries WHERE plugin = ?2 AND run = ?3 AND status < 2), '')",
        values,
    )
}

pub(super) fn delete(conn: &Connection, event: &str) -> Result<(), Error> {
    let Some(chain) = chain(conn, event)? else { return Ok(()) };
    write(conn, "DELETE FROM deliveries WHERE event = ?1", [event])?;
    advance(conn, &chain)
}

pub(super) fn retry(conn: &Connection, event: &str, due: Time, reason: &str) -> Result<(), Error> {
    let sql = "UPDATE deliveries SET tries = tries + 1, due = ?2, reason = ?3 WHERE event = ?1 AND status < 2";
    write(conn, sql, (event, due.0, reason))
}

pub(super) fn bury(conn: &Connection, event: &str, reason: &str, keep: u32) -> Result<(), Error> {
    let Some(chain) = chain(conn, event)? else { return Ok(()) };
    let dead = DeliveryStatus::Dead.number();
    let sql = "UPDATE deliveries SET tries = tries + 1, status = ?2, reason = ?3 WHERE event = ?1 AND status < 2";
    write(conn, sql, (event, dead, reason))?;
    let sql = "DELETE FROM deliveries WHERE id IN (
                   SELECT id FROM deliveries WHERE plugin = ?1 AND status = ?2 ORDER BY id DESC
                   LIMIT 64 OFFSET ?3)";
    write(conn, sql, (&chain.0, dead, keep))?;
    advance(conn, &chain)
}

pub(super) fn replay(conn: &Connection, event: &str, due: Time) -> Result<(), Error> {
    let Some(chain) = chain(conn, event)? else { return Ok(()) };
    let sql = "UPDATE deliveries SET status = ?3, tries = 0, due = ?2, reason = '' WHERE event = ?1 AND status = 2";
    write(conn, sql, (event, due.0, DeliveryStatus::Behind.number()))?;
    advance(conn, &chain)
}

pub(super) fn drop_all(conn: &Connection, plugin: &str) -> Result<(), Error> {
    write(conn, "DELETE FROM deliveries WHERE plugin = ?1", [plugin])
}

/// Plugin and run of a delivery.
type Chain = (String, String);

fn chain(conn: &Connection, event: &str) -> Result<Option<Chain>, Error> {
    conn.prepare_cached("SELECT plugin, run FROM deliveries WHERE event = ?1")
        .and_then(|mut find| find.query_row([event], |row| Ok((row.get(0)?, row.get(1)?))).optional())
        .doing("read a delivery")
}

/// Makes the first that is still to be sent the next, unless another one is.
fn advance(conn: &Connection, (plugin, run): &Chain) -> Result<(), Error> {
    write(
        conn,
        "UPDATE deliveries SET status = 1
         WHERE plugin = ?1 AND run = ?2
           AND NOT EXISTS (SELECT 1 FROM deliveries WHERE plugin = ?1 AND run = ?2 AND status = 1)
           AND id = (SELECT min(id) FROM deliveries WHERE plugin = ?1 AND run = ?2 AND status = 0)",
        (plugin, run),
    )
}

fn write(conn: &Connection, sql: &str, values: impl Params) -> Result<(), Error> {
    conn.prepare_cached(sql).and_then(|mut statement| statement.execute(values)).map(drop).doing("store a delivery")
}
