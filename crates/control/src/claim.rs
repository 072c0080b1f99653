//! Asking twice makes once: a key that comes with a submission, what it was used for before, and how long that counts.

use std::time::Duration;

use octoflow_model::{RunId, Time};
use octoflow_store::Reader;

use crate::Error;

/// After this long a key may be used for something else.
pub const KEPT: Duration = Duration::from_secs(24 * 3600);

/// A key somebody chose for what is to be made.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    /// Whose key it is; different people may choose the same.
    pub scope: String,
    pub key: String,
    /// What is asked for, as a hash: the same key for something else is a mistake.
    pub print: Vec<u8>,
}

impl Claim {
    /// What was made for this key before, or nothing. It is an error when that was something else.
    pub(crate) fn made(&self, reader: &Reader, now: Time) -> Result<Option<RunId>, Error> {
        match reader.idempotency_key(&self.scope, &self.key, now)? {
            Some(found) => self.answer(&found.fingerprint, found.run).map(Some),
            None => Ok(None),
        }
    }

    pub(crate) fn answer(&self, print: &[u8], run: RunId) -> Result<RunId, Error> {
        if print == self.print { Ok(run) } else { Err(Error::KeyTaken { key: self.key.clone() }) }
    }

    pub(crate) fn row(&self, run: RunId, now: Time) -> octoflow_store::IdempotencyKey {
        octoflow_store::IdempotencyKey {
            scope: self.scope.clone(),
            key: self.key.clone(),
            fingerprint: self.print.clone(),
            run,
            expires: now.saturating_add(KEPT),
        }
    }
}
