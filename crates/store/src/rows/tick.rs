//! Reads the ticks of schedules and the expiry times of finished runs; owns their types.

use octoflow_model::{RunId, Time};
use rusqlite::{OptionalExtension, Row};

use crate::{
    Error, Reader, RunRow,
    error::Doing,
    rows::row::{signed, unsigned},
};

/// A time of a schedule that was handled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tick {
    /// Uid of the schedule.
    pub uid: String,
    /// Scheduled time.
    pub nominal: Time,
    /// Time at which the tick was handled.
    pub at: Time,
    pub run: Option<RunId>,
    /// Outcome in a word or a sentence.
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

    /// Returns the newest scheduled time not after `until` that was handled.
    pub fn newest_tick(&self, uid: &str, until: Time) -> Result<Option<Time>, Error> {
        self.conn
            .prepare_cached("SELECT max(nominal) FROM cron_ticks WHERE uid = ?1 AND nominal <= ?2")
            .and_then(|mut find| find.query_row((uid, until.0), |row| row.get::<_, Option<i64>>(0)))
            .map(|found| found.map(Time))
            .doing("read the last tick")
    }

    /// Returns the ticks handled last, newest first.
    pub fn ticks(&self, uid: &str, limit: usize) -> Result<Vec<Tick>, Error> {
        self.conn
            .prepare_cached(&format!("SELECT {COLUMNS} FROM cron_ticks WHERE uid = ?1 ORDER BY seq DESC LIMIT ?2"))
            .and_then(|mut find| find.query_map((uid, signed(limit as u64)), read)?.collect())
            .doing("read ticks")
    }

    /// Returns the uids of schedules that have ticks.
    pub fn tick_owners(&self) -> Result<Vec<String>, Error> {
        self.conn
            .prepare_cached("SELECT DISTINCT uid FROM cron_ticks")
            .and_then(|mut find| find.query_map([], |row| row.get(0))?.collect())
            .doing("read who has ticks")
    }

    /// Returns the runs with an expiry time, the earliest first.
    pub fn expiries(&self, limit: usize) -> Result<Vec<(Time, RunId)>, Error> {
        self.conn
            .prepare_cached("SELECT due, run FROM expiries ORDER BY due, run LIMIT ?1")
            .and_then(|mut find| {
                let pair = |row: &Row<'_>| Ok((Time(row.get(0)?), RunId(unsigned(row.get(1)?))));
                find.query_map([signed(limit as u64)], pair)?.collect()
            })
            .doing("read what is to be deleted")
    }

    /// Returns finished runs of a kind and phase, in the order in which they finished.
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
