//! Checks the fields of the workflow as a whole: name, entrypoint, arguments, exit handler and volumes.

use octoflow_manifest::Path;
use octoflow_model::argo::{Arguments, Hook};

use super::{
    AdmitAs, Subject, argument, call, code,
    findings::{At, Findings},
    hook, lock, name, pod, template, volume,
};
use crate::admit::shape::short;

pub(super) fn check(subject: &Subject<'_>, report: &mut Findings) {
    if subject.admit_as == AdmitAs::Run {
        metadata(subject, report);
    }
    let place = Path::root().join("spec");
    let at = At::base(&place);
    let spec = &subject.workflow.spec;
    name::list(
        report,
        &at.key("templates"),
        &|| "spec.templates".to_owned(),
        name::NameRule::Field,
        subject.templates.entries[..subject.templates.own].iter().map(|entry| entry.template.name.as_str()),
    );
    if subject.admit_as == AdmitAs::Template {
        argument::declared(report, &at.key("arguments"), "spec.arguments", &spec.arguments);
    } else if !subject.broken_at(&["spec", "arguments"]) {
        argument::check(report, &at.key("arguments"), "spec.arguments", &spec.arguments, None);
    }
    if let Some(retry) = &spec.retry_strategy {
        template::retry(report, &at.key("retryStrategy"), retry);
    }
    if let Some(wanted) = spec.synchronization.as_ref().filter(|_| !subject.broken_at(&["spec", "synchronization"])) {
        lock::check(report, &at.key("synchronization"), "spec.synchronization", wanted);
    }
    volume::list(report, &at.key("volumes"), &spec.volumes, &subject.manifest["spec"]["volumes"]);
    volume::claims(report, &at.key("volumeClaimTemplates"), &spec.volume_claim_templates);
    if let Some(patch) = &spec.pod_spec_patch {
        pod::check_patch(report, &at.key("podSpecPatch"), "spec.podSpecPatch", &patch.0);
    }
    roots(subject, report, &at);
}

fn metadata(subject: &Subject<'_>, report: &mut Findings) {
    let place = Path::root().join("metadata");
    let at = At::base(&place);
    let metadata = &subject.workflow.metadata;
    let broken = subject.broken_at(&["metadata"]);
    let given = metadata.name.as_deref().filter(|name| !name.is_empty());
    let beginning = metadata.generate_name.as_deref().filter(|name| !name.is_empty());
    match (given, beginning) {
        (Some(name), _) => object_name(report, &at.key("name"), name),
        (None, Some(beginning)) => {
            // A suffix is appended to this name, so a dash or dot at its end is allowed.
            let whole = format!("{beginning}x");
            if !name::is_object_name(&whole) {
                report.error_with(&at.key("generateName"), code::NAME, || {
                    (
                        format!("metadata.generateName '{}' is invalid", short(beginning)),
                        Some("use lower-case letters, digits, '-' and '.', as in `build-`".to_owned()),
                    )
                });
            }
        }
        (None, None) if !broken => report.error_with(&at, code::REQUIRED, || {
            (
                "metadata.name or metadata.generateName is required".to_owned(),
                Some("write `generateName: my-workflow-` to get a new name for every run".to_owned()),
            )
        }),
        (None, None) => {}
    }
    if let Some(namespace) = metadata.namespace.as_deref().filter(|namespace| !namespace.is_empty())
        && (!name::is_label(namespace) || namespace.len() > name::MAX_WORKFLOW_NAME_LENGTH)
    {
        report.error(&at.key("namespace"), code::NAME, || {
            format!("metadata.namespace '{}' is invalid", short(namespace))
        });
    }
}

fn object_name(report: &mut Findings, at: &At<'_>, name: &str) {
    if name.len() > name::MAX_WORKFLOW_NAME_LENGTH {
        report.error(at, code::NAME, || {
            let most = name::MAX_WORKFLOW_NAME_LENGTH;
            format!(
                "workflow name \"{}\" must not be more than {most} characters long (currently {})",
                short(name),
                name.len()
            )
        });
    } else if !name::is_object_name(name) {
        report.error_with(at, code::NAME, || {
            (
                format!("metadata.name '{}' is invalid", short(name)),
                Some(
                    "use lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit"
                        .to_owned(),
                ),
            )
        });
    }
}

/// Checks the templates that a run begins and ends with: entrypoint, exit handler and hooks.
fn roots(subject: &Subject<'_>, report: &mut Findings, at: &At<'_>) {
    let spec = &subject.workflow.spec;
    if subject.open || subject.broken_at(&["spec", "templates"]) && subject.templates.own == 0 {
        return;
    }
    // Users of a WorkflowTemplate may add arguments.
    let whole = subject.admit_as == AdmitAs::Run && !subject.broken_at(&["spec", "arguments"]);
    let supplied = whole.then_some(&spec.arguments);
    match spec.entrypoint.as_deref().filter(|name| !name.is_empty()) {
        Some(name) => root(subject, report, &at.key("entrypoint"), "", None, name, supplied),
        None if subject.broken_at(&["spec", "entrypoint"]) || subject.admit_as == AdmitAs::Template => {}
        None => report.error_with(at, code::REQUIRED, || {
            let first = subject.templates.names().next().map(|name| format!("write `entrypoint: {name}`"));
            ("spec.entrypoint is required".to_owned(), first)
        }),
    }
    if let Some(name) = spec.on_exit.as_deref().filter(|name| !name.is_empty()) {
        root(subject, report, &at.key("onExit"), "", None, name, supplied);
    }
    let hooks = at.key("hooks");
    for (moment, handler) in &spec.hooks {
        let place = hooks.key(moment);
        hook::check(report, &place, "", moment, handler);
        exit_template(subject, report, &place, "", None, handler);
    }
}

/// Checks that the template of a hook exists and gets its inputs.
pub(super) fn exit_template(
    subject: &Subject<'_>,
    report: &mut Findings,
    at: &At<'_>,
    prefix: &str,
    template_scope: Option<&str>,
    hook: &Hook,
) {
    if let Some(index) = hook.template_ref.as_ref().and_then(|reference| subject.templates.find_reference(reference)) {
        argument::supply(report, at, prefix, &subject.templates.entries[index], &hook.arguments);
    }
    if let Some(name) = hook.template.as_deref().filter(|name| !name.is_empty()) {
        root(subject, report, &at.key("template"), prefix, template_scope, name, Some(&hook.arguments));
    }
}

/// Checks that a template referred to by name exists and gets its inputs from `supplied`.
pub(super) fn root(
    subject: &Subject<'_>,
    report: &mut Findings,
    at: &At<'_>,
    prefix: &str,
    template_scope: Option<&str>,
    name: &str,
    supplied: Option<&Arguments>,
) {
    if name::has_variables(name) || subject.open {
        return;
    }
    let Some(index) = subject.templates.find_from(template_scope, name) else {
        // A template missing in another WorkflowTemplate was reported where the manifest refers to it.
        if template_scope.is_none() {
            call::undefined(subject, report, at, prefix, name);
        }
        return;
    };
    if let Some(arguments) = supplied {
        argument::supply(report, at, prefix, &subject.templates.entries[index], arguments);
    }
}
