//! Stored credentials: hashes and their metadata. The secrets themselves are never stored.

use std::fmt;

use octoflow_model::Time;

/// An access token, stored as a hash.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    pub id: String,
    pub hash: Vec<u8>,
    pub who: String,
    pub note: String,
    /// Comma-separated words, opaque to the store.
    pub privileges: String,
    pub created: Time,
    pub expires: Option<Time>,
}

/// A user's password, stored as a slow salted hash.
#[derive(Clone, PartialEq, Eq)]
pub struct Password {
    pub who: String,
    pub salt: Vec<u8>,
    pub rounds: u32,
    pub hash: Vec<u8>,
    pub changed: Time,
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("id", &self.id).field("who", &self.who).finish_non_exhaustive()
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Password").field("who", &self.who).finish_non_exhaustive()
    }
}
