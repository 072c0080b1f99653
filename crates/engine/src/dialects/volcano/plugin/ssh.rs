//! The plugin `ssh`: a configuration with a block for each pod, and the keys that its arguments give or that were drawn
//! for the job.

use std::fmt::Write;

use octoflow_model::{submission::KeyPair, task::File};

use super::{PluginArguments, PodAdditions, Program, svc};
use crate::dialects::volcano::ident;

const DEFAULT_PATH: &str = "/root/.ssh";

pub(super) fn add(
    added: &mut PodAdditions,
    arguments: &PluginArguments,
    program: &Program,
    job: &str,
    keys: Option<&KeyPair>,
) {
    let (path, mode) = folder(arguments);
    let file = |(name, contents): (String, String)| File {
        path: format!("{path}/{name}"),
        contents: contents.into_bytes(),
        mode,
    };
    added.files.extend(entries(arguments, program, job, keys).into_iter().map(file));
}

/// Returns where the files are, and their mode.
pub(super) fn folder(arguments: &PluginArguments) -> (&str, u32) {
    let path = arguments.get("ssh-key-file-path").trim_end_matches('/');
    // The owner of another directory may not be the one who reads it.
    (path, if path == DEFAULT_PATH { 0o600 } else { 0o644 })
}

/// Returns the files by name: the keys and the configuration.
pub(super) fn entries(
    arguments: &PluginArguments,
    program: &Program,
    job: &str,
    keys: Option<&KeyPair>,
) -> Vec<(String, String)> {
    let drawn = keys.map(|keys| (keys.private.as_str(), keys.public.as_str()));
    let mut entries = Vec::new();
    if let Some((private, public)) = given(arguments).or(drawn) {
        entries.push(("id_rsa".to_owned(), ended(private)));
        entries.push(("id_rsa.pub".to_owned(), ended(public)));
        entries.push(("authorized_keys".to_owned(), ended(public)));
    }
    let mut config = "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n".to_owned();
    let port = arguments.get("ssh-port");
    for (plan, task) in program.tasks.iter().zip(&program.job.spec.tasks) {
        for index in 0..plan.count {
            let (pod, host) = (ident::pod_name(job, &task.name, index), svc::address_name(job, &task.name, index));
            writeln!(config, "Host {pod}\n  HostName {host}\n  Port {port}").expect("writing to memory does not fail");
        }
    }
    entries.push(("config".to_owned(), config));
    entries
}

/// Returns the keys that the arguments give.
pub(super) fn given(arguments: &PluginArguments) -> Option<(&str, &str)> {
    let (private, public) = (arguments.get("ssh-private-key"), arguments.get("ssh-public-key"));
    (!private.is_empty() && !public.is_empty()).then_some((private, public))
}

fn ended(text: &str) -> String {
    format!("{}\n", text.trim_end_matches('\n'))
}
