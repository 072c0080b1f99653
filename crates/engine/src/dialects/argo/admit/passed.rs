//! Checks what calls pass on: arguments that the called template does not declare, and references of the wrong type.
//! Missing arguments are reported elsewhere.

use octoflow_model::argo::{Arguments, Artifact, template::Parameter};

use super::{
    Subject, code,
    findings::{At, Findings},
    index::{Callee, TemplateEntry},
    name,
};
use crate::admit::shape::short;

pub(super) fn check(subject: &Subject<'_>, report: &mut Findings) {
    for entry in subject.templates.entries.iter().filter(|entry| !entry.broken) {
        let base = At::base(&entry.path);
        outputs(report, &base, entry);
        for ((site, call), callee) in entry.calls().zip(&entry.callees) {
            let place = base.call(site);
            let of = || format!("templates.{}.{}", entry.label, site.of(&call.name));
            let arguments = place.key("arguments");
            artifacts(report, &arguments.key("artifacts"), &call.arguments.artifacts);
            if let Callee::Entry(callee) = callee {
                check_declared(report, &arguments, &of, &subject.templates.entries[*callee], &call.arguments);
            }
            let hooks = place.key("hooks");
            for (moment, hook) in &call.hooks {
                let callee = match (&hook.template, &hook.template_ref) {
                    (Some(name), None) => subject.templates.find_from(entry.template_scope.as_deref(), name),
                    (None, Some(reference)) => subject.templates.find_reference(reference),
                    _ => None,
                };
                let place = hooks.key(moment);
                let arguments = place.key("arguments");
                artifacts(report, &arguments.key("artifacts"), &hook.arguments.artifacts);
                if let Some(callee) = callee {
                    let of = || format!("{}.hooks.{moment}", of());
                    check_declared(report, &arguments, &of, &subject.templates.entries[callee], &hook.arguments);
                }
            }
        }
    }
}

/// Warns about arguments that the template does not declare: Argo accepts them, but they are hardly ever meant.
fn check_declared(
    report: &mut Findings,
    at: &At<'_>,
    of: &dyn Fn() -> String,
    callee: &TemplateEntry<'_>,
    arguments: &Arguments,
) {
    if callee.broken {
        return;
    }
    let inputs = &callee.inputs;
    let list = at.key("parameters");
    for (index, given) in arguments.parameters.iter().enumerate() {
        value(report, &list.index(index), of, callee, given);
        if !name::has_variables(&given.name) && !inputs.parameter(&given.name) {
            undeclared(report, &list.index(index), of, callee, ("parameter", &given.name), &inputs.parameters);
        }
    }
    let list = at.key("artifacts");
    for (index, given) in arguments.artifacts.iter().enumerate() {
        if !name::has_variables(&given.name) && !inputs.artifact(&given.name) {
            undeclared(report, &list.index(index), of, callee, ("artifact", &given.name), &inputs.artifacts);
        }
    }
}

/// Warns about a value that is visibly wrong: not in the input's `enum`, or an artifact.
fn value(report: &mut Findings, at: &At<'_>, of: &dyn Fn() -> String, callee: &TemplateEntry<'_>, given: &Parameter) {
    let Some(text) = given.value.as_ref().map(|value| value.0.as_str()) else { return };
    let named = |parameter: &&Parameter| parameter.name == given.name;
    let choices = callee.template.inputs.parameters.iter().find(named).and_then(|input| input.choices.as_ref());
    if let Some(choices) = choices
        && !name::has_variables(text)
        && !choices.iter().any(|choice| choice.0 == text || name::has_variables(&choice.0))
    {
        report.warn_with(&at.key("value"), code::NOT_IN_ENUM, || {
            let known: Vec<String> = choices.iter().take(20).map(|choice| format!("`{}`", short(&choice.0))).collect();
            let message = format!(
                "{} passes '{}', which is not in the enum list of the parameter '{}'",
                of(),
                short(text),
                short(&given.name)
            );
            (message, Some(format!("allowed are: {}", known.join(", "))))
        });
    }
    if only_variable(text).is_some_and(names_artifact) {
        report.warn_with(&at.key("value"), code::ARTIFACT, || {
            let message = format!("'{}' is an artifact; as a parameter it stays the text it is", short(text));
            (message, Some("pass it under `arguments.artifacts`, with `from`".to_owned()))
        });
    }
}

fn undeclared(
    report: &mut Findings,
    at: &At<'_>,
    of: &dyn Fn() -> String,
    callee: &TemplateEntry<'_>,
    (what, name): (&str, &str),
    known: &std::collections::HashSet<String>,
) {
    report.warn_with(&at.key("name"), code::NOT_TAKEN, || {
        let message = format!(
            "{} passes the {what} '{}', which template '{}' does not declare",
            of(),
            short(name),
            short(&callee.label)
        );
        let mut names: Vec<&str> = known.iter().map(String::as_str).collect();
        names.sort_unstable();
        let help = name::suggest(name, names.iter().copied()).or_else(|| {
            let taken = if names.is_empty() { "nothing of the kind".to_owned() } else { names.join(", ") };
            (names.len() <= 20).then(|| format!("it takes: {taken}"))
        });
        (message, help)
    });
}

fn outputs(report: &mut Findings, at: &At<'_>, entry: &TemplateEntry<'_>) {
    let at = at.key("outputs");
    artifacts(report, &at.key("artifacts"), &entry.template.outputs.artifacts);
    let list = at.key("parameters");
    for (index, output) in entry.template.outputs.parameters.iter().enumerate() {
        let Some(text) = output.value_from.as_ref().and_then(|from| from.parameter.as_deref()) else { continue };
        let place = list.index(index);
        let place = place.key("valueFrom");
        let place = place.key("parameter");
        if only_variable(text).is_some_and(names_artifact) {
            report.error(&place, code::OUTPUT_SOURCE, || {
                format!("'{}' is an artifact, and a parameter cannot take its value from one", short(text))
            });
        }
        let bare = !name::has_variables(text)
            && ["steps.", "tasks.", "inputs.", "workflow."].iter().any(|root| text.trim().starts_with(root));
        if bare {
            report.warn_with(&place, code::OUTPUT_SOURCE, || {
                let message =
                    format!("'{}' is a literal text here, not a reference to the value of that name", short(text));
                (message, Some(format!("write it as a variable: `{{{{{}}}}}`", short(text.trim()))))
            });
        }
    }
}

/// Checks that `from` names an artifact.
fn artifacts(report: &mut Findings, at: &At<'_>, artifacts: &[Artifact]) {
    for (index, artifact) in artifacts.iter().enumerate() {
        let Some(from) = artifact.from.as_deref().filter(|from| name::has_variables(from)) else { continue };
        // A nested variable is only known at run time.
        let Some(name) = only_variable(from) else { continue };
        let other = ["inputs.", "outputs.", "steps.", "tasks.", "workflow.", "item"];
        if !names_artifact(name) && other.iter().any(|root| name.starts_with(root)) {
            let place = at.index(index);
            report.error_with(&place.key("from"), code::ARTIFACT, || {
                (
                    format!("'{}' is not an artifact", short(from)),
                    Some("an artifact is named `{{steps.NAME.outputs.artifacts.NAME}}` or `{{inputs.artifacts.NAME}}`; a text can be passed as a parameter, or as `raw: {data: …}`".to_owned()),
                )
            });
        }
    }
}

/// Returns the name in a text that is a single variable.
fn only_variable(text: &str) -> Option<&str> {
    let name = text.trim().strip_prefix("{{")?.strip_suffix("}}")?.trim();
    (!name.contains("{{") && !name.contains("}}") && !name.starts_with('=')).then_some(name)
}

fn names_artifact(name: &str) -> bool {
    let kept = |rest: &str| !rest.is_empty() && !rest.ends_with(".path");
    name.strip_prefix("inputs.artifacts.")
        .or_else(|| name.strip_prefix("workflow.outputs.artifacts."))
        .is_some_and(kept)
        || name.starts_with("workflow.artifacts.")
        || (name.starts_with("steps.") || name.starts_with("tasks."))
            && name.split_once(".outputs.artifacts.").is_some_and(|(_, rest)| kept(rest))
}
