//! Namespaces: one exists if it was created or if anything is in it; `default` always does. Deleting a namespace
//! deletes everything in it.

use std::collections::BTreeMap;

use octoflow_model::{Time, mark::Ownership, meta::DEFAULT_NAMESPACE};
use serde_json::{Value, json};

use super::{
    DeleteOptions, Deleted, Fault, Kind, ListOptions, Listing, Registry, WriteOptions, kinds,
    list::page,
    meta,
    remove::preconditions,
    stored::{StoredObject, with_identity},
    view,
};
use crate::{clock, new_uid};

impl Registry {
    /// Returns the namespace as clients see it, if it exists.
    pub(super) fn namespace(&self, kind: &'static Kind, name: &str) -> Result<Option<Value>, Fault> {
        let kept = self.stored_object(kind, "", name)?;
        if kept.is_none() && name != DEFAULT_NAMESPACE {
            let inside = self.read(|reader| Ok(reader.contents(name, &namespaced_kinds(), 1)?))?;
            if inside.is_empty() {
                return Ok(None);
            }
        }
        Ok(Some(shown(kind, name, kept)))
    }

    /// Stores a namespace that exists only because something is in it, so that it can be written to.
    pub(super) fn keep_namespace(&self, kind: &'static Kind, name: &str) -> Result<(), Fault> {
        if self.stored_object(kind, "", name)?.is_some() || self.namespace(kind, name)?.is_none() {
            return Ok(());
        }
        match self.create(kind, "", json!({"metadata": {"name": name}}), &WriteOptions::default()) {
            Ok(_) | Err(Fault::Exists { .. }) => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    pub(super) fn list_namespaces(&self, kind: &'static Kind, options: &ListOptions) -> Result<Listing, Fault> {
        let (revision, kept, used) = self.read(|reader| {
            reader.snapshot(|reader| {
                Ok::<_, Fault>((
                    reader.revision()?,
                    reader.objects(kind.key, None)?,
                    reader.namespaces(&namespaced_kinds())?,
                ))
            })
        })?;
        let mut all: BTreeMap<String, Option<StoredObject>> = used.into_iter().map(|name| (name, None)).collect();
        all.entry(DEFAULT_NAMESPACE.to_owned()).or_default();
        for object in &kept {
            all.insert(object.name.clone(), Some(with_identity(kind, object)?));
        }
        let items = all.into_iter().map(|(name, kept)| (name.clone(), shown(kind, &name, kept)));
        let items = items.filter(|(_, object)| options.selection.matches(object)).collect();
        Ok(page(items, revision, options))
    }

    /// Refuses new objects in a namespace that is terminating.
    pub(super) fn check_not_terminating(
        &self,
        kind: &'static Kind,
        namespace: &str,
        object: &Value,
    ) -> Result<(), Fault> {
        // The default namespace cannot be deleted.
        if !kind.namespaced || namespace == DEFAULT_NAMESPACE {
            return Ok(());
        }
        let namespace_kind = &kinds::core::NAMESPACE;
        let terminating =
            self.stored_object(namespace_kind, "", namespace)?.filter(|kept| is_terminating(&kept.object));
        match terminating {
            None => Ok(()),
            Some(_) => Err(Fault::Forbidden {
                kind,
                name: object["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
                why: format!("unable to create new content in namespace {namespace} because it is being terminated"),
            }),
        }
    }

    pub(super) fn delete_namespace(
        &self,
        kind: &'static Kind,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, Fault> {
        let not_found = || Fault::NotFound { kind, name: name.to_owned() };
        if name == DEFAULT_NAMESPACE {
            let why = "this namespace may not be deleted".to_owned();
            return Err(Fault::Forbidden { kind, name: name.to_owned(), why });
        }
        meta::label_name(name).map_err(|_| not_found())?;
        loop {
            let before = self.namespace(kind, name)?.ok_or_else(not_found)?;
            preconditions(kind, name, &before, options)?;
            if is_terminating(&before) {
                self.collect();
                return Ok(Deleted::Going(before));
            }
            let kept = self.stored_object(kind, "", name)?;
            let (mut object, uid, revision) = match kept {
                Some(kept) => (kept.object, kept.uid, Some(kept.revision)),
                None => (before, new_uid()?, None),
            };
            let mut ties = Ownership::of(&object["metadata"]);
            ties.deleted = Some(Time::from_secs(clock::now().seconds()));
            if let Some(metadata) = object["metadata"].as_object_mut() {
                ties.write(metadata);
            }
            object["status"] = json!({"phase": "Terminating"});
            if options.dry_run {
                return Ok(Deleted::Going(object));
            }
            match self.store_object(kind, &object, &uid, revision) {
                Ok(object) => {
                    self.terminating(kind, "", name);
                    return Ok(Deleted::Going(object));
                }
                // A concurrent change came first.
                Err(Fault::Conflict { .. } | Fault::Exists { .. }) => {}
                Err(fault) => return Err(fault),
            }
        }
    }
}

/// Returns the kinds that live in namespaces. The store also holds internal kinds.
pub(super) fn namespaced_kinds() -> Vec<&'static str> {
    let kept = kinds::all().filter(|kind| kind.namespaced && kind.is_kept() && kind.alternate_of.is_none());
    kept.map(|kind| kind.key).collect()
}

fn is_terminating(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

fn shown(kind: &Kind, name: &str, kept: Option<StoredObject>) -> Value {
    let mut object = kept.map_or_else(
        || {
            json!({
                "apiVersion": kind.api_version(), "kind": kind.name,
                "metadata": {"name": name, "uid": view::uid(&["namespace", name]), "resourceVersion": "1"},
            })
        },
        |kept| kept.object,
    );
    object["metadata"]["labels"]["kubernetes.io/metadata.name"] = json!(name);
    object["spec"] = json!({"finalizers": ["kubernetes"]});
    object["status"] = json!({"phase": if is_terminating(&object) { "Terminating" } else { "Active" }});
    object
}
