//! Resource and data templates through the real program.

use serde_json::Value;

use crate::stage::{Stage, eventually, signal};

/// A workflow whose templates stand under `spec.templates`, indented by two.
fn workflow(name: &str, templates: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {{{name}}}\nspec:\n  entrypoint: main\n  templates:\n{templates}"
    )
}

fn node<'o>(object: &'o Value, name: &str) -> &'o Value {
    let nodes = object["status"]["nodes"].as_object().unwrap();
    nodes.values().find(|node| node["displayName"] == name).unwrap_or_else(|| panic!("no node {name} in {nodes:#?}"))
}

/// Makes a child that runs this script, and waits for its end.
fn parent(script: &str) -> String {
    parent_of(&format!("container: {{image: busybox, command: [sh, -c], args: ['{script}']}}"))
}

fn parent_of(work: &str) -> String {
    workflow(
        "name: parent",
        &format!(
            "  - name: main
    steps:
    - - {{name: make, template: make}}
    - - name: tell
        template: tell
        arguments: {{parameters: [{{name: text, value: '{{{{steps.make.outputs.parameters.name}}}} {{{{steps.make.outputs.parameters.phase}}}}'}}]}}
  - name: make
    resource:
      action: create
      setOwnerReference: true
      successCondition: status.phase == Succeeded
      failureCondition: status.phase in (Failed, Error)
      manifest: |
        apiVersion: argoproj.io/v1alpha1
        kind: Workflow
        metadata: {{generateName: child-}}
        spec:
          entrypoint: work
          templates:
          - name: work
            {work}
    outputs:
      parameters:
      - {{name: name, valueFrom: {{jsonPath: '{{.metadata.name}}'}}}}
      - {{name: phase, valueFrom: {{jqFilter: .status.phase}}}}
  - name: tell
    inputs: {{parameters: [{{name: text}}]}}
    container: {{image: busybox, command: [echo], args: ['{{{{inputs.parameters.text}}}}']}}
"
        ),
    )
}

#[test]
fn aw15_a_workflow_of_workflows_waits_for_its_child_and_takes_outputs_from_it() {
    let stage = Stage::new();
    let file = stage.file("parent.yaml", parent("echo made"));
    let object = stage.json(&["run", &file, "-o", "json"]);
    assert_eq!(object["status"]["phase"], "Succeeded");
    assert_eq!(node(&object, "make")["type"], "Pod");
    let said = stage.good(&["logs", "parent", "tell", "--no-prefix"]).out;
    let (child, phase) = said.trim().split_once(' ').unwrap();
    assert_eq!(phase, "Succeeded");
    assert!(child.starts_with("child-") && child.len() == 11, "{child}");
    let child = stage.json(&["get", child, "-o", "json"]);
    assert_eq!(child["status"]["phase"], "Succeeded");
    assert_eq!(child["metadata"]["ownerReferences"][0]["uid"], object["metadata"]["uid"]);
    let listed = stage.good(&["list"]).out;
    assert!(listed.contains("parent") && listed.contains("child-"), "{listed}");
    // What it owns goes with it.
    let deleted = stage.good(&["delete", "parent"]).out;
    assert!(deleted.contains("child-"), "{deleted}");
    assert!(!stage.good(&["list"]).out.contains("child-"));
}

#[test]
fn aw15_a_failure_condition_fails_the_node() {
    let stage = Stage::new();
    let file = stage.file("parent.yaml", parent("exit 3"));
    let said = stage.octoflow(&["run", &file, "-o", "json"]);
    assert_eq!(said.code, 1, "{said}");
    let object: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(node(&object, "make")["phase"], "Failed");
    assert_eq!(node(&object, "make")["message"], "failure condition 'status.phase in (Failed, Error)' evaluated true");
}

/// The name of the child, once it is there.
fn child(stage: &Stage) -> Option<String> {
    let said = stage.octoflow(&["list", "-o", "name"]);
    said.out.lines().find(|line| line.contains("child-")).map(|line| line.rsplit('/').next().unwrap().to_owned())
}

#[test]
fn stopping_a_parent_stops_the_children_it_owns() {
    let stage = Stage::new();
    let file = stage.file("parent.yaml", parent("echo here; sleep 1000"));
    let run = stage.start(&["run", &file]);
    eventually("the child runs", || {
        child(&stage).is_some_and(|child| stage.octoflow(&["logs", &child]).out.contains("here"))
    });
    stage.good(&["stop", "parent"]);
    assert!(!run.wait_with_output().unwrap().status.success());
    let child = stage.json(&["get", &child(&stage).unwrap(), "-o", "json"]);
    assert_eq!(child["status"]["phase"], "Failed");
    assert_eq!(child["status"]["message"], "Stopped with strategy 'Stop'");
}

#[test]
fn a_killed_engine_finds_the_child_again_and_makes_no_second_one() {
    let stage = Stage::new();
    let file = stage.file("parent.yaml", parent_of("suspend: {}"));
    let mut run = stage.start(&["run", &file]);
    eventually("the child is made", || child(&stage).is_some());
    signal(&run, "KILL");
    run.wait().unwrap();
    let made = child(&stage).unwrap();
    let again = stage.start(&["run", "--resume", "parent"]);
    eventually("the child goes on", || stage.octoflow(&["resume", &made]).code == 0);
    let output = again.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let listed = stage.good(&["list"]).out;
    assert_eq!(listed.matches("child-").count(), 1, "{listed}");
    assert_eq!(listed.matches("Succeeded").count(), 2, "{listed}");
}

#[test]
fn aw18_without_conditions_the_node_is_done_at_once_and_run_waits_for_the_child() {
    let stage = Stage::new();
    let text = workflow(
        "name: parent",
        "  - name: main
    resource:
      action: create
      manifest: |
        apiVersion: argoproj.io/v1alpha1
        kind: Workflow
        metadata: {name: child}
        spec:
          entrypoint: work
          templates:
          - {name: work, container: {image: busybox, command: [sh, -c], args: ['sleep 0.3; echo done']}}
",
    );
    let file = stage.file("parent.yaml", text);
    let said = stage.good(&["run", &file]);
    assert!(said.err.contains("waiting for workflow child, which parent made"), "{said}");
    assert_eq!(stage.json(&["get", "child", "-o", "json"])["status"]["phase"], "Succeeded");
    assert_eq!(stage.good(&["logs", "child", "--no-prefix"]).out.trim(), "done");
}

/// Steps one after another, each a resource template of this body, then a step that says what it got.
fn resources(bodies: &[(&str, &str)], said: &str) -> String {
    let steps: String =
        bodies.iter().map(|(name, _)| format!("    - - {{name: {name}, template: {name}}}\n")).collect();
    let templates: String = bodies.iter().map(|(name, body)| format!("  - name: {name}\n{body}")).collect();
    workflow(
        "name: w",
        &format!(
            "  - name: main
    steps:
{steps}    - - {{name: tell, template: tell, arguments: {{parameters: [{{name: text, value: '{said}'}}]}}}}
  - name: tell
    inputs: {{parameters: [{{name: text}}]}}
    container: {{image: busybox, command: [echo], args: ['{{{{inputs.parameters.text}}}}']}}
{templates}"
        ),
    )
}

#[test]
fn aw19_objects_are_created_applied_patched_replaced_and_deleted() {
    let stage = Stage::new();
    let map = "        apiVersion: v1\n        kind: ConfigMap\n        metadata: {name: settings}\n";
    let body =
        |fields: &str, data: &str| format!("    resource:\n{fields}      manifest: |\n{map}        data: {data}\n");
    let create = body("      action: create\n", "{a: \"1\", b: \"1\"}");
    let apply = body("      action: apply\n", "{b: \"2\", c: \"2\"}");
    let merge = body("      action: patch\n      mergeStrategy: merge\n", "{a: null, d: \"3\"}");
    let strategic = body("      action: patch\n", "{e: \"4\"}");
    let json = "    resource:\n      action: patch\n      mergeStrategy: json\n      flags: [configmap, settings]\n      manifest: '[{\"op\": \"replace\", \"path\": \"/data/c\", \"value\": \"5\"}]'\n";
    let get = "    resource: {action: get, flags: ['cm/settings'], successCondition: 'data.c == 5', failureCondition: 'data.a == 1'}\n    outputs: {parameters: [{name: all, valueFrom: {jqFilter: '.data | to_entries | map(.key + .value) | join(\" \")'}}, {name: none, valueFrom: {jsonPath: '{.data.zz}', default: nothing}}]}\n";
    let replace = body("      action: replace\n", "{only: \"6\"}");
    let got = "    resource: {action: get, flags: ['cm settings']}\n    outputs: {parameters: [{name: all, valueFrom: {jsonPath: '{.data}'}}]}\n";
    let delete = "    resource: {action: delete, flags: ['configmap settings']}\n";
    let twice = "    resource: {action: delete, flags: ['configmap settings', --ignore-not-found]}\n";
    let bodies: Vec<(&str, &str)> = vec![
        ("create", &create),
        ("apply", &apply),
        ("merge", &merge),
        ("strategic", &strategic),
        ("json", json),
        ("get", get),
        ("replace", &replace),
        ("got", got),
        ("delete", delete),
        ("twice", twice),
    ];
    let said = "{{steps.get.outputs.parameters.all}} {{steps.get.outputs.parameters.none}} {{steps.got.outputs.parameters.all}}";
    let file = stage.file("w.yaml", resources(&bodies, said));
    stage.good(&["run", &file]);
    let said = stage.good(&["logs", "w", "tell", "--no-prefix"]).out;
    assert_eq!(said.trim(), "b2 c5 d3 e4 nothing {\"only\":\"6\"}");
}

#[test]
fn aw19_what_cannot_be_done_says_why_and_what_is_known() {
    let stage = Stage::new();
    let message = |body: &str| {
        let text = workflow("generateName: w-", &format!("  - name: main\n    resource:\n{body}"));
        let file = stage.file("w.yaml", text);
        let said = stage.octoflow(&["run", &file, "-o", "json"]);
        assert_eq!(said.code, 1, "{said}");
        let object: Value = serde_json::from_str(&said.out).unwrap();
        let nodes = object["status"]["nodes"].as_object().unwrap();
        let node = nodes.values().next().unwrap();
        assert_eq!(node["phase"], "Error", "{node}");
        node["message"].as_str().unwrap().to_owned()
    };
    let job = message(
        "      action: create\n      manifest: |\n        {apiVersion: batch/v1, kind: Job, metadata: {name: \"{{workflow.name}}\"}, spec: {backoffLimit: -1}}\n",
    );
    assert!(job.contains("backoffLimit"), "{job}");
    let custom = message(
        "      action: patch\n      manifest: |\n        {apiVersion: argoproj.io/v1alpha1, kind: WorkflowTemplate, metadata: {name: t}}\n",
    );
    assert!(custom.contains("\"t\" not found"), "{custom}");
    stage.file("t.yaml", "apiVersion: argoproj.io/v1alpha1\nkind: WorkflowTemplate\nmetadata: {name: t}\nspec: {entrypoint: a, templates: [{name: a, suspend: {}}]}\n");
    let made = message(
        "      action: create\n      manifest: |\n        {apiVersion: argoproj.io/v1alpha1, kind: WorkflowTemplate, metadata: {name: t}, spec: {templates: [{name: a, suspnd: {}}]}}\n",
    );
    assert!(made.contains("suspnd"), "{made}");
    let bad = message(
        "      action: create\n      manifest: |\n        {apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: c}, spec: {entrypoint: nope, templates: [{name: a, suspend: {}}]}}\n",
    );
    assert!(bad.contains("template name 'nope' undefined"), "{bad}");
    let missing = message("      {action: get, flags: [cm none]}\n");
    assert_eq!(missing, "configmaps \"none\" not found");
    let twice = message(
        "      action: create\n      manifest: |\n        {apiVersion: v1, kind: ConfigMap, metadata: {name: m}, data: {a: 1}}\n",
    );
    assert!(twice.contains("data.a"), "{twice}");
    let itself = message("      {action: delete, flags: ['wf {{workflow.name}}']}\n");
    assert_eq!(itself, "a workflow cannot delete itself while it runs");
}

#[test]
fn aw19_a_strategic_patch_of_the_dialects_own_kinds_is_refused_with_a_hint() {
    let stage = Stage::new();
    let template = "{apiVersion: argoproj.io/v1alpha1, kind: WorkflowTemplate, metadata: {name: t}, spec: {templates: [{name: a, suspend: {}}]}}";
    let make = format!("    resource:\n      action: create\n      manifest: |\n        {template}\n");
    let patch = "    resource:\n      action: patch\n      manifest: |\n        {apiVersion: argoproj.io/v1alpha1, kind: WorkflowTemplate, metadata: {name: t, labels: {x: y}}}\n";
    let file = stage.file("w.yaml", resources(&[("make", &make), ("patch", patch)], "x"));
    let said = stage.octoflow(&["run", &file, "-o", "json"]);
    let object: Value = serde_json::from_str(&said.out).unwrap();
    let message = node(&object, "patch")["message"].as_str().unwrap();
    assert!(message.contains("not defined for a WorkflowTemplate; set mergeStrategy: merge"), "{message}");
}

#[test]
fn a_manifest_may_come_from_an_artifact_of_an_earlier_step() {
    let stage = Stage::new();
    let text = workflow(
        "name: w",
        "  - name: main
    steps:
    - - {name: write, template: write}
    - - name: make
        template: make
        arguments: {artifacts: [{name: text, from: '{{steps.write.outputs.artifacts.text}}'}]}
  - name: write
    script: {image: busybox, command: [sh], source: 'printf \"apiVersion: v1\\nkind: ConfigMap\\nmetadata: {generateName: m-}\\ndata: {a: found}\\n\" > /tmp/m.yaml'}
    outputs: {artifacts: [{name: text, path: /tmp/m.yaml}]}
  - name: make
    inputs: {artifacts: [{name: text, path: /tmp/in.yaml}]}
    resource: {action: create, manifestFrom: {artifact: {name: text}}}
    outputs: {parameters: [{name: a, valueFrom: {jsonPath: '{.data.a}'}}]}
",
    );
    let file = stage.file("w.yaml", text);
    let object = stage.json(&["run", &file, "-o", "json"]);
    assert_eq!(node(&object, "make")["outputs"]["parameters"][0]["value"], "found");
}

#[test]
fn a_data_template_lists_what_steps_left_and_transforms_the_list() {
    let stage = Stage::new();
    let text = workflow(
        "name: w",
        "  - name: main
    steps:
    - - {name: write, template: write, withItems: [a, b]}
    - - {name: list, template: list}
    - - name: tell
        template: tell
        arguments: {parameters: [{name: text, value: '{{item}}'}]}
        withParam: '{{steps.list.outputs.result}}'
  - name: write
    script: {image: busybox, command: [sh], source: 'echo x > /tmp/log.txt; echo y > /tmp/other.txt'}
    outputs: {artifacts: [{name: log, path: /tmp/log.txt, archive: {none: {}}}, {name: other, path: /tmp/other.txt, archive: {none: {}}}]}
  - name: list
    data:
      source: {artifactPaths: {name: all, s3: {key: 'w/'}}}
      transformation:
      - {expression: \"filter(data, {# endsWith 'log.txt'})\"}
      - {expression: \"map(data, {split(#, '/')[2]})\"}
  - name: tell
    inputs: {parameters: [{name: text}]}
    container: {image: busybox, command: [echo], args: ['{{inputs.parameters.text}}']}
",
    );
    let file = stage.file("w.yaml", text);
    let object = stage.json(&["run", &file, "-o", "json"]);
    assert_eq!(node(&object, "list")["outputs"]["result"], "[\"log.txt\",\"log.txt\"]");
    assert_eq!(node(&object, "list")["type"], "Pod");
}

#[test]
fn runs_that_make_runs_without_end_are_stopped_by_a_limit() {
    let stage = Stage::new();
    let endless = "apiVersion: argoproj.io/v1alpha1
kind: WorkflowTemplate
metadata: {name: endless}
spec:
  entrypoint: again
  templates:
  - name: again
    resource:
      action: create
      successCondition: status.phase == Succeeded
      manifest: |
        {apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {generateName: again-}, spec: {workflowTemplateRef: {name: endless}}}
---
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: first}
spec: {workflowTemplateRef: {name: endless}}
";
    let file = stage.file("endless.yaml", endless);
    let said = stage.octoflow(&["run", &file, "-o", "json"]);
    assert_eq!(said.code, 1, "{said}");
    // The innermost says why; everyone around it says that the one inside failed.
    assert!(said.out.contains("ended Failed, and the success condition does not hold"), "{said}");
    let listed = stage.good(&["list", "--no-headers"]).out;
    assert_eq!(listed.lines().count(), 21, "{listed}");
}
