//! The control unit of a TaskSet's attempt: a ConfigMap without entries that its pods belong to. It comes and goes in the
//! commits in which the attempt does.

use octoflow_engine::taskset::{Run, ident};
use octoflow_model::taskset::{API_VERSION, KIND};
use octoflow_store::Change;
use serde_json::{Value, json};

/// The kind a control unit has.
pub(crate) const UNIT: &str = "ConfigMap";

pub(super) fn put(run: &Run, attempt: u32) -> Vec<Change> {
    let state = &run.state;
    let name = ident::unit_name(&state.head.name, attempt);
    let uid = ident::unit_uid(&state.head.uid, attempt);
    let body = json!({
        "apiVersion": "v1",
        "kind": UNIT,
        "metadata": {
            "name": name,
            "namespace": *state.head.namespace,
            "uid": uid,
            "creationTimestamp": state.transition.to_string(),
            "labels": {"TaskSet": *state.head.name},
            "annotations": {"TaskSet": *state.head.name},
            "ownerReferences": [{
                "apiVersion": API_VERSION, "kind": KIND, "name": *state.head.name, "uid": *state.head.uid,
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
    });
    let (kind, namespace) = (UNIT.to_owned(), state.head.namespace.to_string());
    vec![
        Change::PutObject {
            kind: kind.clone(),
            namespace: namespace.clone(),
            name: name.clone(),
            uid,
            body: body.to_string().into_bytes(),
        },
        Change::Tie { kind, namespace, name, owners: vec![state.head.uid.to_string()], leaving: false },
    ]
}

pub(super) fn delete(run: &Run, attempt: u32) -> Vec<Change> {
    vec![Change::DeleteObject {
        kind: UNIT.to_owned(),
        namespace: run.state.head.namespace.to_string(),
        name: ident::unit_name(&run.state.head.name, attempt),
    }]
}

/// The uid of the TaskSet that an object is the control unit of.
pub(crate) fn owner(object: &Value) -> Option<&str> {
    let owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let mut ours = owners.filter(|owner| owner["kind"] == KIND && owner["controller"] == true);
    ours.next()?["uid"].as_str()
}
