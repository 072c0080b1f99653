//! What a watch of namespaces has told. They come and go with what is in them, so each is looked at again when something
//! in it came or went.

use std::collections::{BTreeMap, BTreeSet};

use octoflow_model::Revision;
use octoflow_store::ChangedItem;
use serde_json::{Value, json};

use super::{
    Fault, Kind, ListOptions, Registry, kinds,
    watch::{Change, Event},
};

pub(super) struct Homes(BTreeMap<String, Value>);

impl Homes {
    /// Everything there is, to be told.
    pub(super) fn now(registry: &Registry, kind: &'static Kind) -> Result<(Self, Vec<Value>), Fault> {
        let all = registry.list_namespaces(kind, &ListOptions::default())?.items;
        let named =
            |object: &Value| (object["metadata"]["name"].as_str().unwrap_or_default().to_owned(), object.clone());
        Ok((Self(all.iter().map(named).collect()), all))
    }

    /// As whoever listed at this revision knows them: what was touched since is told anew.
    pub(super) fn since(registry: &Registry, kind: &'static Kind, since: Revision) -> Result<Self, Fault> {
        let (notes, _) =
            registry.feed().since(since, |what| !matches!(what, ChangedItem::Run(_))).map_err(|_| Fault::Expired)?;
        let (mut homes, _) = Self::now(registry, kind)?;
        let names: BTreeSet<&str> = notes.iter().filter_map(|note| touched(&note.what)).collect();
        for name in names {
            if homes.0.remove(name).is_none() {
                let last = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
                homes.0.insert(name.to_owned(), last);
            }
        }
        Ok(homes)
    }

    pub(super) fn hear(
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

/// The namespace in which something came or went, or which did so itself.
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
