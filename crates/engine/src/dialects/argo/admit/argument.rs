//! Checks arguments: each has a value, and a template gets every input it needs.

use std::collections::HashSet;

use octoflow_model::argo::{Arguments, Artifact, Template, template::Parameter};
use serde_json::Value;

use super::{
    code,
    findings::{At, Findings},
    index::TemplateEntry,
    name,
};
use crate::admit::shape::short;

/// Checks the arguments of the workflow, of a call or of a hook. `of` names them in messages, such as
/// `spec.arguments`; `raw` are the raw artifacts when some field of them is only known raw.
pub(super) fn check(report: &mut Findings, at: &At<'_>, of: &str, arguments: &Arguments, raw: Option<&Value>) {
    let parameters = at.key("parameters");
    let names = arguments.parameters.iter().map(|parameter| parameter.name.as_str());
    name::list(report, &parameters, &|| format!("{of}.parameters"), name::NameRule::Data, names);
    for (index, parameter) in arguments.parameters.iter().enumerate() {
        value(report, &parameters.index(index), of, parameter);
    }
    let artifacts = at.key("artifacts");
    let names = arguments.artifacts.iter().map(|artifact| artifact.name.as_str());
    name::list(report, &artifacts, &|| format!("{of}.artifacts"), name::NameRule::Data, names);
    for (index, artifact) in arguments.artifacts.iter().enumerate() {
        let raw = raw.and_then(|raw| raw.get("artifacts")?.get(index));
        source(report, &artifacts.index(index), of, artifact, raw);
    }
}

/// Checks arguments that need no values yet: those a WorkflowTemplate declares.
pub(super) fn declared(report: &mut Findings, at: &At<'_>, of: &str, arguments: &Arguments) {
    let parameters = at.key("parameters");
    let names = arguments.parameters.iter().map(|parameter| parameter.name.as_str());
    name::list(report, &parameters, &|| format!("{of}.parameters"), name::NameRule::Data, names);
    for (index, parameter) in arguments.parameters.iter().enumerate() {
        choice(report, &parameters.index(index), of, parameter);
    }
    let artifacts = at.key("artifacts");
    let names = arguments.artifacts.iter().map(|artifact| artifact.name.as_str());
    name::list(report, &artifacts, &|| format!("{of}.artifacts"), name::NameRule::Data, names);
}

/// Reports inputs of a template that these arguments do not supply.
pub(super) fn supply(
    report: &mut Findings,
    at: &At<'_>,
    prefix: &str,
    entry: &TemplateEntry<'_>,
    arguments: &Arguments,
) {
    if entry.broken {
        return;
    }
    let missing = |what: &str, name: &str| {
        let label = &entry.label;
        let gap = if prefix.is_empty() { "" } else { " " };
        let message = format!("{prefix}{gap}templates.{label} inputs.{what}.{name} was not supplied");
        let help = format!("pass it under `arguments.{what}`, or give the input a `default`");
        (message, Some(help))
    };
    // A full report takes no more problems, so stop here: the work must not grow with the rest.
    if report.is_full() {
        return;
    }
    let needs = &entry.needs;
    if !needs.parameters.is_empty() {
        let given: HashSet<&str> = arguments.parameters.iter().map(|given| given.name.as_str()).collect();
        for name in needs.parameters.iter().filter(|name| !given.contains(name.as_str())) {
            report.error_with(at, code::NOT_SUPPLIED, || missing("parameters", name));
        }
    }
    if !needs.artifacts.is_empty() {
        let given: HashSet<&str> = arguments.artifacts.iter().map(|given| given.name.as_str()).collect();
        for name in needs.artifacts.iter().filter(|name| !given.contains(name.as_str())) {
            report.error_with(at, code::NOT_SUPPLIED, || {
                let (message, _) = missing("artifacts", name);
                (message, Some("pass it under `arguments.artifacts`, or mark the input `optional: true`".to_owned()))
            });
        }
    }
}

/// Inputs that a call must supply.
#[derive(Default)]
pub(super) struct Needs {
    parameters: Vec<String>,
    artifacts: Vec<String>,
}

impl Needs {
    pub(super) fn is_empty(&self) -> bool {
        self.parameters.is_empty() && self.artifacts.is_empty()
    }

    pub(super) fn of(template: &Template, raw: &Value) -> Self {
        let parameters = template.inputs.parameters.iter();
        let artifacts = template.inputs.artifacts.iter().enumerate();
        let raw = &raw["inputs"]["artifacts"];
        Self {
            parameters: parameters
                .filter(|input| input.value.is_none() && input.default.is_none() && input.value_from.is_none())
                .map(|input| input.name.clone())
                .filter(|name| !name::has_variables(name))
                .collect(),
            artifacts: artifacts
                .filter(|(index, input)| !input.optional && !located(input, raw.get(index)))
                .map(|(_, input)| input.name.clone())
                .filter(|name| !name::has_variables(name))
                .collect(),
        }
    }
}

/// Checks a value against its `enum`. Values with variables are only known at run time.
pub(super) fn choice(report: &mut Findings, at: &At<'_>, of: &str, parameter: &Parameter) {
    let Some(choices) = &parameter.choices else { return };
    let name = &parameter.name;
    if choices.is_empty() {
        report.error(&at.key("enum"), code::NOT_IN_ENUM, || {
            format!("{of}.{name}.enum should contain at least one value")
        });
        return;
    }
    let Some(value) = &parameter.value else { return };
    if !name::has_variables(&value.0) && !choices.contains(value) {
        report.error_with(&at.key("value"), code::NOT_IN_ENUM, || {
            let known: Vec<String> = choices.iter().take(20).map(|choice| format!("`{}`", short(&choice.0))).collect();
            let message = format!("{of}.{name}.value should be present in {of}.{name}.enum list");
            (message, Some(format!("the value is `{}`, allowed are: {}", short(&value.0), known.join(", "))))
        });
    }
}

fn value(report: &mut Findings, at: &At<'_>, of: &str, parameter: &Parameter) {
    let name = &parameter.name;
    if let Some(from) = &parameter.value_from {
        let elsewhere = from.path.is_some() || from.parameter.is_some() || from.expression.is_some();
        let source = from.config_map_key_ref.is_some() || from.supplied.is_some();
        if elsewhere || !source {
            report.error(&at.key("valueFrom"), code::NO_VALUE, || {
                format!("{of}.{name}.valueFrom only allows: default, configMapKeyRef and supplied")
            });
        }
    } else if parameter.value.is_none() {
        report.error_with(at, code::NO_VALUE, || {
            (
                format!("{of}.{name}.value or {of}.{name}.valueFrom is required"),
                (of == "spec.arguments").then(|| format!("write a value, or give one with `-p {name}=…`")),
            )
        });
    }
    choice(report, at, of, parameter);
}

fn source(report: &mut Findings, at: &At<'_>, of: &str, artifact: &Artifact, raw: Option<&Value>) {
    let name = &artifact.name;
    let sources = usize::from(artifact.from.is_some()) + usize::from(artifact.from_expression.is_some());
    if sources == 2 {
        report.error(at, code::ARTIFACT, || format!("{of}.{name} should have either `from` or `fromExpression`"));
    } else if sources == 0 && !located(artifact, raw) && !artifact.optional {
        report.error(at, code::ARTIFACT, || format!("{of}.{name}.from, artifact location, or key is required"));
    }
    if let Some(from) = &artifact.from
        && !name::has_variables(from)
    {
        report.error_with(&at.key("from"), code::ARTIFACT, || {
            (
                format!("{of}.{name}.from '{}' does not name an artifact", short(from)),
                Some("write it as a variable: `{{steps.NAME.outputs.artifacts.NAME}}`".to_owned()),
            )
        });
    }
}

/// Whether the artifact brings its own content or names a location (some locations are refused elsewhere).
fn located(artifact: &Artifact, raw: Option<&Value>) -> bool {
    const STORES: [&str; 9] = ["s3", "gcs", "oss", "azure", "hdfs", "artifactory", "http", "git", "plugin"];
    artifact.raw.is_some()
        || artifact.location.is_given()
        || raw.is_some_and(|raw| STORES.iter().any(|store| raw.get(store).is_some()))
}
