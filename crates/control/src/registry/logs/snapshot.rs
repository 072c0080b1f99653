//! What a run was when somebody last looked at it for its logs: looked at once per change and shared by everybody who
//! follows it, because a look asks the engine for the whole run. It is forgotten with the last reader.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Instant,
};

use octoflow_model::{AttemptId, Revision, RunId};
use octoflow_runtime::logs::Sizes;
use octoflow_store::RunRow;
use serde_json::Value;

use crate::registry::{Fault, Registry};

/// Looking at a run that changes all the time takes one part in this many of the time.
const SHARE: u32 = 10;

/// Readers that are gone are cleared away when there are more entries than this, and twice as many as after the last time.
const FEW: usize = 64;

/// The runs whose logs are read now.
#[derive(Default)]
pub(in crate::registry) struct Snapshots(Mutex<Known>);

#[derive(Default)]
struct Known {
    runs: HashMap<RunId, Weak<Shared>>,
    /// How many there were when the last ones that are gone were cleared away.
    left: usize,
}

/// The newest snapshot of one run.
#[derive(Default)]
pub(super) struct Shared(Mutex<State>);

#[derive(Default)]
struct State {
    latest: Option<Arc<Snapshot>>,
    /// Not looked at again before, unless it is over.
    next_look: Option<Instant>,
}

pub(super) struct Snapshot {
    /// Everything up to here is in it.
    revision: Option<Revision>,
    /// Nothing when the run is gone.
    pub row: Option<RunRow>,
    pub object: Value,
    /// Which attempt belongs to which node.
    pub attempts: Vec<(String, AttemptId)>,
    /// How long the logs of ended attempts must be.
    pub sizes: Sizes,
}

impl Snapshots {
    pub(super) fn of(&self, run: RunId) -> Arc<Shared> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = known.runs.get(&run).and_then(Weak::upgrade) {
            return shared;
        }
        if known.runs.len() > FEW.max(2 * known.left) {
            known.runs.retain(|_, shared| shared.strong_count() > 0);
            known.left = known.runs.len();
        }
        let shared = Arc::new(Shared::default());
        known.runs.insert(run, Arc::downgrade(&shared));
        shared
    }
}

impl Shared {
    /// The run as it is now, or as it was a little ago if it is large and changes all the time. That it is over is always
    /// told at once.
    pub(super) fn latest(&self, registry: &Registry, run: RunId) -> Result<Arc<Snapshot>, Fault> {
        // Held while it is looked at: the others wait for the one who looks.
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let revision = registry.read(|reader| Ok(reader.run_revision(run)?))?;
        if let Some(latest) = &state.latest {
            if latest.revision == revision || latest.is_over() {
                return Ok(latest.clone());
            }
            if state.next_look.is_some_and(|next| Instant::now() < next)
                && registry.read(|reader| Ok(reader.run(run)?))?.is_some_and(|row| !row.archived)
            {
                return Ok(latest.clone());
            }
        }
        let began = Instant::now();
        let latest = Arc::new(Snapshot::of(registry, run, revision)?);
        state.next_look = Some(began + began.elapsed() * SHARE);
        state.latest = Some(latest.clone());
        Ok(latest)
    }
}

impl Snapshot {
    fn of(registry: &Registry, run: RunId, revision: Option<Revision>) -> Result<Self, Fault> {
        let gone = Self { revision, row: None, object: Value::Null, attempts: Vec::new(), sizes: Sizes::default() };
        let Some(row) = registry.read(|reader| Ok(reader.run(run)?))? else { return Ok(gone) };
        let object = match registry.podded_run(&row) {
            Err(Fault::NotFound { .. }) => return Ok(gone),
            object => object?,
        };
        let attempts = registry.handle().attempts(run)?;
        let sizes = Arc::new(registry.handle().log_sizes(run)?);
        Ok(Self { revision, row: Some(row), object, attempts, sizes })
    }

    pub(super) fn is_over(&self) -> bool {
        self.row.as_ref().is_none_or(|row| row.archived)
    }
}
