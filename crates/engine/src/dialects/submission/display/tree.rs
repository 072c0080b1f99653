//! A submitted job as a tree of nodes: the job, each question to a plugin, and the run that came out.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::{came_of, list, text};
use crate::{
    dialects::{dialect::PhaseClass, submission::DIALECT},
    kinds,
    run::view::GROUP,
};

/// Returns the id of the node of the run that came out. The run has the job's name, so it needs another id.
pub(super) fn child_id(name: &str) -> String {
    format!("{name}/run")
}

/// Returns the object with `status.nodes`, derived from its trace.
pub(super) fn with_nodes(object: &Value) -> Cow<'_, Value> {
    let (name, status) = (text(&object["metadata"], "name"), &object["status"]);
    // Nodes of the run that came out may have been added.
    let mut nodes = status["nodes"].as_object().cloned().unwrap_or_else(Map::new);
    let mut add = |node: Value| nodes.insert(text(&node, "id").to_owned(), node);
    let trace = list(&status["trace"]);
    let began = trace.first().map_or(&status["startedAt"], |first| &first["startedAt"]);
    add(json!({
        "id": name, "name": name, "displayName": name, "type": DIALECT.kind.name,
        "phase": display_phase(text(status, "phase")), "message": status["message"],
        "startedAt": began, "finishedAt": status["finishedAt"], "rank": 0, "step": status["state"],
    }));
    for (rank, entry) in trace.iter().enumerate() {
        let (message, bad) = came_of(&entry["outcome"]);
        let holds = entry["outcome"]["decision"] == "suspend";
        let open = entry["finishedAt"].is_null() || holds && rank + 1 == trace.len() && status["phase"] == "suspended";
        // A gate that held the job until somebody resumed it has done its work.
        let phase = if open {
            "Running"
        } else if bad && !holds {
            "Failed"
        } else {
            "Succeeded"
        };
        let plugin = text(entry, "plugin");
        add(json!({
            "id": format!("{name}/{rank}"), "name": plugin, "displayName": plugin, "type": "Plugin", "phase": phase,
            "message": message, "boundaryID": name, "rank": rank, "step": entry["stage"],
            "templateName": entry["stage"], "startedAt": entry["startedAt"], "finishedAt": entry["finishedAt"],
            "retries": entry["tries"].as_u64().unwrap_or_default().saturating_sub(1),
        }));
    }
    let child = &status["child"];
    if child.is_object() {
        let (called, phase) = (text(child, "name"), text(child, "phase"));
        let class = kinds::dialect_of(child).ok().and_then(|dialect| dialect.phase_class(phase));
        let shown = class.map_or("Pending", word_of);
        add(json!({
            "id": child_id(called), "name": called, "displayName": format!("{} {called}", text(child, "kind")),
            "type": GROUP, "phase": shown, "message": child["message"], "boundaryID": name, "rank": trace.len(),
            "step": phase, "templateName": text(child, "kind"), "startedAt": status["handedOverAt"],
            "finishedAt": status["finishedAt"],
        }));
    }
    let mut whole = object.clone();
    whole["status"]["nodes"] = Value::Object(nodes);
    Cow::Owned(whole)
}

fn word_of(class: PhaseClass) -> &'static str {
    match class {
        PhaseClass::Waiting => "Pending",
        PhaseClass::Running => "Running",
        PhaseClass::Succeeded => "Succeeded",
        PhaseClass::Failed => "Failed",
    }
}

/// Returns the display phase of a job.
fn display_phase(phase: &str) -> &'static str {
    match phase {
        "succeeded" => "Succeeded",
        "failed" => "Failed",
        "stopped" => "Stopped",
        "running" => "Running",
        _ => "Pending",
    }
}
