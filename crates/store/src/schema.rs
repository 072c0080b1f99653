//! The formats of the database file, each as the steps that lead to it from the one before.
//! A released step is never edited.

use crate::migrate::Migration;

/// Marks the file as ours: `OCTO` in ASCII.
pub(crate) const APPLICATION_ID: u32 = 0x4f43_544f;

pub(crate) const FILE: &str = "octoflow.db";

pub(crate) const MIGRATIONS: &[Migration] = &[
    Migration { format: 1, apply: |conn| conn.execute_batch(include_str!("schema/0001.sql")) },
    Migration { format: 2, apply: |conn| conn.execute_batch(include_str!("schema/0002.sql")) },
    Migration { format: 3, apply: |conn| conn.execute_batch(include_str!("schema/0003.sql")) },
    Migration { format: 4, apply: |conn| conn.execute_batch(include_str!("schema/0004.sql")) },
    Migration { format: 5, apply: |conn| conn.execute_batch(include_str!("schema/0005.sql")) },
    Migration { format: 6, apply: |conn| conn.execute_batch(include_str!("schema/0006.sql")) },
];
