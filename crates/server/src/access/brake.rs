//! Slows down those who guess: each address may be wrong a few times, then only once in a while.
//! Being held says nothing about tokens that are right; those are never asked here.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::addresses::network;

/// So often an address may be wrong at once.
const TRIES: u32 = 10;
/// After this long it may be wrong once more.
const REGAINED: Duration = Duration::from_secs(3);
/// More addresses than this are not remembered; those that were wrong longest ago are forgotten.
const ADDRESSES: usize = 10_000;

#[derive(Default)]
pub(super) struct Brake {
    /// When everything will be regained.
    debts: Mutex<HashMap<IpAddr, Instant>>,
}

impl Brake {
    /// How many seconds this address has to wait, if it has to.
    pub(super) fn holds(&self, peer: IpAddr) -> Option<u32> {
        self.holds_at(peer, Instant::now())
    }

    pub(super) fn failed(&self, peer: IpAddr) {
        self.failed_at(peer, Instant::now());
    }

    fn holds_at(&self, peer: IpAddr, now: Instant) -> Option<u32> {
        let debts = self.debts.lock().unwrap_or_else(PoisonError::into_inner);
        let owed = debts.get(&network(peer))?.saturating_duration_since(now);
        let most = REGAINED * TRIES;
        let wait = (owed + REGAINED).checked_sub(most).filter(|wait| !wait.is_zero())?;
        Some(u32::try_from(wait.as_secs()).unwrap_or(u32::MAX).saturating_add(1))
    }

    fn failed_at(&self, peer: IpAddr, now: Instant) {
        let mut debts = self.debts.lock().unwrap_or_else(PoisonError::into_inner);
        if debts.len() >= ADDRESSES {
            debts.retain(|_, until| *until > now);
            if debts.len() >= ADDRESSES {
                // Half of them at once, so that many addresses do not make every failure dear.
                let mut ends: Vec<Instant> = debts.values().copied().collect();
                let (_, middle, _) = ends.select_nth_unstable(ADDRESSES / 2);
                let middle = *middle;
                let mut dropped = 0;
                debts.retain(|_, until| {
                    let old = *until <= middle && dropped < ADDRESSES / 2;
                    dropped += usize::from(old);
                    !old
                });
            }
        }
        let until = debts.entry(network(peer)).or_insert(now);
        *until = (*until).max(now) + REGAINED;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_wrong_too_often_waits_and_others_do_not() {
        let (brake, now) = (Brake::default(), Instant::now());
        let peer: IpAddr = "192.0.2.1".parse().unwrap();
        for _ in 0..TRIES {
            assert_eq!(brake.holds_at(peer, now), None);
            brake.failed_at(peer, now);
        }
        let wait = brake.holds_at(peer, now).unwrap();
        assert!((1..=4).contains(&wait), "{wait}");
        assert_eq!(brake.holds_at("192.0.2.2".parse().unwrap(), now), None);
        assert_eq!(brake.holds_at(peer, now + Duration::from_secs(u64::from(wait))), None);
    }

    #[test]
    fn neighbours_of_one_network_share_and_memory_is_bounded() {
        let (brake, now) = (Brake::default(), Instant::now());
        for number in 0..TRIES {
            brake.failed_at(format!("2001:db8::{number:x}").parse().unwrap(), now);
        }
        assert!(brake.holds_at("2001:db8::ffff".parse().unwrap(), now).is_some());
        for number in 0..2 * ADDRESSES {
            let [_, _, high, low] = u32::try_from(number).unwrap().to_be_bytes();
            brake.failed_at(IpAddr::from([10, 0, high, low]), now);
        }
        assert!(brake.debts.lock().unwrap().len() <= ADDRESSES);
    }
}
