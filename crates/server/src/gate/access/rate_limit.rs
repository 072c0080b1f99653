//! Rate limiter for failed logins: each address may fail a few times, then only once in a while. Valid tokens are
//! checked before it and are never limited.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::fair_queue::Party;

/// Burst: failures that an address may have at once.
const BURST: u32 = 10;
/// Time after which one more failure is allowed.
const REFILL_INTERVAL: Duration = Duration::from_secs(3);
/// Maximum number of tracked addresses; those that failed longest ago are evicted.
const MAX_ADDRESSES: usize = 10_000;

#[derive(Default)]
pub(super) struct RateLimiter {
    /// Time at which each address has its full burst again.
    debts: Mutex<HashMap<Party, Instant>>,
}

impl RateLimiter {
    /// Returns the seconds this address has to wait, if it is limited.
    pub(super) fn retry_after(&self, party: Party) -> Option<u32> {
        self.retry_after_at(party, Instant::now())
    }

    pub(super) fn failed(&self, party: Party) {
        self.failed_at(party, Instant::now());
    }

    fn retry_after_at(&self, party: Party, now: Instant) -> Option<u32> {
        let debts = self.debts.lock().unwrap_or_else(PoisonError::into_inner);
        let owed = debts.get(&party)?.saturating_duration_since(now);
        let most = REFILL_INTERVAL * BURST;
        let wait = (owed + REFILL_INTERVAL).checked_sub(most).filter(|wait| !wait.is_zero())?;
        Some(u32::try_from(wait.as_secs()).unwrap_or(u32::MAX).saturating_add(1))
    }

    fn failed_at(&self, party: Party, now: Instant) {
        let mut debts = self.debts.lock().unwrap_or_else(PoisonError::into_inner);
        if debts.len() >= MAX_ADDRESSES {
            debts.retain(|_, until| *until > now);
            if debts.len() >= MAX_ADDRESSES {
                // Evicts half at once, so that many addresses do not make every failure expensive.
                let mut ends: Vec<Instant> = debts.values().copied().collect();
                let (_, middle, _) = ends.select_nth_unstable(MAX_ADDRESSES / 2);
                let middle = *middle;
                let mut dropped = 0;
                debts.retain(|_, until| {
                    let old = *until <= middle && dropped < MAX_ADDRESSES / 2;
                    dropped += usize::from(old);
                    !old
                });
            }
        }
        let until = debts.entry(party).or_insert(now);
        *until = (*until).max(now) + REFILL_INTERVAL;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str) -> Party {
        Party::of(address.parse().unwrap())
    }

    #[test]
    fn whoever_is_wrong_too_often_waits_and_others_do_not() {
        let (rate_limit, now) = (RateLimiter::default(), Instant::now());
        let party = at("192.0.2.1");
        for _ in 0..BURST {
            assert_eq!(rate_limit.retry_after_at(party, now), None);
            rate_limit.failed_at(party, now);
        }
        let wait = rate_limit.retry_after_at(party, now).unwrap();
        assert!((1..=4).contains(&wait), "{wait}");
        assert_eq!(rate_limit.retry_after_at(at("192.0.2.2"), now), None);
        assert_eq!(rate_limit.retry_after_at(party, now + Duration::from_secs(u64::from(wait))), None);
    }

    #[test]
    fn neighbours_of_one_network_share_and_memory_is_bounded() {
        let (rate_limit, now) = (RateLimiter::default(), Instant::now());
        for number in 0..BURST {
            rate_limit.failed_at(at(&format!("2001:db8::{number:x}")), now);
        }
        assert!(rate_limit.retry_after_at(at("2001:db8::ffff"), now).is_some());
        for number in 0..2 * MAX_ADDRESSES {
            let [_, _, high, low] = u32::try_from(number).unwrap().to_be_bytes();
            rate_limit.failed_at(Party::of([10, 0, high, low].into()), now);
        }
        assert!(rate_limit.debts.lock().unwrap().len() <= MAX_ADDRESSES);
    }

    #[test]
    fn users_of_the_unix_socket_do_not_wait_for_addresses() {
        let (rate_limit, now) = (RateLimiter::default(), Instant::now());
        for _ in 0..2 * BURST {
            rate_limit.failed_at(at("127.0.0.1"), now);
            rate_limit.failed_at(Party::User(1001), now);
        }
        assert_eq!(rate_limit.retry_after_at(Party::User(1000), now), None);
        assert!(rate_limit.retry_after_at(Party::User(1001), now).is_some());
    }
}
