//! Environment variables of a task: literals, from ConfigMaps and Secrets, and from pod fields.

use octoflow_model::{
    podspec::{Container, EnvFrom, EnvValueFrom, KeyRef},
    task::EnvValue,
};

use super::PodContext;
use crate::engine::{Keyed, SharedState};

impl PodContext<'_> {
    /// Returns the variables of a container after `first`; a later one of the same name replaces an earlier one.
    pub(super) fn environment(
        &self,
        container: &Container,
        first: Vec<(String, EnvValue)>,
    ) -> Result<Vec<(String, EnvValue)>, String> {
        let mut env = first;
        for source in &container.env_from {
            add_all(self.shared, self.namespace, source, &mut env)?;
        }
        for variable in &container.env {
            let value = match (&variable.value, &variable.value_from) {
                (Some(text), _) => Some(EnvValue::Plain(expand(&text.0, &env))),
                (None, Some(from)) => self.value_of(from).map_err(|why| format!("env {}: {why}", variable.name))?,
                (None, None) => Some(EnvValue::Plain(String::new())),
            };
            if let Some(value) = value {
                env.retain(|(name, _)| *name != variable.name);
                env.push((variable.name.clone(), value));
            }
        }
        Ok(env)
    }

    fn value_of(&self, from: &EnvValueFrom) -> Result<Option<EnvValue>, String> {
        if let Some(reference) = &from.config_map_key_ref {
            let value = keyed(self.shared, Keyed::ConfigMap, self.namespace, reference)?;
            return Ok(value.map(EnvValue::Plain));
        }
        if let Some(reference) = &from.secret_key_ref {
            let value = keyed(self.shared, Keyed::Secret, self.namespace, reference)?;
            return Ok(value.map(EnvValue::Secret));
        }
        let Some(field) = &from.field_ref else { return Ok(Some(EnvValue::Plain(String::new()))) };
        let value = match field.field_path.as_str() {
            "metadata.namespace" => self.namespace.to_owned(),
            "spec.nodeName" => "localhost".to_owned(),
            path => match (self.field)(path) {
                Some(value) => value,
                None if matches!(path, "status.podIP" | "status.hostIP") => "127.0.0.1".to_owned(),
                None => return Err(format!("field '{path}' has no meaning here")),
            },
        };
        Ok(Some(EnvValue::Plain(value)))
    }
}

/// Looks up one key; on error returns why there is none, and `None` if it is optional and missing.
pub(crate) fn keyed(
    shared: &SharedState,
    kind: Keyed,
    namespace: &str,
    reference: &KeyRef,
) -> Result<Option<String>, String> {
    let word = if kind == Keyed::Secret { "Secret" } else { "ConfigMap" };
    let found = shared.keyed(kind, namespace, &reference.name).and_then(|data| data.entries.get(&reference.key));
    match found {
        Some(value) => String::from_utf8(value.clone())
            .map(Some)
            .map_err(|_| format!("key '{}' of {word} '{}' is not text", reference.key, reference.name)),
        None if reference.optional == Some(true) => Ok(None),
        None => Err(format!(
            "{word} '{}' with key '{}' not found in namespace '{namespace}'; give the file that defines it along with the workflow",
            reference.name, reference.key
        )),
    }
}

fn add_all(
    shared: &SharedState,
    namespace: &str,
    source: &EnvFrom,
    env: &mut Vec<(String, EnvValue)>,
) -> Result<(), String> {
    let (kind, reference) = match (&source.config_map_ref, &source.secret_ref) {
        (Some(reference), _) => (Keyed::ConfigMap, reference),
        (None, Some(reference)) => (Keyed::Secret, reference),
        (None, None) => return Ok(()),
    };
    let Some(data) = shared.keyed(kind, namespace, &reference.name) else {
        let message = format!("envFrom: '{}' not found in namespace '{namespace}'", reference.name);
        return if reference.optional { Ok(()) } else { Err(message) };
    };
    for (key, value) in &data.entries {
        let Ok(text) = String::from_utf8(value.clone()) else { continue };
        let value = if kind == Keyed::Secret { EnvValue::Secret(text) } else { EnvValue::Plain(text) };
        env.push((format!("{}{key}", source.prefix), value));
    }
    Ok(())
}

/// Expands variables: `$(NAME)` becomes the variable's value, `$$(NAME)` the literal `$(NAME)`; unknown names stay as
/// they are.
pub(super) fn expand(text: &str, env: &[(String, EnvValue)]) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        expanded.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("$$") {
            expanded.push('$');
            rest = after;
            continue;
        }
        let name = rest.strip_prefix("$(").and_then(|inner| inner.split_once(')')).map(|(name, _)| name);
        let value = name.and_then(|name| env.iter().rev().find(|(key, _)| key == name));
        match (name, value) {
            (Some(name), Some((_, value))) => {
                expanded.push_str(value.reveal());
                rest = &rest[name.len() + 3..];
            }
            _ => {
                expanded.push('$');
                rest = &rest[1..];
            }
        }
    }
    expanded.push_str(rest);
    expanded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_to_variables_are_expanded_as_kubernetes_does() {
        let env = vec![("A".to_owned(), EnvValue::Plain("1".to_owned()))];
        assert_eq!(expand("x$(A)y", &env), "x1y");
        assert_eq!(expand("$$(A) $(B) $A $", &env), "$(A) $(B) $A $");
        assert_eq!(expand("$$$(A)", &env), "$1");
    }
}
