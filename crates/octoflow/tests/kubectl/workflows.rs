//! Workflows from their creation to their deletion, as kubectl does it.

use crate::rig::{Rig, eventually, one_step, shows};

#[test]
fn kubectl_follows_a_workflow_from_its_creation_to_its_end() {
    let Some(rig) = Rig::with_kubectl() else { return };
    let gate = rig.path("gate");
    let command = format!("echo waiting; until [ -e {} ]; do sleep 0.05; done; echo through", gate.display());
    let file = rig.file("gated.yaml", &one_step("gated", &command));
    shows(&rig.good(&["create", "-f", &file]), &["workflow.argoproj.io/gated created"]);
    shows(&rig.bad(&["create", "-f", &file]), &["AlreadyExists", "workflows.argoproj.io \"gated\" already exists"]);
    eventually("the workflow runs", || {
        rig.good(&["get", "wf", "gated", "-o", "jsonpath={.status.phase}"]) == "Running"
    });
    shows(&rig.good(&["get", "wf"]), &["NAME", "STATUS", "AGE", "MESSAGE", "gated", "Running"]);
    let waiting = rig.command(&["wait", "--for=condition=Completed", "wf/gated", "--timeout=60s"]).spawn().unwrap();
    std::fs::write(&gate, "").unwrap();
    let waited = waiting.wait_with_output().unwrap();
    assert!(waited.status.success(), "{waited:?}");
    if rig.minor() >= 23 {
        rig.good(&["wait", "--for=jsonpath={.status.phase}=Succeeded", "wf/gated", "--timeout=60s"]);
    }
    shows(&rig.good(&["get", "wf", "-o", "wide"]), &["PRIORITY", "FINISHED", "gated", "Succeeded", "1/1"]);
    assert_eq!(rig.good(&["get", "wf", "-A", "-l", "app=tests", "-o", "name"]), "workflow.argoproj.io/gated\n");
    let selector = "--field-selector=status.phase=Failed";
    assert_eq!(rig.good(&["get", "wf", selector, "-o", "name"]), "");
    shows(&rig.good(&["describe", "wf", "gated"]), &["Name:", "gated", "Phase:", "Succeeded"]);
    shows(&rig.good(&["get", "all"]), &["workflow.argoproj.io/gated"]);
}
