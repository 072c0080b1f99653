//! Merges specs: a Workflow over its WorkflowTemplate, a template over the defaults.
//! Lists of named items are merged by name, other lists are replaced whole. Nothing is checked here.

use std::borrow::Cow;

use octoflow_model::submission::Stored;
use serde_json::{Map, Value};

use super::fields::TYPE_NAMES;

/// Returns the manifest as it runs: with the spec that was merged at its submission, if any.
pub fn effective<'m>(manifest: &'m Value, stored: &Stored) -> Cow<'m, Value> {
    let Some(spec) = &stored.spec else { return Cow::Borrowed(manifest) };
    let mut fields: Map<String, Value> =
        manifest.as_object().into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())).collect();
    fields.insert("spec".to_owned(), spec.clone());
    Cow::Owned(Value::Object(fields))
}

/// Merges a Workflow's spec over that of its WorkflowTemplate. An argument named by both is taken whole from the
/// Workflow, so that a value and a source are never mixed; of the hooks only missing ones are added.
pub fn specs(own: &Value, template: &Value) -> Value {
    let mut merged = strategic(template, own, "");
    let (Some(fields), Some(own), Some(template)) = (merged.as_object_mut(), own.as_object(), template.as_object())
    else {
        return merged;
    };
    if let (Some(own), Some(below)) = (own.get("arguments"), template.get("arguments")) {
        let mut arguments = Map::new();
        for list in ["parameters", "artifacts"] {
            if let Some(list_of) = joined(own.get(list), below.get(list)) {
                arguments.insert(list.to_owned(), list_of);
            }
        }
        fields.insert("arguments".to_owned(), Value::Object(arguments));
    }
    if let (Some(Value::Object(own)), Some(Value::Object(below))) = (own.get("hooks"), template.get("hooks")) {
        let mut hooks = below.clone();
        hooks.extend(own.clone());
        fields.insert("hooks".to_owned(), Value::Object(hooks));
    }
    merged
}

/// Joins two lists of named items; the first list wins.
fn joined(own: Option<&Value>, below: Option<&Value>) -> Option<Value> {
    let own_items = own.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let more = below.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let named = |name: Option<&Value>| own_items.iter().any(|item| item.get("name") == name);
    let more = more.iter().filter(|item| !named(item.get("name")));
    (own.is_some() || below.is_some()).then(|| own_items.iter().chain(more).cloned().collect())
}

/// Merges a template, and the inline ones in its calls, over the defaults of its workflow. Defaults of a type apply to
/// templates of that type; limits that a type cannot have are left out for it.
pub fn with_defaults(template: &Value, defaults: &Value) -> Value {
    let (Some(own), Some(defaults_of)) = (template.as_object(), defaults.as_object()) else { return template.clone() };
    let fitting = defaults_of.iter().filter(|(field, _)| fits(own, field));
    let base: Map<String, Value> = fitting.map(|(key, value)| (key.clone(), value.clone())).collect();
    let mut merged = strategic(&Value::Object(base), template, "");
    each_call_mut(&mut merged, |call| {
        if let Some(inline) = call.get_mut("inline") {
            *inline = with_defaults(inline, defaults);
        }
    });
    merged
}

fn fits(template: &Map<String, Value>, field: &str) -> bool {
    let is = |kind: &str| template.contains_key(kind);
    match field {
        "name" => false,
        "timeout" => !is("steps") && !is("dag") && !is("suspend"),
        "activeDeadlineSeconds" => !is("steps") && !is("dag"),
        "parallelism" | "failFast" => is("steps") || is("dag"),
        kind if TYPE_NAMES.contains(&kind) => is(kind),
        _ => true,
    }
}

fn each_call_mut(template: &mut Value, mut visit: impl FnMut(&mut Value)) {
    if let Some(groups) = template.get_mut("steps").and_then(Value::as_array_mut) {
        groups.iter_mut().filter_map(Value::as_array_mut).flatten().for_each(&mut visit);
    }
    if let Some(tasks) = template.pointer_mut("/dag/tasks").and_then(Value::as_array_mut) {
        tasks.iter_mut().for_each(visit);
    }
}

/// Merges `over` on top of `base`. `field` is the field they belong to, which decides how lists are merged.
fn strategic(base: &Value, over: &Value, field: &str) -> Value {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            let mut merged = base.clone();
            for (key, value) in over {
                let value = match base.get(key) {
                    Some(below) => strategic(below, value, key),
                    None => value.clone(),
                };
                merged.insert(key.clone(), value);
            }
            Value::Object(merged)
        }
        (Value::Array(base), Value::Array(over)) => match key_of(field) {
            Some(key) => by_key(base, over, key),
            None => Value::Array(over.clone()),
        },
        _ => over.clone(),
    }
}

fn by_key(base: &[Value], over: &[Value], key: &str) -> Value {
    let mut merged = base.to_vec();
    for item in over {
        let name = item.pointer(key);
        match merged.iter_mut().find(|below| name.is_some() && below.pointer(key) == name) {
            Some(below) => *below = strategic(below, item, ""),
            None => merged.push(item.clone()),
        }
    }
    Value::Array(merged)
}

/// Returns the merge key of a list's items; `None` for lists that are replaced whole.
fn key_of(field: &str) -> Option<&'static str> {
    match field {
        "parameters" | "artifacts" | "volumes" | "env" | "sidecars" | "initContainers" | "containers"
        | "imagePullSecrets" => Some("/name"),
        "volumeMounts" => Some("/mountPath"),
        "volumeDevices" => Some("/devicePath"),
        "ports" => Some("/containerPort"),
        "hostAliases" => Some("/ip"),
        "volumeClaimTemplates" => Some("/metadata/name"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_workflow_says_more_than_its_template_and_keeps_what_the_template_alone_says() {
        let own = json!({"entrypoint": "b", "volumes": [{"name": "v", "emptyDir": {}}], "podMetadata": {"labels": {"x": "1"}}});
        let template = json!({"entrypoint": "a", "onExit": "bye", "templates": [{"name": "a"}],
            "volumes": [{"name": "u", "emptyDir": {}}], "podMetadata": {"labels": {"x": "0", "y": "2"}}});
        assert_eq!(
            specs(&own, &template),
            json!({"entrypoint": "b", "onExit": "bye", "templates": [{"name": "a"}],
                "volumes": [{"name": "u", "emptyDir": {}}, {"name": "v", "emptyDir": {}}],
                "podMetadata": {"labels": {"x": "1", "y": "2"}}})
        );
    }

    #[test]
    fn an_argument_named_by_both_is_the_workflows_whole() {
        let own = json!({"arguments": {"parameters": [{"name": "a", "value": "1"}]}});
        let template = json!({"arguments": {
            "parameters": [{"name": "a", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}}, {"name": "b", "value": "2"}],
            "artifacts": [{"name": "f", "raw": {"data": "x"}}]}});
        assert_eq!(
            specs(&own, &template)["arguments"],
            json!({"parameters": [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}],
                "artifacts": [{"name": "f", "raw": {"data": "x"}}]})
        );
    }

    #[test]
    fn only_missing_hooks_are_added() {
        let own = json!({"hooks": {"exit": {"template": "mine"}}});
        let template =
            json!({"hooks": {"exit": {"template": "theirs", "expression": "true"}, "more": {"template": "t"}}});
        assert_eq!(specs(&own, &template)["hooks"], json!({"exit": {"template": "mine"}, "more": {"template": "t"}}));
    }

    #[test]
    fn defaults_of_a_type_are_for_that_type_and_inline_templates_get_them_too() {
        let defaults = json!({"container": {"image": "i", "command": ["a", "b"], "env": [{"name": "X", "value": "1"}]},
            "script": {"image": "s"}, "retryStrategy": {"limit": 2}, "timeout": "5s", "parallelism": 3});
        let template = json!({"name": "t", "steps": [[{"name": "x", "inline":
            {"container": {"command": ["c"], "env": [{"name": "X", "value": "2"}, {"name": "Y", "value": "3"}]}}}]]});
        assert_eq!(
            with_defaults(&template, &defaults),
            json!({"name": "t", "retryStrategy": {"limit": 2}, "parallelism": 3, "steps": [[{"name": "x", "inline":
                {"container": {"image": "i", "command": ["c"], "env": [{"name": "X", "value": "2"}, {"name": "Y", "value": "3"}]},
                 "retryStrategy": {"limit": 2}, "timeout": "5s"}}]]})
        );
    }
}
