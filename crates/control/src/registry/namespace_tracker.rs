//! Tracks the namespaces that a watch has reported. Namespaces exist while anything is in them, so each is checked
//! again when something in it is created or deleted.

use std::collections::{BTreeMap, BTreeSet};

use octoflow_model::Revision;
use octoflow_store::ChangedItem;
use serde_json::{Value, json};

use super::{
    Fault, Kind, ListOptions, Registry, kinds,
    watch::{Change, Event},
};

pub(super) struct NamespaceTracker(BTreeMap<String, Value>);

impl NamespaceTracker {
    /// Starts from the current namespaces, which are also returned for the first events.
    pub(super) fn current(registry: &Registry, kind: &'static Kind) -> Result<(Self, Vec<Value>), Fault> {
        let all = registry.list_namespaces(kind, &ListOptions::default())?.items;
        let named =
            |object: &Value| (object["metadata"]["name"].as_str().unwrap_or_default().to_owned(), object.clone());
        Ok((Self(all.iter().map(named).collect()), all))
    }

    /// Starts from what a client that listed at this revision knows: namespaces touched since are reported again.
    pub(super) fn since(registry: &Registry, kind: &'static Kind, since: Revision) -> Result<Self, Fault> {
        let (notes, _) =
            registry.feed().since(since, |what| !matches!(what, ChangedItem::Run(_))).map_err(|_| Fault::Expired)?;
        let (mut tracker, _) = Self::current(registry, kind)?;
        let names: BTreeSet<&str> = notes.iter().filter_map(|note| touched(&note.what)).collect();
        for name in names {
            if tracker.0.remove(name).is_none() {
                let last = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
                tracker.0.insert(name.to_owned(), last);
            }
        }
        Ok(tracker)
    }

    pub(super) fn on_change(
        &mut self,
        registry: &Registry,
        kind: &'static Kind,
        what: &ChangedItem,
        revision: Revision,
    ) -> Result<Option<Event>, Fault> {
        let Some(name) = touched(what) else { return Ok(None) };
        let now = registry.namespace(kind, name)?;
        let before = match &now {
            Some(object) => self.0.insert(name.to_owned(), object.clone()),
            None => self.0.remove(name),
        };
        Ok(match (before, now) {
            (None, Some(object)) => Some(Event { change: Change::Added, object }),
            (Some(before), Some(object)) if before != object => Some(Event { change: Change::Modified, object }),
            (Some(mut object), None) => {
                object["metadata"]["resourceVersion"] = json!(revision.to_string());
                Some(Event { change: Change::Deleted, object })
            }
            (Some(_), Some(_)) | (None, None) => None,
        })
    }
}

/// Returns the namespace that was created or deleted, or in which something was.
fn touched(what: &ChangedItem) -> Option<&str> {
    let (kind, namespace, name) = match what {
        ChangedItem::Put { kind, namespace, name, .. } | ChangedItem::NewRun { kind, namespace, name, .. } => {
            (kind, namespace, name)
        }
        ChangedItem::Deleted(object) => (&object.kind, &object.namespace, &object.name),
        ChangedItem::DeletedRun(row) => (&row.kind, &row.namespace, &row.name),
        ChangedItem::Run(_) => return None,
    };
    if kind == "Namespace" {
        return Some(name);
    }
    kinds::of_key(kind).filter(|kind| kind.namespaced).map(|_| namespace.as_str())
}
