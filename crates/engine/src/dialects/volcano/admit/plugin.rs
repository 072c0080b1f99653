//! Validates plugins: that they exist, their arguments, and the tasks they need.

use octoflow_model::volcano::Job;

use super::super::plugin::{MAX_LISTED, MPI_ROLES, NAMES, PYTORCH_ROLES, PluginArguments, RAY_ROLES, TENSORFLOW_ROLES};
use crate::{
    admit::{
        code,
        findings::{At, Findings},
        shape,
    },
    expr::nearest,
};

pub(super) fn check(report: &mut Findings, at: &At<'_>, job: &Job) {
    for (name, arguments) in &job.spec.plugins {
        let place = at.key(name);
        if !NAMES.contains(&name.as_str()) {
            report.error_with(&place, code::POLICY, || {
                let near = nearest(name, NAMES).map(|near| format!("did you mean `{near}`?"));
                let known = || format!("known plugins: {}", NAMES.join(", "));
                (format!("there is no plugin `{}`", shape::short(name)), near.or_else(|| Some(known())))
            });
            continue;
        }
        match PluginArguments::read(name, arguments.as_deref().unwrap_or_default()) {
            Ok(arguments) => {
                needs(report, &place, job, name, &arguments);
                without_effect(report, &place, job, name, &arguments);
            }
            Err(why) => report.error(&place, code::POLICY, || why),
        }
    }
}

/// Warns of what a plugin does elsewhere and not here.
fn without_effect(report: &mut Findings, at: &At<'_>, job: &Job, plugin: &str, arguments: &PluginArguments) {
    if plugin != "svc" {
        return;
    }
    if arguments.get("disable-network-policy") == "true" {
        report.warn(at, code::POLICY, || {
            "--disable-network-policy has no effect: there is no NetworkPolicy, and nothing keeps others from the pods"
                .to_owned()
        });
    }
    let most = i64::from(MAX_LISTED);
    let large = job.spec.tasks.iter().find(|task| i64::from(task.replicas) > most);
    if let Some(task) = large.filter(|_| arguments.get("inject-hosts-env") == "true") {
        report.warn(at, code::POLICY, || {
            format!(
                "task '{}' has more than {most} pods, so no variable lists its hosts; the file /etc/volcano/{}.host does",
                shape::short(&task.name),
                shape::short(&task.name)
            )
        });
    }
}

/// Checks that the tasks are there that a plugin is about.
fn needs(report: &mut Findings, at: &At<'_>, job: &Job, plugin: &str, arguments: &PluginArguments) {
    let has = |task: &str| job.spec.tasks.iter().any(|one| one.name == task && one.replicas > 0);
    let (roles, required) = match plugin {
        "mpi" => (MPI_ROLES, true),
        "ray" => (RAY_ROLES, true),
        "pytorch" => (PYTORCH_ROLES, false),
        "tensorflow" => (TENSORFLOW_ROLES, false),
        _ => (&[][..], false),
    };
    if let Some(role) = roles.first().filter(|role| required && !has(arguments.get(role))) {
        report.error_with(at, code::POLICY, || {
            let message = format!("plugin {plugin} needs a task `{}` with a pod", arguments.get(role));
            (message, Some(format!("name the task with `--{role}=…`")))
        });
    } else if !roles.is_empty() && !roles.iter().any(|role| has(arguments.get(role))) {
        report.warn(at, code::POLICY, || {
            format!("plugin {plugin} has no effect: none of the tasks it is about is there")
        });
    } else if plugin == "pytorch" && !has(arguments.get("master")) {
        report.warn(at, code::POLICY, || {
            format!("plugin pytorch has no effect: there is no task `{}`", arguments.get("master"))
        });
    }
    let (private, public) = (arguments.get("ssh-private-key"), arguments.get("ssh-public-key"));
    if plugin == "ssh" && private.is_empty() != public.is_empty() {
        report.error(at, code::POLICY, || {
            "plugin ssh needs both --ssh-private-key and --ssh-public-key, or neither: then keys are drawn".to_owned()
        });
    }
}
