//! Events: what happened to a run and its nodes, told in the words of Kubernetes. Read from the run's object.

use serde_json::{Value, json};

use super::uid;

/// All events of a run, by when they happened.
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

/// What is told.
pub(super) struct Told<'a> {
    pub reason: &'a str,
    /// The part of the run it happened to; empty for the whole.
    pub about: &'a str,
    pub message: &'a str,
    pub at: &'a Value,
    pub bad: bool,
    pub count: u64,
    /// Who says so.
    pub source: &'a str,
}

/// One event of a workflow.
fn of_workflow(run: &Value, reason: &str, node: &str, message: &str, at: &Value) -> (String, Value) {
    let bad = matches!(
        reason,
        "WorkflowNodeFailed" | "WorkflowNodeError" | "WorkflowFailed" | "WorkflowError" | "WorkflowTimedOut"
    );
    event(run, &Told { reason, about: node, message, at, bad, count: 1, source: "workflow-controller" })
}

/// One event; its key sorts by time, and what happened to the whole before and after what happened to its parts.
pub(super) fn event(run: &Value, told: &Told<'_>) -> (String, Value) {
    let Told { reason, about, message, at, bad, count, source } = told;
    let metadata = &run["metadata"];
    let id = uid(&[metadata["uid"].as_str().unwrap_or_default(), reason, about]);
    let name = format!("{}.{}", metadata["name"].as_str().unwrap_or_default(), &id.replace('-', "")[..16]);
    // Names are drawn; within a second, what was accepted was accepted before it ran.
    let rank = u8::from(!reason.ends_with("Created"));
    let key = format!("{}/{about}/{rank}/{name}", at.as_str().unwrap_or_default());
    let event = json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {
            "name": name, "namespace": metadata["namespace"], "uid": id,
            "resourceVersion": metadata["resourceVersion"], "creationTimestamp": at,
        },
        "involvedObject": {
            "apiVersion": run["apiVersion"], "kind": run["kind"], "namespace": metadata["namespace"],
            "name": metadata["name"], "uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"],
        },
        "reason": reason, "message": message, "type": if *bad { "Warning" } else { "Normal" },
        "source": {"component": source}, "reportingComponent": source,
        "firstTimestamp": at, "lastTimestamp": at, "eventTime": null, "count": count,
    });
    (key, event)
}
