//! Admission of references to templates of other objects: missing ones, wrong ones, and the copies that are stored.

use serde_json::{Value, json};

use super::{Objects, pairs, parsed};
use crate::dialects::argo::admit::{AdmittedWorkflow, admit, admit_template};
use octoflow_manifest::Problems;

fn library(kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn workflow(spec: Value) -> Value {
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"generateName": "w-"}, "spec": spec})
}

fn calling(reference: Value) -> Value {
    workflow(json!({"entrypoint": "main", "templates": [
        {"name": "main", "steps": [[{"name": "a", "templateRef": reference}]]}]}))
}

fn judged(manifest: &Value, templates: Vec<Value>) -> Result<AdmittedWorkflow, Problems> {
    admit(manifest, &Objects { templates, ..Objects::default() })
}

fn wrongs(manifest: &Value, templates: Vec<Value>) -> Vec<(String, String)> {
    pairs(&judged(manifest, templates).expect_err("the manifest is wrong"))
}

fn pair(code: &str, path: &str) -> (String, String) {
    (code.to_owned(), path.to_owned())
}

fn echo(inputs: Value) -> Value {
    json!({"name": "echo", "inputs": inputs, "container": {"image": "i", "command": ["true"]}})
}

const CALL: &str = "spec.templates[0].steps[0][0].templateRef";

#[test]
fn a_template_that_is_not_loaded_is_told_where_it_is_referred_to() {
    let manifest = calling(json!({"name": "lib", "template": "echo"}));
    assert_eq!(wrongs(&manifest, vec![]), [pair("OF1018", &format!("{CALL}.name"))]);
    // The cluster-scoped kind has names of its own.
    let cluster = library("ClusterWorkflowTemplate", "lib", json!({"templates": [echo(json!({}))]}));
    assert_eq!(wrongs(&manifest, vec![cluster.clone()]), [pair("OF1018", &format!("{CALL}.name"))]);
    let manifest = calling(json!({"name": "lib", "template": "echo", "clusterScope": true}));
    assert!(judged(&manifest, vec![cluster]).is_ok());
    let manifest = calling(json!({"name": "lib", "template": "ecko"}));
    let lib = library("WorkflowTemplate", "lib", json!({"templates": [echo(json!({}))]}));
    let problems = judged(&manifest, vec![lib]).unwrap_err();
    assert_eq!(pairs(&problems), [pair("OF1018", &format!("{CALL}.template"))]);
    assert_eq!(problems.0[0].help.as_deref(), Some("did you mean `echo`?"));
}

#[test]
fn everything_that_can_be_reached_is_taken_along_and_nothing_else() {
    let lib = library(
        "WorkflowTemplate",
        "lib",
        json!({"templates": [
        {"name": "outer", "dag": {"tasks": [
            {"name": "x", "template": "echo"},
            {"name": "y", "templateRef": {"name": "far", "template": "echo", "clusterScope": true}}]}},
        echo(json!({})), {"name": "unused", "suspend": {}}]}),
    );
    let far = library("ClusterWorkflowTemplate", "far", json!({"templates": [echo(json!({}))]}));
    let manifest = calling(json!({"name": "lib", "template": "outer"}));
    let admitted = judged(&manifest, vec![lib, far]).unwrap();
    let keys: Vec<&str> = admitted.stored().templates.keys().map(String::as_str).collect();
    assert_eq!(keys, ["cluster/far/echo", "namespaced/lib/echo", "namespaced/lib/outer"]);
}

#[test]
fn a_reference_with_variables_takes_all_it_may_mean() {
    let lib = |name: &str| {
        library("WorkflowTemplate", name, json!({"templates": [echo(json!({})), {"name": "wait", "suspend": {}}]}))
    };
    let mut manifest = calling(json!({"name": "{{item}}", "template": "echo"}));
    manifest["spec"]["templates"][0]["steps"][0][0]["withItems"] = json!(["a", "b"]);
    let admitted = judged(&manifest, vec![lib("a"), lib("b")]).unwrap();
    assert_eq!(admitted.stored().templates.len(), 4);
}

#[test]
fn a_referenced_template_must_get_its_inputs() {
    let lib = library("WorkflowTemplate", "lib", json!({"templates": [echo(json!({"parameters": [{"name": "m"}]}))]}));
    let mut manifest = calling(json!({"name": "lib", "template": "echo"}));
    assert_eq!(wrongs(&manifest, vec![lib.clone()]), [pair("OF1019", "spec.templates[0].steps[0][0]")]);
    manifest["spec"]["templates"][0]["steps"][0][0]["arguments"] = json!({"parameters": [{"name": "m", "value": "1"}]});
    assert!(judged(&manifest, vec![lib]).is_ok());
}

#[test]
fn variables_of_a_referenced_template_are_those_of_the_calling_workflow() {
    let lib = library(
        "WorkflowTemplate",
        "lib",
        json!({"arguments": {"parameters": [{"name": "p", "value": "1"}]},
        "templates": [{"name": "echo", "container": {"image": "i", "args": ["{{workflow.parameters.p}}"]}}]}),
    );
    let mut manifest = calling(json!({"name": "lib", "template": "echo"}));
    assert_eq!(wrongs(&manifest, vec![lib.clone()]), [pair("OF1029", CALL)]);
    manifest["spec"]["arguments"] = json!({"parameters": [{"name": "p", "value": "2"}]});
    assert!(judged(&manifest, vec![lib]).is_ok());
}

#[test]
fn recursion_through_references_that_nothing_can_end_is_refused() {
    let step =
        |name: &str| json!({"name": "t", "steps": [[{"name": "a", "templateRef": {"name": name, "template": "t"}}]]});
    let ping = library("WorkflowTemplate", "ping", json!({"templates": [step("pong")]}));
    let pong = library("WorkflowTemplate", "pong", json!({"templates": [step("ping")]}));
    let manifest = calling(json!({"name": "ping", "template": "t"}));
    assert_eq!(wrongs(&manifest, vec![ping, pong]), [pair("OF1042", CALL)]);
}

#[test]
fn a_workflow_takes_the_rest_of_its_specification_from_a_template() {
    let lib = library(
        "WorkflowTemplate",
        "lib",
        json!({"entrypoint": "echo",
        "arguments": {"parameters": [{"name": "m", "value": "1"}]}, "templates": [echo(json!({"parameters": [{"name": "m"}]}))]}),
    );
    let manifest = workflow(json!({"workflowTemplateRef": {"name": "lib"}}));
    let admitted = judged(&manifest, vec![lib.clone()]).unwrap();
    assert_eq!(admitted.workflow().spec.entrypoint.as_deref(), Some("echo"));
    assert_eq!(admitted.manifest()["metadata"]["labels"]["workflows.argoproj.io/workflow-template"], "lib");
    assert!(admitted.manifest()["spec"].get("templates").is_none(), "the manifest stays as it was given");
    let both = workflow(json!({"workflowTemplateRef": {"name": "lib"}, "templates": [echo(json!({}))]}));
    assert!(wrongs(&both, vec![lib]).contains(&pair("OF1034", "spec.templates")));
    assert_eq!(wrongs(&manifest, vec![]), [pair("OF1018", "spec.workflowTemplateRef.name")]);
}

#[test]
fn what_is_wrong_in_a_template_is_told_at_the_reference() {
    let lib = library(
        "WorkflowTemplate",
        "lib",
        json!({"entrypoint": "mian", "templates": [{"name": "main", "container": {"comand": []}}]}),
    );
    let manifest = workflow(json!({"workflowTemplateRef": {"name": "lib"}}));
    let found = wrongs(&manifest, vec![lib]);
    assert!(found.contains(&pair("OF1003", "spec.workflowTemplateRef")), "{found:?}");
    assert!(found.contains(&pair("OF1018", "spec.workflowTemplateRef")), "{found:?}");
    assert!(found.iter().all(|(_, path)| path == "spec.workflowTemplateRef"), "{found:?}");
}

#[test]
fn a_malformed_template_is_the_runs_error_and_not_the_manifests() {
    let lib = library("WorkflowTemplate", "lib", json!({"arguments": {"parameters": {"a": "b"}}}));
    for manifest in
        [workflow(json!({"workflowTemplateRef": {"name": "lib"}})), calling(json!({"name": "lib", "template": "t"}))]
    {
        let admitted = judged(&manifest, vec![lib.clone()]).unwrap();
        let flaw = admitted.stored().flaw.as_deref().unwrap();
        assert!(flaw.starts_with("WorkflowTemplate 'lib' is malformed at spec.arguments.parameters:"), "{flaw}");
        assert_eq!(admitted.warnings().len(), 1);
    }
    assert_eq!(pairs(&admit_template(&lib).0), [pair("OF1010", "spec.arguments.parameters")]);
    let nameless = library("WorkflowTemplate", "lib", json!({"templates": [{"container": {"image": "i"}}]}));
    let admitted = judged(&workflow(json!({"workflowTemplateRef": {"name": "lib"}})), vec![nameless]).unwrap();
    assert!(admitted.stored().flaw.as_deref().unwrap().contains("is malformed at spec.templates[0].name"));
}

#[test]
fn a_template_alone_is_judged_by_its_shape_and_its_names() {
    let nameless = library("WorkflowTemplate", "lib", json!({"templates": [{"container": {"image": "i"}}]}));
    assert_eq!(pairs(&admit_template(&nameless).0), [pair("OF1016", "spec.templates[0].name")]);
    let unnamed = library("ClusterWorkflowTemplate", "", json!({"templates": [echo(json!({}))]}));
    assert_eq!(pairs(&admit_template(&unnamed).0), [pair("OF1014", "metadata.name")]);
    let alone = judged(&library("WorkflowTemplate", "lib", json!({})), vec![]).unwrap_err();
    assert_eq!(pairs(&alone), [pair("OF1012", "kind")]);
}

#[test]
fn defaults_are_judged_as_part_of_the_templates_that_get_them() {
    let text = "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {generateName: w-}\nspec:\n  entrypoint: main\n  templateDefaults: {container: {image: i}}\n  templates:\n  - {name: main, container: {args: [x]}}\n  - {name: other, script: {source: x}}\n";
    let problems = judged(&parsed(text), vec![]).unwrap_err();
    assert_eq!(pairs(&problems), [pair("OF1016", "spec.templates[1].script")]);
}

#[test]
fn labels_of_the_workflow_metadata_are_known_and_their_expressions_are_read() {
    let manifest = workflow(json!({"entrypoint": "main", "arguments": {"parameters": [{"name": "p", "value": "1"}]},
        "workflowMetadata": {"labels": {"a": "1"}, "labelsFrom": {"b": {"expression": "workflow.parameters.q"}}},
        "templates": [{"name": "main", "container": {"image": "i", "args": ["{{workflow.labels.a}} {{workflow.labels.b}}"]}}]}));
    assert_eq!(wrongs(&manifest, vec![]), [pair("OF1029", "spec.workflowMetadata.labelsFrom.b.expression")]);
}
