//! What the scheduler says about one pod that waits: a condition, and an event about the pod, as kubectl describes them. Both
//! are levels of now; lists and watches show pods without them.

use octoflow_engine::view::uid;
use octoflow_store::RunRow;
use serde_json::{Value, json};

use super::super::{Fault, Kind, ListOptions, Registry, kinds};
use crate::clock;

/// The reason that Kubernetes gives for a pod without a node.
const UNSCHEDULABLE: &str = "Unschedulable";

impl Registry {
    /// Adds to a pod why it waits, if it does.
    pub(super) fn explain_wait(&self, row: &RunRow, pod: &mut Value) {
        if pod["status"]["phase"] != "Pending" || row.archived {
            return;
        }
        let metadata = &pod["metadata"];
        let id = metadata["annotations"]["workflows.argoproj.io/node-id"].as_str().or(metadata["name"].as_str());
        // Without the event loop nobody knows why it waits, and the pod is shown as it is.
        let Some(Ok(Some(found))) = id.map(|id| self.controller().explain_one(row.run, id)) else { return };
        let conditions = pod["status"]["conditions"].as_array_mut().into_iter().flatten();
        for condition in conditions.filter(|condition| condition["type"] == "PodScheduled") {
            condition["reason"] = json!(UNSCHEDULABLE);
            condition["message"] = json!(found.reason);
        }
    }

    /// Returns the event about a pod that waits, if the events of one pod are asked for.
    pub(super) fn event_of_pod(&self, kind: &Kind, options: &ListOptions) -> Result<Option<Value>, Fault> {
        let field = |name: &str| {
            let test = options.selection.fields.0.iter().find(|test| test.equal && test.field == name);
            test.map(|test| test.value.as_str())
        };
        let (Some(name), Some(namespace)) = (field("involvedObject.name"), options.namespace.as_deref()) else {
            return Ok(None);
        };
        if kind.name != "Event" || field("involvedObject.kind").is_some_and(|kind| kind != "Pod") {
            return Ok(None);
        }
        let Some(pod) = self.view(&kinds::core::POD, namespace, name)? else { return Ok(None) };
        let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
        let waits = conditions.into_iter().find(|condition| condition["reason"] == UNSCHEDULABLE);
        let Some(message) = waits.map(|condition| condition["message"].clone()) else { return Ok(None) };
        let (metadata, now) = (&pod["metadata"], clock::now().to_string());
        let id = uid(&[metadata["uid"].as_str().unwrap_or_default(), "FailedScheduling"]);
        let source = "octoflow-scheduler";
        Ok(Some(json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {
                "name": format!("{name}.{}", &id.replace('-', "")[..16]), "namespace": namespace, "uid": id,
                "resourceVersion": metadata["resourceVersion"], "creationTimestamp": metadata["creationTimestamp"],
            },
            "involvedObject": {
                "apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": name, "uid": metadata["uid"],
            },
            "reason": "FailedScheduling", "message": message, "type": "Warning",
            "source": {"component": source}, "reportingComponent": source,
            "firstTimestamp": metadata["creationTimestamp"], "lastTimestamp": now, "eventTime": null, "count": 1,
        })))
    }
}
