//! Idempotency keys: a client sends one with a request so that repeating the request creates the run only once.

use octoflow_model::{RunId, Time};

/// Run that was created for an idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// Owner of the key; different users may choose the same key.
    pub scope: String,
    pub key: String,
    /// Hash of the request.
    pub fingerprint: Vec<u8>,
    pub run: RunId,
    /// Time from which the key may be used for another request.
    pub expires: Time,
}
