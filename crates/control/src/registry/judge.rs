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

use super::{Fault, Kind, Registry};
use crate::Error;

/// Maximum number of cached manifests.
const MOST: usize = 32;

/// Longer manifests are not cached, to bound the memory.
const LONGEST: usize = 64 << 10;

/// Metadata fields that differ between runs of the same manifest. Neither admission nor compilation depends on them:
/// any generated name behind the same prefix is as good.
const OWN: [&str; 2] = ["name", "managedFields"];

/// Run that passed admission, with its compiled program.
#[derive(Clone)]
pub(super) struct Ruling {
    /// The manifest without ineffective parts.
    pub manifest: Value,
    /// Copies of everything it refers to.
    pub stored: Stored,
    pub program: Program,
}

#[derive(Default)]
pub(super) struct Rulings(Mutex<Memory>);

#[derive(Default)]
struct Memory {
    /// Most recent entries, newest first.
    known: VecDeque<Arc<Known>>,
    /// Number of times the cache was cleared.
    age: u64,
}

struct Known {
    print: u64,
    object: Value,
    ruling: Ruling,
}

impl Registry {
    /// Admits an object, or returns all its problems. `drawn`: its name was generated here, so the cache may be used.
    pub(super) fn judge(&self, kind: &'static Kind, name: &str, object: &Value, drawn: bool) -> Result<Ruling, Fault> {
        let rulings = self.rulings();
        let print = drawn.then(|| print(object));
        if let Some(ruling) = print.and_then(|print| rulings.find(print, object)) {
            return Ok(ruling);
        }
        // Read before anything else: if the generation changes from here on, the result must not be cached.
        let age = rulings.lock().age;
        let catalog = self.handle().catalog()?;
        let admitted = admit(object, &catalog).map_err(|problems| Fault::problems(kind, name, &problems))?;
        let program = Program::compile(&admitted.manifest, &admitted.stored)
            .map_err(|why| Error::Refused(octoflow_engine::Refusal::Invalid(why)))?;
        let ruling = Ruling { manifest: admitted.manifest, stored: admitted.stored, program };
        if let Some(print) = print {
            rulings.keep(print, object, &ruling, age);
        }
        Ok(ruling)
    }
}

impl Rulings {
    /// Clears the cache, called before a change of a stored object becomes visible.
    pub(super) fn forget(&self) {
        let mut memory = self.lock();
        memory.known.clear();
        memory.age += 1;
    }

    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, print: u64, object: &Value) -> Option<Ruling> {
        let known = self.lock().known.iter().find(|known| known.print == print).cloned()?;
        // Different objects may have the same fingerprint, though hardly ever.
        if !same(&known.object, object) {
            return None;
        }
        let mut ruling = known.ruling.clone();
        let metadata = ruling.manifest["metadata"].as_object_mut()?;
        for field in OWN {
            match &object["metadata"][field] {
                Value::Null => drop(metadata.remove(field)),
                value => drop(metadata.insert(field.to_owned(), value.clone())),
            }
        }
        Some(ruling)
    }

    fn keep(&self, print: u64, object: &Value, ruling: &Ruling, age: u64) {
        if object.to_string().len() > LONGEST {
            return;
        }
        let known = Arc::new(Known { print, object: object.clone(), ruling: ruling.clone() });
        let mut memory = self.lock();
        if memory.age == age {
            memory.known.truncate(MOST - 1);
            memory.known.push_front(known);
        }
    }
}

/// Returns everything that admission depends on: the fields of the object, then those of its metadata.
fn parts(object: &Value) -> impl Iterator<Item = (&str, &String, &Value)> {
    let outer = object.as_object().into_iter().flatten().filter(|(key, _)| *key != "metadata");
    let inner = object["metadata"].as_object().into_iter().flatten().filter(|(key, _)| !OWN.contains(&key.as_str()));
    outer.map(|(key, value)| ("", key, value)).chain(inner.map(|(key, value)| ("metadata", key, value)))
}

fn print(object: &Value) -> u64 {
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

    fn ruling(manifest: Value) -> Ruling {
        let program = Program::compile(&manifest, &Stored::default()).unwrap();
        Ruling { manifest, stored: Stored::default(), program }
    }

    #[test]
    fn another_run_of_the_same_manifest_gets_its_own_name() {
        let rulings = Rulings::default();
        rulings.keep(print(&object()), &object(), &ruling(object()), 0);
        let mut next = object();
        next["metadata"]["name"] = json!("a-2");
        next["metadata"].as_object_mut().unwrap().remove("managedFields");
        assert_eq!(rulings.find(print(&next), &next).unwrap().manifest, next);
    }

    #[test]
    fn whatever_else_differs_is_judged_anew() {
        let rulings = Rulings::default();
        rulings.keep(print(&object()), &object(), &ruling(object()), 0);
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
            assert!(rulings.find(print(&object()), &other).is_none(), "{place}");
            assert_ne!(print(&other), print(&object()), "{place}");
        }
    }

    #[test]
    fn what_was_judged_before_something_changed_is_forgotten() {
        let rulings = Rulings::default();
        rulings.keep(print(&object()), &object(), &ruling(object()), 0);
        rulings.forget();
        assert!(rulings.find(print(&object()), &object()).is_none());
        rulings.keep(print(&object()), &object(), &ruling(object()), 0);
        assert!(rulings.find(print(&object()), &object()).is_none(), "it was judged before");
        rulings.keep(print(&object()), &object(), &ruling(object()), 1);
        assert!(rulings.find(print(&object()), &object()).is_some());
    }

    #[test]
    fn only_the_last_few_are_remembered() {
        let rulings = Rulings::default();
        let numbered = |at: usize| {
            let mut object = object();
            object["metadata"]["labels"]["x"] = json!(at.to_string());
            object
        };
        for at in 0..=MOST {
            rulings.keep(print(&numbered(at)), &numbered(at), &ruling(numbered(at)), 0);
        }
        assert!(rulings.find(print(&numbered(0)), &numbered(0)).is_none());
        assert!(rulings.find(print(&numbered(1)), &numbered(1)).is_some());
    }
}
