//! Tracks the views that a watch has reported, so that it reports only changes. Bounded: the views of runs without
//! recent changes are forgotten, and reported as new if they change after all.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
};

use octoflow_model::{RunId, Time};
use serde_json::{Value, json};

use super::Views;
use crate::registry::watch::{Change, Event};

/// Maximum number of runs whose views are remembered.
const MAX_RUNS: usize = 1000;

#[derive(Default)]
pub(in crate::registry) struct ViewTracker {
    runs: HashMap<RunId, RunViews>,
    order: VecDeque<RunId>,
    /// Times at which views of a run disappear without any change to the run.
    due: BTreeSet<(Time, RunId)>,
}

#[derive(Default)]
struct RunViews {
    views_seen: BTreeMap<String, ViewState>,
    until: Option<Time>,
}

struct ViewState {
    hash: u64,
    uid: Value,
    labels: Value,
}

impl ViewTracker {
    /// Compares the current views of a run with those reported, and returns the changes.
    pub(in crate::registry) fn changes(&mut self, run: RunId, views: Views, kind: &str, namespace: &str) -> Vec<Event> {
        let mut before = self.forget(run);
        let mut now = BTreeMap::new();
        let mut events = Vec::new();
        for (_, object) in views.items {
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let state = ViewState::of(&object);
            let change = match before.remove(&name) {
                None => Some(Change::Added),
                Some(earlier) if earlier.hash != state.hash => Some(Change::Modified),
                Some(_) => None,
            };
            events.extend(change.map(|change| Event { change, object }));
            now.insert(name, state);
        }
        events.extend(before.into_iter().map(|(name, state)| state.last(&name, kind, namespace)));
        self.due.extend(views.until.map(|until| (until, run)));
        self.runs.insert(run, RunViews { views_seen: now, until: views.until });
        if !self.order.contains(&run) {
            self.order.push_back(run);
        }
        while self.order.len() > MAX_RUNS {
            let oldest = self.order.pop_front();
            oldest.map(|run| self.forget(run));
        }
        events
    }

    /// Returns the next time at which a view disappears without any change to its run.
    pub(in crate::registry) fn next_due(&self) -> Option<Time> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Returns a run whose views have changed by time alone.
    pub(in crate::registry) fn due(&self, now: Time) -> Option<RunId> {
        self.due.first().filter(|(at, _)| *at <= now).map(|(_, run)| *run)
    }

    /// Removes a deleted run and returns DELETED events for all its views.
    pub(in crate::registry) fn gone(&mut self, run: RunId, kind: &str, namespace: &str) -> Vec<Event> {
        self.order.retain(|known| *known != run);
        self.forget(run).into_iter().map(|(name, state)| state.last(&name, kind, namespace)).collect()
    }

    /// Cancels the timer of a run.
    pub(in crate::registry) fn cancel_timer(&mut self, run: RunId) {
        if let Some(until) = self.runs.get_mut(&run).and_then(|seen| seen.until.take()) {
            self.due.remove(&(until, run));
        }
    }

    fn forget(&mut self, run: RunId) -> BTreeMap<String, ViewState> {
        let seen = self.runs.remove(&run).unwrap_or_default();
        if let Some(until) = seen.until {
            self.due.remove(&(until, run));
        }
        seen.views_seen
    }
}

impl ViewState {
    /// Makes the DELETED event of a view that is gone; the caller stamps the revision.
    fn last(self, name: &str, kind: &str, namespace: &str) -> Event {
        let metadata = json!({"name": name, "namespace": namespace, "uid": self.uid, "labels": self.labels});
        Event { change: Change::Deleted, object: json!({"apiVersion": "v1", "kind": kind, "metadata": metadata}) }
    }

    fn of(object: &Value) -> Self {
        let metadata = &object["metadata"];
        let mut hasher = DefaultHasher::new();
        for (field, value) in object.as_object().into_iter().flatten() {
            match field.as_str() {
                // These contain the run's revision, which changes with every fact.
                "metadata" | "involvedObject" => {}
                _ => (field, value.to_string()).hash(&mut hasher),
            }
        }
        metadata["labels"].to_string().hash(&mut hasher);
        metadata["deletionTimestamp"].to_string().hash(&mut hasher);
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

    fn changes(told: &mut ViewTracker, run: u64, items: Vec<(String, Value)>) -> Vec<Event> {
        told.changes(RunId(run), Views { items, until: None }, "Pod", "n")
    }

    #[test]
    fn what_goes_by_itself_is_due_in_time_and_told_once() {
        let mut told = ViewTracker::default();
        let views = |items, until: Option<i64>| Views { items, until: until.map(Time) };
        let both = vec![pod("a", "Succeeded", 1), pod("b", "Succeeded", 1)];
        told.changes(RunId(2), views(both, Some(20)), "Pod", "n");
        told.changes(RunId(1), views(vec![pod("c", "Succeeded", 1)], Some(10)), "Pod", "n");
        assert_eq!((told.next_due(), told.due(Time(9)), told.due(Time(10))), (Some(Time(10)), None, Some(RunId(1))));
        told.gone(RunId(1), "Pod", "n");
        assert_eq!((told.next_due(), told.due(Time(20))), (Some(Time(20)), Some(RunId(2))));
        let events = told.changes(RunId(2), views(vec![pod("b", "Succeeded", 1)], None), "Pod", "n");
        assert_eq!((events.len(), events[0].change), (1, Change::Deleted));
        assert_eq!(events[0].object["metadata"]["name"], "a");
        assert_eq!((told.next_due(), told.due(Time(99))), (None, None));
    }

    #[test]
    fn only_what_changed_is_told_and_everything_goes_with_its_run() {
        let mut told = ViewTracker::default();
        let words = |events: Vec<Event>| -> Vec<(Change, String)> {
            let name = |event: Event| (event.change, event.object["metadata"]["name"].as_str().unwrap().to_owned());
            events.into_iter().map(name).collect()
        };
        let first = changes(&mut told, 1, vec![pod("a", "Running", 1), pod("b", "Pending", 1)]);
        assert_eq!(words(first), [(Change::Added, "a".to_owned()), (Change::Added, "b".to_owned())]);
        let second = changes(&mut told, 1, vec![pod("a", "Running", 2), pod("b", "Running", 2)]);
        assert_eq!(words(second), [(Change::Modified, "b".to_owned())]);
        assert!(changes(&mut told, 1, vec![pod("a", "Running", 3), pod("b", "Running", 3)]).is_empty());
        let gone = told.gone(RunId(1), "Pod", "n");
        assert_eq!(words(gone), [(Change::Deleted, "a".to_owned()), (Change::Deleted, "b".to_owned())]);
        assert!(told.gone(RunId(1), "Pod", "n").is_empty());
    }

    #[test]
    fn it_remembers_so_many_runs_and_no_more() {
        let mut told = ViewTracker::default();
        for run in 0..MAX_RUNS as u64 + 10 {
            changes(&mut told, run, vec![pod("a", "Running", run)]);
        }
        assert_eq!((told.runs.len(), told.order.len()), (MAX_RUNS, MAX_RUNS));
    }
}
