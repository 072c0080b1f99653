//! Snapshots of runs for log readers. A run is read once per change and shared by all its readers, because reading
//! renders the whole run. A snapshot is dropped with its last reader.

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

/// A run that changes constantly is read at most one part in this many of the time.
const READ_TIME_SHARE: u32 = 10;

/// Dropped entries are removed when there are more entries than this, and twice as many as after the last cleanup.
const CLEANUP_THRESHOLD: usize = 64;

/// Runs whose logs are being read.
#[derive(Default)]
pub(in crate::registry) struct Snapshots(Mutex<OpenRuns>);

#[derive(Default)]
struct OpenRuns {
    runs: HashMap<RunId, Weak<SharedSnapshot>>,
    /// Number of entries after the last cleanup.
    left: usize,
}

/// Latest snapshot of one run.
#[derive(Default)]
pub(super) struct SharedSnapshot(Mutex<State>);

#[derive(Default)]
struct State {
    latest: Option<Arc<Snapshot>>,
    /// Earliest time of the next read, unless the run is finished.
    next_look: Option<Instant>,
}

pub(super) struct Snapshot {
    /// The snapshot includes every change up to this revision.
    revision: Option<Revision>,
    /// `None` if the run is gone.
    pub row: Option<RunRow>,
    pub object: Value,
    /// Attempts by node id.
    pub attempts: Vec<(String, AttemptId)>,
    /// Expected log sizes of ended attempts.
    pub sizes: Sizes,
}

impl Snapshots {
    pub(super) fn of(&self, run: RunId) -> Arc<SharedSnapshot> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = known.runs.get(&run).and_then(Weak::upgrade) {
            return shared;
        }
        if known.runs.len() > CLEANUP_THRESHOLD.max(2 * known.left) {
            known.runs.retain(|_, shared| shared.strong_count() > 0);
            known.left = known.runs.len();
        }
        let shared = Arc::new(SharedSnapshot::default());
        known.runs.insert(run, Arc::downgrade(&shared));
        shared
    }
}

impl SharedSnapshot {
    /// Returns the current state of the run, or a slightly old one if the run is large and changes constantly. The end
    /// of the run is always reported at once.
    pub(super) fn latest(&self, registry: &Registry, run: RunId) -> Result<Arc<Snapshot>, Fault> {
        // Locked while reading: concurrent callers wait for the first.
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
        state.next_look = Some(began + began.elapsed() * READ_TIME_SHARE);
        state.latest = Some(latest.clone());
        Ok(latest)
    }
}

impl Snapshot {
    fn of(registry: &Registry, run: RunId, revision: Option<Revision>) -> Result<Self, Fault> {
        let gone = Self { revision, row: None, object: Value::Null, attempts: Vec::new(), sizes: Sizes::default() };
        let Some(row) = registry.read(|reader| Ok(reader.run(run)?))? else { return Ok(gone) };
        let object = match registry.run_with_pods(&row) {
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
