//! Gathers the facts of a transaction so that each run gets one row, however many batches they came in.
//! It never looks into a fact.

use std::{borrow::Cow, collections::BTreeMap};

use octoflow_model::{Revision, RunId};
use rusqlite::Connection;

use crate::{Error, error::Doing, rows::row::signed};

/// Size at which a row of facts is written out, so that a reader never needs much memory for one row.
const ROW_BYTES: usize = 1 << 20;

#[derive(Default)]
pub(super) struct Facts<'a> {
    waiting: BTreeMap<RunId, Waiting<'a>>,
}

struct Waiting<'a> {
    first: u64,
    count: u64,
    revision: Revision,
    lines: Cow<'a, [u8]>,
}

impl<'a> Facts<'a> {
    /// Buffers facts of a run. The caller has checked that their numbers continue without a gap.
    pub(super) fn append(
        &mut self,
        conn: &Connection,
        run: RunId,
        first: u64,
        count: u32,
        revision: Revision,
        lines: &'a [u8],
    ) -> Result<(), Error> {
        let fresh = Waiting { first, count: count.into(), revision, lines: Cow::Borrowed(lines) };
        let Some(waiting) = self.waiting.get_mut(&run) else {
            self.waiting.insert(run, fresh);
            return Ok(());
        };
        if waiting.lines.len() + lines.len() > ROW_BYTES {
            waiting.insert(conn, run).doing("store facts")?;
            *waiting = fresh;
        } else {
            waiting.lines.to_mut().extend_from_slice(lines);
            waiting.count += u64::from(count);
            waiting.revision = revision;
        }
        Ok(())
    }

    /// Discards the buffered facts of a run whose stored facts are deleted later.
    pub(super) fn forget(&mut self, run: RunId) {
        self.waiting.remove(&run);
    }

    /// Deletes the run's facts, buffered and stored.
    pub(super) fn drop_run(&mut self, conn: &Connection, run: RunId) -> Result<(), Error> {
        self.waiting.remove(&run);
        conn.prepare_cached("DELETE FROM facts WHERE run = ?1")
            .and_then(|mut delete| delete.execute([signed(run.0)]))
            .map(drop)
            .doing("delete facts")
    }

    pub(super) fn flush(&mut self, conn: &Connection) -> Result<(), Error> {
        while let Some((run, waiting)) = self.waiting.pop_first() {
            waiting.insert(conn, run).doing("store facts")?;
        }
        Ok(())
    }
}

impl Waiting<'_> {
    fn insert(&self, conn: &Connection, run: RunId) -> rusqlite::Result<()> {
        conn.prepare_cached("INSERT INTO facts (run, first, count, revision, lines) VALUES (?1, ?2, ?3, ?4, ?5)")?
            .execute((
                signed(run.0),
                signed(self.first),
                signed(self.count),
                signed(self.revision.0),
                self.lines.as_ref(),
            ))
            .map(drop)
    }
}
