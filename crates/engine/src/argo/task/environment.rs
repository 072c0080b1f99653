//! A task's environment variables: literal, from ConfigMaps and Secrets, and from what the task is.

use octoflow_model::{
    NodeIx,
    argo::{
        Container,
        template::{EnvFrom, EnvValueFrom, KeyRef},
    },
    task::EnvValue,
};

use crate::{
    argo::turn::Turn,
    engine::{Keyed, World},
};

impl Turn<'_> {
    pub(super) fn environment(
        &self,
        at: NodeIx,
        container: &Container,
        pod: &str,
    ) -> Result<Vec<(String, EnvValue)>, String> {
        let namespace = &self.run.state.namespace;
        let mut env: Vec<(String, EnvValue)> = vec![
            (
                "ARGO_CONTAINER_NAME".to_owned(),
                EnvValue::Plain(container.name.clone().unwrap_or_else(|| "main".to_owned())),
            ),
            ("ARGO_NODE_ID".to_owned(), EnvValue::Plain(self.run.state.id_of(at))),
        ];
        for source in &container.env_from {
            add_all(self.world, namespace, source, &mut env)?;
        }
        for variable in &container.env {
            let value = match (&variable.value, &variable.value_from) {
                (Some(text), _) => Some(EnvValue::Plain(expand(&text.0, &env))),
                (None, Some(from)) => {
                    self.value_of(from, pod).map_err(|why| format!("env {}: {why}", variable.name))?
                }
                (None, None) => Some(EnvValue::Plain(String::new())),
            };
            if let Some(value) = value {
                env.retain(|(name, _)| *name != variable.name);
                env.push((variable.name.clone(), value));
            }
        }
        Ok(env)
    }

    fn value_of(&self, from: &EnvValueFrom, pod: &str) -> Result<Option<EnvValue>, String> {
        let namespace = &self.run.state.namespace;
        if let Some(reference) = &from.config_map_key_ref {
            return keyed(self.world, Keyed::ConfigMap, namespace, reference).map(|value| value.map(EnvValue::Plain));
        }
        if let Some(reference) = &from.secret_key_ref {
            return keyed(self.world, Keyed::Secret, namespace, reference).map(|value| value.map(EnvValue::Secret));
        }
        let Some(field) = &from.field_ref else { return Ok(Some(EnvValue::Plain(String::new()))) };
        let value = match field.field_path.as_str() {
            "metadata.name" => pod.to_owned(),
            "metadata.namespace" => namespace.to_string(),
            "metadata.uid" => self.run.state.uid.to_string(),
            "spec.serviceAccountName" => {
                self.run.program.workflow.spec.service_account_name.clone().unwrap_or_else(|| "default".to_owned())
            }
            "spec.nodeName" => "localhost".to_owned(),
            "status.podIP" | "status.hostIP" => "127.0.0.1".to_owned(),
            other => return Err(format!("field '{other}' has no meaning here")),
        };
        Ok(Some(EnvValue::Plain(value)))
    }
}

/// The value of one key, or why there is none; `None` when it may be missing and is.
pub(in crate::argo) fn keyed(
    world: &World,
    kind: Keyed,
    namespace: &str,
    reference: &KeyRef,
) -> Result<Option<String>, String> {
    let word = if kind == Keyed::Secret { "Secret" } else { "ConfigMap" };
    let found = world.keyed(kind, namespace, &reference.name).and_then(|data| data.entries.get(&reference.key));
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

fn add_all(world: &World, namespace: &str, source: &EnvFrom, env: &mut Vec<(String, EnvValue)>) -> Result<(), String> {
    let (kind, reference) = match (&source.config_map_ref, &source.secret_ref) {
        (Some(reference), _) => (Keyed::ConfigMap, reference),
        (None, Some(reference)) => (Keyed::Secret, reference),
        (None, None) => return Ok(()),
    };
    let Some(data) = world.keyed(kind, namespace, &reference.name) else {
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

/// `$(NAME)` becomes the variable's value, `$$(NAME)` the literal `$(NAME)`; unknown names stay as they are.
pub(crate) fn expand(text: &str, env: &[(String, EnvValue)]) -> String {
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
