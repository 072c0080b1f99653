//! Creating and changing objects. Everything is validated before anything is stored, and concurrent changes are never
//! overwritten.

use octoflow_engine::kinds::{Requested, scheduling::QUEUE};
use octoflow_model::{Revision, meta::DEFAULT_NAMESPACE};
use serde_json::{Value, json};

use super::{
    Cause, Fault, Kind, Registry, Storage,
    managed::{ManagedFields, Operation},
    meta::{self, check_update},
    remove::DeleteTarget,
    size::NodeDetail,
    steer::ObjectUpdate,
    stored,
    submit::Submitted,
    view::{NodePart, is_node},
};
use crate::{Claim, clock, name_suffix, new_uid, objects::submitted};

/// Number of tries when concurrent changes interfere.
const TRIES: usize = 8;

#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// Validate everything, store nothing.
    pub dry_run: bool,
    /// Field manager of the write, for the ownership of fields.
    pub manager: String,
    /// Idempotency key: the same request twice makes one run.
    pub claim: Option<Claim>,
    /// Who submits a run, for its share. `None`: its namespace.
    pub submitted_by: Option<String>,
    /// Who writes, by name. A submitted job says so, whatever its manifest says.
    pub written_by: String,
}

#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    pub dry_run: bool,
    pub propagation: Propagation,
    /// Precondition: only an object with this uid.
    pub uid: Option<String>,
    pub revision: Option<Revision>,
}

/// Treatment of dependents of a deleted object, as in Kubernetes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Propagation {
    /// Dependents are deleted afterwards.
    #[default]
    Background,
    /// Dependents are deleted first.
    Foreground,
    /// Dependents are kept.
    Orphan,
}

/// Result of a deletion.
#[derive(Debug)]
pub enum Deleted {
    /// Deleted; the last state of the object.
    Gone(Value),
    /// Marked as terminating: it is deleted once nothing holds it back.
    Going(Value),
}

/// A new object, and what its author should know although it was accepted.
#[derive(Debug)]
pub struct Created {
    pub object: Value,
    pub warnings: Vec<String>,
}

impl From<Value> for Created {
    fn from(object: Value) -> Self {
        Self { object, warnings: Vec::new() }
    }
}

/// Field manager of a new object.
pub(super) enum FieldManager {
    /// Manager by name; empty records no ownership.
    Named(String),
    /// Ownership already determined by the caller.
    Known(ManagedFields),
}

impl Registry {
    pub fn create(
        &self,
        kind: &'static Kind,
        namespace: &str,
        object: Value,
        options: &WriteOptions,
    ) -> Result<Value, Fault> {
        self.create_with_warnings(kind, namespace, object, options).map(|created| created.object)
    }

    /// Like [`Registry::create`], for callers who pass on what was found.
    pub fn create_with_warnings(
        &self,
        kind: &'static Kind,
        namespace: &str,
        object: Value,
        options: &WriteOptions,
    ) -> Result<Created, Fault> {
        self.create_by(kind, namespace, object, options, FieldManager::Named(options.manager.clone()))
    }

    /// Creates a run. It reads the store and otherwise only awaits, so it may run on a thread that serves many
    /// requests. A run that exists already for the same idempotency key is returned by its id, because rendering it may
    /// take long.
    pub async fn create_run(
        &self,
        kind: &'static Kind,
        namespace: &str,
        mut object: Value,
        options: &WriteOptions,
    ) -> Result<Submitted, Fault> {
        self.prepare_new(kind, namespace, &mut object, options, FieldManager::Named(options.manager.clone()))?;
        self.submit_async(kind, namespace, object, options).await
    }

    pub(super) fn create_by(
        &self,
        kind: &'static Kind,
        namespace: &str,
        mut object: Value,
        options: &WriteOptions,
        manager: FieldManager,
    ) -> Result<Created, Fault> {
        self.prepare_new(kind, namespace, &mut object, options, manager)?;
        if let Some(read) = kind.requests {
            return self.request(kind, namespace, object, read, options).map(Into::into);
        }
        match kind.storage {
            Storage::View => Err(Fault::ReadOnly { kind }),
            Storage::Run(_) => self.submit(kind, namespace, object, options),
            Storage::Stored => self.store_new(kind, namespace, object, options).map(Into::into),
        }
    }

    /// Prepares a new object: removes server-set fields, fills in what the path and defaults say.
    fn prepare_new(
        &self,
        kind: &'static Kind,
        namespace: &str,
        object: &mut Value,
        options: &WriteOptions,
        manager: FieldManager,
    ) -> Result<(), Fault> {
        self.match_path(kind, namespace, None, object)?;
        submitted::stamp(kind, object, &options.written_by);
        meta::check_create(kind, object)?;
        let given = object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
        self.check_not_terminating(kind, &given, object)?;
        stored::prepare(kind, object);
        match manager {
            FieldManager::Known(managed) => managed.write(object),
            FieldManager::Named(manager) => {
                let now = clock::now().to_string();
                ManagedFields::created(object, &manager, Operation::Update, &now).write(object);
            }
        }
        Ok(())
    }

    /// Carries out what an object asks of a run. The object itself is not stored.
    fn request(
        &self,
        kind: &'static Kind,
        namespace: &str,
        mut object: Value,
        read: fn(&Value) -> Requested,
        options: &WriteOptions,
    ) -> Result<Value, Fault> {
        let metadata = &mut object["metadata"];
        if let Some(prefix) = metadata["generateName"].as_str().filter(|_| !metadata["name"].is_string()) {
            metadata["name"] = json!(format!("{prefix}{}", name_suffix()?));
        }
        stored::check(kind, &object)?;
        let asked = read(&object);
        let found = self.find_run(asked.kind, namespace, &asked.name)?;
        if asked.uid.as_ref().is_some_and(|uid| *uid != found.row.uid) {
            return Err(Fault::NotFound { kind: asked.kind, name: asked.name });
        }
        if !options.dry_run {
            self.command(found.run, asked.command)?;
        }
        let metadata = &mut object["metadata"];
        metadata["uid"] = json!(new_uid()?);
        metadata["creationTimestamp"] = json!(clock::now().to_string());
        Ok(object)
    }

    /// Stores a new object.
    fn store_new(
        &self,
        kind: &'static Kind,
        namespace: &str,
        mut object: Value,
        options: &WriteOptions,
    ) -> Result<Value, Fault> {
        let metadata = &mut object["metadata"];
        if metadata["name"].as_str().unwrap_or_default().is_empty()
            && let Some(prefix) = metadata["generateName"].as_str().filter(|prefix| !prefix.is_empty())
        {
            metadata["name"] = json!(format!("{prefix}{}", name_suffix()?));
        }
        metadata["creationTimestamp"] = json!(clock::now().to_string());
        if !kind.group.is_empty() {
            metadata["generation"] = json!(1);
        }
        let _turn = self.declare(kind, &object)?;
        let uid = new_uid()?;
        if options.dry_run {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            if self.stored_object(kind, namespace, name)?.is_some() {
                return Err(Fault::Exists { kind, name: name.to_owned() });
            }
            self.check_plugin_keys(kind, &object)?;
            object["metadata"]["uid"] = json!(uid);
            return Ok(stored::without_credentials(kind, object));
        }
        self.store_object(kind, &object, &uid, None)
    }

    /// Replaces the current version of an object.
    pub fn replace(
        &self,
        kind: &'static Kind,
        namespace: &str,
        name: &str,
        mut object: Value,
        options: &WriteOptions,
    ) -> Result<Value, Fault> {
        self.match_path(kind, namespace, Some(name), &mut object)?;
        let read = object["metadata"]["resourceVersion"].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        self.update(kind, namespace, name, options, |before| {
            if let Some(read) = &read
                && before["metadata"]["resourceVersion"] != read.as_str()
            {
                return Err(Fault::stale(kind, name));
            }
            Ok(object.clone())
        })
    }

    /// Changes the current object, with retries on concurrent changes.
    pub fn update(
        &self,
        kind: &'static Kind,
        namespace: &str,
        name: &str,
        options: &WriteOptions,
        change: impl FnMut(&Value) -> Result<Value, Fault>,
    ) -> Result<Value, Fault> {
        self.change(kind, namespace, name, options.dry_run, Some(&options.manager), change)
    }

    /// Like [`Registry::update`]; without a manager the change itself records the ownership of fields.
    pub(super) fn change(
        &self,
        kind: &'static Kind,
        namespace: &str,
        name: &str,
        dry_run: bool,
        manager: Option<&str>,
        mut change: impl FnMut(&Value) -> Result<Value, Fault>,
    ) -> Result<Value, Fault> {
        let mut change = |before: &Value| {
            let mut after = change(before)?;
            self.match_path(kind, namespace, Some(name), &mut after)?;
            check_update(kind, name, before, &mut after)?;
            stored::prepare(kind, &mut after);
            if let Some(manager) = manager {
                track(before, &mut after, manager);
            }
            Ok(after)
        };
        if kind.name == "Namespace" {
            self.keep_namespace(kind, name)?;
        }
        if *kind == QUEUE {
            self.keep_queue(name)?;
        }
        if is_node(kind) {
            return self.change_node(name, NodePart::Spec, dry_run, &mut change);
        }
        let not_found = || Fault::NotFound { kind, name: name.to_owned() };
        for _ in 1..TRIES {
            match self.update_once(kind, namespace, name, dry_run, &mut change)? {
                Err(Fault::Conflict { .. }) => {}
                done => return done,
            }
        }
        self.update_once(kind, namespace, name, dry_run, &mut change)?
            .map_err(|fault| if matches!(fault, Fault::Exists { .. }) { not_found() } else { fault })
    }

    /// The inner error is worth a retry.
    fn update_once(
        &self,
        kind: &'static Kind,
        namespace: &str,
        name: &str,
        dry_run: bool,
        change: &mut impl FnMut(&Value) -> Result<Value, Fault>,
    ) -> Result<Result<Value, Fault>, Fault> {
        let not_found = || Fault::NotFound { kind, name: name.to_owned() };
        match kind.storage {
            Storage::View => Err(Fault::ReadOnly { kind }),
            Storage::Run(_) => {
                let row = self.row(kind, namespace, name)?.ok_or_else(not_found)?;
                let before = match self.exact_run_object(&row, NodeDetail::Omit) {
                    Err(conflict @ Fault::Conflict { .. }) => return Ok(Err(conflict)),
                    before => before?,
                };
                let mut after = change(&before)?;
                let update = ObjectUpdate::between(kind, &before, &after)?;
                if update.is_empty() {
                    return Ok(Ok(before));
                }
                if dry_run {
                    after["status"] = before["status"].clone();
                    return Ok(Ok(after));
                }
                if row.archived && meta::is_released(&after) {
                    let found = DeleteTarget::Run { row: Box::new(row), object: before };
                    return Ok(self.erase(kind, &found).map(|()| after));
                }
                match update.apply(self.handle(), kind, &row) {
                    // The change is done, so it is answered however large the run is.
                    Ok(()) => match self.row(kind, namespace, name)? {
                        Some(row) => self.listed_run(&row).map(Ok),
                        None => Err(not_found()),
                    },
                    Err(conflict @ Fault::Conflict { .. }) => Ok(Err(conflict)),
                    Err(fault) => Err(fault),
                }
            }
            Storage::Stored => {
                let kept = self.stored_object(kind, namespace, name)?.ok_or_else(not_found)?;
                let before = &kept.object;
                let mut after = change(before)?;
                let _turn = self.declare(kind, &after)?;
                stored::check_change(kind, before, &after)?;
                if let Some(generation) = before["metadata"]["generation"].as_u64() {
                    let same = before["spec"] == after["spec"];
                    after["metadata"]["generation"] = json!(if same { generation } else { generation + 1 });
                }
                after["status"] = before["status"].clone();
                if after["status"].is_null() {
                    after.as_object_mut().map(|fields| fields.remove("status"));
                }
                if after == *before || dry_run {
                    self.check_plugin_keys(kind, &after)?;
                    return Ok(Ok(stored::without_credentials(kind, after)));
                }
                if meta::is_released(&after) {
                    return Ok(self.erase(kind, &DeleteTarget::Stored(kept)).map(|()| after));
                }
                Ok(self.store_object(kind, &after, &kept.uid, Some(kept.revision)))
            }
        }
    }

    /// Checks that kind, version, namespace and name match the request path, and fills in missing ones.
    pub(super) fn match_path(
        &self,
        kind: &'static Kind,
        namespace: &str,
        name: Option<&str>,
        object: &mut Value,
    ) -> Result<(), Fault> {
        if !object.is_object() {
            return Err(Fault::BadRequest(format!("a {} is a JSON object", kind.name)));
        }
        for (field, wanted) in [("kind", kind.name.to_owned()), ("apiVersion", kind.api_version())] {
            match object[field].as_str() {
                None | Some("") => object[field] = json!(wanted),
                Some(found) if found == wanted => {}
                Some(found) if field == "apiVersion" && kind.accepts_api_version(found) => {
                    object[field] = json!(wanted)
                }
                Some(found) => {
                    let text = format!("the object has {field} {found}, and this is the place of {wanted}");
                    return Err(Fault::BadRequest(text));
                }
            }
        }
        if object["metadata"].is_null() {
            object["metadata"] = json!({});
        }
        let Some(metadata) = object["metadata"].as_object_mut() else {
            let causes = vec![Cause::invalid("metadata", "must be an object")];
            return Err(Fault::Invalid { kind, name: name.unwrap_or_default().to_owned(), causes });
        };
        let text = |field: &str| metadata.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (given_space, given_name) = (text("namespace"), text("name"));
        if kind.namespaced && !given_space.is_empty() && given_space != namespace {
            return Err(Fault::BadRequest(format!(
                "the namespace of the provided object does not match the namespace sent on the request: {given_space}, {namespace}"
            )));
        }
        if let Some(name) = name
            && !given_name.is_empty()
            && given_name != name
        {
            return Err(Fault::BadRequest(format!(
                "the name of the object ({given_name}) does not match the name on the URL ({name})"
            )));
        }
        if kind.namespaced {
            let namespace = if namespace.is_empty() { DEFAULT_NAMESPACE } else { namespace };
            metadata.insert("namespace".to_owned(), json!(namespace));
        } else {
            metadata.remove("namespace");
        }
        if let Some(name) = name {
            metadata.insert("name".to_owned(), json!(name));
        }
        Ok(())
    }
}

/// Records which manager changed which fields. A caller that sends a different list of managed fields means to replace
/// it.
fn track(before: &Value, after: &mut Value, manager: &str) {
    let was = before["metadata"]["managedFields"].clone();
    let given = &after["metadata"]["managedFields"];
    let known = ManagedFields::of(before);
    let mut managed = if given.is_null() || *given == was { known.clone() } else { ManagedFields::of(after) };
    managed.changed(before, after, manager, &clock::now().to_string());
    if managed == known && !was.is_null() {
        after["metadata"]["managedFields"] = was;
    } else {
        managed.write(after);
    }
}
