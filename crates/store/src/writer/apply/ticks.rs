//! Writes the ticks of schedules, and the expiry times of finished runs.

use octoflow_model::{RunId, Time};
use rusqlite::{Connection, ErrorCode};

use crate::{Error, Tick, error::Doing, rows::row::signed};

/// Ticks kept per schedule, in order of insertion: a week of a schedule that fires every minute. An older tick could
/// only fire again if the clock went back further than that.
const MAX_TICKS: i64 = 10_000;

pub(super) fn insert(conn: &Connection, tick: &Tick) -> Result<(), Error> {
    let inserted = conn
        .prepare_cached("INSERT INTO cron_ticks (uid, nominal, at, run, outcome) VALUES (?1, ?2, ?3, ?4, ?5)")
        .and_then(|mut insert| {
            let run = tick.run.map(|run| signed(run.0));
            insert.execute((&tick.uid, tick.nominal.0, tick.at.0, run, &tick.outcome))
        });
    match inserted {
        Ok(_) => {}
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
            return Err(Error::TickTaken { uid: tick.uid.clone(), nominal: tick.nominal });
        }
        Err(error) => return Err(error).doing("store a tick"),
    }
    conn.prepare_cached(
        "DELETE FROM cron_ticks WHERE uid = ?1 AND seq <=
             (SELECT seq FROM cron_ticks WHERE uid = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2)",
    )
    .and_then(|mut prune| prune.execute((&tick.uid, MAX_TICKS)))
    .map(drop)
    .doing("delete old ticks")
}

pub(super) fn drop_all(conn: &Connection, uid: &str) -> Result<(), Error> {
    conn.prepare_cached("DELETE FROM cron_ticks WHERE uid = ?1")
        .and_then(|mut delete| delete.execute([uid]))
        .map(drop)
        .doing("delete ticks")
}

pub(super) fn expire(conn: &Connection, run: RunId, due: Option<Time>) -> Result<(), Error> {
    let done = match due {
        Some(due) => conn
            .prepare_cached("INSERT OR REPLACE INTO expiries (run, due) VALUES (?1, ?2)")
            .and_then(|mut put| put.execute((signed(run.0), due.0))),
        None => conn
            .prepare_cached("DELETE FROM expiries WHERE run = ?1")
            .and_then(|mut delete| delete.execute([signed(run.0)])),
    };
    done.map(drop).doing("store the expiry of a run")
}
