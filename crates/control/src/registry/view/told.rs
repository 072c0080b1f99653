//! What a watch has told of things nobody keeps, so that it tells only what changed. Bounded: of runs that nothing was
//! heard of for long it forgets what they looked like, and tells them anew if they change after all.

use std::{
    collections::{BTreeMap, HashMap, VecDeque, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
};

use octoflow_model::RunId;
use serde_json::{Value, json};

use crate::registry::watch::{Change, Event};

/// Of so many runs it is remembered what they looked like.
const RUNS: usize = 1000;

#[derive(Default)]
pub(in crate::registry) struct Told {
    runs: HashMap<RunId, BTreeMap<String, Look>>,
    order: VecDeque<RunId>,
}

struct Look {
    hash: u64,
    uid: Value,
    labels: Value,
}

impl Told {
    /// What is new about a run, given all there is to see of it.
    pub(in crate::registry) fn changes(&mut self, run: RunId, items: Vec<(String, Value)>) -> Vec<Event> {
        let mut before = self.runs.remove(&run).unwrap_or_default();
        let mut now = BTreeMap::new();
        let mut events = Vec::new();
        for (_, object) in items {
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let look = Look::of(&object);
            let change = match before.remove(&name) {
                None => Some(Change::Added),
                Some(earlier) if earlier.hash != look.hash => Some(Change::Modified),
                Some(_) => None,
            };
            events.extend(change.map(|change| Event { change, object }));
            now.insert(name, look);
        }
        if self.runs.insert(run, now).is_none() && !self.order.contains(&run) {
            self.order.push_back(run);
        }
        while self.order.len() > RUNS {
            let oldest = self.order.pop_front();
            oldest.map(|run| self.runs.remove(&run));
        }
        events
    }

    /// The run is gone, and everything that was seen of it.
    pub(in crate::registry) fn gone(&mut self, run: RunId, kind: &str, namespace: &str, revision: &str) -> Vec<Event> {
        self.order.retain(|known| *known != run);
        let items = self.runs.remove(&run).unwrap_or_default();
        let last = |(name, look): (String, Look)| {
            let object = json!({
                "apiVersion": "v1", "kind": kind,
                "metadata": {
                    "name": name, "namespace": namespace, "uid": look.uid, "labels": look.labels,
                    "resourceVersion": revision,
                },
            });
            Event { change: Change::Deleted, object }
        };
        items.into_iter().map(last).collect()
    }
}

impl Look {
    fn of(object: &Value) -> Self {
        let metadata = &object["metadata"];
        let mut hasher = DefaultHasher::new();
        for (field, value) in object.as_object().into_iter().flatten() {
            match field.as_str() {
                // They speak of the run's revision, which changes with every fact.
                "metadata" | "involvedObject" => {}
                _ => (field, value.to_string()).hash(&mut hasher),
            }
        }
        metadata["labels"].to_string().hash(&mut hasher);
        Self { hash: hasher.finish(), uid: metadata["uid"].clone(), labels: metadata["labels"].clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, phase: &str, revision: u64) -> (String, Value) {
        let object = json!({
            "metadata": {"name": name, "uid": name, "resourceVersion": revision.to_string()}, "status": {"phase": phase},
        });
        (name.to_owned(), object)
    }

    #[test]
    fn only_what_changed_is_told_and_everything_goes_with_its_run() {
        let mut told = Told::default();
        let words = |events: Vec<Event>| -> Vec<(Change, String)> {
            let name = |event: Event| (event.change, event.object["metadata"]["name"].as_str().unwrap().to_owned());
            events.into_iter().map(name).collect()
        };
        let first = told.changes(RunId(1), vec![pod("a", "Running", 1), pod("b", "Pending", 1)]);
        assert_eq!(words(first), [(Change::Added, "a".to_owned()), (Change::Added, "b".to_owned())]);
        let second = told.changes(RunId(1), vec![pod("a", "Running", 2), pod("b", "Running", 2)]);
        assert_eq!(words(second), [(Change::Modified, "b".to_owned())]);
        assert!(told.changes(RunId(1), vec![pod("a", "Running", 3), pod("b", "Running", 3)]).is_empty());
        let gone = told.gone(RunId(1), "Pod", "n", "9");
        assert_eq!(words(gone), [(Change::Deleted, "a".to_owned()), (Change::Deleted, "b".to_owned())]);
        assert!(told.gone(RunId(1), "Pod", "n", "9").is_empty());
    }

    #[test]
    fn it_remembers_so_many_runs_and_no_more() {
        let mut told = Told::default();
        for run in 0..RUNS as u64 + 10 {
            told.changes(RunId(run), vec![pod("a", "Running", run)]);
        }
        assert_eq!((told.runs.len(), told.order.len()), (RUNS, RUNS));
    }
}
