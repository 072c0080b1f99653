//! The plugin `ssh`: a configuration with a block for each pod, and the keys that its arguments give.

use std::fmt::Write;

use octoflow_model::task::File;

use super::{PluginArguments, PodAdditions, Program, svc};
use crate::dialects::volcano::ident;

const DEFAULT_PATH: &str = "/root/.ssh";

pub(super) fn add(added: &mut PodAdditions, arguments: &PluginArguments, program: &Program, job: &str) {
    let path = arguments.get("ssh-key-file-path").trim_end_matches('/');
    // The owner of another directory may not be the one who reads it.
    let mode = if path == DEFAULT_PATH { 0o600 } else { 0o644 };
    let mut put = |name: &str, contents: String| {
        added.files.push(File { path: format!("{path}/{name}"), contents: contents.into_bytes(), mode });
    };
    let (private, public) = (arguments.get("ssh-private-key"), arguments.get("ssh-public-key"));
    if !private.is_empty() && !public.is_empty() {
        put("id_rsa", ended(private));
        put("id_rsa.pub", ended(public));
        put("authorized_keys", ended(public));
    }
    let mut config = "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n".to_owned();
    let port = arguments.get("ssh-port");
    for (plan, task) in program.tasks.iter().zip(&program.job.spec.tasks) {
        for index in 0..plan.count {
            let (pod, host) = (ident::pod_name(job, &task.name, index), svc::address_name(job, &task.name, index));
            writeln!(config, "Host {pod}\n  HostName {host}\n  Port {port}").expect("writing to memory does not fail");
        }
    }
    put("config", config);
}

fn ended(text: &str) -> String {
    format!("{}\n", text.trim_end_matches('\n'))
}
