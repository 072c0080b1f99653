//! Fills texts with the values that are known before anything runs.

use std::{collections::BTreeMap, rc::Rc};

use octoflow_model::argo::{Arguments, Template};
use serde_json::{Map, Value};

use crate::expr::{self, Meter, jq::plain, lang::Env};

use super::CallCondition;

/// Variables of one call with known values.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownValues {
    workflow: BTreeMap<String, String>,
    inputs: BTreeMap<String, String>,
    item: Option<Value>,
    /// Expression budget shared by the whole plan.
    meter: Rc<Meter>,
}

/// A text with the known values filled in.
pub(super) struct Filled {
    pub(super) text: String,
    /// True if no variable is left in it.
    pub(super) whole: bool,
}

impl KnownValues {
    /// Collects the workflow's own parameters that have a value.
    pub(super) fn of_workflow(arguments: &Arguments) -> Self {
        let valued =
            arguments.parameters.iter().filter_map(|one| Some((one.name.clone(), one.value.as_ref()?.0.clone())));
        Self { workflow: valued.collect(), ..Self::default() }
    }

    pub(super) fn with_item(&self, item: &Value) -> Self {
        Self { item: Some(item.clone()), ..self.clone() }
    }

    /// Returns what is known inside a template that is called with these arguments.
    pub(super) fn inside(&self, template: &Template, arguments: &Arguments) -> Self {
        let mut inside = Self { workflow: self.workflow.clone(), meter: self.meter.clone(), ..Self::default() };
        for input in &template.inputs.parameters {
            let given = arguments.parameters.iter().find(|one| one.name == input.name);
            let text = match given {
                Some(given) if given.value_from.is_some() => None,
                Some(given) => given.value.as_ref(),
                None => input.value.as_ref().or(input.default.as_ref()).filter(|_| input.value_from.is_none()),
            };
            if let Some(filled) = text.map(|text| self.fill(&text.0)).filter(|filled| filled.whole) {
                inside.inputs.insert(input.name.clone(), filled.text);
            }
        }
        inside
    }

    pub(super) fn fill(&self, text: &str) -> Filled {
        let mut filled = Filled { text: String::new(), whole: true };
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            filled.text.push_str(before);
            let Some((tag, after)) = after.split_once("}}") else {
                filled.text.push_str("{{");
                rest = after;
                continue;
            };
            match self.tag(tag.trim()) {
                Some(value) => filled.text.push_str(&value),
                None => {
                    filled.whole = false;
                    filled.text.push_str(&format!("{{{{{tag}}}}}"));
                }
            }
            rest = after;
        }
        filled.text.push_str(rest);
        filled
    }

    pub(super) fn fill_value(&self, value: &Value) -> Option<Value> {
        Some(match value {
            Value::String(text) => Value::String(Some(self.fill(text)).filter(|filled| filled.whole)?.text),
            Value::Array(list) => list.iter().map(|one| self.fill_value(one)).collect::<Option<_>>()?,
            Value::Object(map) => {
                let pairs = map.iter().map(|(key, one)| Some((key.clone(), self.fill_value(one)?)));
                Value::Object(pairs.collect::<Option<Map<_, _>>>()?)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        })
    }

    pub(super) fn condition(&self, text: &str) -> CallCondition {
        let filled = self.fill(text);
        self.meter.next_node(0);
        match self.meter.holds(&filled.text) {
            Ok(true) if filled.whole => CallCondition::Always,
            Ok(false) if filled.whole => CallCondition::Never(filled.text),
            _ => CallCondition::Open(filled.text),
        }
    }

    fn tag(&self, tag: &str) -> Option<String> {
        if let Some(source) = tag.strip_prefix('=') {
            return self.expression(source);
        }
        let path: Vec<&str> = tag.split('.').collect();
        match path.as_slice() {
            ["workflow", "parameters", name @ ..] => self.workflow.get(&name.join(".")).cloned(),
            ["inputs", "parameters", name @ ..] => self.inputs.get(&name.join(".")).cloned(),
            ["item"] => self.item.as_ref().map(plain),
            ["item", key @ ..] => self.item.as_ref()?.get(key.join(".")).map(plain),
            _ => None,
        }
    }

    fn expression(&self, source: &str) -> Option<String> {
        let program = self.meter.parse(source).ok()?;
        let known = |path: &[String]| match path {
            [root, kind, name, ..] if kind == "parameters" => match root.as_str() {
                "workflow" => self.workflow.contains_key(name),
                "inputs" => self.inputs.contains_key(name),
                _ => false,
            },
            [root, ..] => root == "item" && self.item.is_some(),
            [] => false,
        };
        if !program.roots().iter().all(|reference| known(&reference.path)) {
            return None;
        }
        let value = self.meter.run(&program, self).ok()?;
        (!value.is_nil()).then(|| value.to_text())
    }
}

impl Env for KnownValues {
    fn root(&self, name: &str) -> Option<expr::Value> {
        let parameters = |map: &BTreeMap<String, String>| {
            let pairs = map.iter().map(|(name, value)| (name.clone(), expr::Value::from(value.as_str())));
            [("parameters".to_owned(), pairs.collect::<expr::Value>())].into_iter().collect::<expr::Value>()
        };
        match name {
            "workflow" => Some(parameters(&self.workflow)),
            "inputs" => Some(parameters(&self.inputs)),
            "item" => self.item.clone().map(expr::Value::from),
            _ => None,
        }
    }
}
