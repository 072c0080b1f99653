//! Explains a finished job from its object.

use serde_json::Value;

use crate::run::explain::Explanation;

/// Explains how a job and its failed pods ended.
pub(super) fn pods(object: &Value) -> Vec<Explanation> {
    let text = |of: &Value, field: &str| of[field].as_str().unwrap_or_default().to_owned();
    let status = &object["status"];
    let mut found = vec![Explanation {
        node: text(&object["metadata"], "name"),
        id: None,
        phase: text(status, "phase"),
        reason: text(status, "message"),
        since: None,
        wait: None,
    }];
    for pod in status["pods"].as_array().into_iter().flatten().filter(|pod| pod["phase"] == "Failed") {
        found.push(Explanation {
            node: text(pod, "name"),
            id: Some(text(pod, "name")),
            phase: text(pod, "phase"),
            reason: failure(pod),
            since: None,
            wait: None,
        });
    }
    found
}

/// Returns how a pod failed.
pub(super) fn failure(pod: &Value) -> String {
    let end = &pod["terminated"];
    let mut parts = vec![pod["reason"].as_str().unwrap_or_default().to_owned()];
    if let Some(code) = end["exitCode"].as_i64().filter(|code| *code != 0) {
        let words = end["message"].as_str().unwrap_or_default().trim();
        let words = if words.is_empty() { String::new() } else { format!(": {words}") };
        parts.push(format!("{} (exit code {code}){words}", end["reason"].as_str().unwrap_or_default()));
    }
    parts.retain(|part| !part.is_empty());
    parts.join("; ")
}
