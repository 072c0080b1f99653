//! A: names, ids, types and the drawing graph.

use crate::check::check;

#[test]
fn a01_a_single_container_is_one_node_named_after_the_run() {
    let done = check(
        "
templates: [{name: main, container: {image: i, command: [c]}}]
---
all: {w: Pod Succeeded}
phase: Succeeded
progress: 1/1",
    );
    let node = done.node("w");
    assert_eq!((node["id"].as_str(), node["displayName"].as_str()), (Some("w"), Some("w")));
    assert_eq!(node["progress"], "1/1");
    assert_eq!(node["templateName"], "main");
}
