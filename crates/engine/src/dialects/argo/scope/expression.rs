//! Exposes the scope to expressions: nested maps whose leaves are texts.

use serde_json::{Map, Value, json};

use super::Scope;
use crate::expr::{
    self,
    lang::{Env, EvalContext, Reference},
};

/// Root names whose values may come later: an expression that uses one is left for a later pass.
const LATE: [&str; 5] = ["item", "retries", "lastRetry", "steps", "tasks"];

impl Scope<'_> {
    /// Whether the reference will only have a value later.
    pub(crate) fn is_late(&self, reference: &Reference) -> bool {
        let Some(root) = reference.path.first() else { return false };
        if !LATE.contains(&root.as_str()) {
            return false;
        }
        match (root.as_str(), reference.path.get(1)) {
            ("steps" | "tasks", Some(call)) => self.member(root, call).is_none(),
            _ => self.root(root).is_none(),
        }
    }

    fn inputs_map(&self) -> Option<Value> {
        let inputs = self.inputs?;
        let parameters: Map<String, Value> =
            inputs.parameters.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
        let declared = self.template.map(|template| template.inputs.artifacts.as_slice()).unwrap_or_default();
        let artifacts: Map<String, Value> = declared
            .iter()
            .filter_map(|artifact| Some((artifact.name.clone(), json!({"path": artifact.path.as_ref()?}))))
            .collect();
        Some(json!({"parameters": parameters, "artifacts": artifacts}))
    }

    fn outputs_map(&self) -> Option<Value> {
        let outputs = self.outputs?;
        let parameters: Map<String, Value> =
            outputs.parameters.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
        let mut map = Map::from_iter([("parameters".to_owned(), Value::Object(parameters))]);
        for (field, text) in [("result", &outputs.result), ("exitCode", &outputs.exit_code)] {
            if let Some(text) = text {
                map.insert(field.to_owned(), text.as_str().into());
            }
        }
        Some(Value::Object(map))
    }

    /// Builds the map of local variables such as `lastRetry.exitCode` below their root name.
    fn local_map(&self, root: &str) -> Option<Value> {
        if let Some((_, value)) = self.locals.iter().find(|(name, _)| *name == root) {
            return Some(value.as_str().into());
        }
        let fields: Map<String, Value> = self
            .locals
            .iter()
            .filter_map(|(name, value)| {
                Some((name.strip_prefix(root)?.strip_prefix('.')?.to_owned(), value.as_str().into()))
            })
            .collect();
        (!fields.is_empty()).then_some(Value::Object(fields))
    }
}

impl Env for Scope<'_> {
    fn root(&self, name: &str) -> Option<expr::Value> {
        let found = match name {
            "inputs" => self.inputs_map(),
            "outputs" => self.outputs_map(),
            "workflow" => Some(self.workflow_map()),
            "item" => self.item.cloned(),
            _ => self.local_map(name),
        };
        found.map(Into::into)
    }

    fn member(&self, root: &str, key: &str) -> Option<expr::Value> {
        match root {
            "steps" | "tasks" => {
                let own = || self.local_map(root)?.get(key).cloned();
                self.call_map(root, key).or_else(own).map(Into::into)
            }
            _ => None,
        }
    }

    fn eval_context(&self) -> Option<EvalContext> {
        Some(EvalContext { moment: self.moment.timestamp(), seed: self.seed })
    }

    fn names(&self) -> Vec<String> {
        ["inputs", "workflow", "item", "steps", "tasks", "retries", "lastRetry"].map(str::to_owned).to_vec()
    }
}
