//! The table of locks: who holds what, who waits in which order, and who may go next. It knows no dialect.
//! It can be made again from the runs at any time: it remembers nothing that their facts do not tell.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, VecDeque},
};

use octoflow_model::{Claim, NodeIx, RunId, Time};

/// Whoever takes locks: a node, or a run as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder {
    pub run: RunId,
    pub node: Option<NodeIx>,
}

/// The order in all queues alike: higher priority first, then the older run, then the older node. Because it is the same
/// everywhere, the first of all waiters is the first in each of its queues, and only holders can keep it waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    priority: Reverse<i32>,
    created: Time,
}

impl Rank {
    pub fn new(priority: i32, created: Time) -> Self {
        Self { priority: Reverse(priority), created }
    }
}

/// Somebody who asks for locks, all of them or none.
#[derive(Clone, Debug)]
pub struct Waiter {
    pub rank: Rank,
    pub claims: Vec<Claim>,
    /// What others are told of it while it holds them.
    pub name: String,
    /// The lock it was last told to wait for.
    pub told: Option<String>,
}

/// Whether a waiter could go on if it had its locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    Yes,
    /// Not now; others need not wait for it.
    Later,
    /// It keeps its place: its run has been read from a journal and is about to go on.
    Asleep,
}

/// What keeps somebody waiting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    pub claim: Claim,
    pub limit: u32,
    pub holders: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds all its locks from here on.
    Take(Holder),
    /// It has to wait, or waits for another lock than it was told.
    Wait(Holder, Wait),
    /// It can never have them; it is not in the table any more.
    Wrong(Holder, String),
}

#[derive(Debug, Default)]
pub struct Locks {
    table: BTreeMap<Claim, Lock>,
    waiting: BTreeMap<Holder, Waiter>,
    holding: BTreeMap<Holder, Vec<Claim>>,
    /// Locks whose first waiter may be able to go.
    ripe: BTreeSet<Claim>,
    /// Waiters that have not been told so.
    fresh: VecDeque<Holder>,
    /// Locks whose first waiter was passed over because it could not have gone on with them.
    passed: BTreeSet<Claim>,
}

#[derive(Debug, Default)]
struct Lock {
    holders: BTreeMap<Holder, String>,
    queue: BTreeSet<(Rank, Holder)>,
}

impl Locks {
    /// Joins the queues of all its locks. Whoever is in the table already keeps its place.
    pub fn enqueue(&mut self, holder: Holder, waiter: Waiter) {
        if self.holding.contains_key(&holder) {
            return;
        }
        if let Some(known) = self.waiting.get(&holder) {
            self.ripe.extend(known.claims.iter().cloned());
            return;
        }
        for claim in &waiter.claims {
            self.table.entry(claim.clone()).or_default().queue.insert((waiter.rank, holder));
            self.ripe.insert(claim.clone());
        }
        self.fresh.push_back(holder);
        self.waiting.insert(holder, waiter);
    }

    /// Somebody who holds its locks already, found again in a journal.
    pub fn adopt(&mut self, holder: Holder, claims: &[Claim], name: &str) {
        for claim in claims {
            self.table.entry(claim.clone()).or_default().holders.insert(holder, name.to_owned());
        }
        self.holding.insert(holder, claims.to_vec());
    }

    /// It is over: it holds nothing and waits for nothing.
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
                self.ripe.insert(claim);
            }
        }
    }

    /// Everything of a run is over.
    pub fn release_run(&mut self, run: RunId) {
        let all = Holder { run, node: None }..=Holder { run, node: Some(NodeIx(u32::MAX)) };
        let held = self.holding.range(all.clone()).map(|(holder, _)| *holder);
        let gone: Vec<Holder> = held.chain(self.waiting.range(all).map(|(holder, _)| *holder)).collect();
        gone.into_iter().for_each(|holder| self.release(holder));
    }

    /// Limits may have changed.
    pub fn look_again(&mut self) {
        self.ripe.extend(self.table.keys().cloned());
    }

    /// Somebody who could not have gone on with its locks may be able to now.
    pub fn look_at_passed(&mut self) {
        self.ripe.append(&mut self.passed);
    }

    /// The next one about whom something is to be decided. `ready` says who could go on with its locks.
    pub fn next(
        &mut self,
        limit: impl Fn(&Claim) -> Result<u32, String>,
        ready: impl Fn(Holder) -> Ready,
    ) -> Option<Verdict> {
        while let Some(claim) = self.ripe.pop_first() {
            let Some(head) = self.head(&claim, &ready) else { continue };
            match self.judge(head, &limit, &ready) {
                Ok(None) => {
                    self.take(head);
                    return Some(Verdict::Take(head));
                }
                // Whoever is fresh is told below.
                Ok(Some(wait)) if self.waiting.get(&head).is_some_and(|waiter| waiter.told.is_some()) => {
                    if !self.is_kept_as_told(head, &limit, &ready) {
                        return Some(self.tell(head, wait));
                    }
                }
                Ok(Some(_)) => {}
                Err(why) => return Some(self.refuse(head, why)),
            }
        }
        while let Some(holder) = self.fresh.pop_front() {
            if self.waiting.get(&holder).is_none_or(|waiter| waiter.told.is_some()) {
                continue;
            }
            match self.judge(holder, &limit, &ready) {
                Ok(Some(wait)) => return Some(self.tell(holder, wait)),
                Err(why) => return Some(self.refuse(holder, why)),
                Ok(None) => {
                    self.take(holder);
                    return Some(Verdict::Take(holder));
                }
            }
        }
        None
    }

    /// The lock that keeps a waiter waiting and who holds it now, for people.
    pub fn keeps(&self, holder: Holder) -> Option<(&str, Vec<&str>)> {
        let waiter = self.waiting.get(&holder)?;
        let told = waiter.told.as_deref()?;
        let claim = waiter.claims.iter().find(|claim| claim.key == told)?;
        Some((told, self.holders(claim)))
    }

    /// Who holds a lock, by name.
    pub fn holders(&self, claim: &Claim) -> Vec<&str> {
        self.table.get(claim).map(|lock| lock.holders.values().map(String::as_str).collect()).unwrap_or_default()
    }

    /// Every lock that somebody holds or waits for: its holders, and its waiters in order.
    pub fn all(&self) -> impl Iterator<Item = (&Claim, Vec<Holder>, Vec<Holder>)> {
        self.table.iter().map(|(claim, lock)| {
            (claim, lock.holders.keys().copied().collect(), lock.queue.iter().map(|(_, holder)| *holder).collect())
        })
    }

    /// The first who could go on with the lock. Others do not wait for those who could not.
    fn head(&mut self, claim: &Claim, ready: &impl Fn(Holder) -> Ready) -> Option<Holder> {
        let lock = self.table.get(claim)?;
        for (_, holder) in &lock.queue {
            match ready(*holder) {
                Ready::Yes => return Some(*holder),
                Ready::Asleep => return None,
                Ready::Later => {}
            }
            if !self.passed.contains(claim) {
                self.passed.insert(claim.clone());
            }
        }
        None
    }

    /// `None` when it can have all its locks now.
    fn judge(
        &mut self,
        holder: Holder,
        limit: &impl Fn(&Claim) -> Result<u32, String>,
        ready: &impl Fn(Holder) -> Ready,
    ) -> Result<Option<Wait>, String> {
        let Some(waiter) = self.waiting.get(&holder) else { unreachable!("only waiters are judged") };
        let claims = waiter.claims.clone();
        // All limits are read first: one that cannot be read is told at once, not when its turn comes.
        let limits: Vec<u32> = claims.iter().map(limit).collect::<Result<_, _>>()?;
        for (claim, limit) in claims.into_iter().zip(limits) {
            if self.is_kept_by(&claim, limit, holder, ready) {
                let holders = self.holders(&claim).into_iter().map(str::to_owned).collect();
                return Ok(Some(Wait { claim, limit, holders }));
            }
        }
        Ok(None)
    }

    fn is_kept_by(&mut self, claim: &Claim, limit: u32, holder: Holder, ready: &impl Fn(Holder) -> Ready) -> bool {
        let taken = self.table.get(claim).map_or(0, |lock| lock.holders.len());
        taken >= limit as usize || ready(holder) != Ready::Yes || self.head(claim, ready) != Some(holder)
    }

    /// The lock it was told to wait for keeps it as before. That another one keeps it as well by now is nothing to tell:
    /// nobody looks at a waiter because of that, except after a restart, which must not decide what was not decided before.
    fn is_kept_as_told(
        &mut self,
        holder: Holder,
        limit: &impl Fn(&Claim) -> Result<u32, String>,
        ready: &impl Fn(Holder) -> Ready,
    ) -> bool {
        let Some(waiter) = self.waiting.get(&holder) else { return false };
        let told = waiter.claims.iter().filter(|claim| waiter.told.as_ref() == Some(&claim.key));
        let told: Vec<Claim> = told.cloned().collect();
        told.iter().any(|claim| limit(claim).is_ok_and(|limit| self.is_kept_by(claim, limit, holder, ready)))
    }

    fn take(&mut self, holder: Holder) {
        let Some(waiter) = self.waiting.remove(&holder) else { unreachable!("only waiters take locks") };
        for claim in &waiter.claims {
            let lock = self.table.entry(claim.clone()).or_default();
            lock.queue.remove(&(waiter.rank, holder));
            lock.holders.insert(holder, waiter.name.clone());
            self.ripe.insert(claim.clone());
        }
        self.holding.insert(holder, waiter.claims);
    }

    fn tell(&mut self, holder: Holder, wait: Wait) -> Verdict {
        if let Some(waiter) = self.waiting.get_mut(&holder) {
            waiter.told = Some(wait.claim.key.clone());
        }
        Verdict::Wait(holder, wait)
    }

    fn refuse(&mut self, holder: Holder, why: String) -> Verdict {
        self.release(holder);
        Verdict::Wrong(holder, why)
    }
}
