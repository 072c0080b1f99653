//! Computes outputs: of a task, of a steps or DAG template from its calls, and of the run by global names.

use octoflow_model::{
    NodeIx,
    argo::{
        Artifact, NodeList, OutputArtifactValue, OutputValues, Phase, Template, WorkflowFact,
        template::{Parameter, ValueFrom},
    },
    order::{End, Found},
    task::StoredArtifact,
};

use super::{
    instance::Instance,
    scope::Scope,
    substitute::{Missing, fill, is_absent},
    task::MAIN_LOGS,
    turn::Turn,
    view::View,
};
use crate::expr::{
    Value,
    lang::{Env, EvalContext},
};

/// Returns a task's outputs, and a message about required ones that are missing.
pub(super) fn of_leaf(template: &Template, end: &End) -> (OutputValues, Option<String>) {
    let mut outputs = OutputValues { result: end.collected.result.clone(), ..OutputValues::default() };
    let mut missing = Vec::new();
    for parameter in &template.outputs.parameters {
        let Some(path) = parameter.value_from.as_ref().and_then(source) else { continue };
        let default =
            parameter.value_from.as_ref().and_then(|from| from.default.as_ref()).or(parameter.default.as_ref());
        let found = end.collected.parameters.iter().find(|(name, _)| *name == parameter.name).map(|(_, found)| found);
        match (found, default) {
            (Some(Found::Here(value)), _) => outputs.parameters.push((parameter.name.clone(), value.clone())),
            (_, Some(default)) => outputs.parameters.push((parameter.name.clone(), default.0.clone())),
            (Some(Found::Failed(why)), None) => missing.push(format!("output parameter '{}': {why}", parameter.name)),
            (Some(Found::Missing) | None, None) => {
                missing.push(format!("output parameter '{}': no such file: {path}", parameter.name));
            }
        }
    }
    for artifact in &template.outputs.artifacts {
        let found = end.collected.artifacts.iter().find(|(name, _)| *name == artifact.name).map(|(_, found)| found);
        let path = artifact.path.as_deref().unwrap_or_default();
        match found {
            Some(Found::Here(stored)) => outputs.artifacts.push(OutputArtifactValue {
                name: artifact.name.clone(),
                path: artifact.path.clone(),
                artifact: stored.clone(),
            }),
            Some(Found::Missing) | None if artifact.optional => {}
            Some(Found::Missing) | None => {
                missing.push(format!("output artifact '{}': no such file: {path}", artifact.name))
            }
            Some(Found::Failed(why)) => missing.push(format!("output artifact '{}': {why}", artifact.name)),
        }
    }
    match &end.collected.log {
        Some(Found::Here(stored)) => outputs.artifacts.push(OutputArtifactValue {
            name: MAIN_LOGS.to_owned(),
            path: None,
            artifact: stored.clone(),
        }),
        Some(Found::Failed(why)) => missing.push(why.clone()),
        Some(Found::Missing) | None => {}
    }
    outputs.fetched.clone_from(&end.collected.fetched);
    (outputs, (!missing.is_empty()).then(|| missing.join("; ")))
}

/// Returns the source of a task's output parameter: a file, or a part of an object.
fn source(from: &ValueFrom) -> Option<&str> {
    from.path.as_deref().or(from.json_path.as_deref()).or(from.jq_filter.as_deref())
}

impl Turn<'_> {
    /// A steps or DAG node ended well: its outputs are made from its calls', then it is over.
    pub(super) fn complete(&mut self, at: NodeIx, outbound: NodeList) {
        let made = self.instance(at).and_then(|instance| self.view().of_boundary(at, &instance));
        match made {
            Ok(outputs) => {
                self.export(at, &outputs);
                self.finish_with(at, Phase::Succeeded, String::new(), outputs, outbound);
            }
            Err(message) => self.finish_with(at, Phase::Error, message, OutputValues::default(), outbound),
        }
    }

    /// Exports outputs with a global name to the run.
    pub(super) fn export(&mut self, at: NodeIx, outputs: &OutputValues) {
        let compiled = self.run.compiled_of(at).clone();
        let declared = &compiled.template.outputs;
        if declared.parameters.iter().all(|parameter| parameter.global_name.is_none())
            && declared.artifacts.iter().all(|artifact| artifact.global_name.is_none())
        {
            return;
        }
        let Ok(instance) = self.instance(at) else { return };
        for parameter in &instance.body.outputs.parameters {
            let value = outputs.parameters.iter().find(|(name, _)| *name == parameter.name);
            if let (Some(global), Some((_, value))) = (&parameter.global_name, value) {
                let global = fill_known(global, &self.view().frame_scope(at, &instance));
                self.decide(WorkflowFact::Exported { parameter: Some((global, value.clone())), artifact: None });
            }
        }
        for artifact in &instance.body.outputs.artifacts {
            let value = outputs.artifacts.iter().find(|value| value.name == artifact.name);
            if let (Some(global), Some(value)) = (&artifact.global_name, value) {
                let name = fill_known(global, &self.view().frame_scope(at, &instance));
                let exported = OutputArtifactValue { name, ..value.clone() };
                self.decide(WorkflowFact::Exported { parameter: None, artifact: Some(exported) });
            }
        }
    }
}

impl View<'_> {
    fn of_boundary(&self, at: NodeIx, instance: &Instance) -> Result<OutputValues, String> {
        let scope = self.frame_scope(at, instance);
        let mut outputs = OutputValues::default();
        for parameter in &instance.body.outputs.parameters {
            if let Some(value) = boundary_parameter(parameter, &scope.about(&parameter.name))? {
                outputs.parameters.push((parameter.name.clone(), value));
            }
        }
        for artifact in &instance.body.outputs.artifacts {
            match self.artifact_from(artifact, &scope.about(&artifact.name))? {
                Some((stored, path)) => {
                    outputs.artifacts.push(OutputArtifactValue { name: artifact.name.clone(), path, artifact: stored });
                }
                None if artifact.optional => {}
                None => return Err(format!("failed to resolve outputs.artifacts.{}: it has no source", artifact.name)),
            }
        }
        Ok(outputs)
    }

    /// Resolves `from` or `fromExpression` to a stored artifact; `None` if its producer left none.
    pub(super) fn artifact_from(
        &self,
        artifact: &Artifact,
        scope: &Scope<'_>,
    ) -> Result<Option<(StoredArtifact, Option<String>)>, String> {
        let reference = match (&artifact.from, &artifact.from_expression) {
            (Some(from), _) => {
                let from = fill_known(from, scope);
                from.trim().trim_start_matches("{{").trim_end_matches("}}").trim().to_owned()
            }
            (None, Some(expression)) => evaluate_from(&fill_known(expression, scope), scope)?,
            (None, None) => return Ok(None),
        };
        self.artifact_named(&reference, scope)
    }

    fn artifact_named(
        &self,
        reference: &str,
        scope: &Scope<'_>,
    ) -> Result<Option<(StoredArtifact, Option<String>)>, String> {
        let state = &self.run.state;
        if let Some(name) = reference.strip_prefix("workflow.outputs.artifacts.") {
            return Ok(state.exported_artifacts.get(name).map(|found| (found.artifact.clone(), found.path.clone())));
        }
        if let Some(name) = reference.strip_prefix("inputs.artifacts.") {
            let found = scope.inputs.and_then(|inputs| inputs.artifacts.iter().find(|artifact| artifact.name == name));
            return match found.map(|found| (&found.source, &found.path)) {
                Some((octoflow_model::argo::ArtifactValue::Stored { artifact, sub_path: None }, path)) => {
                    Ok(Some((artifact.clone(), path.clone())))
                }
                Some((octoflow_model::argo::ArtifactValue::Absent, _)) => Ok(None),
                Some(_) => {
                    Err(format!("{{{{{reference}}}}} is not a stored artifact and cannot be passed on as an output"))
                }
                None => Err(format!("failed to resolve {{{{{reference}}}}}")),
            };
        }
        let Some(node) = scope.artifact_producer(reference) else {
            return Err(format!("failed to resolve {{{{{reference}}}}}"));
        };
        let name = reference.rsplit_once(".artifacts.").map_or("", |(_, name)| name);
        let found = state
            .node(node)
            .outputs
            .as_deref()
            .and_then(|outputs| outputs.artifacts.iter().find(|value| value.name == name));
        Ok(found.map(|found| (found.artifact.clone(), found.path.clone())))
    }
}

/// Fills the known variables into a text. Unknown ones, and those that are no text, stay as they are.
fn fill_known(text: &str, scope: &Scope<'_>) -> String {
    fill(text, scope, Missing::Keep).map_or_else(|_| text.to_owned(), std::borrow::Cow::into_owned)
}

/// Evaluates `fromExpression`, in which each artifact stands for its own reference.
fn evaluate_from(expression: &str, scope: &Scope<'_>) -> Result<String, String> {
    struct References<'s>(&'s Scope<'s>);
    impl Env for References<'_> {
        fn root(&self, name: &str) -> Option<Value> {
            self.0.root(name)
        }
        fn member(&self, root: &str, key: &str) -> Option<Value> {
            self.0.call_with_artifacts(root, key).map(Into::into)
        }
        fn eval_context(&self) -> Option<EvalContext> {
            self.0.eval_context()
        }
    }
    let value = scope.meter.evaluate(expression, &References(scope)).map_err(|error| error.to_string())?;
    let Value::Str(reference) = value else {
        return Err(format!("fromExpression '{expression}' gave {} where an artifact was expected", value.to_json()));
    };
    Ok(reference.to_string())
}

fn boundary_parameter(parameter: &Parameter, scope: &Scope<'_>) -> Result<Option<String>, String> {
    let Some(from) = &parameter.value_from else {
        return Ok(parameter.value.as_ref().map(|value| fill_known(&value.0, scope)));
    };
    let default = || from.default.as_ref().or(parameter.default.as_ref()).map(|text| fill_known(&text.0, scope));
    if let Some(reference) = &from.parameter {
        if is_absent(reference, scope)
            && let Some(default) = default()
        {
            return Ok(Some(default));
        }
        return match fill(reference, scope, Missing::Refuse) {
            Ok(text) => Ok(Some(text.into_owned())),
            Err(error) => default().map(Some).ok_or_else(|| error.to_string()),
        };
    }
    let Some(expression) = &from.expression else { return Ok(default()) };
    let expression = fill_known(expression, scope);
    let evaluated = scope.meter.evaluate(&expression, scope);
    match evaluated {
        Ok(Value::Str(text)) => Ok(Some(text.to_string())),
        // An exhausted budget is not a missing value.
        Err(error) if error.is_exhausted() => Err(format!("failed to evaluate expression '{expression}': {error}")),
        Ok(Value::Nil) | Err(_) if default().is_some() => Ok(default()),
        Ok(Value::Nil) => Err(format!("failed to evaluate expression '{expression}': it has no value")),
        Ok(other) => Ok(Some(other.to_json())),
        Err(error) => Err(format!("failed to evaluate expression '{expression}': {error}")),
    }
}
