//! A flow as a tree of nodes: the flow and its entries. What is below an entry belongs to its job.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::{former, list, text};
use crate::{dialects::jobflow::DIALECT, run::view::GROUP};

/// Returns the object with `status.nodes`, derived from its entries.
pub(super) fn with_nodes(object: &Value) -> Cow<'_, Value> {
    let (name, status) = (text(&object["metadata"], "name"), &object["status"]);
    // Nodes of its jobs may have been added.
    let mut nodes = status["nodes"].as_object().cloned().unwrap_or_else(Map::new);
    let mut add = |node: Value| nodes.insert(text(&node, "id").to_owned(), node);
    add(json!({
        "id": name, "name": name, "displayName": name, "type": DIALECT.kind.name, "phase": DIALECT.phase_of(object),
        "message": status["state"]["message"], "startedAt": status["startedAt"], "finishedAt": status["finishedAt"],
        "rank": 0, "step": status["state"]["phase"],
    }));
    for (rank, entry) in list(&status["entries"]).iter().enumerate() {
        let (called, job) = (text(entry, "name"), text(entry, "job"));
        let phase = text(&status["conditions"][job], "phase");
        for (earlier, label) in former(entry) {
            add(json!({
                "id": earlier, "name": earlier, "displayName": label, "type": GROUP, "phase": "Failed",
                "boundaryID": name, "rank": rank, "templateName": called,
            }));
        }
        add(json!({
            "id": job, "name": job, "displayName": called, "type": GROUP, "phase": display_phase(entry, phase),
            "message": entry["message"], "boundaryID": name, "rank": rank, "step": phase, "templateName": called,
            "startedAt": entry["startedAt"], "finishedAt": entry["finishedAt"],
            "retries": entry["tries"].as_u64().unwrap_or_default().saturating_sub(1),
        }));
    }
    let mut whole = object.clone();
    whole["status"]["nodes"] = Value::Object(nodes);
    Cow::Owned(whole)
}

/// Returns the display phase of an entry, whose job has this phase.
fn display_phase(entry: &Value, phase: &str) -> &'static str {
    match text(entry, "stage") {
        "Completed" => "Succeeded",
        "Failed" | "Terminated" | "Deleted" | "Refused" => "Failed",
        "Stopped" => "Stopped",
        "Active" if phase != "Pending" => "Running",
        _ => "Pending",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_become_nodes() {
        let object = json!({
            "metadata": {"name": "test"},
            "status": {
                "state": {"phase": "Running"}, "conditions": {"test-a": {"phase": "Running"}},
                "entries": [{"name": "a", "job": "test-a", "stage": "Active"}, {"name": "b", "job": "test-b", "stage": "Waiting"}],
            },
        });
        let shown = with_nodes(&object);
        let nodes = &shown["status"]["nodes"];
        assert_eq!((text(&nodes["test-a"], "phase"), text(&nodes["test-a"], "displayName")), ("Running", "a"));
        assert_eq!((text(&nodes["test-b"], "phase"), text(&nodes["test"], "phase")), ("Pending", "Running"));
    }
}
