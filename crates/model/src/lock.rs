//! Locks: what somebody wants to hold before going on, and how many may hold it at a time.
//! Plain data; who holds what is the engine's business.

use serde::{Deserialize, Serialize};

/// One lock that somebody wants or holds. Two claims are the same lock when they are equal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The name people see.
    pub key: String,
    pub limit: Limit,
    /// Written for a lock database; such locks tell how many hold them rather than how much is free.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub database: bool,
}

/// How many may hold a lock at a time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Limit {
    /// A mutex.
    One,
    /// A semaphore: the number stands under a key of a ConfigMap and is read each time it matters.
    Key {
        namespace: String,
        map: String,
        key: String,
        /// The number when the ConfigMap or the key is not there; without one that is an error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        otherwise: Option<u32>,
    },
}

impl Claim {
    pub fn is_mutex(&self) -> bool {
        self.limit == Limit::One
    }
}
