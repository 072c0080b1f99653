//! Turns groups of batches into transactions. It owns the connection that writes, and the numbers that only one
//! writer may count: revisions, the next run id, and how far each run's facts go.

use std::collections::HashMap;

use octoflow_model::{Revision, RunId};
use rusqlite::{Connection, OptionalExtension};

use crate::{
    Batch, Change, Error,
    apply::{facts::Facts, runs::Runs},
    error::Doing,
    row::{signed, unsigned},
};

mod facts;
mod runs;

pub(crate) struct Journal {
    conn: Connection,
    revision: u64,
    next_run: u64,
    /// The number the next fact of an unfinished run must have. Filled on demand.
    tails: HashMap<RunId, Option<u64>>,
}

/// Whether batches share the transaction directly, or each can be taken back alone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Footing {
    Shared,
    Separate,
}

type Outcomes = Vec<Result<Revision, Error>>;

impl Journal {
    pub(crate) fn new(conn: Connection) -> Result<Self, Error> {
        let meta = |key: &str| -> Result<u64, Error> {
            conn.query_row("SELECT value FROM meta WHERE key = ?1", [key], |row| row.get(0))
                .map(unsigned)
                .doing("read its counters")
        };
        let (revision, next_run) = (meta("revision")?, meta("next_run")?);
        Ok(Self { conn, revision, next_run, tails: HashMap::new() })
    }

    /// One transaction for all batches. The outer error means that the disk can no longer be trusted; an inner
    /// one that this batch alone was refused.
    pub(crate) fn write(&mut self, batches: &[&Batch]) -> Result<Outcomes, Error> {
        if batches.iter().all(|batch| batch.is_empty()) {
            return Ok(batches.iter().map(|_| Ok(Revision(self.revision))).collect());
        }
        // Refusals are rare, so the fast way is tried first and a group that holds one is written again.
        match self.transact(batches, Footing::Shared) {
            Err(error) if error.is_refusal() => self.transact(batches, Footing::Separate),
            outcome => outcome,
        }
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.conn
    }

    fn transact(&mut self, batches: &[&Batch], footing: Footing) -> Result<Outcomes, Error> {
        let before = (self.revision, self.next_run);
        let outcome = self.attempt(batches, footing);
        if outcome.is_err() {
            (self.revision, self.next_run) = before;
            self.tails.clear();
            if !self.conn.is_autocommit() {
                // If this fails too, the next open rolls back; nothing after this error is written anyway.
                let _ = self.conn.execute_batch("ROLLBACK");
            }
        }
        outcome
    }

    fn attempt(&mut self, batches: &[&Batch], footing: Footing) -> Result<Outcomes, Error> {
        self.run("BEGIN IMMEDIATE").doing("begin a transaction")?;
        let mut facts = Facts::default();
        let mut outcomes = Vec::with_capacity(batches.len());
        for batch in batches {
            let outcome = match footing {
                Footing::Shared => Ok(self.apply(batch, &mut facts)?),
                Footing::Separate => self.apply_apart(batch)?,
            };
            outcomes.push(outcome);
        }
        facts.flush(&self.conn)?;
        self.save_counters().doing("save its counters")?;
        self.run("COMMIT").doing("commit")?;
        Ok(outcomes)
    }

    /// Applies a batch so that a refusal leaves no trace of it.
    fn apply_apart(&mut self, batch: &Batch) -> Result<Result<Revision, Error>, Error> {
        let before = (self.revision, self.next_run);
        self.run("SAVEPOINT batch").doing("begin a batch")?;
        let mut facts = Facts::default();
        let outcome = self.apply(batch, &mut facts).and_then(|revision| {
            facts.flush(&self.conn)?;
            Ok(revision)
        });
        match outcome {
            Err(error) if !error.is_refusal() => return Err(error),
            Err(_) => {
                (self.revision, self.next_run) = before;
                self.tails.clear();
                self.run("ROLLBACK TO batch").doing("take back a batch")?;
            }
            Ok(_) => {}
        }
        self.run("RELEASE batch").doing("end a batch")?;
        Ok(outcome)
    }

    fn apply<'a>(&mut self, batch: &'a Batch, facts: &mut Facts<'a>) -> Result<Revision, Error> {
        if batch.is_empty() {
            return Ok(Revision(self.revision));
        }
        self.revision += 1;
        let revision = Revision(self.revision);
        for change in &batch.changes {
            self.change(change, revision, facts)?;
        }
        Ok(revision)
    }

    fn change<'a>(&mut self, change: &'a Change, revision: Revision, facts: &mut Facts<'a>) -> Result<(), Error> {
        let runs = Runs { conn: &self.conn, revision };
        match change {
            Change::PutObject { kind, namespace, name, uid, body } => self
                .conn
                .prepare_cached(
                    "INSERT INTO objects (kind, namespace, name, uid, revision, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                     ON CONFLICT (kind, namespace, name) DO UPDATE
                     SET uid = excluded.uid, revision = excluded.revision, body = excluded.body",
                )
                .and_then(|mut put| put.execute((kind, namespace, name, uid, signed(revision.0), body)))
                .map(drop)
                .doing("store an object"),
            Change::DeleteObject { kind, namespace, name } => self
                .conn
                .prepare_cached("DELETE FROM objects WHERE kind = ?1 AND namespace = ?2 AND name = ?3")
                .and_then(|mut delete| delete.execute((kind, namespace, name)))
                .map(drop)
                .doing("delete an object"),
            Change::NewRun(row) => {
                runs.insert(row)?;
                self.next_run = self.next_run.max(row.run.0 + 1);
                self.tails.insert(row.run, None);
                Ok(())
            }
            Change::ReplaceRun { old, row } => {
                if runs.is_open(*old)?.is_some() {
                    runs.delete(*old)?;
                    facts.drop_run(&self.conn, *old)?;
                }
                self.tails.remove(old);
                runs.insert(row)?;
                runs.adopt(*old, row.run)?;
                self.next_run = self.next_run.max(row.run.0 + 1);
                self.tails.insert(row.run, None);
                Ok(())
            }
            Change::AppendFacts { run, first, count, lines } => {
                let expected = self.tail(*run)?;
                if let Some(expected) = expected
                    && expected != *first
                {
                    return Err(Error::Gap { run: *run, expected, found: *first });
                }
                self.tails.insert(*run, Some(first + u64::from(*count)));
                facts.append(&self.conn, *run, *first, *count, revision, lines)
            }
            Change::UpdateRun { run, row } => runs.update(*run, row, runs::Fate::Same),
            Change::Finish { run, archive, row } => {
                self.tail(*run)?;
                self.tails.remove(run);
                facts.drop_run(&self.conn, *run)?;
                let runs = Runs { conn: &self.conn, revision };
                runs.archive(*run, archive)?;
                runs.update(*run, row, runs::Fate::Finished)
            }
            Change::Rewrite { run, archive } => runs.rewrite(*run, archive),
            Change::DeleteRun { run } => {
                runs.delete(*run)?;
                self.tails.remove(run);
                facts.drop_run(&self.conn, *run)
            }
        }
    }

    /// The number the run's next fact must have, if it has facts already. Refuses runs that take no facts.
    fn tail(&mut self, run: RunId) -> Result<Option<u64>, Error> {
        if let Some(tail) = self.tails.get(&run) {
            return Ok(*tail);
        }
        match (Runs { conn: &self.conn, revision: Revision(self.revision) }).is_open(run)? {
            None => return Err(Error::UnknownRun { run }),
            Some(false) => return Err(Error::RunFinished { run }),
            Some(true) => {}
        }
        let tail = self
            .conn
            .prepare_cached("SELECT first + count FROM facts WHERE run = ?1 ORDER BY first DESC LIMIT 1")
            .and_then(|mut last| last.query_row([signed(run.0)], |row| row.get(0)).optional())
            .doing("find the last fact of a run")?
            .map(unsigned);
        self.tails.insert(run, tail);
        Ok(tail)
    }

    fn save_counters(&self) -> rusqlite::Result<()> {
        let mut save = self.conn.prepare_cached("UPDATE meta SET value = ?2 WHERE key = ?1 AND value <> ?2")?;
        save.execute(("revision", signed(self.revision)))?;
        save.execute(("next_run", signed(self.next_run)))?;
        Ok(())
    }

    fn run(&self, sql: &str) -> rusqlite::Result<()> {
        self.conn.prepare_cached(sql)?.execute([]).map(drop)
    }
}
