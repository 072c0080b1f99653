//! Keys whose runs are decided but not yet on disk. With what the store has they are all keys in use, so the store is
//! never handed one twice.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use octoflow_model::Time;
use octoflow_model::{IdMap, RunId};
use octoflow_store::{Batch, Change};

use super::port::Storage;
use crate::{Claim, Error};

#[derive(Default)]
pub(super) struct Claims {
    /// By scope and key.
    held: Arc<Mutex<Held>>,
    /// Not handed to the store yet.
    fresh: IdMap<RunId, Claim>,
}

type Held = HashMap<(String, String), (Vec<u8>, RunId)>;

/// What is handed to the store now.
pub(super) struct Claimed {
    held: Arc<Mutex<Held>>,
    keys: Vec<(String, String)>,
}

impl Claims {
    /// The run that was made for this key.
    pub(super) fn made(&self, claim: &Claim, storage: &dyn Storage, now: Time) -> Result<Option<RunId>, Error> {
        // In this order: what is settled between the two questions is found by the second.
        let held = lock(&self.held).get(&(claim.scope.clone(), claim.key.clone())).cloned();
        match held {
            Some((print, run)) => claim.answer(&print, run).map(Some),
            None => claim.made(&storage.reader()?, now),
        }
    }

    pub(super) fn hold(&mut self, run: RunId, claim: Claim) {
        lock(&self.held).insert((claim.scope.clone(), claim.key.clone()), (claim.fingerprint.clone(), run));
        self.fresh.insert(run, claim);
    }

    /// The keys that the store does not have yet.
    pub(super) fn keys(&self) -> Vec<String> {
        lock(&self.held).keys().map(|(scope, key)| format!("{scope}/{key}")).collect()
    }

    /// The keys of runs that are handed to the store go with them.
    pub(super) fn put(&mut self, submitted: &BTreeSet<RunId>, batch: &mut Batch, now: Time) -> Claimed {
        let mut keys = Vec::new();
        if !self.fresh.is_empty() {
            for (run, claim) in submitted.iter().filter_map(|run| Some((*run, self.fresh.remove(run)?))) {
                batch.push(Change::PutIdempotencyKey { key: Box::new(claim.row(run, now)), now });
                keys.push((claim.scope, claim.key));
            }
        }
        Claimed { held: self.held.clone(), keys }
    }
}

impl Claimed {
    /// They are on disk, and found there from now on.
    pub(super) fn settle(self) {
        if !self.keys.is_empty() {
            let mut held = lock(&self.held);
            self.keys.iter().for_each(|key| drop(held.remove(key)));
        }
    }
}

fn lock(held: &Mutex<Held>) -> MutexGuard<'_, Held> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}
