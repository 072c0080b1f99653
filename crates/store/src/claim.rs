//! A key that somebody sent along with what was to be made, so that asking twice makes it once.

use octoflow_model::{RunId, Time};

/// What was made for a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Whose key it is; different people may choose the same.
    pub scope: String,
    pub key: String,
    /// What was asked for, as a hash.
    pub print: Vec<u8>,
    pub run: RunId,
    /// From then on the key may be used for something else.
    pub expires: Time,
}
