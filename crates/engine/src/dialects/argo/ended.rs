//! Lists what failed in a workflow that is over, read from its object.

use serde_json::Value;

use crate::run::explain::Explanation;

/// Returns the failures, node by node, in the order they began.
pub(super) fn failures(object: &Value) -> Vec<Explanation> {
    let nodes = object["status"]["nodes"].as_object().into_iter().flat_map(|nodes| nodes.values());
    let leaf =
        |node: &&Value| matches!(node["type"].as_str(), Some("Pod" | "Container" | "HTTP" | "Suspend" | "Skipped"));
    let unsuccessful =
        |node: &&Value| matches!(node["phase"].as_str(), Some("Failed" | "Error" | "Omitted" | "Skipped"));
    let mut found: Vec<(String, Explanation)> = nodes
        .filter(leaf)
        .filter(unsuccessful)
        .map(|node| {
            let text = |field: &str| node[field].as_str().unwrap_or_default().to_owned();
            (
                text("startedAt"),
                Explanation {
                    node: text("displayName"),
                    id: None,
                    phase: text("phase"),
                    reason: text("message"),
                    since: None,
                    wait: None,
                },
            )
        })
        .collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found.into_iter().map(|(_, explanation)| explanation).collect()
}
