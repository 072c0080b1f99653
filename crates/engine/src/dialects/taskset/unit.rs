//! The control unit of an attempt: a ConfigMap without entries that its pods belong to.

use serde_json::{Value, json};

use super::{DIALECT, Run, TASK_SET, ident};
use crate::kinds::core::CONFIG_MAP;

pub(super) fn object(run: &Run, attempt: u32) -> Value {
    let head = &run.state.head;
    let labels = json!({DIALECT.pod_label: *head.name});
    json!({
        "apiVersion": CONFIG_MAP.api_version(),
        "kind": CONFIG_MAP.name,
        "metadata": {
            "name": ident::unit_name(&head.name, attempt),
            "namespace": *head.namespace,
            "uid": ident::unit_uid(&head.uid, attempt),
            "creationTimestamp": run.state.transition.to_string(),
            "labels": labels,
            "annotations": labels,
            "ownerReferences": [{
                "apiVersion": TASK_SET.api_version(), "kind": TASK_SET.name, "name": *head.name, "uid": *head.uid,
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
    })
}
