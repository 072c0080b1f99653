//! Explains a finished TaskSet from its object.

use serde_json::Value;

use crate::run::explain::Explanation;

/// Explains how a TaskSet and its failed replicas ended.
pub(super) fn replicas(object: &Value) -> Vec<Explanation> {
    let text = |of: &Value, field: &str| of[field].as_str().unwrap_or_default().to_owned();
    let status = &object["status"];
    let whole = (text(&object["metadata"], "name"), text(status, "state"), text(status, "stateMessage"));
    let mut found =
        vec![Explanation { node: whole.0, id: None, phase: whole.1, reason: whole.2, since: None, wait: None }];
    for role in status["roleStatus"].as_array().into_iter().flatten() {
        for replica in role["replicaStatus"].as_array().into_iter().flatten() {
            let (info, reason) = (&replica["terminatedInfo"], text(replica, "podReason"));
            if replica["stopped"] == true || info["exitCode"] == 0 && reason.is_empty() {
                continue;
            }
            let node = format!("{}-{}", text(role, "name"), replica["index"]);
            let end = match info["exitCode"].as_i64() {
                Some(code) => format!("{} (exit code {code}): {}", text(info, "reason"), text(info, "exitMessage")),
                None => String::new(),
            };
            let parts: Vec<&str> = [reason.trim(), end.trim_end_matches([':', ' ', '\n'])]
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect();
            found.push(Explanation {
                node,
                id: None,
                phase: text(replica, "phase"),
                reason: parts.join("; "),
                since: None,
                wait: None,
            });
        }
    }
    found
}
