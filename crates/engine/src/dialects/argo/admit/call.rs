//! Checks steps and tasks: names, called templates, arguments, loops, conditions and exit handlers.

use std::collections::HashSet;

use octoflow_model::argo::Call;

use super::{
    Subject, argument, code,
    findings::{At, Findings},
    hook,
    index::{CallPosition, Callee, TemplateEntry},
    item, name, spec,
};
use crate::{admit::shape::short, expr::when};

pub(super) fn check(subject: &Subject<'_>, report: &mut Findings, at: &At<'_>, entry: &TemplateEntry<'_>) {
    let mut seen = HashSet::new();
    for ((site, call), callee) in entry.calls().zip(&entry.callees) {
        let place = at.call(site);
        let label = &entry.label;
        let list = || match site {
            CallPosition::Step { group, .. } => format!("templates.{label}.steps[{group}]"),
            CallPosition::Task(task) => format!("templates.{label}.tasks[{task}]"),
        };
        name::one(report, &place.key("name"), &list, name::NameRule::Field, &call.name, &mut seen);
        one(subject, report, &place, entry, site, call, *callee);
    }
}

fn one(
    subject: &Subject<'_>,
    report: &mut Findings,
    at: &At<'_>,
    entry: &TemplateEntry<'_>,
    site: CallPosition,
    call: &Call,
    callee: Callee,
) {
    let prefix = || format!("templates.{}.{}", entry.label, site.of(&call.name));
    let raw = site.find(entry.raw);
    target(subject, report, at, entry, site, call);
    if let Callee::Entry(index) = callee
        && !subject.templates.entries[index].needs.is_empty()
    {
        argument::supply(report, at, &prefix(), &subject.templates.entries[index], &call.arguments);
    }
    if !call.arguments.parameters.is_empty() || !call.arguments.artifacts.is_empty() {
        let raw = raw.and_then(|raw| raw.get("arguments"));
        argument::check(report, &at.key("arguments"), &format!("{}.arguments", prefix()), &call.arguments, raw);
    }
    if call.looped() {
        item::check(report, at, &prefix, call);
    }
    condition(report, at, call);
    if let Some(handler) = call.on_exit.as_deref().filter(|name| !name.is_empty()) {
        let (place, of) = (at.key("onExit"), format!("{}.onExit", prefix()));
        spec::root(subject, report, &place, &of, entry.template_scope.as_deref(), handler, Some(&call.arguments));
    }
    let hooks = at.key("hooks");
    for (moment, handler) in &call.hooks {
        let place = hooks.key(moment);
        hook::check(report, &place, &format!("{}.", prefix()), moment, handler);
        let of = format!("{}.hooks.{moment}", prefix());
        spec::exit_template(subject, report, &place, &of, entry.template_scope.as_deref(), handler);
    }
}

/// Checks that a call names exactly one template, and one that exists.
fn target(
    subject: &Subject<'_>,
    report: &mut Findings,
    at: &At<'_>,
    entry: &TemplateEntry<'_>,
    site: CallPosition,
    call: &Call,
) {
    let prefix = || format!("templates.{}.{}", entry.label, site.of(&call.name));
    let named = call.template.as_deref().filter(|name| !name.is_empty());
    match (named, call.inline.is_some(), call.template_ref.is_some()) {
        (Some(name), false, false) => {
            // A template missing in another WorkflowTemplate was reported where the manifest refers to it.
            let known = name::has_variables(name) || subject.open || entry.template_scope.is_some();
            if !known && subject.templates.find(name).is_none() {
                undefined(subject, report, &at.key("template"), &prefix(), name);
            }
        }
        (None, true, false) | (None, false, true) => {}
        (None, false, false) => {
            report.error(at, code::REQUIRED, || format!("{} template, templateRef or inline is required", prefix()))
        }
        _ => report.error(at, code::TEMPLATE_TYPE, || {
            format!("{} must have exactly one of template, templateRef and inline", prefix())
        }),
    }
}

/// Reports an unknown template and suggests the nearest name.
pub(super) fn undefined(subject: &Subject<'_>, report: &mut Findings, at: &At<'_>, prefix: &str, name: &str) {
    let gap = if prefix.is_empty() { "" } else { " " };
    report.error_with(at, code::UNKNOWN_TEMPLATE, || {
        (
            format!("{prefix}{gap}template name '{}' undefined", short(name)),
            name::suggest(name, subject.templates.names()),
        )
    });
}

/// Checks a condition without variables, which its text alone decides. A result that is not boolean is only found at
/// run time, as in Argo.
fn condition(report: &mut Findings, at: &At<'_>, call: &Call) {
    let Some(text) = call.when.as_deref() else { return };
    if name::has_variables(text) {
        quotes(report, at, text);
        return;
    }
    if let Err(error) = when::evaluate(text)
        && !error.message.starts_with("Expected boolean")
    {
        report.error(&at.key("when"), code::WHEN, || format!("{} (at character {})", error.message, error.column));
    }
}

/// Warns about quotes that are never closed, whatever the variables are.
fn quotes(report: &mut Findings, at: &At<'_>, text: &str) {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find("{{") {
        let Some(close) = rest[open..].find("}}") else { return };
        plain.push_str(&rest[..open]);
        plain.push('1');
        rest = &rest[open + close + 2..];
    }
    plain.push_str(rest);
    if let Err(error) = when::evaluate(&plain)
        && error.message.contains("is never closed with")
    {
        report.warn(&at.key("when"), code::WHEN, || format!("a quote is opened and never closed: {}", short(text)));
    }
}
