//! What was last seen of a run, for the many who watch the same: it is looked at once and told to all of them.
//! It remembers only so much, by size, and never shows less than was asked for.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use octoflow_model::{Revision, RunId};
use octoflow_store::RunRow;
use serde_json::Value;

use super::{Fault, Registry};

/// Runs that are remembered; with more the memory begins anew.
const MOST: usize = 4096;
/// About how many bytes all remembered objects take together.
const MOST_BYTES: usize = 32 << 20;
/// A larger object is looked at by everyone alone.
const LARGEST: usize = 1 << 20;

#[derive(Default)]
pub(super) struct RenderedCache(Mutex<Remembered>);

#[derive(Default)]
struct Remembered {
    runs: HashMap<RunId, Arc<Mutex<Entry>>>,
    bytes: usize,
}

#[derive(Default)]
struct Entry {
    /// Kind, namespace and name of a run never change.
    row: Option<Arc<RunRow>>,
    object: Option<Seen>,
}

struct Seen {
    /// Everything that happened up to here is in it.
    until: Revision,
    /// The run's own last change before it was looked at.
    revision: Option<Revision>,
    object: Arc<Value>,
}

impl Registry {
    /// The run's row, perhaps an old one: only what never changes may be read from it.
    pub(super) fn identity(&self, run: RunId) -> Result<Option<Arc<RunRow>>, Fault> {
        let known = self.0.rendered.of(run);
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.row.is_none() {
            known.row = self.read(|reader| Ok(reader.run(run)?))?.map(Arc::new);
        }
        Ok(known.row.clone())
    }

    /// The run as people see it, with everything up to this revision at least.
    pub(super) fn rendered(&self, run: RunId, since: Revision) -> Result<Option<Arc<Value>>, Fault> {
        let known = self.0.rendered.of(run);
        // Held while it is looked at: the others wait for the one who looks.
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seen) = known.object.as_ref().filter(|seen| seen.until >= since) {
            return Ok(Some(seen.object.clone()));
        }
        let until = self.0.feed.latest();
        let revision = self.read(|reader| Ok(reader.run_revision(run)?))?;
        if let Some(seen) = known.object.as_mut().filter(|seen| revision.is_some() && seen.revision == revision) {
            // Others changed since, this one did not.
            seen.until = until;
            return Ok(Some(seen.object.clone()));
        }
        known.object = None;
        let Some(row) = self.read(|reader| Ok(reader.run(run)?))? else { return Ok(None) };
        let object = match self.listed_run(&row) {
            Ok(object) => Arc::new(object),
            Err(Fault::NotFound { .. }) => return Ok(None),
            Err(fault) => return Err(fault),
        };
        if let Some(size) = size(&object, LARGEST)
            && self.0.rendered.has_room_for(size)
        {
            known.object = Some(Seen { until, revision, object: object.clone() });
        }
        Ok(Some(object))
    }
}

impl RenderedCache {
    fn of(&self, run: RunId) -> Arc<Mutex<Entry>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Dropped when nobody waits for the lock any more.
        let mut old = Remembered::default();
        if all.runs.len() >= MOST && !all.runs.contains_key(&run) {
            old = std::mem::take(&mut *all);
        }
        let known = all.runs.entry(run).or_default().clone();
        drop(all);
        drop(old);
        known
    }

    /// Counts another object. When all are too large together everything is forgotten, this one included: what many
    /// watch is soon remembered again. One that takes the place of an older one is counted as well, so that the sum is
    /// never too small.
    fn has_room_for(&self, size: usize) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.bytes += size;
        if all.bytes > MOST_BYTES {
            let old = std::mem::take(&mut *all);
            drop(all);
            drop(old);
            return false;
        }
        true
    }
}

/// About how many bytes a value takes in memory; nothing when it is more than `most`, which is found out early.
fn size(value: &Value, most: usize) -> Option<usize> {
    /// A value without what it owns, and what a map or an allocation costs beside it.
    const EACH: usize = 64;
    let mut size = 0;
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        size += EACH;
        match value {
            Value::String(text) => size += text.len(),
            Value::Array(items) => left.extend(items),
            Value::Object(fields) => {
                size += fields.keys().map(|key| key.len() + EACH).sum::<usize>();
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
        let large = json!({"text": "x".repeat(LARGEST)});
        assert_eq!(size(&large, LARGEST), None);
        let ordinary = json!({"text": "x".repeat(100_000), "list": [1, 2, {"a": null}]});
        let each = size(&ordinary, LARGEST).unwrap();
        assert!((100_000..110_000).contains(&each), "{each}");
        let rendered = RenderedCache::default();
        let kept = (0..10_000).filter(|_| rendered.has_room_for(each)).count();
        assert!(kept > 9_000, "{kept}");
        assert!(rendered.0.lock().unwrap().bytes <= MOST_BYTES);
    }
}
