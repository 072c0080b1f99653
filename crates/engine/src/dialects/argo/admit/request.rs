//! Checks http, resource and data templates before their requests are sent.

use octoflow_manifest::{Limits, read};
use octoflow_model::{
    argo::{
        body::{DataTemplate, HttpTemplate, ResourceTemplate},
        template::ValueFrom,
    },
    base64,
};

use super::{
    code,
    findings::{At, Findings},
    index::Entry,
    name,
};
use crate::{
    admit::shape::short,
    dialects::argo::{
        condition::Condition,
        data, http,
        resource::{self, ACTIONS, STRATEGIES},
    },
    expr::{jq, lang, nearest},
};

pub(super) fn check(report: &mut Findings, at: &At<'_>, entry: &Entry<'_>) {
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

fn check_resource(report: &mut Findings, at: &At<'_>, entry: &Entry<'_>, asked: &ResourceTemplate) {
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

fn manifest(report: &mut Findings, at: &At<'_>, entry: &Entry<'_>, of: &str, asked: &ResourceTemplate) {
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
                Ok(documents) if documents.len() == 1 => {}
                Ok(documents) => report.error(&place, code::REQUEST, || {
                    format!("{of}.manifest must hold one object, not {}", documents.len())
                }),
                Err(problems) => report.error(&place, code::REQUEST, || {
                    let why = problems.0.first().map(|problem| problem.message.clone()).unwrap_or_default();
                    format!("{of}.manifest must be a valid yaml: {why}")
                }),
            }
        }
        _ => {}
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
