//! What tools learn about the server before they do anything: kinds, fields, versions, and what is wrong with a file.

use crate::rig::{Rig, one_step, shows};

#[test]
fn kubectl_finds_kinds_and_explains_their_fields() {
    let Some(rig) = Rig::with_kubectl() else { return };
    let kinds = rig.good(&["api-resources", "-o", "wide"]);
    for line in [
        &["configmaps", "cm", "v1", "true", "ConfigMap", "create"][..],
        &["pods", "po", "v1", "true", "Pod", "get"],
        &["clusterworkflowtemplates", "cwft", "argoproj.io/v1alpha1", "false", "ClusterWorkflowTemplate"],
        &["workflows", "wf", "argoproj.io/v1alpha1", "true", "Workflow", "watch"],
    ] {
        let found = kinds.lines().find(|found| found.starts_with(line[0])).unwrap_or_else(|| panic!("{kinds}"));
        shows(found, line);
    }
    shows(&rig.good(&["api-versions"]), &["argoproj.io/v1alpha1", "v1"]);
    shows(&rig.good(&["version"]), &["octoflow"]);

    shows(&rig.good(&["explain", "wf.spec.templates"]), &["Workflow", "templates", "container"]);
    shows(&rig.good(&["explain", "workflow.spec.templates.container.env"]), &["name", "value"]);
    shows(&rig.good(&["explain", "cm"]), &["ConfigMap", "data"]);
    shows(&rig.good(&["explain", "pods"]), &["Pod", "metadata"]);
    shows(&rig.bad(&["explain", "wf.spec.nonsense"]), &["nonsense"]);
    assert_eq!(rig.kubectl(&["get", "nonsense"]).code, 1);
}

#[test]
fn kubectl_is_told_what_is_wrong_with_a_file() {
    let Some(rig) = Rig::with_kubectl() else { return };
    let sound = one_step("sound", "true");
    let typo = rig.file("typo.yaml", &sound.replace("entrypoint:", "entrypoin:"));
    for verb in ["create", "apply"] {
        shows(&rig.bad(&[verb, "-f", &typo]), &["unknown field", "entrypoin"]);
    }
    let lost = rig.file("lost.yaml", &sound.replace("entrypoint: main", "entrypoint: elsewhere"));
    shows(&rig.bad(&["create", "-f", &lost]), &["invalid", "elsewhere"]);
    let broken =
        rig.file("broken.yaml", r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "Not_A_Name"}}"#);
    shows(&rig.bad(&["create", "-f", &broken]), &["invalid", "metadata.name"]);
    // Whoever insists is told what was left out.
    let extra = rig.file("extra.yaml", &sound.replace("entrypoint: main", "entrypoint: main\n  colour: red"));
    let warned = rig.kubectl(&["create", "-f", &extra, "--validate=false", "--dry-run=server"]);
    assert_eq!(warned.code, 0, "{warned}");
    let warned = rig.ask_to_warn(&sound.replace("entrypoint: main", "entrypoint: main\n  colour: red"));
    shows(&warned, &["299 - ", "unknown field", "spec.colour"]);
    assert_eq!(rig.good(&["get", "wf", "-o", "name"]), "workflow.argoproj.io/sound\n");
}

impl Rig {
    /// The warning that comes with an object that is taken nevertheless.
    fn ask_to_warn(&self, manifest: &str) -> String {
        let path = "/apis/argoproj.io/v1alpha1/namespaces/default/workflows?fieldValidation=Warn";
        let reply = self.ask("POST", path, &[("content-type", "application/yaml")], manifest.as_bytes());
        assert_eq!(reply.status, 201, "{}", reply.text());
        reply.header("warning").unwrap().to_owned()
    }
}
