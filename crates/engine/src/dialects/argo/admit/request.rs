//! Checks http, resource and data templates before their requests are sent.

use octoflow_manifest::{Limits, Severity, read};
use octoflow_model::{
    argo::{
        body::{DataTemplate, HttpTemplate, ResourceTemplate},
        template::ValueFrom,
    },
    base64,
};
use serde_json::Value;

use super::{
    code,
    findings::{At, Findings},
    index::TemplateEntry,
    name,
};
use crate::{
    admit::{Catalog, shape::short},
    dialects::argo::{
        DIALECT,
        condition::Condition,
        data, http,
        resource::{self, ACTIONS, STRATEGIES},
    },
    expr::{jq, lang, nearest},
    kinds::{self, Kind},
};

pub(super) fn check(report: &mut Findings, at: &At<'_>, entry: &TemplateEntry<'_>) {
    if let Some(asked) = &entry.template.http {
        check_http(report, &at.key("http"), &entry.label, asked);
    }
    if let Some(asked) = &entry.template.resource {
        check_resource(report, &at.key("resource"), entry, asked);
    }
    if let Some(asked) = &entry.template.data {
        check_data(report, &at.key("data"), &entry.label, asked);
    }
}

fn check_http(report: &mut Findings, at: &At<'_>, label: &str, asked: &HttpTemplate) {
    let of = format!("templates.{label}.http");
    if asked.url.is_empty() {
        report.error(at, code::REQUIRED, || format!("{of}.url may not be empty"));
    } else if !name::has_variables(&asked.url)
        && let Some(why) = http::wrong_url(&asked.url)
    {
        report.error(&at.key("url"), code::REQUEST, || format!("{of}: {why}"));
    }
    if let Some(method) = asked.method.as_deref().filter(|method| !method.is_empty() && !name::has_variables(method))
        && !http::is_method(method.trim())
    {
        report.error(&at.key("method"), code::REQUEST, || format!("{of}.method '{}' is no method", short(method)));
    }
    if let Some(seconds) = &asked.timeout_seconds
        && !name::has_variables(&seconds.0)
        && seconds.0.trim().parse::<u64>().is_err()
    {
        report.error(&at.key("timeoutSeconds"), code::DURATION, || {
            format!("{of}.timeoutSeconds '{}' must be a whole number of seconds", short(&seconds.0))
        });
    }
    headers(report, &at.key("headers"), &of, asked);
    let bytes = asked.body_from.as_ref().and_then(|from| from.bytes.as_deref());
    if asked.body.as_ref().is_some_and(|body| !body.0.is_empty()) && bytes.is_some() {
        report.error(&at.key("bodyFrom"), code::REQUEST, || format!("{of} has both body and bodyFrom. Choose one."));
    }
    if let Some(bytes) = bytes.filter(|bytes| !name::has_variables(bytes))
        && base64::decode(bytes).is_err()
    {
        report.error(&at.key("bodyFrom"), code::REQUEST, || format!("{of}.bodyFrom.bytes is not base64"));
    }
    if let Some(condition) = asked.success_condition.as_deref() {
        condition_parses(report, &at.key("successCondition"), condition, &["request", "response"]);
    }
}

fn headers(report: &mut Findings, at: &At<'_>, of: &str, asked: &HttpTemplate) {
    for (index, header) in asked.headers.iter().enumerate() {
        let place = at.index(index);
        if header.name.is_empty() {
            report.error(&place, code::REQUIRED, || format!("{of}.headers[{index}].name may not be empty"));
        }
        let from = header.value_from.as_ref().and_then(|from| from.secret_key_ref.as_ref());
        if header.value.is_some() && from.is_some() {
            report.error(&place, code::REQUEST, || {
                format!("{of}.headers[{index}] has both value and valueFrom. Choose one.")
            });
        }
    }
}

/// Checks an expression that fills a whole field and may refer to these root names only.
fn condition_parses(report: &mut Findings, at: &At<'_>, text: &str, roots: &[&str]) {
    if text.trim().is_empty() || text.contains("{{") {
        return;
    }
    match lang::parse(text) {
        Ok(program) => {
            for reference in program.roots() {
                if !roots.contains(&reference.root()) {
                    report.error(at, code::EXPRESSION, || {
                        format!(
                            "the expression refers to `{}`; here it can only use {}",
                            reference.root(),
                            roots.join(" and ")
                        )
                    });
                }
            }
        }
        Err(error) => report.error(at, code::EXPRESSION, || {
            format!("the expression `{}` is wrong at character {}: {}", short(text.trim()), error.column, error.message)
        }),
    }
}

fn check_resource(report: &mut Findings, at: &At<'_>, entry: &TemplateEntry<'_>, asked: &ResourceTemplate) {
    let of = format!("templates.{}.resource", entry.label);
    let one_of = |word: &str, all: &[&str]| {
        let near = nearest(word, all.iter().copied()).map(|near| format!("did you mean `{near}`?"));
        near.unwrap_or_else(|| format!("choose one of: {}", all.join(", ")))
    };
    if !name::has_variables(&asked.action) && !ACTIONS.contains(&asked.action.as_str()) {
        report.error_with(&at.key("action"), code::REQUEST, || {
            let message = format!("{of}.action must be one of: {}", ACTIONS.join(", "));
            (message, Some(one_of(&asked.action, &ACTIONS)))
        });
    }
    if let Some(strategy) =
        asked.merge_strategy.as_deref().filter(|word| !word.is_empty() && !name::has_variables(word))
        && !STRATEGIES.contains(&strategy)
    {
        report.error_with(&at.key("mergeStrategy"), code::REQUEST, || {
            let message = format!("{of}.mergeStrategy '{}' is not known", short(strategy));
            (message, Some(one_of(strategy, &STRATEGIES)))
        });
    }
    let conditions = [("successCondition", &asked.success_condition), ("failureCondition", &asked.failure_condition)];
    for (field, condition) in conditions {
        if let Some(text) = condition.as_deref().filter(|text| !text.trim().is_empty() && !name::has_variables(text))
            && let Err(why) = Condition::parse(text)
        {
            report.error(&at.key(field), code::REQUEST, || format!("{of}.{field}: {why}"));
        }
    }
    let waits = asked.success_condition.is_some() || asked.failure_condition.is_some();
    if asked.action == "delete" && (waits || !entry.template.outputs.parameters.is_empty()) {
        report.error(at, code::REQUEST, || {
            "successCondition, failureCondition and outputs are not supported for delete action".to_owned()
        });
    }
    manifest(report, at, entry, &of, asked);
}

fn manifest(report: &mut Findings, at: &At<'_>, entry: &TemplateEntry<'_>, of: &str, asked: &ResourceTemplate) {
    let text = asked.manifest.as_ref().map(|text| text.0.as_str()).filter(|text| !text.trim().is_empty());
    let artifact = asked.manifest_from.as_ref().and_then(|from| from.artifact.as_ref());
    match (text, artifact) {
        (Some(_), Some(_)) => {
            report.error(at, code::REQUEST, || format!("{of}: shouldn't have both manifest and manifestFrom specified"))
        }
        (None, None) if asked.flags.is_empty() => {
            report.error(at, code::REQUIRED, || format!("{of}: either manifest or manifestFrom must be specified"));
        }
        (None, Some(artifact))
            if artifact.raw.is_none() && artifact.from.is_none() && !entry.inputs.artifact(&artifact.name) =>
        {
            report.error(&at.key("manifestFrom"), code::ARTIFACT, || {
                format!("{of}.manifestFrom.artifact: there is no input artifact '{}'", short(&artifact.name))
            });
        }
        (Some(text), None) if !text.contains("{{") => {
            let place = at.key("manifest");
            match read("manifest", text.as_bytes(), &Limits::default()) {
                Ok(documents) if documents.len() == 1 => {
                    if let Some(found) = kind(report, &place, of, &asked.action, &documents[0].value) {
                        content(report, &place, of, &asked.action, found, &documents[0].value);
                    }
                }
                Ok(documents) => report.error(&place, code::REQUEST, || {
                    format!("{of}.manifest must hold one object, not {}", documents.len())
                }),
                Err(problems) => report.error(&place, code::REQUEST, || {
                    let why = problems.0.first().map(|problem| problem.message.clone()).unwrap_or_default();
                    format!("{of}.manifest must be a valid yaml: {why}")
                }),
            }
        }
        (Some(text), None) => {
            // With its variables it may be no YAML yet, and how many objects it holds is not known.
            if let Ok(documents) = read("manifest", without_variables(text).as_bytes(), &Limits::default())
                && let [document] = documents.as_slice()
            {
                let _ = kind(report, &at.key("manifest"), of, &asked.action, &document.value);
            }
        }
        _ => {}
    }
}

/// Stands for a variable. No kind and no group is called so.
const VARIABLE: &str = "0variable0";

fn without_variables(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once("{{") {
        out.push_str(before);
        let Some((_, after)) = after.split_once("}}") else { return out };
        out.push_str(VARIABLE);
        rest = after;
    }
    out + rest
}

/// Refuses an object of a kind that is not kept here, or that nobody can create: there is no cluster that would have it, so
/// the step could only fail. Returns the kind of one that may be asked for.
fn kind(report: &mut Findings, at: &At<'_>, of: &str, action: &str, object: &Value) -> Option<&'static Kind> {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let (version, word) = (text("apiVersion"), text("kind"));
    if word.is_empty() || version.contains(VARIABLE) || word.contains(VARIABLE) {
        return None;
    }
    let group = kinds::group_of(version);
    let found = kinds::all().find(|kind| kind.has_name(word) && (version.is_empty() || kind.is_of(group)));
    match found {
        Some(found) if found.is_view() => report.error(at, code::KIND, || {
            format!("{of}.manifest: a {} is shown here, and cannot be asked for by a resource template", found.name)
        }),
        // Such a kind has no fields that a check could be about: the kind itself is refused, or nothing is.
        Some(found) if found.shape.is_none() && !matches!(action, "get" | "delete") => {
            let refused = found.check.map(|check| check(object).0).unwrap_or_default();
            for problem in refused {
                report.error_with(at, code::KIND, || (format!("{of}.manifest: {}", problem.message), problem.help));
            }
        }
        Some(found) => return Some(found),
        None => {
            let why = kinds::of_manifest(object).err();
            report.error_with(at, code::KIND, || {
                let told = why.as_ref().map(|problem| problem.message.clone()).unwrap_or_default();
                (format!("{of}.manifest: {told}"), why.and_then(|problem| problem.help))
            });
        }
    }
    None
}

/// Refuses an object that could not be created as it is written, as if everything it refers to existed: an earlier step may
/// make that. Workflows within workflows are looked at when they are made; what is applied may be a part of an object that
/// exists.
fn content(report: &mut Findings, at: &At<'_>, of: &str, action: &str, kind: &'static Kind, object: &Value) {
    if action != "create" || kind.group == DIALECT.kind.group {
        return;
    }
    // The kind may be written in any of its ways.
    let mut object = object.clone();
    object["kind"] = Value::from(kind.name);
    let object = &object;
    let found = match (kind.dialect(), kind.check) {
        (Some(dialect), _) => (dialect.examine)(object, &Everything).err().map(|problems| problems.0),
        (None, Some(check)) => Some(check(object).0),
        (None, None) => None,
    };
    for problem in found.into_iter().flatten().filter(|problem| problem.severity == Severity::Error) {
        report.error_with(at, problem.code, || {
            let place = problem.path.as_ref().map(|path| format!("{path}: ")).unwrap_or_default();
            (format!("{of}.manifest: {place}{}", problem.message), problem.help)
        });
    }
}

struct Everything;

impl Catalog for Everything {
    fn has_object(&self, _: &'static Kind, _: &str, _: &str) -> bool {
        true
    }
}

/// Checks that `jsonPath` and `jqFilter` parse.
pub(super) fn sources(report: &mut Findings, at: &At<'_>, of: &dyn Fn() -> String, from: &ValueFrom) {
    if let Some(path) = from.json_path.as_deref().filter(|path| !path.contains("{{"))
        && let Err(why) = resource::path_of(path)
    {
        report.error(&at.key("jsonPath"), code::OUTPUT_SOURCE, || format!("{}.jsonPath: {why}", of()));
    }
    if let Some(filter) = from.jq_filter.as_deref().filter(|filter| !filter.contains("{{"))
        && let Err(why) = jq::parse(filter)
    {
        report.error(&at.key("jqFilter"), code::OUTPUT_SOURCE, || format!("{}.jqFilter: {why}", of()));
    }
}

fn check_data(report: &mut Findings, at: &At<'_>, label: &str, asked: &DataTemplate) {
    let of = format!("templates.{label}.data");
    if let Err(why) = data::source(asked) {
        report.error(&at.key("source"), code::REQUEST, || format!("{of}.source: {why}"));
    }
    let list = at.key("transformation");
    for (index, step) in asked.transformation.iter().enumerate() {
        let place = list.index(index);
        if step.expression.trim().is_empty() {
            report
                .error(&place, code::REQUIRED, || format!("{of}.transformation[{index}].expression may not be empty"));
        }
        condition_parses(report, &place.key("expression"), &step.expression, &["data"]);
    }
}
