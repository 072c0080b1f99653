//! Peer discovery of replicas on one machine: a loopback address for each, host names for the addresses, and variables
//! that list them. Addresses are computed from ids, so nothing has to be allocated.

// From `core`: an address is only a number here; no connection is made.
use core::net::Ipv4Addr;
use std::{fmt::Write, sync::Arc};

use octoflow_model::{RunId, task::EnvValue};

use super::{ident, program::Program};

/// First address used, 127.1.0.0; lower ones are used by other programs.
const FIRST_ADDRESS: u64 = 0x7f01_0000;
/// Number of addresses below 127.255.0.0.
const ADDRESSES: u64 = 254 << 16;
/// Number of addresses per TaskSet. A larger TaskSet shares some with the next ones.
const ADDRESSES_PER_RUN: u64 = 1 << 12;
/// Maximum number of addresses listed in an environment variable; the hosts file has all of them.
const MAX_LISTED: u32 = 4_000;

/// Returns the address of a replica.
pub(super) fn address(run: RunId, replica: u32) -> Ipv4Addr {
    let place = (run.0.wrapping_mul(ADDRESSES_PER_RUN) + u64::from(replica)) % ADDRESSES;
    Ipv4Addr::from_bits((FIRST_ADDRESS + place) as u32)
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_of_the_loopback_network_and_differ() {
        let mut seen = std::collections::HashSet::new();
        for run in [1, 2, 77, u64::MAX] {
            for replica in [0, 1, 4_095] {
                let address = address(RunId(run), replica);
                assert!(address.is_loopback() && address.octets()[1] > 0 && address.octets()[1] < 255);
                assert!(seen.insert(address), "{address} of {run}/{replica} was given before");
            }
        }
    }
}
