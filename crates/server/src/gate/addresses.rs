//! Limits the open connections per address. IPv6 addresses count by network, because a client usually has a whole /64.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, PoisonError},
};

pub(crate) struct Addresses {
    most_each: usize,
    /// Open connections by address. Bounded by the limit on connections.
    open: Mutex<HashMap<IpAddr, usize>>,
}

/// Permit for one connection of an address, released when dropped.
pub(crate) struct AddressPermit {
    addresses: Arc<Addresses>,
    network: IpAddr,
}

impl Addresses {
    pub(crate) fn new(most_each: usize) -> Arc<Self> {
        Arc::new(Self { most_each, open: Mutex::default() })
    }

    /// Counts a connection, unless the address has reached its limit.
    pub(crate) fn enter(self: &Arc<Self>, peer: IpAddr) -> Option<AddressPermit> {
        let network = network(peer);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let own = open.get(&network).copied().unwrap_or_default();
        if own >= self.most_each {
            return None;
        }
        open.insert(network, own + 1);
        Some(AddressPermit { addresses: self.clone(), network })
    }
}

impl Drop for AddressPermit {
    fn drop(&mut self) {
        let mut open = self.addresses.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = open.get_mut(&self.network) {
            *own -= 1;
            if *own == 0 {
                open.remove(&self.network);
            }
        }
    }
}

/// Returns the unit that is limited: an IPv4 address, or the /64 of an IPv6 address.
pub(crate) fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        IpAddr::V4(address) => IpAddr::V4(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_its_share_and_gets_it_back() {
        let addresses = Addresses::new(2);
        let peer = |text: &str| text.parse::<IpAddr>().unwrap();
        let first = addresses.enter(peer("192.0.2.1")).unwrap();
        let _second = addresses.enter(peer("::ffff:192.0.2.1")).unwrap();
        assert!(addresses.enter(peer("192.0.2.1")).is_none());
        assert!(addresses.enter(peer("192.0.2.2")).is_some(), "others are not affected");
        drop(first);
        let again = addresses.enter(peer("192.0.2.1"));
        assert!(again.is_some());
        let _net = [addresses.enter(peer("2001:db8::1")).unwrap(), addresses.enter(peer("2001:db8::2")).unwrap()];
        assert!(addresses.enter(peer("2001:db8::3")).is_none(), "a network of IPv6 is one party");
        drop((again, _second, _net));
        assert!(addresses.open.lock().unwrap().is_empty());
    }
}
