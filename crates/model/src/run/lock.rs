//! Lock claims: the locks that a node or run requests, and how many holders each allows. Plain data; `engine::locks`
//! tracks the holders.

use serde::{Deserialize, Serialize};

/// A lock that a node or run requests or holds. Two claims mean the same lock if they are equal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The display name.
    pub key: String,
    pub limit: Limit,
    /// True if the manifest asks for a lock database; messages about such locks show the number of holders instead of
    /// the free permits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub database: bool,
}

/// The number of holders a lock allows at a time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Limit {
    /// A mutex.
    One,
    /// A semaphore: the limit is a key of a ConfigMap and is read each time it is needed.
    Key {
        namespace: String,
        map: String,
        key: String,
        /// Limit if the ConfigMap or the key is missing; without it that is an error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        otherwise: Option<u32>,
    },
}

impl Claim {
    pub fn is_mutex(&self) -> bool {
        self.limit == Limit::One
    }
}
