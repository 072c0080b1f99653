//! Slows down those who guess: each address may be wrong a few times, then only once in a while.
//! Being held says nothing about tokens that are right; those are never asked here.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::turns::Party;

/// So often an address may be wrong at once.
const TRIES: u32 = 10;
/// After this long it may be wrong once more.
const REGAINED: Duration = Duration::from_secs(3);
/// More addresses than this are not remembered; those that were wrong longest ago are forgotten.
const ADDRESSES: usize = 10_000;

#[derive(Default)]
pub(super) struct RateLimiter {
    /// When everything will be regained.
    debts: Mutex<HashMap<Party, Instant>>,
}

impl RateLimiter {
    /// How many seconds this address has to wait, if it has to.
    pub(super) fn holds(&self, party: Party) -> Option<u32> {
        self.holds_at(party, Instant::now())
    }

    pub(super) fn failed(&self, party: Party) {
        self.failed_at(party, Instant::now());
    }

    fn holds_at(&self, party: Party, now: Instant) -> Option<u32> {
        let debts = self.debts.lock().unwrap_or_else(PoisonError::into_inner);
        let owed = debts.get(&party)?.saturating_duration_since(now);
        let most = REGAINED * TRIES;
        let wait = (owed + REGAINED).checked_sub(most).filter(|wait| !wait.is_zero())?;
        Some(u32::try_from(wait.as_secs()).unwrap_or(u32::MAX).saturating_add(1))
    }

    fn failed_at(&self, party: Party, now: Instant) {
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
        let until = debts.entry(party).or_insert(now);
        *until = (*until).max(now) + REGAINED;
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
        for _ in 0..TRIES {
            assert_eq!(rate_limit.holds_at(party, now), None);
            rate_limit.failed_at(party, now);
        }
        let wait = rate_limit.holds_at(party, now).unwrap();
        assert!((1..=4).contains(&wait), "{wait}");
        assert_eq!(rate_limit.holds_at(at("192.0.2.2"), now), None);
        assert_eq!(rate_limit.holds_at(party, now + Duration::from_secs(u64::from(wait))), None);
    }

    #[test]
    fn neighbours_of_one_network_share_and_memory_is_bounded() {
        let (rate_limit, now) = (RateLimiter::default(), Instant::now());
        for number in 0..TRIES {
            rate_limit.failed_at(at(&format!("2001:db8::{number:x}")), now);
        }
        assert!(rate_limit.holds_at(at("2001:db8::ffff"), now).is_some());
        for number in 0..2 * ADDRESSES {
            let [_, _, high, low] = u32::try_from(number).unwrap().to_be_bytes();
            rate_limit.failed_at(Party::of([10, 0, high, low].into()), now);
        }
        assert!(rate_limit.debts.lock().unwrap().len() <= ADDRESSES);
    }

    #[test]
    fn users_of_the_unix_socket_do_not_wait_for_addresses() {
        let (rate_limit, now) = (RateLimiter::default(), Instant::now());
        for _ in 0..2 * TRIES {
            rate_limit.failed_at(at("127.0.0.1"), now);
            rate_limit.failed_at(Party::User(1001), now);
        }
        assert_eq!(rate_limit.holds_at(Party::User(1000), now), None);
        assert!(rate_limit.holds_at(Party::User(1001), now).is_some());
    }
}
