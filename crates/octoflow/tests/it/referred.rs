//! Templates in files of their own: loaded in any order, kept for later, and told of when something is wrong.

use crate::stage::Stage;

const LIBRARY: &str = "apiVersion: argoproj.io/v1alpha1
kind: WorkflowTemplate
metadata: {name: lib}
spec:
  entrypoint: echo
  arguments: {parameters: [{name: m, value: theirs}]}
  templates:
  - name: echo
    inputs: {parameters: [{name: m}]}
    container: {image: i, command: [echo], args: ['said {{inputs.parameters.m}}']}
";

const USER: &str = "apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {generateName: user-}
spec:
  workflowTemplateRef: {name: lib}
";

const MALFORMED: &str = "apiVersion: argoproj.io/v1alpha1
kind: WorkflowTemplate
metadata: {name: broken}
spec: {arguments: {parameters: {a: b}}}
";

#[test]
fn a_template_may_stand_after_its_user_and_is_found_by_later_runs() {
    let stage = Stage::new();
    let (library, user) = (stage.file("lib.yaml", LIBRARY), stage.file("user.yaml", USER));
    let first = stage.json(&["run", &user, &library, "-o", "json", "--quiet"]);
    assert_eq!(first["status"]["phase"], "Succeeded");
    assert_eq!(first["metadata"]["labels"]["workflows.argoproj.io/workflow-template"], "lib");
    assert_eq!(stage.good(&["logs", "@latest"]).out.trim_end().rsplit(": ").next(), Some("said theirs"));
    let said = stage.good(&["run", &user, "-p", "m=mine", "-o", "name"]);
    assert!(!said.err.contains("no parameter"), "the template has it\n{said}");
    assert!(stage.good(&["logs", "@latest"]).out.contains("said mine"));
    // An edit reaches new runs, and never old ones.
    let edited = stage.file("lib.yaml", LIBRARY.replace("said", "wrote"));
    stage.good(&["run", &edited, &user]);
    assert!(stage.good(&["logs", "@latest"]).out.contains("wrote theirs"));
    let name = first["metadata"]["name"].as_str().unwrap();
    let kept = stage.json(&["get", name, "-o", "json"]);
    let args = &kept["status"]["storedWorkflowTemplateSpec"]["templates"][0]["container"]["args"];
    assert_eq!(args[0], "said {{inputs.parameters.m}}");
}

#[test]
fn a_missing_template_is_refused_at_its_place() {
    let stage = Stage::new();
    let said = stage.octoflow(&["run", &stage.file("user.yaml", USER)]);
    assert_eq!(said.code, 6, "{said}");
    assert!(said.err.contains("WorkflowTemplate 'lib' is not loaded in namespace 'default'"), "{said}");
    assert!(said.err.contains("user.yaml:5:"), "{said}");
}

#[test]
fn a_malformed_template_harms_only_those_who_refer_to_it() {
    let stage = Stage::new();
    let (library, user) = (stage.file("lib.yaml", LIBRARY), stage.file("user.yaml", USER));
    let broken = stage.file("broken.yaml", MALFORMED);
    let said = stage.good(&["run", &broken, &library, &user]);
    assert!(said.err.contains("warning[OF1010]") && said.err.contains("broken.yaml:4:"), "{said}");
    let other = stage.file("other.yaml", USER.replace("lib", "broken"));
    let said = stage.octoflow(&["run", &broken, &other]);
    assert!(said.out.contains(" Error"), "{said}");
    assert!(said.out.contains("WorkflowTemplate 'broken' is malformed"), "{said}");
    let said = stage.octoflow(&["run", &broken]);
    assert_eq!(said.code, 6, "{said}");
    assert!(said.err.contains("error[OF1010]"), "{said}");
}
