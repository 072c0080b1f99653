//! Reads the store from any process, with or without a running writer. A reader never writes, never locks, and never
//! migrates.

pub(crate) mod list;
pub(crate) mod pool;

use std::{fmt, path::Path};

use octoflow_model::{Revision, RunId};
use rusqlite::{OptionalExtension, Params};

use crate::{
    Cursor, Error, Filter, NumberedPage, Object, Page, RecordId, RunRow,
    database::{
        connect,
        seal::{self, SecretsKey},
    },
    error::Doing,
    reader::pool::PooledConnection,
    rows::{
        archive,
        row::{LISTED_COLUMNS, RUN_COLUMNS, RawRun, read_object, signed, unsigned},
    },
    writer::apply::EMPTY_REVISION,
};

mod access;
mod deliveries;
mod objects;

pub use objects::ObjectPage;

/// Read access to the committed state. Each call sees the newest commit; `snapshot` makes several calls see the same
/// one.
pub struct Reader {
    pub(crate) conn: PooledConnection,
    /// Master key that decrypts the keys of Secrets.
    master: Option<SecretsKey>,
}

/// The facts of one run from one commit: `count` lines of JSON, numbered from `first`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FactRows<'a> {
    pub first: u64,
    pub count: u64,
    pub revision: Revision,
    pub lines: &'a [u8],
}

impl Reader {
    /// Opens a data directory for reading. Fails with `Error::Missing` if nothing was ever stored there.
    pub fn open(data_dir: &Path) -> Result<Self, Error> {
        PooledConnection::unpooled(data_dir).map(|conn| Self::on(conn, None))
    }

    pub(crate) fn on(conn: PooledConnection, master: Option<SecretsKey>) -> Self {
        Self { conn, master }
    }

    /// Checks the structure of the whole database. Takes seconds per gigabyte.
    pub fn check_integrity(&self) -> Result<(), Error> {
        connect::check_integrity(&self.conn)
    }

    /// Runs `read` against one state of the database, whatever is committed meanwhile. A long snapshot blocks
    /// checkpoints, so nothing slow belongs in it.
    pub fn snapshot<T, E: From<Error>>(&self, read: impl FnOnce(&Self) -> Result<T, E>) -> Result<T, E> {
        if !self.conn.is_autocommit() {
            return read(self);
        }
        let txn = self.conn.unchecked_transaction().doing("begin to read")?;
        let outcome = read(self)?;
        txn.finish().doing("end reading")?;
        Ok(outcome)
    }

    pub fn object(&self, kind: &str, namespace: &str, name: &str) -> Result<Option<Object>, Error> {
        // A Secret and its key are two rows, which match only within one snapshot.
        if seal::is_sealed(kind) && self.conn.is_autocommit() {
            return self.snapshot(|reader| reader.object(kind, namespace, name));
        }
        let found = self
            .conn
            .prepare_cached(
                "SELECT kind, namespace, name, uid, revision, body FROM objects
                 WHERE kind = ?1 AND namespace = ?2 AND name = ?3",
            )
            .and_then(|mut find| find.query_row((kind, namespace, name), read_object).optional())
            .doing("read an object")?;
        found.map(|object| seal::open(&self.conn, self.master.as_ref(), object)).transpose()
    }

    /// Returns all objects of a kind, ordered by namespace and name; of one namespace or of all.
    pub fn objects(&self, kind: &str, namespace: Option<&str>) -> Result<Vec<Object>, Error> {
        if seal::is_sealed(kind) && self.conn.is_autocommit() {
            return self.snapshot(|reader| reader.objects(kind, namespace));
        }
        let sql = match namespace {
            Some(_) => {
                "SELECT kind, namespace, name, uid, revision, body FROM objects
                 WHERE kind = ?1 AND namespace = ?2 ORDER BY kind, namespace, name"
            }
            None => {
                "SELECT kind, namespace, name, uid, revision, body FROM objects
                 WHERE kind = ?1 AND ?2 IS NULL ORDER BY kind, namespace, name"
            }
        };
        let found: Vec<Object> = self
            .conn
            .prepare_cached(sql)
            .and_then(|mut find| find.query_map((kind, namespace), read_object)?.collect())
            .doing("list objects")?;
        found.into_iter().map(|object| seal::open(&self.conn, self.master.as_ref(), object)).collect()
    }

    pub fn run(&self, run: RunId) -> Result<Option<RunRow>, Error> {
        self.one_run("WHERE run = ?1", [signed(run.0)])
    }

    /// Returns the run of that name; the newest if no kind is given and several kinds have it.
    pub fn run_by_name(&self, namespace: &str, kind: Option<&str>, name: &str) -> Result<Option<RunRow>, Error> {
        let found = self.many_runs("WHERE name = ?1 AND namespace = ?2", (name, namespace))?;
        Ok(found
            .into_iter()
            .filter(|row| kind.is_none_or(|kind| row.kind == kind))
            .max_by_key(|row| (row.created, row.run)))
    }

    pub fn run_by_uid(&self, uid: &str) -> Result<Option<RunRow>, Error> {
        self.one_run("WHERE uid = ?1", [uid])
    }

    /// Returns the revision of the last commit that touched the run's row or facts.
    pub fn run_revision(&self, run: RunId) -> Result<Option<Revision>, Error> {
        let found: Option<i64> = self
            .conn
            .prepare_cached(
                "SELECT max(revision, coalesce(
                     (SELECT revision FROM facts WHERE run = ?1 ORDER BY run DESC, first DESC LIMIT 1), 0))
                 FROM runs WHERE run = ?1",
            )
            .and_then(|mut find| find.query_row([signed(run.0)], |row| row.get(0)).optional())
            .doing("read the revision of a run")?;
        Ok(found.map(|revision| Revision(unsigned(revision))))
    }

    /// Returns the newest run of a namespace.
    pub fn latest(&self, namespace: &str) -> Result<Option<RunRow>, Error> {
        let filter = Filter { namespace: Some(namespace.to_owned()), ..Filter::default() };
        let (rows, _) = self.list(&filter, Page { limit: 1, after: None })?;
        Ok(rows.into_iter().next())
    }

    /// Returns the runs without a final record, oldest first: those that a restart must recover.
    pub fn unfinished(&self) -> Result<Vec<RunRow>, Error> {
        self.many_runs("WHERE open = 1 ORDER BY run", [])
    }

    /// Returns one page of runs, newest first, and the cursor of the next page if there is one. The rows are without
    /// parameters, which may be large.
    pub fn list(&self, filter: &Filter, page: Page) -> Result<(Vec<RunRow>, Option<Cursor>), Error> {
        self.snapshot(|reader| {
            let (keys, next) = list::keys(&reader.conn, filter, page)?;
            let mut rows = Vec::with_capacity(keys.len());
            for key in keys {
                rows.extend(reader.rows(LISTED_COLUMNS, "WHERE run = ?1", [signed(key.run.0)])?);
            }
            Ok((rows, next))
        })
    }

    /// Returns the runs of a kind with this name in all namespaces, oldest first.
    pub fn runs_named(&self, kind: &str, name: &str) -> Result<Vec<RunRow>, Error> {
        self.rows(
            LISTED_COLUMNS,
            "INDEXED BY runs_name WHERE name = ?1 AND kind = ?2 ORDER BY created, run",
            (name, kind),
        )
    }

    /// Returns one page of a list by its number, and the number of all runs that match.
    pub fn page(&self, filter: &Filter, page: NumberedPage) -> Result<(Vec<RunRow>, u64), Error> {
        self.snapshot(|reader| {
            let (keys, total) = list::numbered(&reader.conn, filter, page)?;
            let mut rows = Vec::with_capacity(keys.len());
            for key in keys {
                rows.extend(reader.rows(LISTED_COLUMNS, "WHERE run = ?1", [signed(key.run.0)])?);
            }
            Ok((rows, total))
        })
    }

    pub fn count(&self, filter: &Filter) -> Result<u64, Error> {
        self.snapshot(|reader| list::count(&reader.conn, filter))
    }

    /// Returns the label keys of runs in one namespace or in all, sorted.
    pub fn label_keys(&self, namespace: Option<&str>) -> Result<Vec<String>, Error> {
        list::label_keys(&self.conn, namespace).doing("list the keys of labels")
    }

    /// Returns the values that a label has on runs in one namespace or in all, sorted.
    pub fn label_values(&self, key: &str, namespace: Option<&str>) -> Result<Vec<String>, Error> {
        list::label_values(&self.conn, key, namespace).doing("list the values of a label")
    }

    /// Returns the size of a run's facts in bytes, without reading them.
    pub fn facts_bytes(&self, run: RunId) -> Result<u64, Error> {
        self.conn
            .prepare_cached(
                "SELECT coalesce(sum(length(lines)), 0) FROM facts
                 WHERE run = ?1 AND EXISTS (SELECT 1 FROM runs WHERE run = ?1 AND open = 1)",
            )
            .and_then(|mut find| find.query_row([signed(run.0)], |row| row.get(0)))
            .map(unsigned)
            .doing("measure facts")
    }

    /// Visits the facts of a run in order, from number `from` on, one row at a time; the first row may begin before
    /// `from`. A finished run has none: its record is in the archive, and facts that still wait for deletion are
    /// hidden.
    pub fn facts<E: From<Error>>(
        &self,
        run: RunId,
        from: u64,
        mut visit: impl FnMut(FactRows<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let doing = "read facts";
        let mut find = self
            .conn
            .prepare_cached(
                "SELECT first, count, revision, lines FROM facts
                 WHERE run = ?1 AND EXISTS (SELECT 1 FROM runs WHERE run = ?1 AND open = 1) AND first >= coalesce(
                     (SELECT max(first) FROM facts WHERE run = ?1 AND first <= ?2), 0) ORDER BY run, first",
            )
            .doing(doing)?;
        let mut rows = find.query((signed(run.0), signed(from))).doing(doing)?;
        while let Some(row) = rows.next().doing(doing)? {
            let number = |column| row.get(column).map(unsigned).doing(doing);
            let (first, count) = (number(0)?, number(1)?);
            if first + count <= from {
                continue;
            }
            let lines = row.get_ref(3).doing(doing)?.as_blob().map_err(rusqlite::Error::from).doing(doing)?;
            visit(FactRows { first, count, revision: Revision(number(2)?), lines })?;
        }
        Ok(())
    }

    /// Returns the final record of a finished run.
    pub fn archive(&self, run: RunId) -> Result<Option<Vec<u8>>, Error> {
        // Unpacking takes long, so it is not done within a snapshot.
        self.packed(run)?.map(|(size, packed)| archive::unpack(run, size, &packed)).transpose()
    }

    /// Returns the final record compressed, and its size uncompressed.
    fn packed(&self, run: RunId) -> Result<Option<(usize, Vec<u8>)>, Error> {
        let found: Option<(i64, Vec<u8>, Option<i64>)> = self
            .conn
            .prepare_cached("SELECT size, body, record FROM archive WHERE run = ?1")
            .and_then(|mut find| {
                find.query_row([signed(run.0)], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()
            })
            .doing("read the archive")?;
        let Some((size, body, record)) = found else { return Ok(None) };
        let packed = match record {
            None => body,
            // The row and the parts match only within one snapshot.
            Some(_) if self.conn.is_autocommit() => return self.snapshot(|reader| reader.packed(run)),
            Some(record) => self.record(record)?,
        };
        Ok(Some((usize::try_from(size).unwrap_or(0), packed)))
    }

    /// Returns all parts of a record, still compressed.
    fn record(&self, record: i64) -> Result<Vec<u8>, Error> {
        let doing = "read a record";
        let mut find = self
            .conn
            .prepare_cached("SELECT body FROM record_parts WHERE record = ?1 ORDER BY record, part")
            .doing(doing)?;
        let mut rows = find.query([record]).doing(doing)?;
        let mut packed = Vec::new();
        while let Some(row) = rows.next().doing(doing)? {
            packed
                .extend_from_slice(row.get_ref(0).doing(doing)?.as_blob().map_err(rusqlite::Error::from).doing(doing)?);
        }
        Ok(packed)
    }

    /// Returns a record number that is not in use, not even by garbage.
    pub(crate) fn next_record(&self) -> Result<RecordId, Error> {
        self.conn
            .query_row(
                "SELECT 1 + max(coalesce((SELECT max(record) FROM record_parts), 0),
                                coalesce((SELECT max(id) FROM garbage WHERE kind = 'record'), 0))",
                [],
                |row| row.get(0),
            )
            .map(|next| RecordId(unsigned(next)))
            .doing("number a record")
    }

    /// Returns the size of a finished run's record in bytes.
    pub fn archive_size(&self, run: RunId) -> Result<Option<u64>, Error> {
        self.conn
            .prepare_cached("SELECT size FROM archive WHERE run = ?1")
            .and_then(|mut find| find.query_row([signed(run.0)], |row| row.get(0)).optional())
            .map(|size: Option<i64>| size.map(unsigned))
            .doing("read the archive")
    }

    /// Returns the id for the next new run. Ids of deleted runs are not reused.
    pub fn next_run_id(&self) -> Result<RunId, Error> {
        self.meta("next_run").map(RunId)
    }

    /// Returns the revision of the last commit.
    pub fn revision(&self) -> Result<Revision, Error> {
        self.meta("revision").map(|revision| Revision(revision.max(EMPTY_REVISION)))
    }

    fn meta(&self, key: &str) -> Result<u64, Error> {
        self.conn
            .prepare_cached("SELECT value FROM meta WHERE key = ?1")
            .and_then(|mut find| find.query_row([key], |row| row.get(0)))
            .map(unsigned)
            .doing("read its counters")
    }

    fn one_run(&self, which: &str, values: impl Params) -> Result<Option<RunRow>, Error> {
        Ok(self.many_runs(which, values)?.into_iter().next())
    }

    pub(crate) fn many_runs(&self, which: &str, values: impl Params) -> Result<Vec<RunRow>, Error> {
        self.rows(RUN_COLUMNS, which, values)
    }

    fn rows(&self, columns: &str, which: &str, values: impl Params) -> Result<Vec<RunRow>, Error> {
        let raw: Vec<RawRun> = self
            .conn
            .prepare_cached(&format!("SELECT {columns} FROM runs {which}"))
            .and_then(|mut find| find.query_map(values, RawRun::read)?.collect())
            .doing("read runs")?;
        raw.into_iter().map(RawRun::decode).collect()
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reader")
    }
}
