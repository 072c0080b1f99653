//! Finds unused parts: templates that are never called and inputs that are never read. Unused is not wrong, so it is
//! only reported on request; what cannot be known counts as used.

use std::collections::HashSet;

use octoflow_manifest::{Path, Problem};
use serde_json::Value;

use super::{
    code, name,
    tag::{self, Tag},
    templates,
};
use crate::admit::shape::short;

/// Reports the unused parts of a Workflow, or of a WorkflowTemplate, whose templates others may call.
pub fn unused(object: &Value) -> Vec<Problem> {
    let own = templates(object);
    let list = Path(vec!["spec".into(), "templates".into()]);
    let mut found = Vec::new();
    if object["kind"] == "Workflow"
        && let Some(called) = reached(object, own)
    {
        for (index, template) in own.iter().enumerate() {
            let name = template["name"].as_str().unwrap_or_default();
            if !name.is_empty() && !called.contains(name) {
                let message = format!("nothing calls the template '{}'", short(name));
                found.push(Problem::warning(code::UNUSED, message).path(list.join(index).join("name")));
            }
        }
    }
    for (index, template) in own.iter().enumerate() {
        inputs(template, &list.join(index), &mut found);
    }
    found
}

/// Returns the templates reachable from the entrypoint, the exit handler and the hooks; `None` if a name is only known
/// at run time, or if another object provides some of them.
fn reached<'v>(object: &'v Value, own: &'v [Value]) -> Option<HashSet<&'v str>> {
    let spec = &object["spec"];
    if spec.get("workflowTemplateRef").is_some() {
        return None;
    }
    let mut queue: Vec<&str> = Vec::new();
    let mut seen = HashSet::new();
    let mut want = |value: &'v Value, queue: &mut Vec<&'v str>| {
        let Some(name) = value.as_str().filter(|name| !name.is_empty()) else { return true };
        if seen.insert(name) {
            queue.push(name);
        }
        !name::has_variables(name)
    };
    let mut sure = want(&spec["entrypoint"], &mut queue) && want(&spec["onExit"], &mut queue);
    for hook in spec["hooks"].as_object().into_iter().flat_map(|hooks| hooks.values()) {
        sure &= want(&hook["template"], &mut queue);
    }
    let mut looked = HashSet::new();
    while let Some(name) = queue.pop() {
        if !looked.insert(name) {
            continue;
        }
        for template in own.iter().filter(|template| template["name"] == *name) {
            let mut bodies = vec![template];
            while let Some(body) = bodies.pop() {
                for call in calls(body) {
                    for field in ["template", "onExit"] {
                        sure &= want(&call[field], &mut queue);
                    }
                    for hook in call["hooks"].as_object().into_iter().flat_map(|hooks| hooks.values()) {
                        sure &= want(&hook["template"], &mut queue);
                    }
                    bodies.extend(call.get("inline"));
                }
            }
        }
    }
    sure.then_some(seen)
}

fn calls(template: &Value) -> impl Iterator<Item = &Value> {
    let steps = template["steps"].as_array().into_iter().flatten().filter_map(Value::as_array).flatten();
    steps.chain(template["dag"]["tasks"].as_array().into_iter().flatten())
}

/// Reports input parameters that no text of the template mentions.
fn inputs(template: &Value, at: &Path, found: &mut Vec<Problem>) {
    let Some(declared) = template["inputs"]["parameters"].as_array() else { return };
    let mut read = Read::default();
    read.value(template);
    if read.all {
        return;
    }
    for (index, parameter) in declared.iter().enumerate() {
        let name = parameter["name"].as_str().unwrap_or_default();
        // A supplied output takes its default from the input of the same name.
        let supplied = template["outputs"]["parameters"].as_array().into_iter().flatten();
        let borrowed =
            supplied.into_iter().any(|output| output["name"] == name && output["valueFrom"]["supplied"].is_object());
        if !name.is_empty() && !borrowed && !name::has_variables(name) && !read.names.contains(name) {
            let message = format!(
                "template '{}' never reads its input parameter '{}'",
                short(template["name"].as_str().unwrap_or_default()),
                short(name)
            );
            let place = at.join("inputs").join("parameters").join(index).join("name");
            found.push(Problem::warning(code::UNUSED, message).path(place));
        }
    }
}

/// The input parameters that a template's texts mention.
#[derive(Default)]
struct Read {
    names: HashSet<String>,
    /// True if some text reads all of them, or if it cannot be known which.
    all: bool,
}

impl Read {
    fn value(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(items) => items.iter().for_each(|item| self.value(item)),
            Value::Object(fields) => fields.iter().for_each(|(key, field)| {
                self.text(key);
                // Some fields are whole expressions; one that parses may mention inputs.
                if matches!(
                    key.as_str(),
                    "expression" | "fromExpression" | "successCondition" | "failureCondition" | "when"
                ) && let Some(text) = field.as_str()
                    && let Ok(program) = crate::expr::lang::parse(text)
                {
                    program.roots().iter().for_each(|reference| self.path(&reference.path));
                }
                self.value(field);
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn text(&mut self, text: &str) {
        // The outer of two nested variables is not visited; its name may be any.
        self.all |= text.contains("{{inputs.parameters.{{");
        tag::each(text, &mut |tag| {
            match tag {
                Tag::Name(body) => match body.trim().strip_prefix("inputs.parameters") {
                    Some("") => self.all = true,
                    Some(rest) => drop(self.names.insert(rest.trim_start_matches('.').to_owned())),
                    None => {}
                },
                Tag::Expression { parsed, .. } => match *parsed {
                    Ok(program) => program.roots().iter().for_each(|reference| self.path(&reference.path)),
                    Err(_) => self.all = true,
                },
            }
            true
        });
    }

    fn path(&mut self, path: &[String]) {
        match path {
            [root, kind, name, ..] if root == "inputs" && kind == "parameters" => drop(self.names.insert(name.clone())),
            [root, kind, ..] if root == "inputs" && kind != "parameters" => {}
            [root, ..] if root == "inputs" => self.all = true,
            _ => {}
        }
    }
}
