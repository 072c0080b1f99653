//! Computes the labels and annotations that `workflowMetadata` gives a run when it begins.
//! Decided once, before anything runs, and recorded as a fact.

use octoflow_model::{Time, task::Labels};

use super::{run::Run, scope::Scope};
use crate::expr::{
    Value,
    lang::{Env, EvalContext},
};

/// Maximum length of a label value.
const LONGEST: usize = 63;

/// Returns labels and annotations; fails with the reason why a label cannot have its value.
pub(super) fn metadata(run: &Run, parameters: &[(String, String)], now: Time) -> Result<(Labels, Labels), String> {
    let Some(wanted) = &run.program.workflow.spec.workflow_metadata else { return Ok(Default::default()) };
    let mut labels = wanted.labels.clone();
    if !wanted.labels_from.is_empty() {
        for (label, from) in &wanted.labels_from {
            let env = BeginEnv { scope: Scope::new(run, now).about(label), parameters };
            let value = run.meter.evaluate(&from.expression, &env);
            let value = value.map_err(|error| format!("failed to evaluate label '{label}': {error}"))?;
            let Value::Str(text) = value else {
                return Err(format!(
                    "failed to evaluate label '{label}': the expression '{}' gave {} where text was expected",
                    from.expression,
                    value.to_json()
                ));
            };
            labels.insert(label.clone(), text.to_string());
        }
    }
    for (label, value) in &labels {
        if !is_label_value(value) {
            return Err(format!(
                "label '{label}' cannot be '{}': a label has at most {LONGEST} letters, digits, '-', '_' and '.', and begins and ends with a letter or digit",
                crate::admit::shape::short(value)
            ));
        }
    }
    Ok((labels, wanted.annotations.clone()))
}

/// Variables just before the run begins: its parameters are decided but not yet part of its state.
struct BeginEnv<'a> {
    scope: Scope<'a>,
    parameters: &'a [(String, String)],
}

impl Env for BeginEnv<'_> {
    fn root(&self, name: &str) -> Option<Value> {
        self.scope.root(name)
    }

    fn member(&self, root: &str, key: &str) -> Option<Value> {
        if (root, key) == ("workflow", "parameters") {
            let pairs = self.parameters.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
            return Some(pairs.collect());
        }
        self.scope.member(root, key)
    }

    fn eval_context(&self) -> Option<EvalContext> {
        self.scope.eval_context()
    }

    fn names(&self) -> Vec<String> {
        self.scope.names()
    }
}

fn is_label_value(value: &str) -> bool {
    let edge = |c: Option<char>| c.is_none_or(|c| c.is_ascii_alphanumeric());
    value.len() <= LONGEST
        && value.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        && edge(value.chars().next())
        && edge(value.chars().next_back())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_values_are_short_words() {
        for good in ["", "a", "v1.2-rc_3", &"x".repeat(63)] {
            assert!(is_label_value(good), "{good}");
        }
        for bad in ["-a", "a.", "a b", "é", &"x".repeat(64)] {
            assert!(!is_label_value(bad), "{bad}");
        }
    }
}
