//! What is put on a finished workflow: hooks, memory, daemons and locks. Drawn from a stream of its own, so that the workflow
//! below stays what its seed made of it.

use serde_json::{Value, json};

use super::Taste;
use crate::sim::draw::Draw;

pub(super) fn dress(draw: &mut Draw, taste: Taste, spec: &mut Value) {
    daemons(draw, taste, spec);
    if draw.chance(10) {
        spec["synchronization"] = json!({"mutexes": [{"name": "whole"}]});
    }
    let leaves = tasks(spec);
    if leaves.is_empty() {
        return;
    }
    for (name, status) in [("begun", "Running"), ("good", "Succeeded"), ("bad", "Failed")] {
        if draw.chance(10) {
            let template = draw.pick(&leaves).clone();
            spec["hooks"][name] =
                json!({"template": template, "expression": format!("workflow.status == \"{status}\"")});
        }
    }
    let Some(templates) = spec["templates"].as_array_mut() else { return };
    for template in templates {
        // Only tasks that end hold locks: whoever holds one while it waits for another may wait for ever.
        let ends = template.get("steps").or(template.get("dag")).is_none() && template["daemon"] != true;
        if ends && draw.chance(15) {
            let lock = draw.below(2);
            template["synchronization"] = match draw.below(3) {
                0 => json!({"semaphores": [{"database": {"key": format!("s{lock}")}}]}),
                1 => json!({"mutexes": [{"name": "m0"}, {"name": "m1"}]}),
                _ => json!({"mutexes": [{"name": format!("m{lock}")}]}),
            };
        }
        if taste.timed && !ends && template["daemon"] != true && draw.chance(10) {
            let most = format!("{}s", draw.between(1, 10));
            template["retryStrategy"] = json!({"limit": draw.between(0, 2), "backoff": {"maxDuration": most}});
        }
        // Which of two calls is first, and finds nothing, depends on time.
        if taste.timed && draw.chance(12) {
            let (key, cache) = (format!("key-{}", draw.below(3)), format!("cache-{}", draw.below(2)));
            template["memoize"] = json!({"key": key, "cache": {"configMap": {"name": cache}}});
            if draw.chance(30) {
                template["memoize"]["maxAge"] = json!(format!("{}s", draw.between(1, 20)));
            }
        }
        for (root, call) in calls(template) {
            if draw.chance(15) {
                hooks(draw, root, call, &leaves);
            }
        }
    }
}

/// Some tasks that only steps and tasks call stay up beside others.
fn daemons(draw: &mut Draw, taste: Taste, spec: &mut Value) {
    let mut followers = Vec::new();
    collect(spec, &mut followers);
    for template in spec["templates"].as_array_mut().into_iter().flatten() {
        let body = if template.get("container").is_some() { "container" } else { "script" };
        let follows = followers.iter().any(|name| template["name"] == **name);
        if template.get(body).is_none() || follows || !draw.chance(12) {
            continue;
        }
        template["daemon"] = json!(true);
        // When something is ended that never ends by itself does not matter.
        template[body]["args"] = json!(["endless", "in={{inputs.parameters.in}}"]);
        if taste.timed && draw.chance(40) {
            template[body]["args"] = json!(["fail=30"]);
        }
    }
}

/// The names of templates that begin a run or follow something.
fn collect(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                match (key.as_str(), field) {
                    ("entrypoint" | "onExit", Value::String(name)) => names.push(name.clone()),
                    ("hooks", _) => {
                        let hooks = field.as_object().into_iter().flat_map(|hooks| hooks.values());
                        names.extend(hooks.filter_map(|hook| hook["template"].as_str().map(str::to_owned)));
                    }
                    _ => collect(field, names),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, names)),
        _ => {}
    }
}

/// Templates that run something to its end and need nothing.
fn tasks(spec: &Value) -> Vec<String> {
    let templates = spec["templates"].as_array().map(Vec::as_slice).unwrap_or_default();
    let leaf = |template: &&Value| template.get("container").is_some() || template.get("script").is_some();
    templates
        .iter()
        .filter(leaf)
        .filter(|template| template["daemon"] != true)
        .filter_map(|template| template["name"].as_str().map(str::to_owned))
        .collect()
}

fn calls(template: &mut Value) -> Vec<(&'static str, &mut Value)> {
    let fields = template.as_object_mut().expect("a template is a mapping");
    let mut found = Vec::new();
    for (field, value) in fields {
        match field.as_str() {
            "steps" => {
                let groups = value.as_array_mut().into_iter().flatten();
                found.extend(groups.filter_map(Value::as_array_mut).flatten().map(|call| ("steps", call)));
            }
            "dag" => found.extend(value["tasks"].as_array_mut().into_iter().flatten().map(|call| ("tasks", call))),
            _ => {}
        }
    }
    found
}

fn hooks(draw: &mut Draw, root: &str, call: &mut Value, leaves: &[String]) {
    let name = call["name"].as_str().unwrap_or_default().to_owned();
    for (hook, condition) in [
        ("running", format!("{root}['{name}'].status == \"Running\"")),
        ("over", format!("{root}['{name}'].status != \"Running\"")),
        ("bad", format!("{root}['{name}'].status in [\"Failed\", \"Error\"]")),
        ("odd", format!("{root}['{name}'].outputs.result == \"heads\"")),
    ] {
        // Only a task has a result.
        let sensible = hook != "odd" || call["template"].as_str().is_some_and(|name| name.starts_with("task"));
        if draw.chance(35) && sensible {
            call["hooks"][hook] = json!({"template": draw.pick(leaves), "expression": condition});
        }
    }
}
