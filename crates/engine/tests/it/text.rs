//! Manifests from short texts.

use octoflow_manifest::{Limits, read};
use serde_json::{Value, json};

/// Templates most scenarios need, added unless the spec has its own of that name.
const USUAL: &str = "
- {name: ok, container: {image: i, command: [c]}}
- {name: fail, container: {image: i, command: [c]}}
- name: echo
  inputs: {parameters: [{name: m}]}
  container: {image: i, command: [echo], args: ['{{inputs.parameters.m}}']}
- name: make
  inputs: {parameters: [{name: m, default: made}]}
  container: {image: i, command: [make], args: ['{{inputs.parameters.m}}']}
  outputs: {parameters: [{name: p, valueFrom: {path: /tmp/p}}]}
- {name: say, script: {image: i, command: [sh], source: 'say'}}
- {name: wait, suspend: {}}
";

pub(crate) fn yaml(text: &str) -> Vec<Value> {
    let documents =
        read("test", text.as_bytes(), &Limits::default()).unwrap_or_else(|problems| panic!("{problems:?}\n{text}"));
    documents.into_iter().map(|document| document.value).collect()
}

pub(crate) fn manifest(spec: &str) -> Value {
    complete(yaml(spec).remove(0))
}

/// A spec becomes a workflow named `w`.
pub(crate) fn complete(mut spec: Value) -> Value {
    let mut templates = spec["templates"].as_array().cloned().unwrap_or_default();
    let usual = yaml(USUAL).remove(0);
    for template in usual.as_array().expect("a list of templates") {
        if !templates.iter().any(|own| own["name"] == template["name"]) {
            templates.push(template.clone());
        }
    }
    spec["templates"] = Value::Array(templates);
    let metadata = spec.as_object_mut().and_then(|spec| spec.remove("metadata")).unwrap_or_else(|| json!({}));
    if spec["entrypoint"].is_null() {
        spec["entrypoint"] = json!("main");
    }
    let mut manifest =
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": metadata, "spec": spec});
    manifest["metadata"]["name"] = json!("w");
    manifest
}
