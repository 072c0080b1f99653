//! Idempotency keys of submissions: the same request twice makes one run.

use std::time::Duration;

use octoflow_model::{RunId, Time};
use octoflow_store::Reader;

use crate::{Error, clock};

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
    /// Returns the run that was made for this key, if any. Fails if the request was a different one.
    pub(crate) fn made(&self, reader: &Reader) -> Result<Option<RunId>, Error> {
        match reader.claim(&self.scope, &self.key, clock::steady())? {
            Some(found) => self.answer(&found.print, found.run).map(Some),
            None => Ok(None),
        }
    }

    pub(crate) fn answer(&self, fingerprint: &[u8], run: RunId) -> Result<RunId, Error> {
        if fingerprint == self.fingerprint { Ok(run) } else { Err(Error::KeyTaken { key: self.key.clone() }) }
    }

    pub(crate) fn row(&self, run: RunId, now: Time) -> octoflow_store::Claim {
        octoflow_store::Claim {
            scope: self.scope.clone(),
            key: self.key.clone(),
            print: self.fingerprint.clone(),
            run,
            expires: now.saturating_add(CLAIM_RETENTION),
        }
    }
}
