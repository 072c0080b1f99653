//! Readers that are not in use. Opening one costs more than most questions, so a writer's house lends them out.
//! A reader that comes back is kept for the next one; once the store is closed it is closed too.

use std::{
    fmt,
    ops::Deref,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{Error, Reader};

/// Idle readers beyond this many are closed.
const MOST_IDLE: usize = 16;

#[derive(Clone, Default)]
pub(crate) struct Shelf(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    idle: Vec<Reader>,
    closed: bool,
}

/// A reader on loan. It goes back when it is dropped.
pub struct Lent {
    /// Empty only while it is dropped.
    reader: Option<Reader>,
    shelf: Shelf,
}

impl Shelf {
    pub(crate) fn lend(&self, data_dir: &Path) -> Result<Lent, Error> {
        let idle = self.lock().idle.pop();
        let reader = match idle {
            Some(reader) => reader,
            None => Reader::open(data_dir)?,
        };
        Ok(Lent { reader: Some(reader), shelf: self.clone() })
    }

    /// The last connection to close merges the log, so none may be left idle.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.idle.clear();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deref for Lent {
    type Target = Reader;

    fn deref(&self) -> &Reader {
        self.reader.as_ref().unwrap_or_else(|| unreachable!("a reader leaves its loan only when that is dropped"))
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut state = self.shelf.lock();
        if !state.closed && state.idle.len() < MOST_IDLE {
            state.idle.extend(self.reader.take());
        }
    }
}

impl fmt::Debug for Lent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lent")
    }
}
