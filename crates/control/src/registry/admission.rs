//! Admission of submitted runs, with a cache: many runs are made from one manifest. Everything else that admission
//! reads is a stored object, so the cache is cleared whenever one of those changes.

use std::{
    collections::VecDeque,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use octoflow_engine::{Program, admit::admit};
use octoflow_model::submission::Stored;
use serde_json::Value;

use super::{Fault, Kind, Registry, fields::advice};
use crate::Error;

/// Maximum number of cached manifests.
const MAX_ENTRIES: usize = 32;

/// Longer manifests are not cached, to bound the memory.
const MAX_MANIFEST_BYTES: usize = 64 << 10;

/// Metadata fields that differ between runs of the same manifest. Neither admission nor compilation depends on them:
/// any generated name behind the same prefix is as good.
const PER_RUN_FIELDS: [&str; 2] = ["name", "managedFields"];

/// Run that passed admission, with its compiled program.
#[derive(Clone)]
pub(super) struct AdmittedRun {
    /// The manifest without ineffective parts.
    pub manifest: Value,
    /// Copies of everything it refers to.
    pub stored: Stored,
    pub program: Program,
    /// What its author should know although it was accepted.
    pub warnings: Vec<String>,
}

#[derive(Default)]
pub(super) struct AdmissionCache(Mutex<CacheState>);

#[derive(Default)]
struct CacheState {
    /// Most recent entries, newest first.
    known: VecDeque<Arc<CachedAdmission>>,
    /// Number of times the cache was cleared.
    generation: u64,
}

struct CachedAdmission {
    fingerprint: u64,
    object: Value,
    admitted_run: AdmittedRun,
}

impl Registry {
    /// Admits an object, or returns all its problems. `drawn`: its name was generated here, so the cache may be used.
    pub(super) fn admit_run(
        &self,
        kind: &'static Kind,
        name: &str,
        object: &Value,
        drawn: bool,
    ) -> Result<AdmittedRun, Fault> {
        let cache = self.admissions();
        let fingerprint = drawn.then(|| fingerprint(object));
        if let Some(admitted_run) = fingerprint.and_then(|fingerprint| cache.find(fingerprint, object)) {
            return Ok(admitted_run);
        }
        // Read before anything else: if the generation changes from here on, the result must not be cached.
        let generation = cache.lock().generation;
        let catalog = self.handle().catalog()?;
        let admitted = admit(object, &catalog).map_err(|problems| Fault::problems(kind, name, &problems))?;
        let program = match admitted.program {
            Some(program) => program,
            None => Program::compile(&admitted.manifest, &admitted.stored)
                .map_err(|why| Error::Refused(octoflow_engine::Refusal::Invalid(why)))?,
        };
        let warnings = advice(admitted.warnings);
        let admitted_run = AdmittedRun { manifest: admitted.manifest, stored: admitted.stored, program, warnings };
        if let Some(fingerprint) = fingerprint {
            cache.insert(fingerprint, object, &admitted_run, generation);
        }
        Ok(admitted_run)
    }
}

impl AdmissionCache {
    /// Clears the cache, called before a change of a stored object becomes visible.
    pub(super) fn clear(&self) {
        let mut state = self.lock();
        state.known.clear();
        state.generation += 1;
    }

    fn lock(&self) -> MutexGuard<'_, CacheState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, fingerprint: u64, object: &Value) -> Option<AdmittedRun> {
        let known = self.lock().known.iter().find(|known| known.fingerprint == fingerprint).cloned()?;
        // Different objects may have the same fingerprint, though hardly ever.
        if !same(&known.object, object) {
            return None;
        }
        let mut admitted_run = known.admitted_run.clone();
        let metadata = admitted_run.manifest["metadata"].as_object_mut()?;
        for field in PER_RUN_FIELDS {
            let value = &object["metadata"][field];
            if value.is_null() {
                metadata.remove(field);
            } else {
                metadata.insert(field.to_owned(), value.clone());
            }
        }
        Some(admitted_run)
    }

    fn insert(&self, fingerprint: u64, object: &Value, admitted_run: &AdmittedRun, generation: u64) {
        if object.to_string().len() > MAX_MANIFEST_BYTES {
            return;
        }
        let known =
            Arc::new(CachedAdmission { fingerprint, object: object.clone(), admitted_run: admitted_run.clone() });
        let mut state = self.lock();
        if state.generation == generation {
            state.known.truncate(MAX_ENTRIES - 1);
            state.known.push_front(known);
        }
    }
}

/// Returns everything that admission depends on: the fields of the object, then those of its metadata.
fn parts(object: &Value) -> impl Iterator<Item = (&str, &String, &Value)> {
    let outer = object.as_object().into_iter().flatten().filter(|(key, _)| *key != "metadata");
    let inner =
        object["metadata"].as_object().into_iter().flatten().filter(|(key, _)| !PER_RUN_FIELDS.contains(&key.as_str()));
    outer.map(|(key, value)| ("", key, value)).chain(inner.map(|(key, value)| ("metadata", key, value)))
}

fn fingerprint(object: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts(object).for_each(|part| part.hash(&mut hasher));
    hasher.finish()
}

fn same(one: &Value, other: &Value) -> bool {
    parts(one).eq(parts(other))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object() -> Value {
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
            "metadata": {"generateName": "a-", "name": "a-1", "labels": {"x": "y"}, "managedFields": [{"time": "1"}]},
            "spec": {"entrypoint": "main", "templates": [{"name": "main", "container": {"image": "a"}}]},
        })
    }

    fn admitted_run(manifest: Value) -> AdmittedRun {
        let program = Program::compile(&manifest, &Stored::default()).unwrap();
        AdmittedRun { manifest, stored: Stored::default(), program, warnings: Vec::new() }
    }

    #[test]
    fn another_run_of_the_same_manifest_gets_its_own_name() {
        let cache = AdmissionCache::default();
        cache.insert(fingerprint(&object()), &object(), &admitted_run(object()), 0);
        let mut next = object();
        next["metadata"]["name"] = json!("a-2");
        next["metadata"].as_object_mut().unwrap().remove("managedFields");
        assert_eq!(cache.find(fingerprint(&next), &next).unwrap().manifest, next);
    }

    #[test]
    fn whatever_else_differs_is_judged_anew() {
        let cache = AdmissionCache::default();
        cache.insert(fingerprint(&object()), &object(), &admitted_run(object()), 0);
        let changes: [(&str, Value); 4] = [
            ("/spec/templates/0/container/image", json!("b")),
            ("/metadata/labels/x", json!("z")),
            ("/metadata/generateName", json!("b-")),
            ("/kind", json!("TaskSet")),
        ];
        let moved = json!({"metadata": {"generateName": "a-"}, "labels": {"x": "y"}});
        assert!(!same(&moved, &json!({"metadata": {"generateName": "a-", "labels": {"x": "y"}}})));
        for (place, value) in changes {
            let mut other = object();
            *other.pointer_mut(place).unwrap() = value;
            // Also when two fingerprints collide.
            assert!(cache.find(fingerprint(&object()), &other).is_none(), "{place}");
            assert_ne!(fingerprint(&other), fingerprint(&object()), "{place}");
        }
    }

    #[test]
    fn what_was_judged_before_something_changed_is_forgotten() {
        let cache = AdmissionCache::default();
        cache.insert(fingerprint(&object()), &object(), &admitted_run(object()), 0);
        cache.clear();
        assert!(cache.find(fingerprint(&object()), &object()).is_none());
        cache.insert(fingerprint(&object()), &object(), &admitted_run(object()), 0);
        assert!(cache.find(fingerprint(&object()), &object()).is_none(), "it was judged before");
        cache.insert(fingerprint(&object()), &object(), &admitted_run(object()), 1);
        assert!(cache.find(fingerprint(&object()), &object()).is_some());
    }

    #[test]
    fn only_the_last_few_are_remembered() {
        let cache = AdmissionCache::default();
        let numbered = |at: usize| {
            let mut object = object();
            object["metadata"]["labels"]["x"] = json!(at.to_string());
            object
        };
        for at in 0..=MAX_ENTRIES {
            cache.insert(fingerprint(&numbered(at)), &numbered(at), &admitted_run(numbered(at)), 0);
        }
        assert!(cache.find(fingerprint(&numbered(0)), &numbered(0)).is_none());
        assert!(cache.find(fingerprint(&numbered(1)), &numbered(1)).is_some());
    }
}
