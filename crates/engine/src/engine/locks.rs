//! The lock table: holders, waiters in their order, and who is granted next. It knows no dialect. It can be rebuilt
//! from the runs at any time: it holds nothing that their facts do not.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, VecDeque},
};

use octoflow_model::{Claim, NodeIx, RunId, Time};

/// A lock holder or waiter: a node, or a run as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder {
    pub run: RunId,
    pub node: Option<NodeIx>,
}

/// Position in every queue: higher priority first, then the older run, then the older node. Because the order is the
/// same everywhere, the first of all waiters is the first in each of its queues, and only holders can block it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LockRank {
    priority: Reverse<i32>,
    created: Time,
}

impl LockRank {
    pub fn new(priority: i32, created: Time) -> Self {
        Self { priority: Reverse(priority), created }
    }
}

/// A request for locks: all of them or none.
#[derive(Clone, Debug)]
pub struct Waiter {
    pub rank: LockRank,
    pub claims: Vec<Claim>,
    /// Display name as a holder.
    pub name: String,
    /// The lock that was last reported as blocking it.
    pub reported: Option<String>,
}

/// Whether a waiter could proceed if it were granted its locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    Yes,
    /// Not now; others may overtake it.
    Later,
    /// Not yet: the run was restored from a journal and has not continued; nobody may overtake the waiter.
    Restoring,
}

/// The lock that blocks a waiter, its limit and its holders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    pub claim: Claim,
    pub limit: u32,
    pub holders: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockDecision {
    /// The waiter was granted all its locks.
    Grant(Holder),
    /// The waiter is blocked, or blocked on another lock than last reported.
    Wait(Holder, Wait),
    /// The request is invalid; it was removed from the table.
    Refuse(Holder, String),
}

#[derive(Debug, Default)]
pub struct Locks {
    table: BTreeMap<Claim, Lock>,
    waiting: BTreeMap<Holder, Waiter>,
    holding: BTreeMap<Holder, Vec<Claim>>,
    /// Locks whose first waiter may be grantable.
    unchecked: BTreeSet<Claim>,
    /// Waiters whose blocking lock has not been reported yet.
    unreported: VecDeque<Holder>,
    /// Locks whose first waiter was skipped because it was not ready.
    skipped: BTreeSet<Claim>,
}

#[derive(Debug, Default)]
struct Lock {
    holders: BTreeMap<Holder, String>,
    queue: BTreeSet<(LockRank, Holder)>,
}

impl Locks {
    /// Queues a waiter for all its locks. Idempotent: one that is already in the table keeps its place.
    pub fn enqueue(&mut self, holder: Holder, waiter: Waiter) {
        if self.holding.contains_key(&holder) {
            return;
        }
        if let Some(known) = self.waiting.get(&holder) {
            self.unchecked.extend(known.claims.iter().cloned());
            return;
        }
        for claim in &waiter.claims {
            self.table.entry(claim.clone()).or_default().queue.insert((waiter.rank, holder));
            self.unchecked.insert(claim.clone());
        }
        self.unreported.push_back(holder);
        self.waiting.insert(holder, waiter);
    }

    /// Restores a holder from a journal.
    pub fn adopt(&mut self, holder: Holder, claims: &[Claim], name: &str) {
        for claim in claims {
            self.table.entry(claim.clone()).or_default().holders.insert(holder, name.to_owned());
        }
        self.holding.insert(holder, claims.to_vec());
    }

    /// Releases all locks of a holder and removes it from all queues.
    pub fn release(&mut self, holder: Holder) {
        let waited = self.waiting.remove(&holder);
        let held = self.holding.remove(&holder);
        let rank = waited.as_ref().map(|waiter| waiter.rank);
        for claim in waited.into_iter().flat_map(|waiter| waiter.claims).chain(held.into_iter().flatten()) {
            let Some(lock) = self.table.get_mut(&claim) else { continue };
            lock.holders.remove(&holder);
            if let Some(rank) = rank {
                lock.queue.remove(&(rank, holder));
            }
            if lock.holders.is_empty() && lock.queue.is_empty() {
                self.table.remove(&claim);
            } else {
                self.unchecked.insert(claim);
            }
        }
    }

    /// Releases everything of a run.
    pub fn release_run(&mut self, run: RunId) {
        let all = Holder { run, node: None }..=Holder { run, node: Some(NodeIx(u32::MAX)) };
        let held = self.holding.range(all.clone()).map(|(holder, _)| *holder);
        let gone: Vec<Holder> = held.chain(self.waiting.range(all).map(|(holder, _)| *holder)).collect();
        gone.into_iter().for_each(|holder| self.release(holder));
    }

    /// Checks all waiters again, because limits may have changed.
    pub fn recheck_all(&mut self) {
        self.unchecked.extend(self.table.keys().cloned());
    }

    /// Checks skipped waiters again, because they may be ready now.
    pub fn recheck_skipped(&mut self) {
        self.unchecked.append(&mut self.skipped);
    }

    /// Returns the next decision about a waiter. `ready` reports whether a waiter could proceed with its locks.
    pub fn next(
        &mut self,
        limit: impl Fn(&Claim) -> Result<u32, String>,
        ready: impl Fn(Holder) -> Ready,
    ) -> Option<LockDecision> {
        while let Some(claim) = self.unchecked.pop_first() {
            let Some(head) = self.head(&claim, &ready) else { continue };
            match self.blocker(head, &limit, &ready) {
                Ok(None) => {
                    self.take(head);
                    return Some(LockDecision::Grant(head));
                }
                // New waiters are reported below.
                Ok(Some(wait)) if self.waiting.get(&head).is_some_and(|waiter| waiter.reported.is_some()) => {
                    if !self.is_still_blocked(head, &limit, &ready) {
                        return Some(self.report_wait(head, wait));
                    }
                }
                Ok(Some(_)) => {}
                Err(why) => return Some(self.refuse(head, why)),
            }
        }
        while let Some(holder) = self.unreported.pop_front() {
            if self.waiting.get(&holder).is_none_or(|waiter| waiter.reported.is_some()) {
                continue;
            }
            match self.blocker(holder, &limit, &ready) {
                Ok(Some(wait)) => return Some(self.report_wait(holder, wait)),
                Err(why) => return Some(self.refuse(holder, why)),
                Ok(None) => {
                    self.take(holder);
                    return Some(LockDecision::Grant(holder));
                }
            }
        }
        None
    }

    /// Returns the lock that blocks a waiter and its current holders, for display.
    pub fn blocking(&self, holder: Holder) -> Option<(&str, Vec<&str>)> {
        let waiter = self.waiting.get(&holder)?;
        let reported = waiter.reported.as_deref()?;
        let claim = waiter.claims.iter().find(|claim| claim.key == reported)?;
        Some((reported, self.holders(claim)))
    }

    /// Returns the names of a lock's holders.
    pub fn holders(&self, claim: &Claim) -> Vec<&str> {
        self.table.get(claim).map(|lock| lock.holders.values().map(String::as_str).collect()).unwrap_or_default()
    }

    pub(super) fn has_waiters(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(super) fn count_waiters(&self) -> usize {
        self.waiting.len()
    }

    /// Iterates over everybody who waits.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (Holder, &Waiter)> {
        self.waiting.iter().map(|(holder, waiter)| (*holder, waiter))
    }

    /// Iterates over the holders of a lock.
    pub(super) fn holders_of(&self, claim: &Claim) -> impl Iterator<Item = Holder> + '_ {
        self.table.get(claim).into_iter().flat_map(|lock| lock.holders.keys().copied())
    }

    /// Iterates over all locks with their holders, and their waiters in order.
    pub fn all(&self) -> impl Iterator<Item = (&Claim, Vec<Holder>, Vec<Holder>)> {
        self.table.iter().map(|(claim, lock)| {
            (claim, lock.holders.keys().copied().collect(), lock.queue.iter().map(|(_, holder)| *holder).collect())
        })
    }

    /// Returns the first waiter that is ready. Waiters that are not ready do not block others.
    fn head(&mut self, claim: &Claim, ready: &impl Fn(Holder) -> Ready) -> Option<Holder> {
        let lock = self.table.get(claim)?;
        for (_, holder) in &lock.queue {
            match ready(*holder) {
                Ready::Yes => return Some(*holder),
                Ready::Restoring => return None,
                Ready::Later => {}
            }
            if !self.skipped.contains(claim) {
                self.skipped.insert(claim.clone());
            }
        }
        None
    }

    /// Returns what blocks a waiter; `None` if it can be granted all its locks now.
    fn blocker(
        &mut self,
        holder: Holder,
        limit: &impl Fn(&Claim) -> Result<u32, String>,
        ready: &impl Fn(Holder) -> Ready,
    ) -> Result<Option<Wait>, String> {
        let Some(waiter) = self.waiting.get(&holder) else { unreachable!("only waiters are checked") };
        let claims = waiter.claims.clone();
        // All limits are read first, so that an unreadable one is reported at once and not when its turn comes.
        let limits: Vec<u32> = claims.iter().map(limit).collect::<Result<_, _>>()?;
        for (claim, limit) in claims.into_iter().zip(limits) {
            if self.is_blocked_by(&claim, limit, holder, ready) {
                let holders = self.holders(&claim).into_iter().map(str::to_owned).collect();
                return Ok(Some(Wait { claim, limit, holders }));
            }
        }
        Ok(None)
    }

    fn is_blocked_by(&mut self, claim: &Claim, limit: u32, holder: Holder, ready: &impl Fn(Holder) -> Ready) -> bool {
        let taken = self.table.get(claim).map_or(0, |lock| lock.holders.len());
        taken >= limit as usize || ready(holder) != Ready::Yes || self.head(claim, ready) != Some(holder)
    }

    /// Reports whether the lock last reported still blocks the waiter. That another one blocks it as well by now is not
    /// reported: no live input re-checks a waiter because of that, only a restart does, and a restart must not decide
    /// anything new.
    fn is_still_blocked(
        &mut self,
        holder: Holder,
        limit: &impl Fn(&Claim) -> Result<u32, String>,
        ready: &impl Fn(Holder) -> Ready,
    ) -> bool {
        let Some(waiter) = self.waiting.get(&holder) else { return false };
        let reported = waiter.claims.iter().filter(|claim| waiter.reported.as_ref() == Some(&claim.key));
        let reported: Vec<Claim> = reported.cloned().collect();
        reported.iter().any(|claim| limit(claim).is_ok_and(|limit| self.is_blocked_by(claim, limit, holder, ready)))
    }

    fn take(&mut self, holder: Holder) {
        let Some(waiter) = self.waiting.remove(&holder) else { unreachable!("only waiters take locks") };
        for claim in &waiter.claims {
            let lock = self.table.entry(claim.clone()).or_default();
            lock.queue.remove(&(waiter.rank, holder));
            lock.holders.insert(holder, waiter.name.clone());
            self.unchecked.insert(claim.clone());
        }
        self.holding.insert(holder, waiter.claims);
    }

    fn report_wait(&mut self, holder: Holder, wait: Wait) -> LockDecision {
        if let Some(waiter) = self.waiting.get_mut(&holder) {
            waiter.reported = Some(wait.claim.key.clone());
        }
        LockDecision::Wait(holder, wait)
    }

    fn refuse(&mut self, holder: Holder, why: String) -> LockDecision {
        self.release(holder);
        LockDecision::Refuse(holder, why)
    }
}
