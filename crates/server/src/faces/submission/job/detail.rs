//! The detail document of a job, in every state: from the job itself and from the run that came out of it.

use serde_json::{Value, json};

use super::replica::{exit_code, runtime_info, tasks, transcript};

/// Version of the document's form.
const VERSION: &str = "v1";
/// The platform as the pipeline's clients expect it.
const PLATFORM: &str = "k8s";

pub(super) fn document(job: &Value, child: Option<&Value>) -> Value {
    let (spec, status) = (&job["spec"], &job["status"]);
    let stopped = status["phase"] == "stopped";
    let text = |value: &Value| json!(value.as_str().unwrap_or_default());
    // Before the hand-over, and when the run was deleted, the document alone is known.
    let set = child.unwrap_or(&status["job"]);
    let is_set = set["kind"] == "TaskSet";
    let runs = &status["child"];
    let child_status = child.map_or(&Value::Null, |child| &child["status"]);
    json!({
        "version": VERSION,
        "job": {
            "id": job["metadata"]["name"], "name": spec["jobName"], "type": spec["jobKind"],
            "state": status["phase"], "detailedState": status["state"], "userID": spec["userID"],
            "startAt": text(&status["startedAt"]), "finishedAt": text(&status["finishedAt"]),
            "submittedAt": text(&status["submittedAt"]),
            "totalRetriedCount": child_status["totalRetriedCount"].as_u64().unwrap_or_default(),
            "exitCode": code(status, set, is_set), "exitDiagnostics": diagnostics(status, set, is_set),
        },
        "cluster": {"identity": text(&spec["cluster"])},
        "tasks": if is_set { tasks(set, stopped) } else { Vec::new() },
        "platformSpecificInfo": {
            "platform": PLATFORM, "apiVersion": text(if runs.is_null() { &set["apiVersion"] } else { &runs["apiVersion"] }),
            "namespace": job["metadata"]["namespace"], "instanceUID": text(&runs["uid"]),
            "configMapUID": text(&child_status["controlUnitUID"]),
            "configMapName": text(&child_status["controlUnitName"]),
            "taskRuntimeInfo": if is_set { runtime_info(set) } else { Vec::new() },
        },
    })
}

/// The exit code of a job: known once it is over and something of it ran.
fn code(status: &Value, set: &Value, is_set: bool) -> Option<i64> {
    match status["phase"].as_str() {
        Some("succeeded") => Some(0),
        Some("failed" | "stopped") if is_set => exit_code(set),
        _ => None,
    }
}

fn diagnostics(status: &Value, set: &Value, is_set: bool) -> String {
    let mut lines: Vec<String> = Vec::new();
    lines.extend(status["message"].as_str().filter(|text| !text.is_empty()).map(str::to_owned));
    if is_set {
        lines.extend(transcript(set));
    }
    lines.join("\n")
}
