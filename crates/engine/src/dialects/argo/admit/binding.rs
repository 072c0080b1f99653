//! Admits WorkflowEventBindings: their expressions and the template they refer to. The content of events is unknown.

use octoflow_manifest::{Path, Problem, Severity};
use octoflow_model::meta::DEFAULT_NAMESPACE;
use serde_json::Value;

use super::{
    Catalog, code,
    findings::{At, Findings},
    name, own_name, version,
};
use crate::{
    admit::shape,
    dialects::argo::{fields::EVENT_BINDING, refer::Reach},
    expr::{lang, nearest},
};

/// Root names that a binding's expressions can refer to.
const ROOTS: [&str; 5] = ["payload", "metadata", "discriminator", "namespace", "sprig"];

/// Checks a WorkflowEventBinding. Returns problems and warnings.
pub fn examine_binding(object: &Value, others: &dyn Catalog) -> (Vec<Problem>, Vec<Problem>) {
    let checked = shape::check(object, &EVENT_BINDING);
    let mut report = Findings::new(checked.problems, checked.warnings);
    version(&checked.value, &checked.broken, &mut report);
    own_name(&checked.value, "binding", &mut report);
    let place = Path::root().join("spec");
    let at = At::base(&place);
    let spec = &checked.value["spec"];
    match spec["event"]["selector"].as_str() {
        Some(selector) if !selector.trim().is_empty() => {
            expression(&mut report, &at.key("event").key("selector"), selector, &ROOTS);
        }
        _ if checked.broken.iter().any(|path| path.starts_with(&place.join("event"))) => {}
        _ => report.error(&at, code::REQUIRED, || "spec.event.selector is required".to_owned()),
    }
    if spec["submit"].is_object() {
        submit(spec, &checked.value, others, &at.key("submit"), &mut report);
    }
    let found = match report.verdict() {
        Ok(warnings) => warnings,
        Err(problems) => problems.0,
    };
    found.into_iter().partition(|problem| problem.severity == Severity::Error)
}

fn submit(spec: &Value, object: &Value, others: &dyn Catalog, at: &At<'_>, report: &mut Findings) {
    let submit = &spec["submit"];
    let reference = &submit["workflowTemplateRef"];
    let reach = Reach::of(reference["clusterScope"] == true);
    let namespace = object["metadata"]["namespace"].as_str().filter(|text| !text.is_empty());
    match reference["name"].as_str().filter(|name| !name.is_empty()) {
        None => report.error(&at.key("workflowTemplateRef"), code::REQUIRED, || {
            "spec.submit.workflowTemplateRef.name is required".to_owned()
        }),
        Some(name) if others.template(reach, namespace.unwrap_or(DEFAULT_NAMESPACE), name).is_none() => {
            // The template may be created later, or exist elsewhere.
            report.warn(&at.key("workflowTemplateRef").key("name"), code::NOT_LOADED, || {
                format!("{} '{}' is not loaded", reach.kind(), shape::short(name))
            });
        }
        Some(_) => {}
    }
    for field in ["name", "generateName"] {
        if let Some(text) = submit["metadata"][field].as_str().filter(|text| !text.is_empty()) {
            expression(report, &at.key("metadata").key(field), text, &ROOTS);
        }
    }
    for field in ["labels", "annotations"] {
        for (key, text) in submit["metadata"][field].as_object().into_iter().flatten() {
            expression(report, &at.key("metadata").key(field).key(key), text.as_str().unwrap_or_default(), &ROOTS);
        }
    }
    let (arguments, list) = (at.key("arguments"), &submit["arguments"]["parameters"]);
    let names = list.as_array().into_iter().flatten().map(|item| item["name"].as_str().unwrap_or_default());
    let of = || "spec.submit.arguments.parameters".to_owned();
    name::list(report, &arguments.key("parameters"), &of, name::NameRule::Data, names);
    for (index, item) in list.as_array().into_iter().flatten().enumerate() {
        let items = arguments.key("parameters");
        let at = items.index(index);
        match item["valueFrom"]["event"].as_str().filter(|text| !text.is_empty()) {
            Some(text) => expression(report, &at.key("valueFrom").key("event"), text, &ROOTS),
            None => report.error(&at, code::REQUIRED, || {
                format!("spec.submit.arguments.parameters[{index}].valueFrom.event is required")
            }),
        }
    }
}

/// Checks an expression that may refer to these root names and to functions.
pub(super) fn expression(report: &mut Findings, at: &At<'_>, text: &str, roots: &[&str]) {
    let shown = shape::short(text.trim());
    let program = match lang::parse(text) {
        Ok(program) => program,
        Err(error) => {
            return report.error(at, code::EXPRESSION, || {
                format!("the expression `{shown}` is wrong at character {}: {}", error.column, error.message)
            });
        }
    };
    for flaw in program.flaws() {
        report.error(at, code::EXPRESSION, || {
            format!("the expression `{shown}` is wrong at character {}: {}", flaw.column, flaw.message)
        });
    }
    for reference in program.roots() {
        if !roots.contains(&reference.root()) {
            report.error_with(at, code::UNRESOLVED, || {
                let help = match nearest(reference.root(), roots.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("it can refer to: {}", roots.join(", ")),
                };
                (format!("unknown name `{}`", shape::short(&reference.path.join("."))), Some(help))
            });
        }
    }
}
