//! What was done about each time of a schedule, and when finished runs are to go: reading and its types.

use octoflow_model::{RunId, Time};
use rusqlite::{OptionalExtension, Row};

use crate::{
    Error, Reader, RunRow,
    error::Doing,
    row::{signed, unsigned},
};

/// A time of a schedule that was dealt with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tick {
    /// The schedule's.
    pub uid: String,
    /// The time itself.
    pub nominal: Time,
    /// When it was dealt with.
    pub at: Time,
    pub run: Option<RunId>,
    /// In a word or a sentence.
    pub outcome: String,
}

const COLUMNS: &str = "uid, nominal, at, run, outcome";

impl Reader {
    pub fn tick(&self, uid: &str, nominal: Time) -> Result<Option<Tick>, Error> {
        self.conn
            .prepare_cached(&format!("SELECT {COLUMNS} FROM cron_ticks WHERE uid = ?1 AND nominal = ?2"))
            .and_then(|mut find| find.query_row((uid, nominal.0), read).optional())
            .doing("read a tick")
    }

    /// The newest time that was dealt with and is not after this one.
    pub fn newest_tick(&self, uid: &str, until: Time) -> Result<Option<Time>, Error> {
        self.conn
            .prepare_cached("SELECT max(nominal) FROM cron_ticks WHERE uid = ?1 AND nominal <= ?2")
            .and_then(|mut find| find.query_row((uid, until.0), |row| row.get::<_, Option<i64>>(0)))
            .map(|found| found.map(Time))
            .doing("read the last tick")
    }

    /// The last times that were dealt with, newest first.
    pub fn ticks(&self, uid: &str, limit: usize) -> Result<Vec<Tick>, Error> {
        self.conn
            .prepare_cached(&format!("SELECT {COLUMNS} FROM cron_ticks WHERE uid = ?1 ORDER BY seq DESC LIMIT ?2"))
            .and_then(|mut find| find.query_map((uid, signed(limit as u64)), read)?.collect())
            .doing("read ticks")
    }

    /// The schedules that have any.
    pub fn tick_owners(&self) -> Result<Vec<String>, Error> {
        self.conn
            .prepare_cached("SELECT DISTINCT uid FROM cron_ticks")
            .and_then(|mut find| find.query_map([], |row| row.get(0))?.collect())
            .doing("read who has ticks")
    }

    /// Runs that are to be deleted, with the time for it, the earliest first.
    pub fn expiries(&self, limit: usize) -> Result<Vec<(Time, RunId)>, Error> {
        self.conn
            .prepare_cached("SELECT due, run FROM expiries ORDER BY due, run LIMIT ?1")
            .and_then(|mut find| {
                let pair = |row: &Row<'_>| Ok((Time(row.get(0)?), RunId(unsigned(row.get(1)?))));
                find.query_map([signed(limit as u64)], pair)?.collect()
            })
            .doing("read what is to be deleted")
    }

    /// Finished runs of a kind and phase, those that ended first before the others.
    pub fn finished(&self, kind: &str, phase: &str, limit: usize) -> Result<Vec<RunRow>, Error> {
        let which = "WHERE open = 0 AND kind = ?1 AND phase = ?2 ORDER BY finished, run LIMIT ?3";
        self.many_runs(which, (kind, phase, signed(limit as u64)))
    }

    pub fn count_finished(&self, kind: &str, phase: &str) -> Result<u64, Error> {
        self.conn
            .prepare_cached("SELECT count(*) FROM runs WHERE open = 0 AND kind = ?1 AND phase = ?2")
            .and_then(|mut count| count.query_row((kind, phase), |row| row.get(0)))
            .map(unsigned)
            .doing("count runs")
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<Tick> {
    Ok(Tick {
        uid: row.get(0)?,
        nominal: Time(row.get(1)?),
        at: Time(row.get(2)?),
        run: row.get::<_, Option<i64>>(3)?.map(|run| RunId(unsigned(run))),
        outcome: row.get(4)?,
    })
}
