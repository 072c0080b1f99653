//! Migrates a database file to the format of this version, one numbered step per transaction. It never goes back, and
//! never touches a file that is newer or not ours.

use std::path::Path;

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use crate::{
    Error,
    database::{marker, schema::APPLICATION_ID},
    error::Doing,
};

pub(crate) struct Migration {
    /// Format number, counted from 1 without gaps.
    pub(crate) format: u32,
    pub(crate) apply: fn(&Connection) -> rusqlite::Result<()>,
}

/// Format that a file declares.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Nothing was ever written to the file.
    Blank,
    Ours(u32),
}

pub(crate) fn migrate(conn: &mut Connection, path: &Path, steps: &[Migration]) -> Result<(), Error> {
    let found = match inspect(conn, path, steps)? {
        Format::Blank => 0,
        Format::Ours(found) => found,
    };
    for step in steps.iter().filter(|step| step.format > found) {
        run(conn, step).doing("change its format")?;
    }
    Ok(())
}

/// Creates everything with one step, if nothing was ever written to the file.
pub(crate) fn create(conn: &mut Connection, path: &Path, whole: &Migration, steps: &[Migration]) -> Result<(), Error> {
    if inspect(conn, path, steps)? == Format::Blank {
        run(conn, whole).doing("create its tables")?;
    }
    Ok(())
}

/// Requires the current format: a reader never migrates.
pub(crate) fn require(conn: &Connection, path: &Path, steps: &[Migration]) -> Result<(), Error> {
    let supported = newest(steps);
    match inspect(conn, path, steps)? {
        Format::Ours(found) if found == supported => Ok(()),
        Format::Ours(found) => Err(Error::Older { path: path.to_owned(), found, supported }),
        Format::Blank => {
            let data_dir = path.parent().unwrap_or(path).to_owned();
            marker::check_blank(&data_dir)?;
            Err(Error::Missing { data_dir })
        }
    }
}

/// Reads the format without changing anything. Refuses files that are not ours, and formats newer than this version.
pub(crate) fn inspect(conn: &Connection, path: &Path, steps: &[Migration]) -> Result<Format, Error> {
    let dir = path.parent().unwrap_or(path);
    let foreign = || match marker::exists(dir) {
        true => {
            Error::Broken { path: path.to_owned(), why: "it does not begin like a database of octoflow".to_owned() }
        }
        false => Error::Foreign { path: path.to_owned() },
    };
    let pragma = |name| conn.pragma_query_value(None, name, |row| row.get::<_, u32>(0));
    let application = match pragma("application_id") {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => return Err(foreign()),
        other => other.doing("read its application id")?,
    };
    let found = pragma("user_version").doing("read its format")?;
    if application != APPLICATION_ID {
        let tables: u32 =
            conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).doing("list its tables")?;
        let blank = application == 0 && found == 0 && tables == 0;
        return if blank { Ok(Format::Blank) } else { Err(foreign()) };
    }
    let supported = newest(steps);
    if found > supported {
        return Err(Error::Newer { path: path.to_owned(), found, supported });
    }
    Ok(Format::Ours(found))
}

fn run(conn: &mut Connection, step: &Migration) -> rusqlite::Result<()> {
    let txn = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    (step.apply)(&txn)?;
    txn.pragma_update(None, "application_id", APPLICATION_ID)?;
    txn.pragma_update(None, "user_version", step.format)?;
    txn.commit()
}

fn newest(steps: &[Migration]) -> u32 {
    steps.last().map_or(0, |step| step.format)
}

#[cfg(test)]
mod tests;
