//! Templates that ask for something: that the question makes sense before anybody asks it.

use octoflow_model::argo::body::HttpTemplate;

use super::{
    book::Entry,
    code, name,
    report::{At, Report},
};
use crate::{argo::http, expr::encode, expr::lang, shape::short};

pub(super) fn check(report: &mut Report, at: &At<'_>, entry: &Entry<'_>) {
    if let Some(asked) = &entry.template.http {
        check_http(report, &at.key("http"), &entry.label, asked);
    }
}

fn check_http(report: &mut Report, at: &At<'_>, label: &str, asked: &HttpTemplate) {
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
        && encode::from_base64(bytes).is_err()
    {
        report.error(&at.key("bodyFrom"), code::REQUEST, || format!("{of}.bodyFrom.bytes is not base64"));
    }
    if let Some(condition) = asked.success_condition.as_deref() {
        condition_parses(report, &at.key("successCondition"), condition, &["request", "response"]);
    }
}

fn headers(report: &mut Report, at: &At<'_>, of: &str, asked: &HttpTemplate) {
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

/// An expression that fills a whole field and knows only these names.
fn condition_parses(report: &mut Report, at: &At<'_>, text: &str, roots: &[&str]) {
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
