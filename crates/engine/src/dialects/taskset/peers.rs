//! Peer discovery of replicas on one machine: a loopback address for each, host names for the addresses, and variables
//! that list them.

use std::{fmt::Write, sync::Arc};

use octoflow_model::{RunId, task::EnvValue};

use super::{ident, program::Program};
use crate::pod::address::address;

/// Maximum number of addresses listed in an environment variable; the hosts file has all of them.
const MAX_LISTED: u32 = 4_000;

/// Returns the hosts file: a line for each replica with its address, its short name, and the name qualified with its
/// TaskSet's.
pub(super) fn hosts(run: RunId, set: &str, program: &Program) -> Arc<str> {
    let mut text = String::new();
    for (role, plan) in program.roles.iter().enumerate() {
        let name = &program.spec(role).name;
        for index in 0..plan.count {
            let (address, host) = (address(run, plan.first + index), ident::host_name(name, index));
            writeln!(text, "{address}\t{host} {host}.{set}").expect("writing to memory does not fail");
        }
    }
    text.into()
}

/// Returns the variables that list all peers, the same for every replica. Their length grows with the number of
/// replicas, so they are built once and shared.
pub(super) fn lists(run: RunId, program: &Program) -> Arc<[(String, EnvValue)]> {
    let mut found = Vec::new();
    for (role, plan) in program.roles.iter().enumerate() {
        let name = program.spec(role).name.to_uppercase();
        found.push((format!("TASKROLE_{name}_REPLICAS"), EnvValue::Plain(plan.count.to_string())));
        if program.replicas <= MAX_LISTED {
            let list: Vec<String> =
                (plan.first..plan.first + plan.count).map(|peer| address(run, peer).to_string()).collect();
            found.push((format!("TASKROLE_{name}_ADDRESSES"), EnvValue::Plain(list.join(","))));
        }
    }
    found.into()
}

/// Returns the variables with a replica's own address and those of its peers.
pub(super) fn variables(
    run: RunId,
    lists: &[(String, EnvValue)],
    replica: u32,
) -> impl Iterator<Item = (String, EnvValue)> {
    let own = ("TASKROLE_REPLICA_ADDRESS".to_owned(), EnvValue::Plain(address(run, replica).to_string()));
    std::iter::once(own).chain(lists.iter().cloned())
}
