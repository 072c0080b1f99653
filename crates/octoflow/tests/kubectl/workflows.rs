//! Workflows from their creation to their deletion, as kubectl does it.

use crate::rig::{Rig, eventually, one_step, shows};

impl Rig {
    fn phase(&self, name: &str) -> String {
        self.good(&["get", "wf", name, "-o", "jsonpath={.status.phase}"])
    }

    fn pod_of(&self, workflow: &str) -> String {
        let selector = format!("workflows.argoproj.io/workflow={workflow}");
        let names = self.good(&["get", "pods", "-l", &selector, "-o", "name"]);
        names.trim().to_owned()
    }
}

/// Steps go on once this file is there.
fn gate(rig: &Rig) -> String {
    rig.path("gate").display().to_string()
}

#[test]
fn kubectl_follows_a_workflow_from_its_creation_to_its_end() {
    let Some(rig) = Rig::with_kubectl() else { return };
    let gate = gate(&rig);
    let command = format!("echo waiting; until [ -e {gate} ]; do sleep 0.05; done; echo through");
    let file = rig.file("gated.yaml", &one_step("gated", &command));
    shows(&rig.good(&["create", "-f", &file]), &["workflow.argoproj.io/gated created"]);
    shows(&rig.bad(&["create", "-f", &file]), &["AlreadyExists", "workflows.argoproj.io \"gated\" already exists"]);
    eventually("the workflow runs", || rig.phase("gated") == "Running" && !rig.pod_of("gated").is_empty());
    shows(&rig.good(&["get", "wf"]), &["NAME", "STATUS", "AGE", "MESSAGE", "gated", "Running"]);
    let pod = rig.pod_of("gated");
    shows(&rig.good(&["get", &pod]), &["NAME", "READY", "STATUS", "RESTARTS", "AGE", "gated"]);
    eventually("the step speaks", || rig.good(&["logs", &pod]) == "waiting\n");

    let following = rig.command(&["logs", "-f", &pod, "-c", "main"]).spawn().unwrap();
    let waiting = rig.command(&["wait", "--for=condition=Completed", "wf/gated", "--timeout=60s"]).spawn().unwrap();
    std::fs::write(&gate, "").unwrap();
    let followed = following.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&followed.stdout), "waiting\nthrough\n");
    let waited = waiting.wait_with_output().unwrap();
    assert!(waited.status.success(), "{waited:?}");
    if rig.minor() >= 23 {
        rig.good(&["wait", "--for=jsonpath={.status.phase}=Succeeded", "wf/gated", "--timeout=60s"]);
    }
    assert_eq!(rig.good(&["logs", &pod, "--tail=1"]), "through\n");
    shows(&rig.good(&["logs", &pod, "--timestamps"]), &["Z waiting\n", "Z through\n"]);
    shows(&rig.bad(&["logs", &pod, "--previous"]), &["previous"]);
    shows(&rig.bad(&["logs", "nobody"]), &["NotFound", "pods \"nobody\" not found"]);

    shows(&rig.good(&["get", "wf", "-o", "wide"]), &["PRIORITY", "FINISHED", "gated", "Succeeded", "1/1"]);
    assert_eq!(rig.good(&["get", "wf", "-A", "-l", "app=tests", "-o", "name"]), "workflow.argoproj.io/gated\n");
    assert_eq!(rig.good(&["get", "wf", "--field-selector=status.phase=Failed", "-o", "name"]), "");
    shows(
        &rig.good(&["describe", "wf", "gated"]),
        &["Name:", "gated", "Phase:", "Succeeded", "Events:", "WorkflowSucceeded"],
    );
    shows(&rig.good(&["describe", &pod]), &["Controlled By:", "Workflow/gated", "Exit Code:", "0"]);
    shows(&rig.good(&["get", "events"]), &["LAST SEEN", "REASON", "OBJECT", "workflow/gated"]);
    shows(&rig.good(&["get", "all"]), &["pod/", "workflow.argoproj.io/gated"]);
    shows(&rig.good(&["get", "nodes"]), &["NAME", "STATUS", "VERSION", "Ready"]);
}

#[test]
fn kubectl_marks_holds_resumes_and_ends_a_workflow() {
    let Some(rig) = Rig::with_kubectl() else { return };
    let command = format!("until [ -e {} ]; do sleep 0.05; done", gate(&rig));
    let file = rig.file("held.yaml", &one_step("held", &command));
    rig.good(&["apply", "-f", &file]);
    shows(&rig.good(&["apply", "-f", &file]), &["workflow.argoproj.io/held unchanged"]);
    rig.good(&["label", "wf", "held", "tier=web", "app-"]);
    rig.good(&["annotate", "wf", "held", "note=mine"]);
    assert_eq!(rig.good(&["get", "wf", "-l", "tier=web,!app", "-o", "name"]), "workflow.argoproj.io/held\n");
    assert_eq!(rig.good(&["get", "wf", "held", "-o", "jsonpath={.metadata.annotations.note}"]), "mine");
    let patch = |text: &str| rig.kubectl(&["patch", "wf", "held", "--type=merge", "-p", text]);
    assert_eq!(patch(r#"{"spec": {"suspend": true}}"#).code, 0);
    assert_eq!(rig.good(&["get", "wf", "held", "-o", "jsonpath={.spec.suspend}"]), "true");
    let refused = patch(r#"{"spec": {"entrypoint": "other"}}"#);
    shows(&refused.err, &["invalid", "spec"]);
    shows(&rig.bad(&["patch", "wf", "held", "-p", r#"{"spec": {}}"#]), &["strategic-merge-patch"]);
    assert_eq!(patch(r#"{"spec": {"suspend": null, "shutdown": "Terminate"}}"#).code, 0);
    eventually("the workflow ends", || rig.phase("held") == "Failed");
    shows(&rig.good(&["delete", "wf", "held"]), &["workflow.argoproj.io \"held\" deleted"]);
    shows(&rig.bad(&["get", "wf", "held"]), &["NotFound"]);
    assert_eq!(rig.pod_of("held"), "");
}

const OWNED: &str = "
apiVersion: v1
kind: ConfigMap
metadata:
  name: owned
  ownerReferences:
  - {apiVersion: argoproj.io/v1alpha1, kind: Workflow, name: owner, uid: UID}
";

#[test]
fn kubectl_deletes_workflows_with_what_belongs_to_them_or_without() {
    let Some(rig) = Rig::with_kubectl() else { return };
    let there = |name: &str| rig.kubectl(&["get", "cm", name]).code == 0;
    let orphan = if rig.minor() >= 20 { "--cascade=orphan" } else { "--cascade=false" };
    for (cascade, stays) in [("--cascade=background", false), ("--cascade=foreground", false), (orphan, true)] {
        let file = rig.file("owner.yaml", &one_step("owner", "true"));
        rig.good(&["create", "-f", &file]);
        let uid = rig.good(&["get", "wf", "owner", "-o", "jsonpath={.metadata.uid}"]);
        let owned = rig.file("owned.yaml", &OWNED.replace("UID", &uid));
        rig.good(&["create", "-f", &owned]);
        rig.good(&["delete", "wf", "owner", cascade]);
        assert_eq!(rig.kubectl(&["get", "wf", "owner"]).code, 1, "{cascade}");
        if !stays {
            eventually("what belonged to it is gone", || !there("owned"));
        }
        assert_eq!(there("owned"), stays, "{cascade}");
    }
}

#[test]
fn kubectl_deletes_running_workflows_and_all_that_are_selected() {
    let Some(rig) = Rig::with_kubectl() else { return };
    let command = format!("until [ -e {} ]; do sleep 0.05; done", gate(&rig));
    for name in ["first", "second", "third"] {
        let file = rig.file("one.yaml", &one_step(name, &command).replace("tests", name));
        rig.good(&["create", "-f", &file]);
    }
    eventually("they run", || ["first", "second", "third"].iter().all(|name| rig.phase(name) == "Running"));
    rig.good(&["delete", "wf", "first"]);
    rig.good(&["delete", "wf", "-l", "app=second"]);
    assert_eq!(rig.good(&["get", "wf", "-o", "name"]), "workflow.argoproj.io/third\n");
    let path = "/apis/argoproj.io/v1alpha1/namespaces/default/workflows?labelSelector=app%3Dthird";
    assert_eq!(rig.ask("DELETE", path, &[], b"").status, 200);
    eventually("the last one is gone", || rig.good(&["get", "wf", "-o", "name"]).is_empty());
}
