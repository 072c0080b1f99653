//! The plugin `svc`: pods find each other by name. Names resolve through a hosts file; the lists of hosts are files below
//! `/etc/volcano` and variables.

use std::{fmt::Write, sync::Arc};

use octoflow_model::{RunId, task::File};

use super::{PluginArguments, PodAdditions, Program, Published};
use crate::{
    dialects::volcano::{ident, program::Plan},
    pod::address::address,
};

/// Where the lists of hosts are.
pub(super) const FOLDER: &str = "/etc/volcano";

/// Maximum number of hosts listed in an environment variable; the files have all of them.
pub(in crate::dialects::volcano) const MAX_LISTED: u32 = 1_000;

/// Returns the address of a pod by name: `{pod}.{job}`.
pub(super) fn address_name(job: &str, task: &str, index: u32) -> String {
    format!("{}.{job}", ident::pod_name(job, task, index))
}

pub(super) fn hosts(run: RunId, job: &str, program: &Program) -> Arc<str> {
    let mut text = String::new();
    for (plan, task) in program.tasks.iter().zip(&program.job.spec.tasks) {
        for (number, index) in plan.pods().zip(0..) {
            let (address, pod) = (address(run, number), ident::pod_name(job, &task.name, index));
            writeln!(text, "{address}\t{pod} {pod}.{job}").expect("writing to memory does not fail");
        }
    }
    text.into()
}

pub(super) fn add(added: &mut PodAdditions, program: &Program, job: &str) {
    for (name, contents) in entries(program, job) {
        let path = format!("{FOLDER}/{name}");
        added.files.push(File { path, contents: contents.into_bytes(), mode: 0o644 });
    }
    if !program.plugins.lists_hosts {
        return;
    }
    for (plan, task) in program.tasks.iter().zip(&program.job.spec.tasks) {
        let word = variable(&task.name);
        if plan.count <= MAX_LISTED {
            added.set(&format!("VC_{word}_HOSTS"), names(job, &task.name, plan).join(","));
        }
        added.set(&format!("VC_{word}_NUM"), plan.count.to_string());
    }
}

/// Returns the names of the variables that list the hosts.
pub(super) fn variables(program: &Program) -> Vec<String> {
    let mut names = Vec::new();
    for (plan, task) in program.tasks.iter().zip(&program.job.spec.tasks) {
        let word = variable(&task.name);
        if plan.count <= MAX_LISTED {
            names.push(format!("VC_{word}_HOSTS"));
        }
        names.push(format!("VC_{word}_NUM"));
    }
    names
}

/// Returns the files below `/etc/volcano` by name.
fn entries(program: &Program, job: &str) -> Vec<(String, String)> {
    let mut entries = Vec::new();
    for (plan, task) in program.tasks.iter().zip(&program.job.spec.tasks) {
        let (all, word) = (names(job, &task.name, plan), variable(&task.name));
        entries.push((format!("{}.host", task.name), all.join("\n")));
        entries.push((format!("VC_{word}_HOSTS"), all.join(",")));
        entries.push((format!("VC_{word}_NUM"), plan.count.to_string()));
    }
    entries
}

/// Returns the ConfigMap with the lists of hosts, and the headless Service that the pods are found by.
pub(super) fn published(arguments: &PluginArguments, program: &Program, job: &str) -> [Published; 2] {
    [
        Published::ConfigMap { name: format!("{job}-svc"), entries: entries(program, job) },
        Published::Service {
            name: job.to_owned(),
            selector: None,
            unready: arguments.is_on("publish-not-ready-addresses"),
            // A Service must name a port; this one is nobody's.
            ports: vec![("placeholder-volcano".to_owned(), 1)],
        },
    ]
}

fn variable(task: &str) -> String {
    task.to_uppercase().replace('-', "_")
}

/// Returns the names of a task's pods.
pub(super) fn names(job: &str, task: &str, plan: &Plan) -> Vec<String> {
    (0..plan.count).map(|index| address_name(job, task, index)).collect()
}
