//! A database in memory that is written at once and by whoever owns it: no thread, no file, no sync. For those who run the
//! controller in virtual time and decide themselves when a batch counts as durable.

use std::{
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use octoflow_model::Revision;
use rusqlite::{Connection, OpenFlags};

use crate::{
    Batch, Error, Reader,
    database::{connect::STATEMENTS, migrate, schema},
    error::Doing,
    reader::pool::ReaderPool,
    writer::apply::Journal,
};

/// Tells the databases of one process apart.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// What batches have made of an empty database. It is gone when this and its readers are dropped.
pub struct MemoryStore {
    journal: Journal,
    readers: ReaderPool,
    address: String,
}

impl MemoryStore {
    pub fn new() -> Result<Self, Error> {
        let address = format!("file:/octoflow-{}?vfs=memdb", NEXT.fetch_add(1, Ordering::Relaxed));
        let mut conn = connect(&address)?;
        // Nothing survives this process, so nothing needs to be rolled back by the next one.
        conn.pragma_update_and_check(None, "journal_mode", "memory", |_| Ok(())).doing("take its settings")?;
        conn.pragma_update(None, "foreign_keys", false).doing("take its settings")?;
        migrate::migrate(&mut conn, Path::new(":memory:"), schema::MIGRATIONS)?;
        Ok(Self { journal: Journal::new(conn, None)?, readers: ReaderPool::default(), address })
    }

    /// Applies a batch, all of it or nothing.
    pub fn write(&mut self, batch: &Batch) -> Result<Revision, Error> {
        let mut outcomes = self.journal.write(&[batch])?;
        // Nobody observes this store.
        self.journal.take_events();
        outcomes.pop().unwrap_or(Ok(self.journal.revision()))
    }

    /// The revision of the last batch.
    pub fn revision(&self) -> Revision {
        self.journal.revision()
    }

    /// Reads what was written so far. A reader that is idle does not keep anybody from writing.
    pub fn reader(&self) -> Result<Reader, Error> {
        Ok(Reader::on(self.readers.get_or(|| connect(&self.address))?, None))
    }
}

fn connect(address: &str) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(address, flags).doing("open in memory")?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(conn)
}

#[cfg(test)]
mod tests {
    use octoflow_model::{RunId, Time};

    use super::*;
    use crate::{Change, RunRow};

    fn row(run: u64) -> Change {
        Change::NewRun(Box::new(RunRow::new(RunId(run), "default", "Workflow", &format!("w{run}"), "u", Time(1))))
    }

    #[test]
    fn what_was_written_is_read_and_refusals_leave_no_trace() {
        let mut store = MemoryStore::new().unwrap();
        let empty = store.revision();
        let first = store.write(&Batch::from_iter([row(1), row(2)])).unwrap();
        assert!(first > empty);
        assert!(store.write(&Batch::from_iter([row(3), row(2)])).unwrap_err().is_refusal());
        let reader = store.reader().unwrap();
        let names: Vec<String> = reader.unfinished().unwrap().into_iter().map(|row| row.name).collect();
        assert_eq!(names, ["w1", "w2"]);
        // Also while the reader is there.
        store.write(&Batch::from(row(3))).unwrap();
        assert_eq!(reader.unfinished().unwrap().len(), 3);
    }

    #[test]
    fn two_of_them_share_nothing() {
        let (mut one, other) = (MemoryStore::new().unwrap(), MemoryStore::new().unwrap());
        one.write(&Batch::from(row(1))).unwrap();
        assert!(other.reader().unwrap().unfinished().unwrap().is_empty());
    }
}
