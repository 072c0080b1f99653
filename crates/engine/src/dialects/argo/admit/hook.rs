//! Checks hooks: each needs a template, and each but the one named `exit` a condition.

use octoflow_model::argo::Hook;

use super::{
    argument, code,
    findings::{At, Findings},
};

/// Name of the hook that is the exit handler.
pub(super) const EXIT: &str = "exit";

/// Checks one hook. `prefix` is empty for the workflow's own hooks, else it ends in a dot.
pub(super) fn check(report: &mut Findings, at: &At<'_>, prefix: &str, moment: &str, hook: &Hook) {
    let given = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.is_empty());
    if moment != EXIT && !given(&hook.expression) {
        report.error(at, code::HOOK, || format!("{prefix}hooks.{moment} Expression required"));
    }
    match (given(&hook.template), hook.template_ref.is_some()) {
        (false, false) => {
            report.error(at, code::REQUIRED, || format!("{prefix}hooks.{moment}.template is required"));
        }
        (true, true) => report.error(at, code::TEMPLATE_TYPE, || {
            format!("{prefix}hooks.{moment} must have exactly one of template and templateRef")
        }),
        (true, false) | (false, true) => {}
    }
    argument::check(report, &at.key("arguments"), &format!("{prefix}hooks.{moment}.arguments"), &hook.arguments, None);
}
