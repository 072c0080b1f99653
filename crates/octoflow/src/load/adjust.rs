//! Overrides from the command line: arguments, entrypoint, name, namespace. It validates nothing; an invalid manifest
//! is left for admission to report.

use anyhow::Result;
use octoflow_engine::dialect;
use octoflow_model::meta::DEFAULT_NAMESPACE;
use serde_json::{Map, Value, json};

use crate::{load::names, source::workflow::text};

#[derive(Clone, Debug, Default)]
pub(crate) struct Overrides {
    /// Later ones win.
    pub parameters: Vec<(String, String)>,
    pub entrypoint: Option<String>,
    pub name: Option<String>,
    pub generate_name: Option<String>,
    pub namespace: Option<String>,
    pub labels: Vec<(String, String)>,
}

/// Applies the overrides; returns warnings.
pub(crate) fn adjust(workflow: &mut Value, overrides: &Overrides) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(metadata) = object_at(workflow, "metadata") {
        if let Some(name) = &overrides.name {
            metadata.insert("name".to_owned(), json!(name));
        }
        if let Some(prefix) = &overrides.generate_name {
            metadata.remove("name");
            metadata.insert("generateName".to_owned(), json!(prefix));
        }
        if let Some(namespace) = &overrides.namespace {
            metadata.insert("namespace".to_owned(), json!(namespace));
        }
    }
    if !overrides.labels.is_empty()
        && let Some(metadata) = object_at(workflow, "metadata")
        && let Value::Object(labels) = filled(metadata.entry("labels").or_insert(Value::Null), || json!({}))
    {
        labels.extend(overrides.labels.iter().map(|(name, value)| (name.clone(), json!(value))));
    }
    if dialect::of(workflow).is_ok_and(|dialect| !dialect.takes_arguments) {
        // Parameters and the entrypoint are meant for the runs beside it.
        return warnings;
    }
    let Some(spec) = object_at(workflow, "spec") else { return warnings };
    if let Some(entrypoint) = &overrides.entrypoint {
        spec.insert("entrypoint".to_owned(), json!(entrypoint));
    }
    let referred = spec.get("workflowTemplateRef").is_some_and(|reference| !reference.is_null());
    if !overrides.parameters.is_empty() {
        let arguments = filled(spec.entry("arguments").or_insert(Value::Null), || json!({}));
        if let Some(Value::Array(list)) = entry_of(arguments, "parameters", || json!([])) {
            for (name, value) in &overrides.parameters {
                warnings.extend(set(list, name, value));
            }
            if referred {
                // Its parameters are declared in the template.
                warnings.clear();
            }
        }
    }
    warnings
}

/// Returns the name of the run, generated if the manifest has only a prefix. `None` if it has neither.
pub(crate) fn name(workflow: &Value) -> Result<Option<String>> {
    let metadata = &workflow["metadata"];
    match (text(metadata, "name"), text(metadata, "generateName")) {
        ("", "") => Ok(None),
        ("", prefix) => names::generate(prefix).map(Some),
        (name, _) => Ok(Some(name.to_owned())),
    }
}

/// Sets the namespace of an object other than a run.
pub(crate) fn adjust_namespace(object: &mut Value, namespace: Option<&str>) {
    if let (Some(namespace), Some(metadata)) = (namespace, object_at(object, "metadata")) {
        metadata.insert("namespace".to_owned(), json!(namespace));
    }
}

pub(crate) fn namespace(workflow: &Value) -> &str {
    match text(&workflow["metadata"], "namespace") {
        "" => DEFAULT_NAMESPACE,
        namespace => namespace,
    }
}

/// Sets a parameter, whatever its value was; an unknown one is added with a warning, because it may be misspelled.
fn set(list: &mut Vec<Value>, name: &str, value: &str) -> Option<String> {
    if let Some(parameter) =
        list.iter_mut().find(|parameter| text(parameter, "name") == name).and_then(Value::as_object_mut)
    {
        parameter.remove("valueFrom");
        parameter.insert("value".to_owned(), json!(value));
        return None;
    }
    let meant = names::suggestion(name, list.iter().map(|parameter| text(parameter, "name")));
    list.push(json!({"name": name, "value": value}));
    let hint = meant.map_or(String::new(), |meant| format!("; {meant}"));
    Some(format!("the workflow has no parameter `{name}`, it is added{hint}"))
}

fn object_at<'a>(value: &'a mut Value, key: &str) -> Option<&'a mut Map<String, Value>> {
    entry_of(value, key, || json!({}))?.as_object_mut()
}

fn entry_of<'a>(value: &'a mut Value, key: &str, empty: impl FnOnce() -> Value) -> Option<&'a mut Value> {
    Some(filled(value.as_object_mut()?.entry(key).or_insert(Value::Null), empty))
}

/// Null counts as absent.
fn filled(value: &mut Value, empty: impl FnOnce() -> Value) -> &mut Value {
    if value.is_null() {
        *value = empty();
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overrides(parameters: &[(&str, &str)]) -> Overrides {
        let parameters = parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Overrides { parameters, ..Overrides::default() }
    }

    #[test]
    fn parameters_are_replaced_by_name_and_keep_their_place() {
        let mut workflow = json!({"spec": {"arguments": {"parameters": [
            {"name": "a", "value": "1"}, {"name": "b", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}, "enum": ["2"]}]}}});
        assert!(adjust(&mut workflow, &overrides(&[("b", "x"), ("b", "2")])).is_empty());
        assert_eq!(
            workflow["spec"]["arguments"]["parameters"],
            json!([{"name": "a", "value": "1"}, {"name": "b", "enum": ["2"], "value": "2"}])
        );
    }

    #[test]
    fn an_unknown_parameter_is_added_with_a_warning() {
        let mut workflow = json!({"spec": {"arguments": {"parameters": [{"name": "message"}]}}});
        let warnings = adjust(&mut workflow, &overrides(&[("mesage", "x")]));
        assert_eq!(warnings, ["the workflow has no parameter `mesage`, it is added; did you mean `message`?"]);
        assert_eq!(workflow["spec"]["arguments"]["parameters"][1], json!({"name": "mesage", "value": "x"}));
    }

    #[test]
    fn labels_are_added_to_those_that_are_there() {
        let mut workflow = json!({"metadata": {"labels": {"a": "1"}}});
        adjust(&mut workflow, &Overrides { labels: vec![("b".into(), "2".into())], ..Overrides::default() });
        assert_eq!(workflow["metadata"]["labels"], json!({"a": "1", "b": "2"}));
    }

    #[test]
    fn arguments_are_made_when_there_are_none() {
        let mut workflow = json!({"spec": {"arguments": null}});
        adjust(&mut workflow, &overrides(&[("a", "1")]));
        assert_eq!(workflow["spec"]["arguments"]["parameters"], json!([{"name": "a", "value": "1"}]));
    }

    #[test]
    fn names_come_from_the_command_line_first() {
        let mut workflow = json!({"metadata": {"generateName": "a-"}});
        assert!(name(&workflow).unwrap().unwrap().starts_with("a-"));
        adjust(
            &mut workflow,
            &Overrides { name: Some("mine".into()), namespace: Some("team".into()), ..Overrides::default() },
        );
        assert_eq!(name(&workflow).unwrap().as_deref(), Some("mine"));
        assert_eq!(namespace(&workflow), "team");
        adjust(&mut workflow, &Overrides { generate_name: Some("b-".into()), ..Overrides::default() });
        assert!(name(&workflow).unwrap().unwrap().starts_with("b-"));
        assert_eq!(name(&json!({})).unwrap(), None);
    }

    #[test]
    fn a_manifest_of_the_wrong_shape_is_left_for_admission() {
        let mut workflow = json!({"metadata": [], "spec": "text"});
        let before = workflow.clone();
        adjust(&mut workflow, &overrides(&[("a", "1")]));
        assert_eq!(workflow, before);
    }
}
