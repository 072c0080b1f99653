//! A pool of idle read connections. Opening one costs more than most queries, so they are reused. Once the store is
//! closed, returned connections are closed too.

use std::{
    ops::Deref,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rusqlite::Connection;

use crate::{Error, database::connect};

/// Limit of idle connections; more are closed.
const MAX_IDLE: usize = 16;

#[derive(Clone, Default)]
pub(crate) struct ReaderPool(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    idle: Vec<Connection>,
    closed: bool,
}

/// A connection that returns to its pool, if it has one, when it is dropped.
pub(crate) struct PooledConnection {
    /// `None` only during drop.
    conn: Option<Connection>,
    pool: Option<ReaderPool>,
}

impl PooledConnection {
    /// Opens a connection that belongs to no pool.
    pub(crate) fn unpooled(data_dir: &Path) -> Result<Self, Error> {
        Ok(Self { conn: Some(connect::reader(data_dir)?), pool: None })
    }
}

impl ReaderPool {
    pub(crate) fn get(&self, data_dir: &Path) -> Result<PooledConnection, Error> {
        self.get_or(|| connect::reader(data_dir))
    }

    /// Returns an idle connection, or one that is opened now.
    pub(crate) fn get_or(&self, open: impl FnOnce() -> Result<Connection, Error>) -> Result<PooledConnection, Error> {
        let idle = self.lock().idle.pop();
        let conn = match idle {
            Some(conn) => conn,
            None => open()?,
        };
        Ok(PooledConnection { conn: Some(conn), pool: Some(self.clone()) })
    }

    /// Closes the idle connections: the last connection to close checkpoints the log, so none may stay open.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.idle.clear();
    }

    /// Closes idle connections; new ones are opened on demand.
    pub(crate) fn clear(&self) {
        self.lock().idle.clear();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deref for PooledConnection {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.conn.as_ref().unwrap_or_else(|| unreachable!("the connection is taken only in drop"))
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        let Some(pool) = self.pool.take() else { return };
        let mut state = pool.lock();
        if !state.closed && state.idle.len() < MAX_IDLE {
            state.idle.extend(self.conn.take());
        }
    }
}
