//! What is odd about a run that is accepted nevertheless: every face says it, once.

use crate::rig::{Rig, shows};

/// A suspended workflow with a step for which there is no node, and a longest wait that cannot be read.
fn odd(name: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {{name: {name}, annotations: {{sla-waiting-time: soon}}}}
spec:
  suspend: true
  entrypoint: main
  templates:
  - name: main
    nodeSelector: {{disk: tape}}
    container: {{image: busybox, command: ['true']}}
"
    )
}

const TOLD: [&str; 2] = ["the labels of no node match; it waits until that changes [OF1086]", "[OF1033]"];

/// Insists that everything is told once.
fn told_once(text: &str) {
    for part in TOLD {
        assert_eq!(text.matches(part).count(), 1, "{part}\n{text}");
    }
}

#[test]
fn warnings_of_admission_reach_kubectl_submit_plan_and_argo_once() {
    let Some(rig) = Rig::with_kubectl() else { return };
    let node = rig.good(&["get", "nodes", "-o", "jsonpath={.items[0].metadata.name}"]);
    rig.good(&["label", "node", &node, "disk=ssd"]);

    let file = rig.file("odd.yaml", &odd("odd"));
    let dry = rig.kubectl(&["create", "--dry-run=server", "-f", &file]);
    told_once(&dry.err);
    shows(&dry.err, &["Warning: spec.templates[0].nodeSelector: "]);
    told_once(&rig.kubectl(&["create", "-f", &file]).err);
    let applied = rig.file("applied.yaml", &odd("applied"));
    told_once(&rig.kubectl(&["apply", "--server-side", "-f", &applied]).err);

    let server = format!("http://{}", rig.server.address);
    let at = ["--server", &server, "--token", "admin"];
    let other = rig.file("other.yaml", &odd("other"));
    for words in [&["plan", &other][..], &["submit", "--server-dry-run", &other], &["submit", &other]] {
        let said = rig.octoflow(&[words, &at].concat());
        assert_eq!(said.code, 0, "{said}");
        told_once(&said.err);
    }

    let body = serde_json::json!({"workflow": {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
        "metadata": {"name": "argo", "annotations": {"sla-waiting-time": "soon"}},
        "spec": {"suspend": true, "entrypoint": "main", "templates": [
            {"name": "main", "nodeSelector": {"disk": "tape"}, "container": {"image": "i", "command": ["true"]}}]},
    }});
    let reply = rig.ask("POST", "/api/v1/workflows/default", &[], body.to_string().as_bytes());
    assert_eq!(reply.status, 200, "{}", reply.text());
    let first = reply.header("warning").unwrap_or_default();
    assert!(TOLD.iter().any(|part| first.contains(part)), "{first}");
}
