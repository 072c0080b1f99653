//! Caches rendered objects per run so that N watchers render once, and a large run not at every change. Bounded by size;
//! never serves an object older than the revision asked for.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use octoflow_model::{Revision, RunId};
use octoflow_store::RunRow;
use serde_json::Value;

use super::{Fault, Registry};
use crate::event_loop::LARGE_RUN;

/// Maximum number of cached runs. One more clears the cache.
const MAX_RUNS: usize = 4096;
/// Approximate memory limit of all cached objects together.
const MAX_BYTES: usize = 96 << 20;
/// Larger objects are not cached; each caller renders its own. The largest run that lists show with its nodes is
/// smaller, so that it too is rendered once for all who watch it.
const MAX_OBJECT_BYTES: usize = 32 << 20;

/// After a large run was rendered, so many times as long as that took nobody who watches it has it rendered again: they
/// take a tenth of a core, whatever happens to it.
const REST: u32 = 10;
/// Longest such rest.
const MAX_REST: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct RenderedCache(Mutex<CachedRuns>);

#[derive(Default)]
struct CachedRuns {
    runs: HashMap<RunId, Arc<Mutex<Entry>>>,
    bytes: usize,
}

#[derive(Default)]
struct Entry {
    /// Row for kind, namespace and name, which never change.
    row: Option<Arc<RunRow>>,
    object: Option<Rendered>,
    /// Set after a large run was rendered.
    rests_until: Option<Instant>,
}

struct Rendered {
    /// The object includes every change up to this revision.
    until: Revision,
    /// Revision of the run's own last change before it was rendered.
    revision: Option<Revision>,
    object: Arc<Value>,
}

impl Registry {
    /// Returns the run's row, perhaps stale: only fields that never change may be read from it.
    pub(super) fn identity(&self, run: RunId) -> Result<Option<Arc<RunRow>>, Fault> {
        let known = self.0.rendered.of(run);
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.row.is_none() {
            known.row = self.read(|reader| Ok(reader.run(run)?))?.map(Arc::new);
        }
        Ok(known.row.clone())
    }

    /// Returns how long a watcher waits before it has a large run rendered with a change that others have not seen yet.
    pub(super) fn rest(&self, run: RunId, since: Revision) -> Option<Duration> {
        let known = self.0.rendered.of(run);
        let known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.object.as_ref().is_some_and(|seen| seen.until >= since) {
            return None;
        }
        let left = known.rests_until?.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// Returns the run as clients see it, including every change up to `since` at least.
    pub(super) fn rendered(&self, run: RunId, since: Revision) -> Result<Option<Arc<Value>>, Fault> {
        let known = self.0.rendered.of(run);
        // Locked while rendering: concurrent callers wait for the first.
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seen) = known.object.as_ref().filter(|seen| seen.until >= since) {
            return Ok(Some(seen.object.clone()));
        }
        let until = self.0.feed.latest();
        let revision = self.read(|reader| Ok(reader.run_revision(run)?))?;
        if let Some(seen) = known.object.as_mut().filter(|seen| revision.is_some() && seen.revision == revision) {
            // Other runs changed since; this one did not.
            seen.until = until;
            return Ok(Some(seen.object.clone()));
        }
        known.object = None;
        let began = Instant::now();
        let Some(row) = self.read(|reader| Ok(reader.run(run)?))? else { return Ok(None) };
        let object = match self.listed_run(&row) {
            Ok(object) => Arc::new(object),
            Err(Fault::NotFound { .. }) => return Ok(None),
            Err(fault) => return Err(fault),
        };
        let nodes = object["status"]["nodes"].as_object().map_or(0, serde_json::Map::len);
        known.rests_until = (nodes > LARGE_RUN).then(|| Instant::now() + (began.elapsed() * REST).min(MAX_REST));
        if let Some(size) = size(&object, MAX_OBJECT_BYTES)
            && self.0.rendered.reserve(size)
        {
            known.object = Some(Rendered { until, revision, object: object.clone() });
        }
        Ok(Some(object))
    }
}

impl RenderedCache {
    fn of(&self, run: RunId) -> Arc<Mutex<Entry>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Dropped after the lock is released.
        let mut old = CachedRuns::default();
        if all.runs.len() >= MAX_RUNS && !all.runs.contains_key(&run) {
            old = std::mem::take(&mut *all);
        }
        let known = all.runs.entry(run).or_default().clone();
        drop(all);
        drop(old);
        known
    }

    /// Counts another object. When the limit is exceeded the whole cache is cleared, this object included: what many
    /// watch is soon cached again. An object that replaces an older one is counted as well, so that the sum is never
    /// too small.
    fn reserve(&self, size: usize) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.bytes += size;
        if all.bytes > MAX_BYTES {
            let old = std::mem::take(&mut *all);
            drop(all);
            drop(old);
            return false;
        }
        true
    }
}

/// Estimates the bytes that a value takes in memory. Returns `None` if that is more than `most`, stopping early.
fn size(value: &Value, most: usize) -> Option<usize> {
    /// Size of a value without its contents, plus the overhead of a map entry or an allocation.
    const VALUE_OVERHEAD: usize = 64;
    let mut size = 0;
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        size += VALUE_OVERHEAD;
        match value {
            Value::String(text) => size += text.len(),
            Value::Array(items) => left.extend(items),
            Value::Object(fields) => {
                size += fields.keys().map(|key| key.len() + VALUE_OVERHEAD).sum::<usize>();
                left.extend(fields.values());
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        if size > most {
            return None;
        }
    }
    Some(size)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_remembered_is_bounded_by_size() {
        let large = json!({"text": "x".repeat(MAX_OBJECT_BYTES)});
        assert_eq!(size(&large, MAX_OBJECT_BYTES), None);
        let ordinary = json!({"text": "x".repeat(100_000), "list": [1, 2, {"a": null}]});
        let each = size(&ordinary, MAX_OBJECT_BYTES).unwrap();
        assert!((100_000..110_000).contains(&each), "{each}");
        let rendered = RenderedCache::default();
        let kept = (0..10_000).filter(|_| rendered.reserve(each)).count();
        assert!(kept > 9_000, "{kept}");
        assert!(rendered.0.lock().unwrap().bytes <= MAX_BYTES);
    }
}
