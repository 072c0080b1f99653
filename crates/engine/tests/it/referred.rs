//! I and J: templates by reference, defaults, and the metadata of workflows.

use serde_json::{Value, json};

use crate::{answer::Script, done::Done, play::Play, text::manifest};

fn library(kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn workflow(spec: Value) -> Value {
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "w"}, "spec": spec})
}

fn played(templates: Vec<Value>, manifest: Value) -> Done {
    Play::beside(templates, manifest, Script::default()).finish()
}

fn submittable() -> Value {
    library(
        "WorkflowTemplate",
        "lib",
        json!({"entrypoint": "echo", "onExit": "bye",
            "arguments": {"parameters": [{"name": "m", "value": "theirs"}, {"name": "n", "value": "kept"}]},
            "templates": [
                {"name": "echo", "inputs": {"parameters": [{"name": "m"}]},
                 "container": {"image": "i", "command": ["echo"],
                    "args": ["{{inputs.parameters.m}} {{workflow.parameters.n}}"]}},
                {"name": "bye", "container": {"image": "i", "command": ["echo"], "args": ["bye"]}}]}),
    )
}

#[test]
fn j01_j02_f15_a_workflow_runs_what_its_template_says_with_its_own_arguments() {
    let own = workflow(json!({"workflowTemplateRef": {"name": "lib"},
        "arguments": {"parameters": [{"name": "m", "value": "mine"}]}}));
    let done = played(vec![submittable()], own);
    assert_eq!(done.phase(), "Succeeded");
    assert_eq!(done.tasks["w"].main.args, ["mine kept"]);
    assert_eq!(done.node_phase("w.onExit"), "Succeeded");
    assert_eq!(done.object["metadata"]["labels"]["workflows.argoproj.io/workflow-template"], "lib");
    let spec = &done.status()["storedWorkflowTemplateSpec"];
    assert_eq!((&spec["entrypoint"], &spec["workflowTemplateRef"]["name"]), (&json!("echo"), &json!("lib")));
    assert!(done.object["spec"].get("templates").is_none());
}

#[test]
fn nodes_of_referenced_templates_say_so_and_names_in_them_mean_their_neighbours() {
    let lib = library(
        "WorkflowTemplate",
        "lib",
        json!({"templates": [
            {"name": "outer", "steps": [
                [{"name": "near", "template": "ok"}],
                [{"name": "far", "templateRef": {"name": "far", "template": "ok", "clusterScope": true}, "onExit": "bye"}]]},
            {"name": "ok", "container": {"image": "i", "command": ["near"]}},
            {"name": "bye", "container": {"image": "i", "command": ["bye"]}}]}),
    );
    let far = library(
        "ClusterWorkflowTemplate",
        "far",
        json!({"templates": [{"name": "ok", "container": {"image": "i", "command": ["far"]}}]}),
    );
    let own =
        manifest("templates: [{name: main, dag: {tasks: [{name: A, templateRef: {name: lib, template: outer}}]}}]");
    let done = played(vec![lib, far], own);
    assert_eq!(done.phase(), "Succeeded");
    let a = done.node("w.A");
    assert_eq!(a["templateRef"], json!({"name": "lib", "template": "outer"}));
    assert_eq!((a.get("templateName"), &a["templateScope"]), (None, &json!("local/w")));
    let near = done.node("w.A[0].near");
    assert_eq!((&near["templateName"], &near["templateScope"]), (&json!("ok"), &json!("namespaced/lib")));
    assert_eq!(done.tasks["w.A[0].near"].main.command, ["near"]);
    let far = done.node("w.A[1].far");
    assert_eq!(far["templateRef"], json!({"name": "far", "template": "ok", "clusterScope": true}));
    assert_eq!(far["templateScope"], "namespaced/lib");
    assert_eq!(done.tasks["w.A[1].far"].main.command, ["far"]);
    let bye = done.node("w.A[1].far.onExit");
    assert_eq!((&bye["templateName"], &bye["phase"]), (&json!("bye"), &json!("Succeeded")));
    let stored: Vec<&String> = done.status()["storedTemplates"].as_object().unwrap().keys().collect();
    assert_eq!(stored, ["cluster/far/ok", "namespaced/lib/bye", "namespaced/lib/ok", "namespaced/lib/outer"]);
}

#[test]
fn an_item_may_choose_the_template_of_a_reference() {
    let lib = |name: &str| {
        library(
            "WorkflowTemplate",
            name,
            json!({"templates": [{"name": "t", "container": {"image": "i", "command": [name]}}]}),
        )
    };
    let own = manifest(
        "templates: [{name: main, steps: [[{name: s, withItems: [a, b, none], templateRef: {name: '{{item}}', template: t}}]]}]",
    );
    let done = played(vec![lib("a"), lib("b")], own);
    assert_eq!(done.tasks["w[0].s(0:a)"].main.command, ["a"]);
    assert_eq!(done.tasks["w[0].s(1:b)"].main.command, ["b"]);
    assert_eq!(done.node("w[0].s(1:b)")["templateRef"]["name"], "b");
    assert_eq!(done.node_phase("w[0].s(2:none)"), "Error");
    assert_eq!(done.node("w[0].s(2:none)")["message"], "template name 't' undefined in WorkflowTemplate 'none'");
}

#[test]
fn hooks_may_refer_to_templates_elsewhere() {
    let lib = library(
        "WorkflowTemplate",
        "lib",
        json!({"templates": [{"name": "bye", "container": {"image": "i", "command": ["bye"]}}]}),
    );
    let own = manifest(
        "
hooks: {exit: {templateRef: {name: lib, template: bye}}, begun: {expression: workflow.status == 'Running', templateRef: {name: lib, template: bye}}}
templates:
- name: main
  steps: [[{name: a, template: ok, hooks: {exit: {templateRef: {name: lib, template: bye}}, over: {expression: steps.a.status == 'Succeeded', templateRef: {name: lib, template: bye}}}}]]",
    );
    let done = played(vec![lib], own);
    for node in ["w.onExit", "w[0].a.onExit", "w.hooks.begun", "w[0].a.hooks.over"] {
        assert_eq!(done.node(node)["templateRef"]["template"], "bye");
        assert_eq!(done.tasks[node].main.command, ["bye"]);
    }
}

#[test]
fn j04_a_malformed_template_ends_the_run_in_error_and_is_named() {
    let lib = library("WorkflowTemplate", "lib", json!({"arguments": {"parameters": {"a": "b"}}}));
    let done = played(vec![lib], workflow(json!({"workflowTemplateRef": {"name": "lib"}})));
    assert_eq!((done.phase(), done.count()), ("Error", 0));
    assert!(done.message().starts_with("WorkflowTemplate 'lib' is malformed"), "{}", done.message());
}

#[test]
fn i17_templates_get_the_defaults_of_their_type_also_from_elsewhere() {
    let lib = library("WorkflowTemplate", "lib", json!({"templates": [{"name": "t", "container": {"args": ["x"]}}]}));
    let own = workflow(json!({"entrypoint": "main",
        "templateDefaults": {"container": {"image": "i", "command": ["sh", "-c"], "workingDir": "/src"},
            "script": {"image": "j", "command": ["bash"]}},
        "templates": [
            {"name": "main", "steps": [[
                {"name": "a", "template": "own"}, {"name": "b", "templateRef": {"name": "lib", "template": "t"}},
                {"name": "c", "inline": {"script": {"source": "pwd"}}}]]},
            {"name": "own", "container": {"command": ["mine"]}}]}));
    let done = played(vec![lib], own);
    assert_eq!(done.phase(), "Succeeded");
    let container = |node: &str| &done.tasks[node].main;
    assert_eq!((&*container("w[0].a").image, &container("w[0].a").command), ("i", &vec!["mine".to_owned()]));
    assert_eq!(container("w[0].b").command, ["sh", "-c"]);
    assert_eq!(container("w[0].b").working_dir.as_deref(), Some("/src"));
    assert_eq!((&*container("w[0].c").image, container("w[0].c").working_dir.as_deref()), ("j", None));
}

#[test]
fn i08_labels_come_from_expressions_once_the_run_begins() {
    let own = manifest(
        "
arguments: {parameters: [{name: foo, value: bar}]}
workflowMetadata:
  labels: {plain: yes}
  annotations: {note: some text}
  labelsFrom: {foo: {expression: workflow.parameters.foo}}
templates: [{name: main, container: {image: i, command: [c], args: ['{{workflow.labels.foo}} {{workflow.annotations.note}}']}}]"
            .replace("plain: yes", "plain: 'yes'")
            .as_str(),
    );
    let done = played(vec![], own);
    let labels = &done.object["metadata"]["labels"];
    assert_eq!((&labels["foo"], &labels["plain"]), (&json!("bar"), &json!("yes")));
    assert_eq!(done.object["metadata"]["annotations"]["note"], "some text");
    assert_eq!(done.tasks["w"].main.args, ["bar some text"]);
}

#[test]
fn a_label_that_cannot_be_ends_the_run_in_error() {
    for (value, said) in [("a b", "label 'l' cannot be 'a b'"), ("", "")] {
        let own = workflow(json!({"entrypoint": "main", "arguments": {"parameters": [{"name": "p", "value": value}]},
            "workflowMetadata": {"labelsFrom": {"l": {"expression": "workflow.parameters.p"}}},
            "templates": [{"name": "main", "container": {"image": "i", "command": ["c"]}}]}));
        let done = played(vec![], own);
        let expected = if said.is_empty() { "Succeeded" } else { "Error" };
        assert_eq!(done.phase(), expected);
        assert!(done.message().starts_with(said), "{}", done.message());
    }
}

#[test]
fn hooks_of_a_workflow_template_run_beside_those_of_the_workflow() {
    let hook = |template: &str| json!({"template": template, "expression": "workflow.status == 'Running'"});
    let template = library(
        "WorkflowTemplate",
        "lib",
        json!({
            "entrypoint": "main",
            "hooks": {"both": hook("theirs"), "more": hook("theirs")},
            "templates": [
                {"name": "main", "container": {"image": "i", "command": ["main"]}},
                {"name": "theirs", "container": {"image": "i", "command": ["theirs"]}},
                {"name": "mine", "container": {"image": "i", "command": ["mine"]}},
            ],
        }),
    );
    let own = json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": "w"},
        "spec": {"workflowTemplateRef": {"name": "lib"}, "hooks": {"both": hook("mine")}},
    });
    let done = played(vec![template], own);
    assert_eq!(done.tasks["w.hooks.both"].main.command, ["mine"]);
    assert_eq!(done.tasks["w.hooks.more"].main.command, ["theirs"]);
}
