//! What was last seen of a run, for the many who watch the same: it is looked at once and told to all of them.
//! It remembers only what is cheap to hold, and never shows less than was asked for.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use octoflow_model::{Revision, RunId};
use octoflow_store::RunRow;
use serde_json::Value;

use super::{Fault, Registry};

/// Runs that are remembered; with more everything is looked at anew.
const MOST: usize = 1024;
/// An object with more nodes or replicas is looked at by everyone alone.
const MOST_NODES: usize = 200;

#[derive(Default)]
pub(super) struct Glances(Mutex<HashMap<RunId, Arc<Mutex<Known>>>>);

#[derive(Default)]
struct Known {
    /// Kind, namespace and name of a run never change.
    row: Option<Arc<RunRow>>,
    /// The object, and up to where everything is in it.
    object: Option<(Revision, Arc<Value>)>,
}

impl Registry {
    /// The run's row, perhaps an old one: only what never changes may be read from it.
    pub(super) fn identity(&self, run: RunId) -> Result<Option<Arc<RunRow>>, Fault> {
        let known = self.0.glances.of(run);
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.row.is_none() {
            known.row = self.read(|reader| Ok(reader.run(run)?))?.map(Arc::new);
        }
        Ok(known.row.clone())
    }

    /// The run as people see it, with everything up to this revision at least.
    pub(super) fn glance(&self, run: RunId, since: Revision) -> Result<Option<Arc<Value>>, Fault> {
        let known = self.0.glances.of(run);
        // Held while it is looked at: the others wait for the one who looks.
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((seen, object)) = &known.object
            && *seen >= since
        {
            return Ok(Some(object.clone()));
        }
        known.object = None;
        let seen = self.0.feed.latest();
        let Some(row) = self.read(|reader| Ok(reader.run(run)?))? else { return Ok(None) };
        let object = match self.run_object(&row) {
            Ok(object) => Arc::new(object),
            Err(Fault::NotFound { .. }) => return Ok(None),
            Err(fault) => return Err(fault),
        };
        if parts(&object["status"]) <= MOST_NODES {
            known.object = Some((seen, object.clone()));
        }
        Ok(Some(object))
    }
}

/// The nodes of a workflow, or the replicas of a TaskSet.
fn parts(status: &Value) -> usize {
    let roles = status["roleStatus"].as_array().into_iter().flatten();
    let replicas: usize = roles.map(|role| role["replicaStatus"].as_array().map_or(0, Vec::len)).sum();
    status["nodes"].as_object().map_or(0, serde_json::Map::len) + replicas
}

impl Glances {
    fn of(&self, run: RunId) -> Arc<Mutex<Known>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST && !all.contains_key(&run) {
            all.clear();
        }
        all.entry(run).or_default().clone()
    }
}
