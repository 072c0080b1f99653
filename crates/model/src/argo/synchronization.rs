//! Locks that a workflow or a template requests, in the plural spelling and in the older singular one.

use serde::{Deserialize, Serialize};

use crate::task::podspec::KeyRef;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Synchronization {
    pub mutexes: Vec<Mutex>,
    pub semaphores: Vec<Semaphore>,
    pub mutex: Option<Mutex>,
    pub semaphore: Option<Semaphore>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mutex {
    pub name: String,
    pub namespace: Option<String>,
    pub database: bool,
}

/// A semaphore. Exactly one of the two sources of its limit is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Semaphore {
    pub config_map_key_ref: Option<KeyRef>,
    pub database: Option<DatabaseKey>,
    pub namespace: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DatabaseKey {
    pub key: String,
}

impl Synchronization {
    /// Mutexes in both spellings.
    pub fn all_mutexes(&self) -> impl Iterator<Item = &Mutex> {
        self.mutexes.iter().chain(&self.mutex)
    }

    /// Semaphores in both spellings.
    pub fn all_semaphores(&self) -> impl Iterator<Item = &Semaphore> {
        self.semaphores.iter().chain(&self.semaphore)
    }
}
