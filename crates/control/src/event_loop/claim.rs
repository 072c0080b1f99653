//! Idempotency keys of submissions: the same request twice makes one run.

use std::time::Duration;

use octoflow_model::{RunId, Time};
use octoflow_store::Reader;

use crate::Error;

/// Retention of a key; after that it may be used for something else.
pub const CLAIM_RETENTION: Duration = Duration::from_secs(24 * 3600);

/// Idempotency key chosen by a client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    /// Scope of the key; different clients may choose the same one.
    pub scope: String,
    pub key: String,
    /// Hash of the request: the same key for another request is an error.
    pub fingerprint: Vec<u8>,
}

impl Claim {
    /// What was made for this key before, or nothing. It is an error when that was something else.
    pub(crate) fn made(&self, reader: &Reader, now: Time) -> Result<Option<RunId>, Error> {
        match reader.idempotency_key(&self.scope, &self.key, now)? {
            Some(found) => self.answer(&found.fingerprint, found.run).map(Some),
            None => Ok(None),
        }
    }

    pub(crate) fn answer(&self, fingerprint: &[u8], run: RunId) -> Result<RunId, Error> {
        if fingerprint == self.fingerprint { Ok(run) } else { Err(Error::KeyTaken { key: self.key.clone() }) }
    }

    pub(crate) fn row(&self, run: RunId, now: Time) -> octoflow_store::IdempotencyKey {
        octoflow_store::IdempotencyKey {
            scope: self.scope.clone(),
            key: self.key.clone(),
            fingerprint: self.fingerprint.clone(),
            run,
            expires: now.saturating_add(CLAIM_RETENTION),
        }
    }
}
