//! Renders events: what happened to a run and its nodes, as Kubernetes events. Reads the run's object.

use serde_json::Value;

use crate::run::view::{EventDetails, event};

/// Returns all events of a run, by time.
pub(super) fn all(run: &Value) -> Vec<(String, Value)> {
    let status = &run["status"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let name = text(&run["metadata"]["name"]);
    let mut events = Vec::new();
    if !text(&status["startedAt"]).is_empty() {
        events.push(of_workflow(run, "WorkflowRunning", "", "Workflow Running", &status["startedAt"]));
    }
    for node in status["nodes"].as_object().into_iter().flat_map(|nodes| nodes.values()) {
        let (id, called, phase) = (text(&node["id"]), text(&node["name"]), text(&node["phase"]));
        let ran = !matches!(phase.as_str(), "Pending" | "Skipped" | "Omitted");
        if ran {
            events.push(of_workflow(
                run,
                "WorkflowNodeRunning",
                &id,
                &format!("Running node {called}"),
                &node["startedAt"],
            ));
        }
        if node["preempted"].is_object() {
            let why = text(&node["preempted"]["message"]);
            events.push(of_workflow(run, "Preempted", &id, &format!("{called}: {why}"), &node["preempted"]["at"]));
        }
        let reason = match phase.as_str() {
            "Succeeded" => "WorkflowNodeSucceeded",
            "Failed" => "WorkflowNodeFailed",
            "Error" => "WorkflowNodeError",
            _ => continue,
        };
        let message = match text(&node["message"]) {
            why if why.is_empty() => format!("{phase} node {called}"),
            why => format!("{phase} node {called}: {why}"),
        };
        events.push(of_workflow(run, reason, &id, &message, &node["finishedAt"]));
    }
    if status["deadlock"].is_object() {
        let why = text(&status["deadlock"]["message"]);
        events.push(of_workflow(run, "Deadlock", "", &why, &status["deadlock"]["at"]));
    }
    let ended = match status["phase"].as_str() {
        Some("Succeeded") => Some(("WorkflowSucceeded", "Workflow completed".to_owned())),
        Some("Failed") if text(&status["message"]).contains("deadline") => {
            Some(("WorkflowTimedOut", text(&status["message"])))
        }
        Some("Failed") => Some(("WorkflowFailed", text(&status["message"]))),
        Some("Error") => Some(("WorkflowError", text(&status["message"]))),
        _ => None,
    };
    if let Some((reason, message)) = ended {
        events.push(of_workflow(run, reason, "~", &message, &status["finishedAt"]));
    }
    debug_assert!(events.iter().all(|(_, event)| event["involvedObject"]["name"] == name.as_str()));
    events
}

/// Renders one event of a workflow.
fn of_workflow(run: &Value, reason: &str, node: &str, message: &str, at: &Value) -> (String, Value) {
    let bad = matches!(
        reason,
        "WorkflowNodeFailed"
            | "WorkflowNodeError"
            | "WorkflowFailed"
            | "WorkflowError"
            | "WorkflowTimedOut"
            | "Preempted"
            | "Deadlock"
    );
    event(run, &EventDetails { reason, about: node, message, at, bad, count: 1, source: "workflow-controller" })
}
