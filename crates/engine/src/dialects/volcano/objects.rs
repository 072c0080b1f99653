//! The objects that a job brings along: what its plugins publish, and the claims that are made for it. They belong to the
//! job and go with it. Pods get the same contents directly, so nothing here is read back.

use octoflow_model::{
    base64,
    volcano::{API_VERSION, KIND, mark},
};
use serde_json::{Map, Value, json};

use super::{claims::VolumeSource, plugin::Published, run::Run};
use crate::run::view;

/// Returns the objects of a job as they are now.
pub(super) fn all(run: &Run) -> Vec<Value> {
    let keys = run.known.keys.as_deref();
    let published = run.program.plugins.published(&run.program, &run.state.head.name, keys);
    let mut objects: Vec<Value> = published.into_iter().map(|one| publish(run, one)).collect();
    for (volume, source) in run.volumes() {
        let VolumeSource::Made(name) = source else { continue };
        let spec = volume.volume_claim.clone().unwrap_or_else(|| json!({}));
        // The status of a claim is that of a directory, which is always there.
        let more = json!({"spec": spec, "status": {"phase": "Bound"}});
        objects.push(object(run, "PersistentVolumeClaim", &name, more));
    }
    objects
}

fn publish(run: &Run, published: Published) -> Value {
    let texts = |entries: Vec<(String, String)>, write: fn(String) -> String| -> Map<String, Value> {
        entries.into_iter().map(|(key, text)| (key, json!(write(text)))).collect()
    };
    match published {
        Published::ConfigMap { name, entries } => {
            object(run, "ConfigMap", &name, json!({"data": texts(entries, |text| text)}))
        }
        Published::Secret { name, entries } => {
            let data = texts(entries, |text| base64::encode(text.as_bytes()));
            object(run, "Secret", &name, json!({"type": "Opaque", "data": data}))
        }
        Published::Service { name, selector, unready, ports } => {
            let head = &run.state.head;
            let mut chosen = json!({mark::JOB_NAME: &*head.name, mark::JOB_NAMESPACE: &*head.namespace});
            if let Some((task, index)) = selector {
                chosen[mark::TASK_SPEC] = json!(task);
                chosen[mark::TASK_INDEX] = json!(index.to_string());
            }
            let port = |(name, port): &(String, u16)| json!({"name": name, "port": port, "protocol": "TCP", "targetPort": port});
            let spec = json!({
                "clusterIP": "None",
                "selector": chosen,
                "publishNotReadyAddresses": unready,
                "ports": ports.iter().map(port).collect::<Vec<_>>(),
            });
            object(run, "Service", &name, json!({"spec": spec, "status": {"loadBalancer": {}}}))
        }
    }
}

fn object(run: &Run, kind: &str, name: &str, more: Value) -> Value {
    let head = &run.state.head;
    let mut object = json!({
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": &*head.namespace,
            "uid": view::uid(&[&head.uid, kind, name]),
            "creationTimestamp": head.created.to_string(),
            "ownerReferences": [{
                "apiVersion": API_VERSION,
                "kind": KIND,
                "name": &*head.name,
                "uid": &*head.uid,
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
    });
    if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
        object.extend(more);
    }
    object
}
