//! The pod templates of a document, wherever its kind has them.

use serde_json::{Value, json};

/// Where the kinds of this program have their pod templates: in each item of a list, or in the specification itself.
const LISTS: [&str; 2] = ["roles", "tasks"];

/// Calls `change` for every pod template with the name of its role. Fails for documents without any.
pub(super) fn each(
    job: &mut Value,
    mut change: impl FnMut(&str, &mut Value) -> Result<(), String>,
) -> Result<(), String> {
    let kind = job["kind"].as_str().unwrap_or_default().to_owned();
    let spec = job.get_mut("spec").filter(|spec| spec.is_object());
    let spec = spec.ok_or_else(|| format!("the {kind} has no spec"))?;
    let Some(list) = LISTS.into_iter().find(|list| spec[*list].is_array()) else {
        return change("", template(spec, &format!("the {kind}"))?);
    };
    let parts = spec[list].as_array_mut().filter(|parts| !parts.is_empty());
    for part in parts.ok_or_else(|| format!("the {kind} has no spec.{list}"))? {
        let name = part["name"].as_str().unwrap_or_default().to_owned();
        change(&name, template(part, &format!("spec.{list} `{name}`"))?)?;
    }
    Ok(())
}

fn template<'a>(owner: &'a mut Value, name: &str) -> Result<&'a mut Value, String> {
    owner.get_mut("template").filter(|template| template.is_object()).ok_or_else(|| format!("{name} has no template"))
}

/// Returns a list of an object, made if it is missing.
pub(super) fn list<'a>(owner: &'a mut Value, name: &str) -> Result<&'a mut Vec<Value>, String> {
    let members = owner.as_object_mut().ok_or_else(|| format!("what has `{name}` is no object"))?;
    let value = members.entry(name).or_insert(Value::Null);
    if value.is_null() {
        *value = json!([]);
    }
    value.as_array_mut().ok_or_else(|| format!("`{name}` is no list"))
}

/// Adds environment variables to a container, except those that it has.
pub(super) fn add_env(
    container: &mut Value,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Result<(), String> {
    let env = list(container, "env")?;
    for (name, value) in variables {
        if !env.iter().any(|one| one["name"] == name) {
            env.push(json!({"name": name, "value": value}));
        }
    }
    Ok(())
}

/// Calls `change` for each container of a pod template, and each init container.
pub(super) fn containers(
    template: &mut Value,
    mut change: impl FnMut(&mut Value) -> Result<(), String>,
) -> Result<(), String> {
    for of in ["initContainers", "containers"] {
        if let Some(found) = template["spec"].get_mut(of).and_then(Value::as_array_mut) {
            found.iter_mut().try_for_each(&mut change)?;
        }
    }
    Ok(())
}

/// Returns a map such as annotations, made if it is missing.
pub(super) fn texts<'a>(template: &'a mut Value, name: &str) -> Result<&'a mut serde_json::Map<String, Value>, String> {
    let owner = template.as_object_mut().ok_or("a pod template is no object")?;
    let metadata = owner.entry("metadata").or_insert(Value::Null);
    if metadata.is_null() {
        *metadata = json!({});
    }
    let metadata = metadata.as_object_mut().ok_or("`metadata` is no object")?;
    let texts = metadata.entry(name).or_insert(Value::Null);
    if texts.is_null() {
        *texts = json!({});
    }
    texts.as_object_mut().ok_or_else(|| format!("`metadata.{name}` is no object"))
}
