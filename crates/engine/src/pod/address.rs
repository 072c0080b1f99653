//! Addresses of pods that find each other on one machine: a loopback address for each. They are computed from ids, so
//! nothing has to be allocated.

// From `core`: an address is only a number here; no connection is made.
use core::net::Ipv4Addr;

use octoflow_model::RunId;

/// First address used, 127.1.0.0; lower ones are used by other programs.
const FIRST_ADDRESS: u64 = 0x7f01_0000;
/// Number of addresses below 127.255.0.0.
const ADDRESSES: u64 = 254 << 16;
/// Number of addresses per run. A larger run shares some with the next ones.
const ADDRESSES_PER_RUN: u64 = 1 << 12;

/// Returns the address of a pod, by its number in its run.
pub(crate) fn address(run: RunId, pod: u32) -> Ipv4Addr {
    let place = (run.0.wrapping_mul(ADDRESSES_PER_RUN) + u64::from(pod)) % ADDRESSES;
    Ipv4Addr::from_bits((FIRST_ADDRESS + place) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_of_the_loopback_network_and_differ() {
        let mut seen = std::collections::HashSet::new();
        for run in [1, 2, 77, u64::MAX] {
            for pod in [0, 1, 4_095] {
                let address = address(RunId(run), pod);
                assert!(address.is_loopback() && address.octets()[1] > 0 && address.octets()[1] < 255);
                assert!(seen.insert(address), "{address} of {run}/{pod} was given before");
            }
        }
    }
}
