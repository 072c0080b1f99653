//! Resolves the inputs of a call: from its arguments, else from the template's own values and defaults.

use std::sync::Arc;

use octoflow_model::argo::{
    Arguments, Artifact, ArtifactLocation, ArtifactValue, InputArtifactValue, InputValues, Template,
    template::Parameter,
};

use super::{
    program::CompiledTemplate,
    scope::Scope,
    substitute::{Missing, fill, fill_value, is_absent},
    view::View,
};
use crate::engine::{Keyed, SharedState};

impl View<'_> {
    /// Resolves the inputs for a call of this template, in the caller's scope.
    pub(super) fn inputs(
        &self,
        compiled: &Arc<CompiledTemplate>,
        arguments: &Arguments,
        scope: &Scope<'_>,
    ) -> Result<InputValues, String> {
        let declared = &compiled.template.inputs;
        let mut inputs = InputValues::default();
        for parameter in &declared.parameters {
            let argument = arguments.parameters.iter().find(|argument| argument.name == parameter.name);
            // The template's own fallbacks see the run's variables, not the caller's.
            let scope = &scope.about(&parameter.name);
            let own = Scope { inputs: Some(&inputs), template: Some(&compiled.template), ..scope.bare() };
            let value = self.parameter(parameter, argument, scope, &own)?;
            if let Some(choices) = &parameter.choices
                && !choices.iter().any(|choice| choice.0 == value)
            {
                let value = crate::admit::shape::short(&value);
                return Err(format!("inputs.parameters.{}: '{value}' is not in its enum list", parameter.name));
            }
            inputs.parameters.push((parameter.name.clone(), value));
        }
        for artifact in &declared.artifacts {
            let argument = arguments.artifacts.iter().find(|argument| argument.name == artifact.name);
            let scope = &scope.about(&artifact.name);
            let own = Scope { inputs: Some(&inputs), template: Some(&compiled.template), ..scope.bare() };
            let source = match located(artifact, &own)? {
                // A location in the template itself is not overridden by a caller.
                Some(source) => source,
                None => self.artifact(artifact, argument, scope)?,
            };
            let source = self.with_decision(&compiled.template, source);
            inputs.artifacts.push(InputArtifactValue {
                name: artifact.name.clone(),
                path: artifact.path.clone(),
                source,
            });
        }
        Ok(inputs)
    }

    /// Resolves a parameter: the argument, else the template's own value, else its default. The template's own may
    /// refer to inputs declared before it.
    fn parameter(
        &self,
        declared: &Parameter,
        argument: Option<&Parameter>,
        scope: &Scope<'_>,
        own: &Scope<'_>,
    ) -> Result<String, String> {
        if let Some(argument) = argument {
            if let Some(text) = &argument.value {
                if !is_absent(&text.0, scope) {
                    return filled(&text.0, scope);
                }
                if declared.default.is_none() && declared.value.is_none() {
                    // Filling it fails with the reason why it is absent.
                    return filled(&text.0, scope);
                }
            }
            if let Some(value) = self.value_from(argument, scope)? {
                return Ok(value);
            }
            if let Some(default) = &argument.default {
                return filled(&default.0, scope);
            }
        }
        if let Some(text) = &declared.value {
            return filled(&text.0, own);
        }
        if let Some(value) = self.value_from(declared, own)? {
            return Ok(value);
        }
        match &declared.default {
            Some(text) => filled(&text.0, own),
            None => Err(format!("inputs.parameters.{} was not supplied", declared.name)),
        }
    }

    /// Reads a parameter's value from a ConfigMap or an expression; `None` if it names no such source.
    pub(super) fn value_from(&self, parameter: &Parameter, scope: &Scope<'_>) -> Result<Option<String>, String> {
        let Some(from) = &parameter.value_from else { return Ok(None) };
        if let Some(expression) = &from.expression {
            let expression = fill(expression, scope, Missing::Keep).map_err(|error| error.to_string())?;
            return filled(&format!("{{{{={expression}}}}}"), scope).map(Some);
        }
        let Some(reference) = &from.config_map_key_ref else {
            return from.default.as_ref().map(|text| filled(&text.0, scope)).transpose();
        };
        let name = filled(&reference.name, scope)?;
        let key = filled(&reference.key, scope)?;
        let found = config_value(self.world, &self.run.state.head.namespace, &name, &key);
        match (found, &from.default) {
            (Ok(value), _) => Ok(Some(value)),
            (Err(_), Some(default)) => filled(&default.0, scope).map(Some),
            (Err(why), None) => Err(format!("parameter '{}': {why}", parameter.name)),
        }
    }

    /// Records with a location whether the local store replaces it, so that a Secret that is created or deleted during
    /// the run changes nothing for this artifact.
    fn with_decision(&self, template: &Template, source: ArtifactValue) -> ArtifactValue {
        let ArtifactValue::Located { mut at, sub_path, optional } = source else { return source };
        at.stand_in = at.stand_in.or_else(|| self.stands_in(template, &at));
        ArtifactValue::Located { at, sub_path, optional }
    }

    fn artifact(
        &self,
        declared: &Artifact,
        argument: Option<&Artifact>,
        scope: &Scope<'_>,
    ) -> Result<ArtifactValue, String> {
        let optional = declared.optional || argument.is_some_and(|argument| argument.optional);
        for candidate in argument.into_iter().chain([declared]) {
            if let Some(raw) = &candidate.raw {
                return Ok(ArtifactValue::Raw(filled(&raw.data, scope)?));
            }
            if let Some(ArtifactValue::Located { at, sub_path, .. }) = located(candidate, scope)? {
                return Ok(ArtifactValue::Located { at, sub_path, optional });
            }
            let sub_path = candidate.sub_path.as_deref().map(|path| filled(path, scope)).transpose()?;
            let passed = candidate.from.as_deref().and_then(|from| passed_on(from, scope));
            if let Some(value) = passed {
                return match (value, sub_path) {
                    (ArtifactValue::Absent, _) if !optional => {
                        Err(format!("inputs.artifacts.{} was not supplied", declared.name))
                    }
                    (ArtifactValue::Stored { artifact, sub_path: None }, sub_path) => {
                        Ok(ArtifactValue::Stored { artifact, sub_path })
                    }
                    (ArtifactValue::Located { at, sub_path: None, optional: may }, sub_path) => {
                        Ok(ArtifactValue::Located { at, sub_path, optional: may || optional })
                    }
                    (value, _) => Ok(value),
                };
            }
            if candidate.from.is_none() && candidate.from_expression.is_none() {
                continue;
            }
            let from = candidate.from.as_deref().map(|from| fill(from, scope, Missing::Keep)).transpose();
            let candidate = Artifact {
                from: from.map_err(|error| error.to_string())?.map(std::borrow::Cow::into_owned),
                ..candidate.clone()
            };
            match self.artifact_from(&candidate, scope) {
                Ok(Some((artifact, _))) => return Ok(ArtifactValue::Stored { artifact, sub_path }),
                Ok(None) | Err(_) if optional => return Ok(ArtifactValue::Absent),
                Ok(None) => {
                    let from = candidate.from.or(candidate.from_expression).unwrap_or_default();
                    return Err(format!("inputs.artifacts.{}: {from} produced no artifact", declared.name));
                }
                Err(why) => return Err(why),
            }
        }
        if optional {
            Ok(ArtifactValue::Absent)
        } else {
            Err(format!("inputs.artifacts.{} was not supplied", declared.name))
        }
    }
}

/// Fills the location that an artifact names with the variables known now. The rest is filled when its task is built.
fn located(artifact: &Artifact, scope: &Scope<'_>) -> Result<Option<ArtifactValue>, String> {
    if !artifact.location.is_given() {
        return Ok(None);
    }
    let written = ArtifactLocation { stand_in: None, ..artifact.location.clone() };
    let raw = serde_json::to_value(&written).map_err(|error| error.to_string())?;
    let known = fill_value(&raw, scope, Missing::Keep).map_err(|error| error.to_string())?;
    let at = serde_json::from_value(known)
        .map_err(|error| format!("inputs.artifacts.{}: its place is not usable: {error}", artifact.name))?;
    let sub_path = artifact.sub_path.as_deref().map(|path| filled(path, scope)).transpose()?;
    Ok(Some(ArtifactValue::Located { at: Box::new(at), sub_path, optional: artifact.optional }))
}

/// Resolves `{{inputs.artifacts.x}}`: the caller passes on its own input.
fn passed_on(from: &str, scope: &Scope<'_>) -> Option<ArtifactValue> {
    let name = from.trim().trim_start_matches("{{").trim_end_matches("}}").trim().strip_prefix("inputs.artifacts.")?;
    let found = scope.inputs?.artifacts.iter().find(|artifact| artifact.name == name)?;
    Some(found.source.clone())
}

fn filled(text: &str, scope: &Scope<'_>) -> Result<String, String> {
    fill(text, scope, Missing::Refuse).map(std::borrow::Cow::into_owned).map_err(|error| error.to_string())
}

/// Reads one value of a ConfigMap; fails with the reason.
pub(super) fn config_value(world: &SharedState, namespace: &str, name: &str, key: &str) -> Result<String, String> {
    let map = world.keyed(Keyed::ConfigMap, namespace, name).ok_or_else(|| {
        format!("ConfigMap '{name}' not found in namespace '{namespace}'; give the file that defines it along with the workflow")
    })?;
    let value = map.entries.get(key).ok_or_else(|| format!("ConfigMap '{name}' has no key '{key}'"))?;
    String::from_utf8(value.clone()).map_err(|_| format!("key '{key}' of ConfigMap '{name}' is not text"))
}
