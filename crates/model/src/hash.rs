//! Hash maps for keys that we make ourselves: ids, indices and tuples of them. Must never be keyed by text that a user
//! chooses, because the hash function is fast and not hardened against chosen keys.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;

/// Maps our own keys by a fast hash: std's SipHash took an eighth of the engine's instructions for a step.
pub type IdMap<K, V> = HashMap<K, V, RandomState>;

/// Holds our own keys by a fast hash; see [`IdMap`].
pub type IdSet<K> = HashSet<K, RandomState>;
