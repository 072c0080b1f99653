//! Connections of readers that are not in use. Opening one costs more than most questions, so they are lent out again.
//! Once the store is closed a connection that comes back is closed too.

use std::{
    ops::Deref,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rusqlite::Connection;

use crate::{Error, connect};

/// Idle connections beyond this many are closed.
const MOST_IDLE: usize = 16;

#[derive(Clone, Default)]
pub(crate) struct ReaderPool(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    idle: Vec<Connection>,
    closed: bool,
}

/// A connection that goes back to its pool, if it has one, when it is dropped.
pub(crate) struct Lent {
    /// Empty only while it is dropped.
    conn: Option<Connection>,
    pool: Option<ReaderPool>,
}

impl Lent {
    /// One that belongs to whoever opens it.
    pub(crate) fn own(data_dir: &Path) -> Result<Self, Error> {
        Ok(Self { conn: Some(connect::reader(data_dir)?), pool: None })
    }
}

impl ReaderPool {
    pub(crate) fn lend(&self, data_dir: &Path) -> Result<Lent, Error> {
        self.lend_or(|| connect::reader(data_dir))
    }

    /// Lends an idle connection, or one that is opened now.
    pub(crate) fn lend_or(&self, open: impl FnOnce() -> Result<Connection, Error>) -> Result<Lent, Error> {
        let idle = self.lock().idle.pop();
        let conn = match idle {
            Some(conn) => conn,
            None => open()?,
        };
        Ok(Lent { conn: Some(conn), pool: Some(self.clone()) })
    }

    /// The last connection to close merges the log, so none may be left idle.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.idle.clear();
    }

    /// Idle connections are closed; new ones are opened when somebody asks.
    pub(crate) fn clear(&self) {
        self.lock().idle.clear();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deref for Lent {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.conn.as_ref().unwrap_or_else(|| unreachable!("a connection leaves its loan only when that is dropped"))
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(pool) = self.pool.take() else { return };
        let mut state = pool.lock();
        if !state.closed && state.idle.len() < MOST_IDLE {
            state.idle.extend(self.conn.take());
        }
    }
}
