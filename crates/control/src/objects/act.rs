//! One action of a resource template on one object.

use octoflow_engine::argo::resource;
use octoflow_model::{
    AttemptId, Revision, Time,
    mark::Ownership,
    request::{ManifestText, ObjectAction, ObjectRequest, PatchKind},
};
use octoflow_runtime::artifacts;
use octoflow_store::Batch;
use serde_json::{Value, json};

use super::{
    ActionResult, Key, ResourceWorker, Target,
    action_error::ActionError,
    flags::Flags,
    identity::Identity,
    kind::{self, exists, not_found},
    patch,
};
use crate::{
    Error, access, clock,
    registry::{Kind, Storage, meta, stored},
};

/// Input of an action.
pub(super) struct Action<'a> {
    pub attempt: AttemptId,
    pub request: &'a ObjectRequest,
    pub kind: &'static Kind,
    /// Empty if a name is to be generated.
    pub name: String,
    pub namespace: String,
    /// The object or the patch as given; `Null` if only flags name the object.
    pub given: Value,
    pub identity: Identity,
    pub flags: Flags,
    /// True if the action may have been done before a restart.
    pub again: bool,
}

impl ResourceWorker {
    pub(super) fn act(
        &self,
        attempt: AttemptId,
        request: &ObjectRequest,
        again: bool,
    ) -> Result<ActionResult, ActionError> {
        let flags = Flags::read(&request.flags)?;
        let text = self.text(&request.manifest)?;
        let given = if text.trim().is_empty() { Value::Null } else { resource::document(&text)? };
        let field = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let metadata = &given["metadata"];
        let kind = match &flags.kind {
            Some(word) => kind::find(word)?,
            None => {
                let text = |name: &str| given[name].as_str().unwrap_or_default();
                kind::of_manifest(text("apiVersion"), text("kind"))?
            }
        };
        let name = flags.name.clone().or_else(|| field(&metadata["name"])).unwrap_or_default();
        let namespace = match kind.namespaced {
            false => String::new(),
            true => flags
                .namespace
                .clone()
                .or_else(|| field(&metadata["namespace"]))
                .unwrap_or_else(|| request.namespace.clone()),
        };
        self.confine(request, kind.namespaced, &namespace)?;
        let owner = self.handle.store.reader().and_then(|reader| reader.run(attempt.run))?;
        let owner = owner.ok_or_else(|| "the run that asks is gone".to_owned())?;
        let identity = Identity::new(&owner.uid, request.retries, attempt);
        let order = Action { attempt, request, kind, name, namespace, given, identity, flags, again };
        if order.name.is_empty() && request.action != ObjectAction::Create {
            return Err(format!("the manifest names no {}: metadata.name is missing", kind.name).into());
        }
        match kind.storage {
            Storage::Run(_) => self.act_on_run(&order),
            Storage::Stored | Storage::View => self.act_on_stored(&order),
        }
    }

    /// Checks that a run of a namespace to which tokens are confined acts only in it, and changes nothing that is
    /// shared by all namespaces.
    fn confine(&self, request: &ObjectRequest, namespaced: bool, namespace: &str) -> Result<(), ActionError> {
        let reads = request.action == ObjectAction::Get;
        if namespaced && namespace == request.namespace || !namespaced && reads {
            return Ok(());
        }
        let add_owner = &request.namespace;
        let confined = self.handle.store.reader().and_then(|reader| access::is_confined(&reader, add_owner));
        match confined? {
            false => Ok(()),
            true => Err(format!(
                "there are tokens for the namespace {add_owner} only, so its runs may neither act in other namespaces nor change \
                 what has none"
            )
            .into()),
        }
    }

    fn text(&self, manifest: &ManifestText) -> Result<String, String> {
        match manifest {
            ManifestText::Inline(text) => Ok(text.clone()),
            ManifestText::Stored { artifact, sub_path } => {
                artifacts::text(&artifacts::Store::new(&self.data_dir), artifact, sub_path.as_deref())
            }
            ManifestText::Located { .. } => unreachable!("what lies elsewhere was brought before"),
        }
    }

    /// Returns the stored object as clients see it, if it exists.
    pub(super) fn stored_object(&self, key: &Key) -> Result<Option<Value>, ActionError> {
        let kept = self.handle.store.reader().and_then(|reader| reader.object(&key.kind, &key.namespace, &key.name));
        let Some(kept) = kept? else { return Ok(None) };
        let mut object: Value = serde_json::from_slice(&kept.body).map_err(|error| error.to_string())?;
        object["metadata"]["uid"] = json!(kept.uid);
        object["metadata"]["resourceVersion"] = json!(kept.revision.to_string());
        if !key.namespace.is_empty() {
            object["metadata"]["namespace"] = json!(key.namespace);
        }
        Ok(Some(object))
    }

    /// Acts on the object as it is. What somebody else changes between reading and writing is not lost: the action
    /// begins again with what is there now.
    fn act_on_stored(&self, order: &Action<'_>) -> Result<ActionResult, ActionError> {
        for _ in 0..MAX_TRIES {
            if let Some(done) = self.try_on_stored(order)? {
                return Ok(done);
            }
        }
        let (kind, name) = (order.kind.name, &order.name);
        Err(format!("the {kind} `{name}` was changed by others at each of {MAX_TRIES} tries").into())
    }

    /// Returns `None` if somebody else changed the object meanwhile.
    fn try_on_stored(&self, order: &Action<'_>) -> Result<Option<ActionResult>, ActionError> {
        let (name, kind) = (order.name.as_str(), order.kind);
        let key = |name: &str| Key::new(kind.key, &order.namespace, name);
        if order.request.action == ObjectAction::Create {
            return self.create_on_stored(order, key);
        }
        let kept = self.stored_object(&key(name))?;
        let there = || kept.clone().ok_or_else(|| not_found(kind, name));
        let uid = |object: &Value| object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let read = kept.as_ref().and_then(revision);
        match order.request.action {
            ObjectAction::Create => unreachable!("creating was dealt with"),
            ObjectAction::Get => Ok(Some(on(key(name), there()?))),
            ObjectAction::Delete => {
                if kept.is_none() && !order.again && !order.flags.ignore_not_found {
                    return Err(not_found(kind, name).into());
                }
                let removed = self.remove_stored(&key(name), kept)?;
                Ok(removed.map(|()| ActionResult::Done { object: Value::Null, target: None, removes: false }))
            }
            ObjectAction::Replace => {
                let uid = uid(&there()?);
                self.store_object(order, name, order.given.clone(), uid, read)
            }
            ObjectAction::Apply => match kept {
                Some(mut object) => {
                    let uid = uid(&object);
                    patch::merge(&mut object, &order.given);
                    self.store_object(order, name, object, uid, read)
                }
                None => self.store_object(order, name, order.given.clone(), order.identity.uid(), None),
            },
            ObjectAction::Patch(how) => {
                let mut object = there()?;
                let uid = uid(&object);
                // An operation such as appending must not be applied twice.
                let mark = order.attempt.to_string();
                if order.again && object["metadata"]["annotations"][LAST_PATCH] == mark {
                    return Ok(Some(on(key(name), object)));
                }
                apply_patch(kind, how, &mut object, &order.given)?;
                if how == PatchKind::Json {
                    object["metadata"]["annotations"][LAST_PATCH] = json!(mark);
                }
                self.store_object(order, name, object, uid, read)
            }
        }
    }

    /// Deletes the object, or marks it as terminating if finalizers hold it.
    fn remove_stored(&self, key: &Key, kept: Option<Value>) -> Result<Option<()>, ActionError> {
        let expect = Batch::from(key.expect(kept.as_ref().and_then(revision)));
        if let Some(mut object) = kept {
            let mut ties = Ownership::of(&object["metadata"]);
            if meta::is_held(&ties) {
                ties.deleted = ties.deleted.or(Some(Time::from_secs(clock::now().seconds())));
                let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
                if let Some(metadata) = object["metadata"].as_object_mut() {
                    ties.write(metadata);
                }
                return unless_stale(self.handle.put_object_with(&object, uid, expect).map(drop));
            }
        }
        unless_stale(self.handle.delete_object_with(key, expect))
    }

    fn create_on_stored(
        &self,
        order: &Action<'_>,
        key: impl Fn(&str) -> Key,
    ) -> Result<Option<ActionResult>, ActionError> {
        let uid = order.identity.uid();
        let ours = |object: &Value| object["metadata"]["uid"] == uid;
        let prefix = order.given["metadata"]["generateName"].as_str().unwrap_or_default();
        let names: Vec<String> = match (order.name.as_str(), prefix) {
            ("", "") => {
                return Err(format!("the {} has neither a name nor a generateName", order.kind.name).into());
            }
            ("", prefix) => order.identity.names(prefix).collect(),
            (name, _) => vec![name.to_owned()],
        };
        for name in &names {
            match self.stored_object(&key(name))? {
                // This attempt created it before the restart.
                Some(object) if ours(&object) => return Ok(Some(on(key(name), object))),
                Some(_) => {}
                None => return self.store_object(order, name, order.given.clone(), uid, None),
            }
        }
        Err(exists(order.kind, &names[0]).into())
    }

    /// Stores the object, unless it is not of the revision that was read any more; `None` if there was none.
    fn store_object(
        &self,
        order: &Action<'_>,
        name: &str,
        mut object: Value,
        uid: String,
        read: Option<Revision>,
    ) -> Result<Option<ActionResult>, ActionError> {
        let key = Key::new(order.kind.key, &order.namespace, name);
        let metadata = object["metadata"].as_object_mut().ok_or("the object has no metadata")?;
        metadata.insert("name".to_owned(), json!(name));
        for field in ["generateName", "uid", "resourceVersion", "creationTimestamp"] {
            metadata.remove(field);
        }
        if !key.namespace.is_empty() {
            metadata.insert("namespace".to_owned(), json!(key.namespace));
        }
        add_owner(&mut object, order.request);
        stored::prepare(order.kind, &mut object);
        kind::check(order.kind, &object)?;
        let written = self.handle.put_object_with(&object, uid, Batch::from(key.expect(read)));
        if unless_stale(written)?.is_none() {
            return Ok(None);
        }
        let object = self.stored_object(&key)?.ok_or_else(|| not_found(order.kind, name))?;
        Ok(Some(on(key, object)))
    }
}

/// How often an action is tried on an object that others keep changing.
const MAX_TRIES: usize = 64;

/// Returns `None` if the write was refused because somebody else changed the object first.
fn unless_stale<T>(written: Result<T, Error>) -> Result<Option<T>, ActionError> {
    match written {
        Err(Error::Store(octoflow_store::Error::Stale { .. })) => Ok(None),
        written => Ok(Some(written?)),
    }
}

/// Returns the revision that an object was read with.
fn revision(object: &Value) -> Option<Revision> {
    object["metadata"]["resourceVersion"].as_str()?.parse().ok().map(Revision)
}

/// Annotation with the attempt that last applied a JSON patch, so that a retry does not apply it twice.
const LAST_PATCH: &str = "octoflow.io/last-patch";

fn on(key: Key, object: Value) -> ActionResult {
    ActionResult::Done { object, target: Some(Target::Stored(key)), removes: false }
}

/// Adds the requesting workflow as owner, if the request wants that.
pub(super) fn add_owner(object: &mut Value, request: &ObjectRequest) {
    let Some(owner) = &request.owner else { return };
    let reference = json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "name": owner.name,
        "uid": owner.uid,
        "blockOwnerDeletion": true,
    });
    match object["metadata"]["ownerReferences"].as_array_mut() {
        Some(owners) if owners.iter().any(|known| known["uid"] == reference["uid"]) => {}
        Some(owners) => owners.push(reference),
        None => object["metadata"]["ownerReferences"] = json!([reference]),
    }
}

pub(super) fn apply_patch(kind: &Kind, how: PatchKind, object: &mut Value, change: &Value) -> Result<(), String> {
    match how {
        PatchKind::Strategic if kind::is_custom(kind) => Err(format!(
            "the strategic merge patch is not defined for a {}; set mergeStrategy: merge or json",
            kind.name
        )),
        // These kinds have no lists of named entries, so both merge strategies are the same.
        PatchKind::Strategic | PatchKind::Merge if change.is_object() => {
            patch::merge(object, change);
            Ok(())
        }
        PatchKind::Strategic | PatchKind::Merge => Err("a merge patch is an object".to_owned()),
        PatchKind::Json => patch::apply_operations(object, change).map_err(|error| error.to_string()),
    }
}
