//! The plain job form to TaskSet: a name and a few roles, each with an image and a command.

use serde_json::{Map, Value, json};

use super::{Question, kubeflow};

const FORM: [&str; 10] =
    ["kind", "apiVersion", "metadata", "jobID", "name", "roles", "retries", "deadlineSeconds", "queue", "priority"];
const ROLE: [&str; 11] = [
    "name",
    "image",
    "command",
    "args",
    "replicas",
    "resources",
    "env",
    "retries",
    "minSucceeded",
    "maxFailed",
    "decides",
];

pub(super) fn translate(question: &Question<'_>) -> Result<Value, String> {
    let form = question.job.as_object().ok_or("the form is no object")?;
    only(form, &FORM, "the form")?;
    let roles = question.job["roles"].as_array().filter(|roles| !roles.is_empty());
    let roles = roles.ok_or("the form needs roles: a list with at least one")?;
    let mut spec = Map::new();
    spec.insert("roles".to_owned(), roles.iter().map(role).collect::<Result<_, _>>()?);
    if let Some(retries) = number(form, "retries", "retries")? {
        spec.insert("retryPolicy".to_owned(), json!({"retry": retries > 0, "delay": 0, "maxRetryCount": retries}));
    }
    for (field, becomes) in [("deadlineSeconds", "activeDeadlineSeconds"), ("queue", "queue"), ("priority", "priority")]
    {
        if let Some(value) = form.get(field).filter(|value| !value.is_null()) {
            spec.insert(becomes.to_owned(), value.clone());
        }
    }
    let mut metadata = question.job["metadata"].clone();
    if metadata.is_null() {
        metadata = json!({"name": question.job["name"]});
    }
    Ok(kubeflow::task_set(question, &metadata, spec))
}

fn role(value: &Value) -> Result<Value, String> {
    let fields = value.as_object().ok_or("a role of the form is no object")?;
    let name = value["name"].as_str().filter(|name| !name.is_empty()).ok_or("every role of the form needs a name")?;
    let place = format!("role {name}");
    only(fields, &ROLE, &place)?;
    let replicas = number(fields, "replicas", &place)?.unwrap_or(1);
    let mut container = json!({"name": "main"});
    for field in ["image", "args"] {
        if !value[field].is_null() {
            container[field] = value[field].clone();
        }
    }
    match &value["command"] {
        Value::Null => {}
        Value::String(script) => container["command"] = json!(["sh", "-c", script]),
        command @ Value::Array(_) => container["command"] = command.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            return Err(format!("the command of {place} is neither a text nor a list"));
        }
    }
    if container["image"].is_null() && container["command"].is_null() {
        return Err(format!("{place} needs an image or a command"));
    }
    if let Some(env) = environment(&value["env"], &place)? {
        container["env"] = env;
    }
    if let Some(resources) = resources(&value["resources"], &place)? {
        container["resources"] = resources;
    }
    let mut made = json!({
        "name": name,
        "replicas": replicas,
        "completionPolicy": {"minSucceeded": replicas, "maxFailed": 1},
        "template": {"spec": {"containers": [container]}},
    });
    for field in ["minSucceeded", "maxFailed"] {
        if !value[field].is_null() {
            made["completionPolicy"][field] = value[field].clone();
        }
    }
    if let Some(retries) = number(fields, "retries", &place)? {
        made["retryPolicy"] = json!({"retry": retries > 0, "delay": 0, "maxRetryCount": retries});
    }
    match value["decides"].as_bool() {
        Some(true) => {
            made["eventPolicy"] = json!([
                {"event": "RoleSucceeded", "action": "TaskSetSucceeded"},
                {"event": "RoleFailed", "action": "TaskSetFailed"},
            ]);
        }
        None if !value["decides"].is_null() => return Err(format!("`decides` of {place} is neither true nor false")),
        Some(false) | None => {}
    }
    Ok(made)
}

/// Variables are a map, or a list as containers have it.
fn environment(value: &Value, place: &str) -> Result<Option<Value>, String> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    match value {
        Value::Null => Ok(None),
        Value::Array(_) => Ok(Some(value.clone())),
        Value::Object(members) => {
            let one = |(name, value): (&String, &Value)| Some(json!({"name": name, "value": text(value)?}));
            let all: Option<Value> = members.iter().map(one).collect();
            all.map(Some).ok_or_else(|| format!("the env of {place} has a value that is no text"))
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Err(format!("the env of {place} is neither a map nor a list"))
        }
    }
}

/// Amounts by resource, or requests and limits as containers have them. Amounts are both.
fn resources(value: &Value, place: &str) -> Result<Option<Value>, String> {
    match value {
        Value::Null => Ok(None),
        Value::Object(members) if members.contains_key("requests") || members.contains_key("limits") => {
            Ok(Some(value.clone()))
        }
        Value::Object(_) => Ok(Some(json!({"requests": value, "limits": value}))),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(format!("the resources of {place} are no map"))
        }
    }
}

fn only(fields: &Map<String, Value>, known: &[&str], place: &str) -> Result<(), String> {
    match fields.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(format!("{place} has no field `{name}`; it has {}", known.join(", "))),
        None => Ok(()),
    }
}

fn number(fields: &Map<String, Value>, name: &str, place: &str) -> Result<Option<u64>, String> {
    match fields.get(name).filter(|value| !value.is_null()) {
        None => Ok(None),
        Some(value) => {
            value.as_u64().map(Some).ok_or_else(|| format!("`{name}` of {place} is no whole number from 0 on"))
        }
    }
}
