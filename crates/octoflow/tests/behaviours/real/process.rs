//! Manifests run for real by `octoflow run`: what their final object holds.

use octoflow_manifest::Path;
use serde_json::{Value, json};

use super::{command::words, stage::Stage};
use crate::scenario::{Misses, Scenario, differences};

/// `workflow` or `manifests`, run with more `arguments` if there are any; then `expect` is compared with the final
/// object: `phase`, `message`, `progress`, `nodes` by display or full name, `absent` nodes, nodes that start `together`,
/// and `object` for anything else. `exit`, `stdout` and `stderr` are those of the command.
pub(crate) fn process(scenario: &Scenario) -> Misses {
    let (value, root) = (scenario.value(), Path::root());
    scenario.knows(&root, &["covers", "name", "workflow", "manifests", "arguments", "expect"]);
    let place = root.join("expect");
    let known = ["exit", "stdout", "stderr", "object", "phase", "message", "progress", "nodes", "absent", "together"];
    scenario.knows(&place, &known);
    let stage = Stage::new();
    let mut manifests = value["manifests"].as_array().cloned().unwrap_or_default();
    if let Some(workflow) = value.get("workflow") {
        manifests.push(completed(workflow.clone()));
    }
    stage.file("w.yaml", &Value::Array(manifests));
    let fixed = ["run", "-o", "json", "--quiet", "--timeout", "60s", "w.yaml"].map(str::to_owned);
    let said = stage.octoflow(&fixed.into_iter().chain(words(&value["arguments"])).collect::<Vec<_>>(), "");
    let expect = &value["expect"];
    let mut found = Misses::new();
    said.compare(expect, &place, &mut found);
    let status = &said.object()["status"];
    for key in ["phase", "message", "progress"] {
        if let Some(expected) = expect.get(key) {
            differences(expected, &status[key], &place.join(key), &mut found);
        }
    }
    let nodes = || status["nodes"].as_object().into_iter().flatten().map(|(_, node)| node);
    let find = |name: &str| nodes().find(|node| node["displayName"] == name || node["name"] == name);
    for (name, expected) in expect["nodes"].as_object().into_iter().flatten() {
        let place = place.join("nodes").join(name.as_str());
        let expected = if expected.is_string() { json!({"phase": expected}) } else { expected.clone() };
        match find(name) {
            Some(node) => differences(&expected, node, &place, &mut found),
            None => found.push((place, "there is no such node".to_owned())),
        }
    }
    for (at, name) in expect["absent"].as_array().into_iter().flatten().enumerate() {
        if let Some(node) = find(name.as_str().unwrap()) {
            found.push((place.join("absent").join(at), format!("there is one: {node}")));
        }
    }
    let starts = expect["together"].as_array().into_iter().flatten();
    let starts: Vec<&Value> = starts.map(|name| &find(name.as_str().unwrap()).unwrap()["startedAt"]).collect();
    if starts.windows(2).any(|pair| pair[0].is_null() || pair[0] != pair[1]) {
        found.push((place.join("together"), format!("they start at {starts:?}")));
    }
    if let Some((_, text)) = found.first_mut() {
        text.push_str(&format!("\nstandard error was:\n{}", said.err));
    }
    found
}

fn completed(mut workflow: Value) -> Value {
    let fields = workflow.as_object_mut().unwrap();
    fields.entry("apiVersion").or_insert_with(|| json!("argoproj.io/v1alpha1"));
    fields.entry("kind").or_insert_with(|| json!("Workflow"));
    fields.entry("metadata").or_insert_with(|| json!({"name": "w"}));
    workflow
}
