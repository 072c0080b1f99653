//! The formats of the database file, each as the migration that leads to it from the one before. A released migration
//! is never edited.

use rusqlite::Connection;

use crate::database::migrate::Migration;

/// Application id in the file header: `OCTO` in ASCII.
pub(crate) const APPLICATION_ID: u32 = 0x4f43_544f;

pub(crate) const FILE: &str = "octoflow.db";

pub(crate) const MIGRATIONS: &[Migration] = &[
    Migration { format: 1, apply: |conn| conn.execute_batch(include_str!("schema/0001.sql")) },
    Migration { format: 2, apply: |conn| conn.execute_batch(include_str!("schema/0002.sql")) },
    Migration { format: 3, apply: |conn| conn.execute_batch(include_str!("schema/0003.sql")) },
    Migration { format: 4, apply: third_or_fourth },
    Migration { format: 5, apply: |conn| conn.execute_batch(include_str!("schema/0005.sql")) },
    Migration { format: 6, apply: |conn| conn.execute_batch(include_str!("schema/0006.sql")) },
    Migration { format: 7, apply: |conn| conn.execute_batch(include_str!("schema/0007.sql")) },
    Migration { format: 8, apply: |conn| conn.execute_batch(include_str!("schema/0008.sql")) },
];

/// Creates the tables of the newest format in a new database. A numbered step each costs several times as much, and
/// every first run in a folder waits for it.
pub(crate) const WHOLE: Migration =
    Migration { format: MIGRATIONS.len() as u32, apply: |conn| conn.execute_batch(include_str!("schema/current.sql")) };

/// Migrates to format 4. In some versions the tables of 0004 were format 3, and those of 0003 came after them, so a
/// database of theirs lacks the latter. Either way it has both afterwards.
fn third_or_fourth(conn: &Connection) -> rusqlite::Result<()> {
    let owners = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'owners'";
    let has_fourth = conn.query_row(owners, [], |row| row.get::<_, u32>(0))? > 0;
    conn.execute_batch(if has_fourth { include_str!("schema/0003.sql") } else { include_str!("schema/0004.sql") })
}
