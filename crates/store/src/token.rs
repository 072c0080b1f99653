//! What is kept about those who may come in: hashes and what they stand for. The secrets themselves are never here.

use std::fmt;

use octoflow_model::Time;

/// A token without the token.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    pub id: String,
    pub hash: Vec<u8>,
    pub who: String,
    pub note: String,
    /// Words with commas between them, opaque to the store.
    pub privileges: String,
    pub created: Time,
    pub expires: Option<Time>,
}

/// A chosen password, hashed slowly.
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
