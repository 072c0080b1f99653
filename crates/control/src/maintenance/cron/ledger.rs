//! Ledger of a schedule's past times, read from the store.

use std::cell::RefCell;

use octoflow_engine::cron::Ledger;
use octoflow_model::Time;
use octoflow_store::{Error, Reader};

pub(super) struct StoredLedger<'a> {
    reader: &'a Reader,
    uid: &'a str,
    error: RefCell<Option<Error>>,
}

impl<'a> StoredLedger<'a> {
    pub(super) fn new(reader: &'a Reader, uid: &'a str) -> Self {
        Self { reader, uid, error: RefCell::new(None) }
    }

    /// Returns the read error, if any; decisions made before it must be discarded.
    pub(super) fn error(&self) -> Result<(), Error> {
        self.error.take().map_or(Ok(()), Err)
    }
}

impl Ledger for StoredLedger<'_> {
    fn has(&self, nominal: Time) -> bool {
        self.reader.tick(self.uid, nominal).map(|tick| tick.is_some()).unwrap_or_else(|error| {
            self.error.replace(Some(error));
            true
        })
    }

    fn newest(&self, until: Time) -> Option<Time> {
        self.reader.newest_tick(self.uid, until).unwrap_or_else(|error| {
            self.error.replace(Some(error));
            None
        })
    }
}
