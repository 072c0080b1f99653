//! The plugin `svc`: pods find each other by name. Names resolve through a hosts file; the lists of hosts are files below
//! `/etc/volcano` and variables.

use std::{fmt::Write, sync::Arc};

use octoflow_model::{RunId, task::File};

use super::{PodAdditions, Program};
use crate::{
    dialects::volcano::{ident, program::Plan},
    pod::address::address,
};

/// Maximum number of hosts listed in an environment variable; the files have all of them.
const MAX_LISTED: u32 = 1_000;

/// Returns the address of a pod by name: `{pod}.{job}`.
pub(super) fn address_name(job: &str, task: &str, index: u32) -> String {
    format!("{}.{job}", ident::pod_name(job, task, index))
}

pub(super) fn hosts(run: RunId, job: &str, program: &Program) -> Arc<str> {
    let mut text = String::new();
    for (plan, task) in program.tasks.iter().zip(&program.job.spec.tasks) {
        for index in 0..plan.count {
            let (address, pod) = (address(run, plan.first + index), ident::pod_name(job, &task.name, index));
            writeln!(text, "{address}\t{pod} {pod}.{job}").expect("writing to memory does not fail");
        }
    }
    text.into()
}

pub(super) fn add(added: &mut PodAdditions, program: &Program, job: &str) {
    for (plan, task) in program.tasks.iter().zip(&program.job.spec.tasks) {
        let all = names(job, &task.name, plan);
        let word = task.name.to_uppercase().replace('-', "_");
        let file = |name: &str, contents: &str| File {
            path: format!("/etc/volcano/{name}"),
            contents: contents.as_bytes().to_vec(),
            mode: 0o644,
        };
        let list = all.join(",");
        added.files.push(file(&format!("{}.host", task.name), &all.join("\n")));
        added.files.push(file(&format!("VC_{word}_HOSTS"), &list));
        added.files.push(file(&format!("VC_{word}_NUM"), &plan.count.to_string()));
        if program.plugins.lists_hosts && plan.count <= MAX_LISTED {
            added.set(&format!("VC_{word}_HOSTS"), list);
        }
        if program.plugins.lists_hosts {
            added.set(&format!("VC_{word}_NUM"), plan.count.to_string());
        }
    }
}

/// Returns the names of a task's pods.
pub(super) fn names(job: &str, task: &str, plan: &Plan) -> Vec<String> {
    (0..plan.count).map(|index| address_name(job, task, index)).collect()
}
