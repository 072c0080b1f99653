//! Objects that a run brings along: stored in the commit of its first fact, and again when they change. What somebody else
//! has made under such a name stays as it is. They go with the run, by their owner.

use octoflow_engine::{Input, kinds};
use octoflow_model::{RunId, Time, mark::Ownership};
use octoflow_store::{Change, Reader};
use serde_json::Value;

use super::EventLoop;
use crate::{Error, objects::keyed};

impl EventLoop {
    /// Returns the changes that store the objects of a run as they are now, and tells the engine of them.
    pub(super) fn bring_objects(&mut self, run: RunId, now: Time) -> Result<Vec<Change>, Error> {
        let objects = self.driver.engine.run(run).map(|run| run.objects()).unwrap_or_default();
        if objects.is_empty() {
            return Ok(Vec::new());
        }
        let reader = self.storage.reader()?;
        let mut changes = Vec::new();
        let mut known = Vec::new();
        for object in objects {
            if let Some(change) = put(&reader, &object)? {
                changes.extend(change);
                known.push(object);
            }
        }
        drop(reader);
        for object in known {
            // A Service holds no values.
            let Ok(parsed) = keyed::parse(&object) else { continue };
            let keyed::KeyedObject { kind, namespace, name, data } = parsed;
            self.input(Input::Object { kind, namespace, name, data: Some(data) }, now)?;
        }
        Ok(changes)
    }
}

/// Returns the changes that store an object, unless one of that name is not this run's to write.
fn put(reader: &Reader, object: &Value) -> Result<Option<[Change; 2]>, Error> {
    let kind = kinds::of_manifest(object).map_err(|problem| Error::Object {
        what: object["kind"].as_str().unwrap_or_default().to_owned(),
        why: problem.message,
    })?;
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    let (namespace, name) = (text("namespace"), text("name"));
    if let Some(stored) = reader.object(kind.key, &namespace, &name)? {
        let before: Value = serde_json::from_slice(&stored.body).unwrap_or(Value::Null);
        let is_claim = *kind == kinds::core::VOLUME_CLAIM;
        if is_claim || controller(&before).is_none() || controller(&before) != controller(object) {
            return Ok(None);
        }
    }
    let (kind, uid) = (kind.key.to_owned(), text("uid"));
    let owners = Ownership::of(&object["metadata"]).owner_uids();
    Ok(Some([
        Change::PutObject {
            kind: kind.clone(),
            namespace: namespace.clone(),
            name: name.clone(),
            uid,
            body: object.to_string().into_bytes(),
        },
        Change::SetOwners { kind, namespace, name, owners, deleting: false },
    ]))
}

/// Returns the group, kind and name of the run that an object belongs to. A run that was deleted and submitted again under
/// its name takes over what the earlier one has left.
fn controller(object: &Value) -> Option<(&str, &str, &str)> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    let owner = owners.iter().find(|owner| owner["controller"] == true)?;
    let group = owner["apiVersion"].as_str()?.split_once('/').map_or("", |(group, _)| group);
    Some((group, owner["kind"].as_str()?, owner["name"].as_str()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn jobs_of_two_groups_with_one_name_own_different_objects() {
        let owned = |version: &str| {
            json!({"metadata": {"ownerReferences": [
            {"apiVersion": version, "kind": "Job", "name": "j", "controller": true}]}})
        };
        assert_eq!(controller(&owned("batch/v1")), Some(("batch", "Job", "j")));
        assert_ne!(controller(&owned("batch/v1")), controller(&owned("batch.volcano.sh/v1alpha1")));
        assert_eq!(controller(&owned("batch.volcano.sh/v1alpha1")), controller(&owned("batch.volcano.sh/v1alpha2")));
    }
}
