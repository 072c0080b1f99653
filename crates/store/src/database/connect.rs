//! Opens the database file, for the one writer and for readers. All settings that decide durability and speed are here,
//! each with its reason.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, OptionalExtension};

use crate::{
    Error,
    database::{
        marker,
        migrate::{self, Format},
        schema,
    },
    error::{Doing, is_full},
    writer::rewrite,
};

/// Wait for a lock that only a foreign tool, or a connection that is just closing, can hold.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// Wait for such a lock while a failed write is being repaired: the repair is retried soon anyway.
const REPAIR_BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// Size to which the log is truncated when it restarts, so that one burst does not occupy the disk for ever.
const LOG_KEPT_BYTES: u64 = 64 << 20;

/// Bytes of the log that are allocated before the first commit. The log is overwritten from its start again and again,
/// and a sync of allocated bytes costs about half of one that makes the file grow.
const LOG_READY_BYTES: usize = 1 << 20;

/// Prepared statements kept per connection: more than the writer or one page of the reader ever uses, so that nothing
/// is parsed twice.
pub(crate) const STATEMENTS: usize = 64;

pub(crate) fn database(data_dir: &Path) -> PathBuf {
    data_dir.join(schema::FILE)
}

/// Returns the path of a database's write-ahead log.
pub(crate) fn log(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-wal");
    PathBuf::from(name)
}

/// Opens the database for writing, and creates or migrates it. The caller holds the directory's lock.
pub(crate) fn writer(data_dir: &Path) -> Result<Connection, Error> {
    marker::check(data_dir)?;
    let path = database(data_dir);
    open_checked(data_dir, &path).map_err(|error| broken(error, &path))
}

fn open_checked(data_dir: &Path, path: &Path) -> Result<Connection, Error> {
    let create = if path.exists() { OpenFlags::empty() } else { OpenFlags::SQLITE_OPEN_CREATE };
    let mut conn = open_writer(path, create)?;
    // Inspected before anything is set, so that a file that is not ours stays unchanged.
    let blank = migrate::inspect(&conn, path, schema::MIGRATIONS)? == Format::Blank;
    if blank {
        marker::check_blank(data_dir)?;
    }
    configure(&conn).doing("apply its settings")?;
    let id = if blank { create_tables(&mut conn, path)? } else { upgrade(&mut conn, path)? };
    // The last connection to close checkpoints and removes the log, whatever a crash left in it.
    conn.close().map_err(|(_, error)| error).doing("close")?;
    let (marked, filled) = (marker::write(data_dir, id)?, preallocate_log(path)?);
    if marked || filled {
        sync_dir(data_dir)?;
    }
    let conn = open_writer(path, OpenFlags::empty())?;
    configure(&conn).doing("apply its settings")?;
    Ok(conn)
}

/// Creates all tables and syncs them once, when the connection is closed: the log is synced before any of it is
/// checkpointed. A power cut before that leaves all of them in the log or none, and the next start continues from there.
fn create_tables(conn: &mut Connection, path: &Path) -> Result<u64, Error> {
    conn.pragma_update(None, "synchronous", "off").doing("apply its settings")?;
    let made = migrate::create(conn, path, &schema::WHOLE, schema::MIGRATIONS).and_then(|()| upgrade(conn, path));
    // Also after an error: whatever closes the connection checkpoints the log.
    conn.pragma_update(None, "synchronous", "full").doing("apply its settings")?;
    made
}

fn upgrade(conn: &mut Connection, path: &Path) -> Result<u64, Error> {
    migrate::migrate(conn, path, schema::MIGRATIONS)?;
    installation(conn).doing("read its installation id")
}

/// Opens the database for writing after a failed write. The whole log is written to the database file and synced again:
/// once a sync has failed, the page cache may differ from the disk.
pub(crate) fn reopen_writer(data_dir: &Path, suspicious: bool) -> Result<Connection, Error> {
    let path = database(data_dir);
    if suspicious {
        check_integrity(&reader(data_dir)?)?;
    }
    let conn = writer(data_dir)?;
    conn.busy_timeout(REPAIR_BUSY_TIMEOUT).doing("open for writing")?;
    let busy: bool = conn
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
        .doing("merge its log")
        .map_err(|error| broken(error, &path))?;
    if busy {
        let held = io::Error::new(io::ErrorKind::ResourceBusy, "a reader holds an old snapshot of the database");
        return Err(file_error("merge the log of", &path, held));
    }
    conn.busy_timeout(BUSY_TIMEOUT).doing("open for writing")?;
    Ok(conn)
}

/// Runs SQLite's quick check over the whole file, and returns an error that says what is wrong with its structure.
pub(crate) fn check_integrity(conn: &Connection) -> Result<(), Error> {
    let path = PathBuf::from(conn.path().unwrap_or_default());
    let found: rusqlite::Result<Vec<String>> =
        conn.prepare("PRAGMA quick_check(3)").and_then(|mut check| check.query_map([], |row| row.get(0))?.collect());
    match found.doing("check itself").map_err(|error| broken(error, &path))?.as_slice() {
        [fine] if fine == "ok" => Ok(()),
        wrong => Err(Error::Broken { path, why: wrong.join("; ") }),
    }
}

/// Turns an error about corruption into `Error::Broken`, which asks for an operator.
fn broken(error: Error, path: &Path) -> Error {
    if error.is_corruption() && !matches!(error, Error::Broken { .. }) {
        return Error::Broken { path: path.to_owned(), why: error.chain() };
    }
    error
}

/// Returns the id of the installation, which stays with the database through backups and upgrades.
fn installation(conn: &Connection) -> rusqlite::Result<u64> {
    let read = || conn.query_row("SELECT value FROM meta WHERE key = 'installation'", [], |row| row.get(0)).optional();
    let id: i64 = match read()? {
        Some(id) => id,
        None => {
            // A positive number; the one value without an opposite cannot occur.
            conn.execute(rewrite::NEW_INSTALLATION, [])?;
            read()?.unwrap_or_default()
        }
    };
    Ok(id.unsigned_abs())
}

/// Opens a second writable connection that only checkpoints the log and commits nothing.
pub(crate) fn checkpointer(data_dir: &Path) -> Result<Connection, Error> {
    let conn = open_writer(&database(data_dir), OpenFlags::empty())?;
    configure(&conn).doing("apply its settings")?;
    Ok(conn)
}

/// Opens the database for reading only. Takes no lock of ours and works with and without a writer.
pub(crate) fn reader(data_dir: &Path) -> Result<Connection, Error> {
    let path = database(data_dir);
    marker::check(data_dir)?;
    match fs::metadata(&path) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Error::Missing { data_dir: data_dir.to_owned() });
        }
        Err(error) => return Err(file_error("open", &path, error)),
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(&path, flags).doing("open for reading")?;
    conn.busy_timeout(BUSY_TIMEOUT).doing("open for reading")?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    migrate::require(&conn, &path, schema::MIGRATIONS).map_err(|error| broken(error, &path))?;
    Ok(conn)
}

/// Opens a writable connection. Without the create flag a database that vanishes at this moment is never created again.
fn open_writer(path: &Path, create: OpenFlags) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | create;
    let conn = Connection::open_with_flags(path, flags).doing("open for writing")?;
    conn.busy_timeout(BUSY_TIMEOUT).doing("open for writing")?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(conn)
}

fn configure(conn: &Connection) -> rusqlite::Result<()> {
    conn.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    conn.pragma_update(None, "synchronous", "full")?;
    // A checkpoint takes long and must not happen inside a commit; `checkpoint` decides when it runs.
    conn.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(()))?;
    conn.pragma_update_and_check(None, "journal_size_limit", LOG_KEPT_BYTES as i64, |_| Ok(()))?;
    conn.pragma_update(None, "temp_store", "memory")?;
    conn.pragma_update(None, "foreign_keys", false)?;
    Ok(())
}

/// Allocates the log. Zeros are not a valid log, so the database treats such a file as empty. A log with content is
/// left alone. Returns whether a file was created; the caller then syncs the directory.
fn preallocate_log(path: &Path) -> Result<bool, Error> {
    let log = log(path);
    if fs::metadata(&log).map_or(0, |meta| meta.len()) > 0 {
        return Ok(false);
    }
    let fill = || {
        let mut file = OpenOptions::new().write(true).create(true).truncate(false).open(&log)?;
        file.write_all(&vec![0; LOG_READY_BYTES])?;
        file.sync_all()
    };
    match fill() {
        // The allocation is only an optimisation: on a full disk its space is given back.
        Err(error) if is_full(&error) => {
            let _ = OpenOptions::new().write(true).open(&log).and_then(|file| file.set_len(0));
        }
        filled => filled.map_err(|error| file_error("prepare", &log, error))?,
    }
    Ok(true)
}

pub(crate) fn sync_dir(dir: &Path) -> Result<(), Error> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(|error| file_error("sync", dir, error))
}

pub(crate) fn file_error(doing: &'static str, path: &Path, source: io::Error) -> Error {
    Error::File { doing, path: path.to_owned(), source: Arc::new(source) }
}
