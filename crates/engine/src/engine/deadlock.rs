//! Finds circles of waiting across locks and child runs: everybody in one holds what another waits for, so none of them goes
//! on by itself. Room is held by tasks that run and end, or give it back once they are daemons, so it closes no circle. It
//! names them; it ends nobody. Looked for a while after something changed, never at each input.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use octoflow_model::{Claim, NodeIx, RunId, Time};

use super::{Engine, input::Outcome, locks::Holder};
use crate::dialects::dialect::TaskState;

/// A circle is looked for so long after the last change, so it is named within twice this time.
const DELAY: Duration = Duration::from_secs(5);
/// With more that waits nothing is looked for, which [`Engine::unexamined_waiters`] tells: it would take too long.
const MAX_MEMBERS: usize = 5_000;
/// Members of a circle that are named.
const MAX_NAMED: usize = 6;

/// When circles are looked for.
#[derive(Debug, Default)]
pub(super) struct DeadlockCheck {
    due: Option<Time>,
    /// True if something was decided since the last look.
    changed: bool,
}

impl DeadlockCheck {
    pub(super) fn wake_at(&self) -> Option<Time> {
        self.due
    }

    pub(super) fn note(&mut self, changed: bool) {
        self.changed |= changed;
    }
}

/// Somebody who waits.
#[derive(Debug)]
struct Member {
    who: Holder,
    claims: Vec<Claim>,
    /// What ends only after it has, by run.
    after: Vec<Holder>,
}

/// What a member waits for, and which one of the circle keeps it.
struct Link {
    member: usize,
    lock: String,
    holder: Holder,
    next: usize,
}

impl Engine {
    /// Looks for circles if it is time to, and sets the timer.
    pub(super) fn check_deadlocks(&mut self, now: Time, outcome: &mut Outcome) {
        let waits = self.locks.has_waiters();
        // What was told and is no longer true is taken back although nobody waits any more.
        let told = !self.deadlocked.is_empty();
        if !waits && !told {
            self.deadlock.due = None;
            return;
        }
        match self.deadlock.due {
            Some(due) if due <= now => {
                self.deadlock.due = None;
                self.deadlock.changed = false;
                self.tell_deadlocks(now, outcome);
            }
            None if self.deadlock.changed => self.deadlock.due = Some(now.saturating_add(DELAY)),
            Some(_) | None => {}
        }
    }

    /// Returns how many wait for locks if they are too many to look for circles, else 0.
    pub fn unexamined_waiters(&self) -> usize {
        Some(self.locks.count_waiters()).filter(|count| *count > MAX_MEMBERS).unwrap_or(0)
    }

    fn tell_deadlocks(&mut self, now: Time, outcome: &mut Outcome) {
        let found = self.deadlocks();
        let mut concerned: BTreeSet<RunId> = found.keys().copied().collect();
        concerned.extend(std::mem::take(&mut self.deadlocked));
        for id in concerned {
            let message = found.get(&id).cloned();
            let differs = self.runs.get(&id).is_some_and(|run| run.head().deadlock.as_deref() != message.as_deref());
            if differs && !self.is_unsettled(id) {
                self.turn(id, now, outcome, |turn| turn.tell_deadlock(message.clone()));
            }
            if message.is_some() {
                self.deadlocked.insert(id);
            }
        }
    }

    /// Returns the runs that wait in a circle or behind one, with what to tell them.
    fn deadlocks(&self) -> BTreeMap<RunId, String> {
        if self.unexamined_waiters() > 0 {
            return BTreeMap::new();
        }
        let members = self.members();
        let stuck = self.stuck(&members);
        let mut told = BTreeMap::new();
        for at in &stuck {
            let run = members[*at].who.run;
            if let std::collections::btree_map::Entry::Vacant(entry) = told.entry(run)
                && let Some(text) = self.circle_text(run, &self.circle(&members, &stuck, *at), &members)
            {
                entry.insert(text);
            }
        }
        told
    }

    /// Returns everybody who waits for locks.
    fn members(&self) -> Vec<Member> {
        let waiting = self.locks.waiting();
        waiting
            .map(|(who, waiter)| Member { who, claims: waiter.claims.clone(), after: self.ends_after(who) })
            .collect()
    }

    /// Returns what ends only after this one has: itself, what is around it, and what waits for its run.
    fn ends_after(&self, who: Holder) -> Vec<Holder> {
        let mut found = Vec::new();
        let mut open = vec![who];
        let mut runs = BTreeSet::new();
        while let Some(Holder { run: id, node }) = open.pop() {
            let Some(run) = self.runs.get(&id).filter(|_| runs.insert(id)) else { continue };
            let own = node.map_or_else(|| vec![None], |at| run.ends_after(at));
            found.extend(own.into_iter().chain([node]).map(|node| Holder { run: id, node }));
            // A request of the run that made it waits for its end, if any does.
            if let Some(parent) = run.parent().and_then(|parent| self.runs.get(&parent)) {
                let waits = |(at, state): &(NodeIx, TaskState)| *state == TaskState::Placed && parent.is_request(*at);
                let mut requests = parent.open_tasks().into_iter().filter(waits).map(|(at, _)| at);
                if let (Some(only), None) = (requests.next(), requests.next()) {
                    open.push(Holder { run: parent.id(), node: Some(only) });
                }
            }
        }
        found
    }

    /// Returns the members that never go on by themselves: all, without those whose wait will end.
    fn stuck(&self, members: &[Member]) -> BTreeSet<usize> {
        let mut stuck: BTreeSet<usize> = (0..members.len()).collect();
        loop {
            let kept: BTreeSet<Holder> = stuck.iter().flat_map(|at| members[*at].after.iter().copied()).collect();
            let goes_on = |at: &usize| members[*at].claims.iter().all(|claim| self.will_be_free(claim, &kept));
            let free: Vec<usize> = stuck.iter().copied().filter(goes_on).collect();
            if free.is_empty() {
                return stuck;
            }
            free.iter().for_each(|at| {
                stuck.remove(at);
            });
        }
    }

    /// Reports whether somebody releases a lock: one of its holders does not wait for a member. A limit that is not reached,
    /// or that nobody could reach, is no circle.
    fn will_be_free(&self, claim: &Claim, kept: &BTreeSet<Holder>) -> bool {
        let Ok(limit) = self.shared.limit(claim) else { return true };
        let holders: Vec<Holder> = self.locks.holders_of(claim).collect();
        limit == 0 || holders.len() < limit as usize || holders.iter().any(|holder| !kept.contains(holder))
    }

    /// Follows who waits for whom until somebody comes again.
    fn circle(&self, members: &[Member], stuck: &BTreeSet<usize>, from: usize) -> Vec<Link> {
        let mut links: Vec<Link> = Vec::new();
        let mut at = from;
        while let Some(link) = self.link(members, stuck, at) {
            let next = link.next;
            links.push(link);
            if let Some(first) = links.iter().position(|link| link.member == next) {
                return links.split_off(first);
            }
            at = next;
        }
        Vec::new()
    }

    fn link(&self, members: &[Member], stuck: &BTreeSet<usize>, at: usize) -> Option<Link> {
        let waits_for = |holder: &Holder| stuck.iter().copied().find(|other| members[*other].after.contains(holder));
        members[at].claims.iter().find_map(|claim| {
            let holders: Vec<Holder> = self.locks.holders_of(claim).collect();
            let next: Option<Vec<usize>> = holders.iter().map(&waits_for).collect();
            let (holder, next) = (*holders.first()?, *next?.first()?);
            Some(Link { member: at, lock: claim.key.clone(), holder, next })
        })
    }

    /// Says who waits for whom, with names of the reader's namespace only.
    fn circle_text(&self, reader: RunId, links: &[Link], members: &[Member]) -> Option<String> {
        let namespace = self.runs.get(&reader)?.namespace();
        let name = |holder: Holder| {
            let run = self.runs.get(&holder.run)?;
            if run.namespace() != namespace {
                return Some(format!("a {} of another namespace", run.kind().noun));
            }
            let part = holder.node.map(|at| format!(" ({})", run.label_of(at))).unwrap_or_default();
            Some(format!("{} {}{part}", run.kind().noun, run.name()))
        };
        let said: Option<Vec<String>> = links
            .iter()
            .take(MAX_NAMED)
            .map(|link| {
                let member = &members[link.member];
                let own = |key: &&String| member.who.run == reader || key.split('/').next() == Some(namespace);
                let what = if own(&&link.lock) { format!("the lock {}", link.lock) } else { "a lock".to_owned() };
                Some(format!("{} waits for {what}, which {} holds", name(member.who)?, name(link.holder)?))
            })
            .collect();
        let said = said.filter(|said| !said.is_empty())?;
        let more =
            if links.len() > MAX_NAMED { format!("; and {} more", links.len() - MAX_NAMED) } else { String::new() };
        Some(format!("Deadlock: {}{more}", said.join("; ")))
    }
}
