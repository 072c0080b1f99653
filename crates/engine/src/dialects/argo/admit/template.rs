//! Checks a template by itself: exactly one type, fields that fit the type, valid limits.
//! Calls, outputs, volumes and variables have modules of their own.

use octoflow_model::{argo::RetryStrategy, podspec::Container, scalar::IntOrText};

pub(super) use crate::pod::check::absolute;

use super::{
    Subject, argument, call, code, dag,
    findings::{At, Findings},
    index::{TemplateEntry, TemplateType},
    lock, memo, name, output, pod, request, volume,
};
use crate::{
    admit::shape::short,
    dialects::argo::{duration, fields::TYPE_NAMES},
    expr::nearest,
};

const POLICIES: [&str; 4] = ["Always", "OnFailure", "OnError", "OnTransientError"];

pub(super) fn check(subject: &Subject<'_>, index: usize, report: &mut Findings) {
    let entry = &subject.templates.entries[index];
    if entry.broken {
        return;
    }
    let at = At::base(&entry.path);
    kind(report, &at, entry);
    inputs(report, &at, entry);
    limits(report, &at, entry);
    if let Some(strategy) = &entry.template.retry_strategy {
        retry(report, &at.key("retryStrategy"), strategy);
    }
    if let Some(wanted) = &entry.template.synchronization {
        let of = format!("templates.{}.synchronization", entry.label);
        lock::check(report, &at.key("synchronization"), &of, wanted);
    }
    let stays = entry.kind.leaf() || entry.kind == TemplateType::Unclear;
    if entry.template.daemon == Some(true) && !stays {
        report.warn(&at.key("daemon"), code::MISPLACED, || {
            format!("templates.{}.daemon has no effect: only a task stays up beside others", entry.label)
        });
    }
    if let Some(wanted) = &entry.template.memoize {
        memo::check(report, &at.key("memoize"), &format!("templates.{}.memoize", entry.label), wanted);
    }
    if let Some(container) = &entry.template.container {
        image(report, &at, entry, "container", container);
        volume::mounts(subject, report, &at.key("container"), entry, "container", &container.volume_mounts);
    }
    if let Some(script) = &entry.template.script {
        image(report, &at, entry, "script", &script.container);
        volume::mounts(subject, report, &at.key("script"), entry, "script", &script.container.volume_mounts);
    }
    pod::check(subject, report, &at, entry);
    volume::list(report, &at.key("volumes"), &entry.template.volumes, &entry.raw["volumes"]);
    request::check(report, &at, entry);
    output::check(report, &at, entry);
    if entry.kind == TemplateType::Dag {
        dag::check(report, &at, entry, subject.graphs[index].as_ref());
    }
    call::check(subject, report, &at, entry);
}

fn kind(report: &mut Findings, at: &At<'_>, entry: &TemplateEntry<'_>) {
    let given: Vec<&str> = TYPE_NAMES.iter().copied().filter(|name| entry.raw.get(name).is_some()).collect();
    let label = &entry.label;
    match given.as_slice() {
        [_] => {}
        [] => report.error(at, code::TEMPLATE_TYPE, || {
            format!("templates.{label} template type unspecified. choose one of: {}", TYPE_NAMES.join(", "))
        }),
        several => report.error_with(at, code::TEMPLATE_TYPE, || {
            (
                format!(
                    "templates.{label} multiple template types specified. choose one of: {}",
                    TYPE_NAMES.join(", ")
                ),
                Some(format!("it has: {}", several.join(", "))),
            )
        }),
    }
}

fn inputs(report: &mut Findings, at: &At<'_>, entry: &TemplateEntry<'_>) {
    let inputs = &entry.template.inputs;
    let label = &entry.label;
    let at = at.key("inputs");
    let parameters = at.key("parameters");
    let of = || format!("templates.{label}.inputs.parameters");
    name::list(
        report,
        &parameters,
        &of,
        name::NameRule::Data,
        inputs.parameters.iter().map(|input| input.name.as_str()),
    );
    for (index, input) in inputs.parameters.iter().enumerate() {
        if input.choices.is_some() {
            argument::choice(report, &parameters.index(index), &of(), input);
        }
    }
    let artifacts = at.key("artifacts");
    let of = || format!("templates.{label}.inputs.artifacts");
    name::list(report, &artifacts, &of, name::NameRule::Data, inputs.artifacts.iter().map(|input| input.name.as_str()));
    for (index, input) in inputs.artifacts.iter().enumerate() {
        let place = artifacts.index(index);
        let name = &input.name;
        if input.from.is_some() || input.from_expression.is_some() {
            report.error(&place, code::ARTIFACT, || format!("{}.{name}.from not valid in inputs", of()));
        }
        artifact_path(report, &place, entry, &|| format!("{}.{name}", of()), input.path.as_deref());
    }
}

/// Checks an artifact's path: tasks need one; templates of calls must not have one.
pub(super) fn artifact_path(
    report: &mut Findings,
    at: &At<'_>,
    entry: &TemplateEntry<'_>,
    of: &dyn Fn() -> String,
    path: Option<&str>,
) {
    match (entry.kind, path.filter(|path| !path.is_empty())) {
        (TemplateType::Container | TemplateType::Script | TemplateType::ContainerSet, None) => {
            report.error(at, code::ARTIFACT, || format!("{}.path not specified", of()));
        }
        (TemplateType::Steps | TemplateType::Dag | TemplateType::Suspend, Some(_)) => {
            report.error(&at.key("path"), code::ARTIFACT, || {
                format!("{}.path only valid in container/script templates", of())
            });
        }
        (TemplateType::Container | TemplateType::Script | TemplateType::ContainerSet, Some(path)) => {
            absolute(report, &at.key("path"), &|| format!("{}.path", of()), path)
        }
        // These types place no files: a manifest may come from an input, and there are no files to collect.
        (TemplateType::Http | TemplateType::Resource | TemplateType::Data, _) => {}
        (TemplateType::Steps | TemplateType::Dag | TemplateType::Suspend, None) | (TemplateType::Unclear, _) => {}
    }
}

fn limits(report: &mut Findings, at: &At<'_>, entry: &TemplateEntry<'_>) {
    let template = &entry.template;
    let label = &entry.label;
    if let Some(timeout) = &template.timeout {
        let place = at.key("timeout");
        if matches!(entry.kind, TemplateType::Steps | TemplateType::Dag | TemplateType::Suspend) {
            report.error(&place, code::MISPLACED, || {
                format!("templates.{label} {} template doesn't support timeout field", entry.kind.word())
            });
        } else if !name::has_variables(&timeout.0) && duration::units(&timeout.0).is_none() {
            report.error_with(&place, code::DURATION, || {
                (
                    format!("{label} has invalid duration format in timeout"),
                    Some(format!(
                        "`{}` is not a duration; write it with units, as in `90s` or `1h30m`",
                        short(&timeout.0)
                    )),
                )
            });
        }
    }
    if let Some(deadline) = &template.active_deadline_seconds {
        let place = at.key("activeDeadlineSeconds");
        if matches!(entry.kind, TemplateType::Steps | TemplateType::Dag) {
            report.error_with(&place, code::MISPLACED, || {
                (
                    format!("templates.{label}.activeDeadlineSeconds is only valid for leaf templates"),
                    Some(
                        "set it on the templates it calls, or on the whole workflow as `spec.activeDeadlineSeconds`"
                            .to_owned(),
                    ),
                )
            });
        } else if !number_from(deadline, 0) {
            report.error(&place, code::MISPLACED, || {
                format!("templates.{label}.activeDeadlineSeconds must be a positive integer > 0 or an argo variable")
            });
        }
    }
    if let Some(parallelism) = &template.parallelism {
        let place = at.key("parallelism");
        if !matches!(entry.kind, TemplateType::Steps | TemplateType::Dag | TemplateType::Unclear) {
            report.error(&place, code::MISPLACED, || {
                format!("templates.{label}.parallelism is only valid for steps and dag templates")
            });
        } else if !number_from(parallelism, 1) {
            report.error(&place, code::MISPLACED, || {
                format!("templates.{label}.parallelism must be a whole number from 1, or a variable")
            });
        }
    }
    if let Some(wait) = template.suspend.as_ref().and_then(|suspend| suspend.duration.as_ref()) {
        let place = at.key("suspend");
        span(report, &place.key("duration"), &|| format!("templates.{label}.suspend.duration"), wait);
    }
}

fn image(report: &mut Findings, at: &At<'_>, entry: &TemplateEntry<'_>, field: &str, container: &Container) {
    if container.image.is_empty() {
        let label = &entry.label;
        report.error(&at.key(field), code::REQUIRED, || format!("templates.{label}.{field}.image may not be empty"));
    }
}

/// Checks a retry strategy of a template or of the whole workflow. Its expression is checked with the variables.
pub(super) fn retry(report: &mut Findings, at: &At<'_>, strategy: &RetryStrategy) {
    if let Some(policy) = strategy.retry_policy.as_deref().filter(|policy| !policy.is_empty())
        && !POLICIES.contains(&policy)
    {
        report.error_with(&at.key("retryPolicy"), code::RETRY, || {
            let near = nearest(policy, POLICIES).map(|near| format!("did you mean `{near}`?"));
            let help = near.unwrap_or_else(|| format!("choose one of: {}", POLICIES.join(", ")));
            (format!("{} is not a valid RetryPolicy", short(policy)), Some(help))
        });
    }
    if let Some(limit) = &strategy.limit
        && !number_from(limit, 0)
    {
        report.error(&at.key("limit"), code::RETRY, || {
            format!("retryStrategy.limit '{}' must be a whole number from 0, or a variable", short(&limit.0))
        });
    }
    let Some(backoff) = &strategy.backoff else { return };
    let at = at.key("backoff");
    for (field, wait) in
        [("duration", &backoff.duration), ("maxDuration", &backoff.max_duration), ("cap", &backoff.cap)]
    {
        if let Some(wait) = wait {
            span(report, &at.key(field), &|| format!("retryStrategy.backoff.{field}"), wait);
        }
    }
    if let Some(factor) = &backoff.factor
        && !number_from(factor, 0)
    {
        report.error(&at.key("factor"), code::RETRY, || {
            format!("retryStrategy.backoff.factor '{}' must be a whole number from 0, or a variable", short(&factor.0))
        });
    }
}

pub(super) fn span(report: &mut Findings, at: &At<'_>, of: &dyn Fn() -> String, text: &IntOrText) {
    if !text.0.is_empty() && !name::has_variables(&text.0) && duration::parse(&text.0).is_none() {
        report.error_with(at, code::DURATION, || {
            (
                format!("{} '{}' is not a duration", of(), short(&text.0)),
                Some(
                    "write a number of seconds, or units as in `90s`, `10m` or `1h30m` (days are written in hours)"
                        .to_owned(),
                ),
            )
        });
    }
}

pub(super) fn number_from(text: &IntOrText, least: i64) -> bool {
    name::has_variables(&text.0) || text.0.trim().parse::<i64>().is_ok_and(|number| number >= least)
}
