//! Applies groups of batches as transactions. Owns the writing connection and the counters that only one writer may
//! advance: revisions, the next run id, and the fact number each run has reached.

use octoflow_model::{IdMap, Revision, RunId};
use rusqlite::{Connection, OptionalExtension};

use crate::{
    Batch, Change, ChangeEvent, ChangedItem, Error,
    database::seal::{self, SecretsKey},
    error::Doing,
    rows::row::{signed, unsigned},
    writer::apply::{facts::Facts, records::Garbage, runs::Runs},
};

mod access;
mod deliveries;
mod facts;
mod objects;
mod owners;
mod records;
mod runs;
mod ticks;

/// Revision of a database without any commit. Not 0: in Kubernetes a watch from revision 0 starts with all existing
/// objects in no order, so a client that lists an empty database needs another number to watch from.
pub(crate) const EMPTY_REVISION: u64 = 1;

pub(crate) struct Journal {
    conn: Connection,
    revision: u64,
    next_run: u64,
    /// Number that the next fact of each unfinished run must have. Filled on demand.
    tails: IdMap<RunId, Option<u64>>,
    /// Items touched by the current transaction.
    events: Vec<ChangeEvent>,
    /// Master key that encrypts the keys of Secrets.
    master: Option<SecretsKey>,
    /// True if a Secret was replaced or deleted, so that the log still holds a value that must be erased.
    forgets: bool,
    /// True if there may be garbage left to delete.
    garbage: bool,
}

/// Facts that one transaction deletes at most: this many take a few milliseconds. A run with more loses them later, in
/// chunks; runs of some thousand nodes stay below.
const FACTS_AT_ONCE: u64 = 16_384;

/// How batches share a transaction: directly, or each in a savepoint of its own that can be rolled back alone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BatchIsolation {
    Shared,
    Savepoint,
}

type Outcomes = Vec<Result<Revision, Error>>;

impl Journal {
    pub(crate) fn new(conn: Connection, master: Option<SecretsKey>) -> Result<Self, Error> {
        let meta = |key: &str| -> Result<u64, Error> {
            conn.query_row("SELECT value FROM meta WHERE key = ?1", [key], |row| row.get(0))
                .map(unsigned)
                .doing("read its counters")
        };
        let (revision, next_run) = (meta("revision")?.max(EMPTY_REVISION), meta("next_run")?);
        let garbage = records::discard_all(&conn)?;
        let (tails, events) = (IdMap::default(), Vec::new());
        Ok(Self { conn, revision, next_run, tails, events, master, forgets: false, garbage })
    }

    /// Writes all batches in one transaction. An outer error means that the disk can no longer be trusted; an inner
    /// error means that this batch alone was refused.
    pub(crate) fn write(&mut self, batches: &[&Batch]) -> Result<Outcomes, Error> {
        if batches.iter().all(|batch| batch.is_empty()) {
            return Ok(batches.iter().map(|_| Ok(Revision(self.revision))).collect());
        }
        // Refusals are rare, so the fast path is tried first; a group with a refused batch is written again with
        // savepoints.
        match self.transact(batches, BatchIsolation::Shared) {
            Err(error) if error.is_refusal() => self.transact(batches, BatchIsolation::Savepoint),
            outcome => outcome,
        }
    }

    pub(crate) fn revision(&self) -> Revision {
        Revision(self.revision)
    }

    /// Commits a no-op to test whether anything can be committed.
    pub(crate) fn touch(&mut self) -> Result<(), Error> {
        self.conn.execute("UPDATE meta SET value = value WHERE key = 'revision'", []).map(drop).doing("commit")
    }

    /// Takes the items that the last write touched, in order.
    pub(crate) fn take_events(&mut self) -> Vec<ChangeEvent> {
        std::mem::take(&mut self.events)
    }

    /// Returns whether the log holds a value that must be erased, and resets the flag.
    pub(crate) fn take_forgets(&mut self) -> bool {
        std::mem::take(&mut self.forgets)
    }

    /// Returns whether `delete_piece` may have work to do.
    pub(crate) fn has_garbage(&self) -> bool {
        self.garbage
    }

    /// Deletes one chunk of garbage. The transaction is not synced: a chunk that a power cut brings back is deleted
    /// again. An error is as severe as one of `write`.
    pub(crate) fn delete_piece(&mut self) -> Result<(), Error> {
        if !records::has_garbage(&self.conn).doing("look for garbage")? {
            self.garbage = false;
            return Ok(());
        }
        let synchronous = |level: &str| self.conn.pragma_update(None, "synchronous", level).doing("apply its settings");
        synchronous("normal")?;
        let deleted = self.run("BEGIN IMMEDIATE").and_then(|()| {
            let more = records::delete_piece(&self.conn)?;
            self.run("COMMIT")?;
            Ok(more)
        });
        if deleted.is_err() && !self.conn.is_autocommit() {
            // As for a failed write: if this fails too, the next open rolls back.
            let _ = self.conn.execute_batch("ROLLBACK");
        }
        let restored = synchronous("full");
        // After an error the connection is closed; without one, every commit has to be synced again.
        self.garbage = deleted.doing("delete garbage")?;
        restored
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.conn
    }

    fn transact(&mut self, batches: &[&Batch], isolation: BatchIsolation) -> Result<Outcomes, Error> {
        let before = (self.revision, self.next_run);
        self.events.clear();
        let outcome = self.attempt(batches, isolation);
        if outcome.is_err() {
            (self.revision, self.next_run) = before;
            self.tails.clear();
            self.events.clear();
            if !self.conn.is_autocommit() {
                // If this fails too, the next open rolls back; nothing after this error is written anyway.
                let _ = self.conn.execute_batch("ROLLBACK");
            }
        }
        outcome
    }

    fn attempt(&mut self, batches: &[&Batch], isolation: BatchIsolation) -> Result<Outcomes, Error> {
        self.run("BEGIN IMMEDIATE").doing("begin a transaction")?;
        let mut facts = Facts::default();
        let mut outcomes = Vec::with_capacity(batches.len());
        for batch in batches {
            let outcome = match isolation {
                BatchIsolation::Shared => Ok(self.apply(batch, &mut facts)?),
                BatchIsolation::Savepoint => self.apply_in_savepoint(batch)?,
            };
            outcomes.push(outcome);
        }
        facts.flush(&self.conn)?;
        self.save_counters().doing("save its counters")?;
        self.run("COMMIT").doing("commit")?;
        Ok(outcomes)
    }

    /// Applies a batch in a savepoint, so that a refused batch leaves nothing behind.
    fn apply_in_savepoint(&mut self, batch: &Batch) -> Result<Result<Revision, Error>, Error> {
        let before = (self.revision, self.next_run);
        let recorded = self.events.len();
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
                self.events.truncate(recorded);
                self.run("ROLLBACK TO batch").doing("roll back a batch")?;
                for record in batch.changes.iter().filter_map(Change::staged) {
                    records::discard(&self.conn, record)?;
                    self.garbage = true;
                }
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
        let mut before = None;
        for change in &batch.changes {
            // Two items never share a revision: a watcher that has seen one of them and resumes from its revision must
            // still get the other. `Batch::revisions_behind` counts the same way.
            if let Some(target) = change.target() {
                self.revision += u64::from(before.is_some_and(|before| before != target));
                before = Some(target);
            }
            let revision = Revision(self.revision);
            let what = objects::touched(&self.conn, self.master.as_ref(), change)?;
            self.change(change, revision, facts)?;
            self.record_event(revision, what);
        }
        Ok(Revision(self.revision))
    }

    /// Records a touched item. Several changes of one run in one commit are recorded once.
    fn record_event(&mut self, revision: Revision, what: Option<ChangedItem>) {
        let Some(what) = what else { return };
        let again = match (&what, self.events.last()) {
            (ChangedItem::Run(run), Some(ChangeEvent { revision: last, what })) if *last == revision => match what {
                ChangedItem::Run(known) | ChangedItem::NewRun { run: known, .. } => known == run,
                ChangedItem::Put { .. } | ChangedItem::Deleted(_) | ChangedItem::DeletedRun(_) => false,
            },
            _ => false,
        };
        if !again {
            self.events.push(ChangeEvent { revision, what });
        }
    }

    fn change<'a>(&mut self, change: &'a Change, revision: Revision, facts: &mut Facts<'a>) -> Result<(), Error> {
        let runs = Runs { conn: &self.conn, revision };
        match change {
            Change::PutObject { kind, namespace, name, uid, body } if seal::is_sealed(kind) => {
                self.forgets = true;
                let key = (kind.as_str(), namespace.as_str(), name.as_str());
                objects::put_sealed(&self.conn, self.master.as_ref(), revision, key, uid, body)
            }
            Change::DeleteObject { kind, namespace, name } if seal::is_sealed(kind) => {
                self.forgets = true;
                owners::remove(&self.conn, (kind, namespace, name))?;
                objects::delete_sealed(&self.conn, (kind, namespace, name))
            }
            Change::PutObject { kind, namespace, name, uid, body } => {
                objects::put(&self.conn, revision, (kind, namespace, name), uid, body)
            }
            Change::DeleteObject { kind, namespace, name } => {
                owners::remove(&self.conn, (kind, namespace, name))?;
                objects::delete(&self.conn, (kind, namespace, name))
            }
            Change::ExpectRun { run, revision } => owners::expect_run(&self.conn, *run, *revision),
            Change::SetOwners { kind, namespace, name, owners, deleting } => {
                owners::set(&self.conn, (kind, namespace, name), owners, *deleting)
            }
            Change::Expect { kind, namespace, name, revision } => {
                objects::expect(&self.conn, (kind, namespace, name), *revision)
            }
            Change::NewRun(row) => {
                runs.insert(row)?;
                self.next_run = self.next_run.max(row.run.0 + 1);
                self.tails.insert(row.run, None);
                Ok(())
            }
            Change::ReplaceRun { old, row } => {
                if runs.is_open(*old)?.is_some() {
                    self.drop_facts(*old, facts)?;
                    Runs { conn: &self.conn, revision }.delete(*old)?;
                }
                ticks::expire(&self.conn, *old, None)?;
                self.tails.remove(old);
                let runs = Runs { conn: &self.conn, revision };
                runs.insert(row)?;
                runs.reparent(*old, row.run)?;
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
            Change::UpdateRun { run, row } => runs.update(*run, row, runs::Transition::Unchanged),
            Change::Finish { run, archive, row } => {
                let tail = self.tail(*run)?;
                self.tails.remove(run);
                self.drop_facts_to(tail, *run, facts)?;
                let runs = Runs { conn: &self.conn, revision };
                runs.archive(*run, archive)?;
                runs.update(*run, row, runs::Transition::Finished)
            }
            Change::StageRecord { record, run, part, body } => records::stage(&self.conn, *record, *run, *part, body),
            Change::Rewrite { run, archive } => {
                self.garbage = true;
                runs.rewrite(*run, archive)
            }
            Change::Tick(tick) => ticks::insert(&self.conn, tick),
            Change::DropTicks { uid } => ticks::drop_all(&self.conn, uid),
            Change::Expire { run, due } => ticks::expire(&self.conn, *run, *due),
            Change::DeleteRun { run } => {
                owners::remove_run(&self.conn, *run)?;
                self.drop_facts(*run, facts)?;
                Runs { conn: &self.conn, revision }.delete(*run)?;
                ticks::expire(&self.conn, *run, None)?;
                self.tails.remove(run);
                Ok(())
            }
            Change::PutIdempotencyKey { key, now } => access::put_idempotency_key(&self.conn, key, *now),
            Change::PutToken(token) => access::put_token(&self.conn, token),
            Change::DeleteToken { id } => access::delete_token(&self.conn, id),
            Change::PutPassword(password) => access::put_password(&self.conn, password),
            Change::PutTimestamp { name, at } => access::put_timestamp(&self.conn, name, *at),
            Change::PutDelivery(delivery) => deliveries::put(&self.conn, delivery),
            Change::DeleteDelivery { event } => deliveries::delete(&self.conn, event),
            Change::RetryDelivery { event, due, reason } => deliveries::retry(&self.conn, event, *due, reason),
            Change::BuryDelivery { event, reason, keep } => deliveries::bury(&self.conn, event, reason, *keep),
            Change::ReplayDelivery { event, due } => deliveries::replay(&self.conn, event, *due),
            Change::DropDeliveries { plugin } => deliveries::drop_all(&self.conn, plugin),
        }
    }

    /// Drops the facts of a run that is deleted as a whole.
    fn drop_facts(&mut self, run: RunId, facts: &mut Facts<'_>) -> Result<(), Error> {
        self.garbage = true;
        match self.tail(run) {
            // The facts are deleted already, or listed as garbage.
            Err(Error::RunFinished { .. }) => Ok(()),
            tail => self.drop_facts_to(tail?, run, facts),
        }
    }

    /// Drops the facts of a run at once or, above `FACTS_AT_ONCE`, as garbage. Facts are numbered from zero, so `tail`
    /// is an upper bound of their count.
    fn drop_facts_to(&mut self, tail: Option<u64>, run: RunId, facts: &mut Facts<'_>) -> Result<(), Error> {
        if tail.unwrap_or(0) <= FACTS_AT_ONCE {
            return facts.drop_run(&self.conn, run);
        }
        facts.forget(run);
        self.garbage = true;
        records::list(&self.conn, Garbage::Facts(run))
    }

    /// Returns the number that the run's next fact must have, if it has facts already. Refuses runs that take no facts.
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
