//! How the database file is opened: the one writer's connection, and readers'.
//! All settings that decide durability and speed stand here, each with its reason.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rusqlite::{Connection, OpenFlags};

use crate::{Error, error::Doing, migrate, schema};

/// How long to wait for a lock that only a foreign tool, or the last moment of a closing connection, can hold.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The log is cut back to this size when it starts over, so that one burst does not occupy the disk for ever.
const LOG_KEPT_BYTES: u64 = 64 << 20;

/// The log is written over from its start again and again; a sync of bytes that are already allocated costs
/// about half of one that makes the file grow. This much of it is allocated before the first commit.
const LOG_READY_BYTES: usize = 1 << 20;

/// More than the writer or one page of the reader ever uses, so that nothing is parsed twice.
const STATEMENTS: usize = 64;

pub(crate) fn database(data_dir: &Path) -> PathBuf {
    data_dir.join(schema::FILE)
}

/// Opens for writing, creating or migrating the file. The caller holds the directory's lock.
pub(crate) fn writer(path: &Path) -> Result<Connection, Error> {
    let mut conn = open_writer(path)?;
    // Looked at before anything is set, so that a file which is not ours stays as it is.
    migrate::inspect(&conn, path, schema::MIGRATIONS)?;
    configure(&conn).doing("take its settings")?;
    migrate::migrate(&mut conn, path, schema::MIGRATIONS)?;
    // The last connection to close merges and removes the log, whatever a crash left in it.
    conn.close().map_err(|(_, error)| error).doing("close")?;
    ready_log(path)?;
    let conn = open_writer(path)?;
    configure(&conn).doing("take its settings")?;
    Ok(conn)
}

/// Opens for reading only. It takes no lock of ours and works with and without a writer.
pub(crate) fn reader(data_dir: &Path) -> Result<Connection, Error> {
    let path = database(data_dir);
    match fs::metadata(&path) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Error::Missing { data_dir: data_dir.to_owned() });
        }
        Err(error) => return Err(file_error("open", &path, error)),
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(&path, flags).doing("open for reading")?;
    conn.busy_timeout(PATIENCE).doing("open for reading")?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    migrate::require(&conn, &path, schema::MIGRATIONS)?;
    Ok(conn)
}

fn open_writer(path: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags).doing("open for writing")?;
    conn.busy_timeout(PATIENCE).doing("open for writing")?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(conn)
}

fn configure(conn: &Connection) -> rusqlite::Result<()> {
    conn.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    conn.pragma_update(None, "synchronous", "full")?;
    // Merging the log takes long and must not happen inside a commit; `checkpoint` says when.
    conn.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(()))?;
    conn.pragma_update_and_check(None, "journal_size_limit", LOG_KEPT_BYTES as i64, |_| Ok(()))?;
    conn.pragma_update(None, "temp_store", "memory")?;
    conn.pragma_update(None, "foreign_keys", false)?;
    Ok(())
}

/// Zeros are no valid log, so the database takes such a file for an empty one. A log with content is left alone.
fn ready_log(path: &Path) -> Result<(), Error> {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    let log = PathBuf::from(name);
    if fs::metadata(&log).map_or(0, |meta| meta.len()) > 0 {
        return Ok(());
    }
    let fill = || {
        let mut file = OpenOptions::new().write(true).create(true).truncate(false).open(&log)?;
        file.write_all(&vec![0; LOG_READY_BYTES])?;
        file.sync_all()
    };
    fill().map_err(|error| file_error("prepare", &log, error))?;
    path.parent().map_or(Ok(()), sync_dir)
}

fn sync_dir(dir: &Path) -> Result<(), Error> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(|error| file_error("sync", dir, error))
}

fn file_error(doing: &'static str, path: &Path, source: io::Error) -> Error {
    Error::File { doing, path: path.to_owned(), source: Arc::new(source) }
}
