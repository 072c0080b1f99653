//! Handles the locks of a run and of its nodes: which are wanted, the wait for them, and what follows once they are
//! held.
//! The lock table decides who gets them.

use octoflow_model::{
    Claim, Limit, NodeIx, RunFact, RunPhase, Shutdown,
    argo::{NodeKind, Phase, Role, Synchronization, WorkflowFact, synchronization::Semaphore},
};

use super::{
    node::{Lock, is_counted},
    run::{Run, State},
    scope::Scope,
    substitute::{Missing, fill},
    turn::Turn,
    view::View,
};
use crate::engine::locks::{Holder, LockRank, Ready, Wait, Waiter};

/// ConfigMap with the limits of semaphores written for a lock database, by their key.
pub const DATABASE_LIMITS: &str = "octoflow-semaphores";
/// Default limit of a semaphore of a lock database.
const DATABASE_DEFAULT: u32 = 1;

impl Turn<'_> {
    /// Visits a node that must not go on before it holds its locks.
    pub(super) fn visit_barred(&mut self, at: NodeIx) {
        let node = self.run.state.node(at);
        if self.run.state.closes(at) {
            let message = match self.run.state.head.shutdown {
                Some(how) => format!("workflow shutdown with strategy:  {}", how.word()),
                None => "Step exceeded its deadline".to_owned(),
            };
            return self.finish(at, Phase::Failed, message);
        }
        if node.wake.is_some_and(|wake| wake <= self.now) {
            return self.finish(at, Phase::Failed, "timeout");
        }
        if node.lock.is_some() {
            return;
        }
        if self.run.compiled_of(at).template.synchronization.is_none() {
            // Without locks, it only waits for its cache lookup.
            return self.locked(Some(at));
        }
        let instance = match self.instance(at) {
            Ok(instance) => instance,
            Err(why) => return self.finish(at, Phase::Error, why),
        };
        let wanted = instance.template.synchronization.as_ref();
        match wanted.map_or(Ok(Vec::new()), |wanted| claims(wanted, &self.run.state.head.namespace)) {
            Ok(locks) => self.decide(WorkflowFact::Wanted { node: Some(at), locks }),
            Err(why) => self.finish(at, Phase::Error, why),
        }
    }

    /// Acquires the run's own locks. Returns true once it may begin.
    pub(super) fn holds_own_locks(&mut self, parameters: &[(String, String)]) -> bool {
        let Some(wanted) = self.run.program.workflow.spec.synchronization.clone() else { return true };
        match &self.run.state.lock {
            Some(lock) if lock.held => true,
            Some(_) => {
                // A stopped run keeps waiting; only a termination takes it out of the queue.
                if self.run.state.head.shutdown == Some(Shutdown::Terminate) {
                    let message = self.view().closing_message();
                    self.decide(RunFact::Ended { phase: RunPhase::Failed, message, at: self.now });
                }
                false
            }
            None => {
                match self.view().own_claims(wanted, parameters) {
                    Ok(locks) => self.decide(WorkflowFact::Wanted { node: None, locks }),
                    Err(why) => self.refuse_locks(None, &why),
                }
                false
            }
        }
    }

    /// Lets a node, or the run, go on once all its locks are held. A cache hit ends the node at once.
    pub(crate) fn locked(&mut self, node: Option<NodeIx>) {
        let mut wake = None;
        if let Some(at) = node {
            if self.recall(at) {
                return;
            }
            let compiled = self.run.compiled_of(at).clone();
            let slot = self.run.state.node(at);
            let inputs = slot.inputs.as_deref().cloned().unwrap_or_default();
            wake = slot.wake;
            if slot.kind == NodeKind::Suspend {
                // A suspension lasts from when it may begin.
                match self.view().first_wake(&slot.name, NodeKind::Suspend, &inputs, &compiled) {
                    Ok(until) => wake = until,
                    Err(why) => return self.finish(at, Phase::Error, why),
                }
            }
        }
        self.decide(WorkflowFact::Locked { node, at: self.now, wake });
    }

    pub(crate) fn wait_for(&mut self, node: Option<NodeIx>, wait: Wait) {
        let Wait { claim, limit, holders } = wait;
        if let Some(why) = node.and_then(|at| self.view().deadlock(at, &claim, limit)) {
            return self.refuse_locks(node, &why);
        }
        let taken = u32::try_from(holders.len()).unwrap_or(u32::MAX);
        let number = if claim.database { taken } else { limit.saturating_sub(taken) };
        let message = format!("Waiting for {} lock. Lock status: {number}/{limit}", claim.key);
        self.decide(WorkflowFact::Waiting { node, at: self.now, lock: claim.key, holders, message });
    }

    /// Ends the nodes that wait for a lock of a daemon that is up by now and outlives them.
    pub(super) fn refuse_behind(&mut self, daemon: NodeIx) {
        let Some(held) = self.run.state.node(daemon).lock.as_ref().filter(|lock| lock.held) else { return };
        let claims = held.claims.clone();
        let waits = |at: &NodeIx| self.run.state.node(*at).lock.as_ref().is_some_and(|lock| lock.waits.is_some());
        let waiting: Vec<NodeIx> = (0..self.run.state.nodes.len() as u32).map(NodeIx).filter(waits).collect();
        for at in waiting {
            let wanted =
                |claim: &&Claim| self.run.state.node(at).lock.as_ref().is_some_and(|lock| lock.claims.contains(claim));
            let why = claims.iter().filter(wanted).find_map(|claim| {
                let limit = self.world.limit(claim).ok()?;
                self.view().deadlock(at, claim, limit)
            });
            if let Some(why) = why {
                self.refuse_locks(Some(at), &why);
            }
        }
    }

    pub(crate) fn refuse_locks(&mut self, node: Option<NodeIx>, why: &str) {
        let message = format!("failed to acquire the synchronization lock: {why}");
        match node {
            Some(at) => self.finish(at, Phase::Error, message),
            None => self.decide(RunFact::Ended { phase: RunPhase::Error, message, at: self.now }),
        }
    }
}

impl View<'_> {
    /// Returns why a node can never be granted a lock: as many as may hold it do, and none of them ends before the node does.
    /// Locks that other runs hold, or nodes beside it, are released in time.
    fn deadlock(&self, at: NodeIx, claim: &Claim, limit: u32) -> Option<String> {
        let holds = |holder: &Option<NodeIx>| {
            lock_of(&self.run.state, *holder).is_some_and(|lock| lock.held && lock.claims.contains(claim))
        };
        let mut holders = self.run.ends_after(at).into_iter().filter(holds);
        let first = holders.next()?;
        let count = 1 + holders.count();
        // A limit of zero keeps everybody waiting until somebody raises it.
        (limit > 0 && count >= limit as usize).then(|| {
            let holder = self.run.holder_name(first);
            format!("{} is held by {holder}, which does not end before this node does", claim.key)
        })
    }

    /// Returns the run's own claims with its parameters filled in, before it has begun.
    fn own_claims(&self, mut wanted: Synchronization, parameters: &[(String, String)]) -> Result<Vec<Claim>, String> {
        let known = parameters.iter().cloned().collect();
        each_text(&mut wanted, |text| {
            let scope = Scope { parameters: &known, ..Scope::new(self.run, self.now) };
            *text = fill(text, &scope, Missing::Refuse).map_err(|error| error.to_string())?.into_owned();
            Ok(())
        })?;
        claims(&wanted, &self.run.state.head.namespace)
    }
}

impl Run {
    /// Lists what ends only after a node has: the nodes around it, their daemons, and the run (`None`). A hook or exit handler
    /// follows its owner, which has ended or ends without it, but not what is around that.
    pub(crate) fn ends_after(&self, at: NodeIx) -> Vec<Option<NodeIx>> {
        let state = &self.state;
        let mut found = vec![None];
        let (mut next, mut dismissing) = (Some(at), None);
        while let Some(at) = next {
            let node = state.node(at);
            next = node.parent;
            // The hooks of a daemon do not keep its boundary from ending the daemons.
            if node.daemoned {
                dismissing = node.boundary;
            }
            if !matches!(node.role, Role::Hook(_)) {
                found.extend(node.parent.map(Some));
            }
            let ending = node.parent.filter(|parent| dismissing != Some(*parent));
            let daemons = ending.and_then(|parent| state.daemons.get(&parent));
            found.extend(daemons.into_iter().flatten().copied().map(Some));
        }
        found
    }

    /// Returns the lock table's entry of a node, or of the run, that wants locks.
    pub(crate) fn waiter(&self, node: Option<NodeIx>) -> Option<Waiter> {
        let lock = lock_of(&self.state, node).filter(|lock| !lock.held)?;
        Some(Waiter {
            rank: LockRank::new(self.program.workflow.spec.priority.unwrap_or(0), self.state.head.created),
            claims: lock.claims.clone(),
            name: self.holder_name(node),
            reported: lock.waits.as_ref().map(|(key, _)| key.clone()),
        })
    }

    /// Iterates over all nodes that want locks, and the run itself.
    pub(crate) fn waiters(&self) -> impl Iterator<Item = (Option<NodeIx>, Waiter)> {
        let nodes = (0..self.state.nodes.len() as u32).map(|at| Some(NodeIx(at)));
        [None].into_iter().chain(nodes).filter_map(|node| Some((node, self.waiter(node)?)))
    }

    /// Iterates over the locks that are held, with their holders.
    pub(crate) fn held_locks(&self) -> impl Iterator<Item = (Holder, &[Claim], String)> {
        let nodes = (0..self.state.nodes.len() as u32).map(|at| Some(NodeIx(at)));
        [None].into_iter().chain(nodes).filter_map(|node| {
            let lock = lock_of(&self.state, node).filter(|lock| lock.held)?;
            Some((Holder { run: self.id, node }, lock.claims.as_slice(), self.holder_name(node)))
        })
    }

    /// Returns the holder's name in messages and in the status.
    pub(super) fn holder_name(&self, node: Option<NodeIx>) -> String {
        let state = &self.state;
        match node {
            Some(at) => format!("{}/{}/{}", state.head.namespace, state.head.name, state.id_of(at)),
            None => format!("{}/{}", state.head.namespace, state.head.name),
        }
    }

    /// Whether a node could go on if it had its locks: it also needs a free slot in its boundary, and a task one in the
    /// run.
    pub(crate) fn ready_for_locks(&self, node: Option<NodeIx>) -> Ready {
        if self.asleep {
            return Ready::Restoring;
        }
        let Some(at) = node else { return Ready::Yes };
        let kind = self.slot_kind(at);
        let crowded = kind.tasked() && !self.has_room()
            || is_counted(kind) && self.state.node(at).boundary.is_some_and(|boundary| self.crowded(boundary));
        if crowded { Ready::Later } else { Ready::Yes }
    }
}

fn lock_of(state: &State, node: Option<NodeIx>) -> Option<&Lock> {
    match node {
        Some(at) => state.node(at).lock.as_deref(),
        None => state.lock.as_deref(),
    }
}

/// Lists the requested locks, each once, mutexes first.
fn claims(wanted: &Synchronization, own: &str) -> Result<Vec<Claim>, String> {
    let mut found: Vec<Claim> = Vec::new();
    let mut add = |claim: Claim| {
        if !found.contains(&claim) {
            found.push(claim);
        }
    };
    for mutex in wanted.all_mutexes() {
        let namespace = or_own(mutex.namespace.as_deref(), own);
        if mutex.name.is_empty() {
            return Err("a mutex has no name".to_owned());
        }
        let kind = if mutex.database { "Database" } else { "Mutex" };
        let key = format!("{namespace}/{kind}/{}", mutex.name);
        add(Claim { key, limit: Limit::One, database: mutex.database });
    }
    for semaphore in wanted.all_semaphores() {
        add(semaphore_claim(semaphore, own)?);
    }
    Ok(found)
}

fn semaphore_claim(semaphore: &Semaphore, own: &str) -> Result<Claim, String> {
    let namespace = or_own(semaphore.namespace.as_deref(), own).to_owned();
    match (&semaphore.config_map_key_ref, &semaphore.database) {
        (Some(reference), None) if !reference.name.is_empty() && !reference.key.is_empty() => {
            let (map, key) = (reference.name.clone(), reference.key.clone());
            Ok(Claim {
                key: format!("{namespace}/ConfigMap/{map}/{key}"),
                limit: Limit::Key { namespace, map, key, otherwise: None },
                database: false,
            })
        }
        (None, Some(database)) if !database.key.is_empty() => {
            let (map, key) = (DATABASE_LIMITS.to_owned(), database.key.clone());
            Ok(Claim {
                key: format!("{namespace}/Database/{key}"),
                limit: Limit::Key { namespace, map, key, otherwise: Some(DATABASE_DEFAULT) },
                database: true,
            })
        }
        _ => Err("a semaphore names exactly one of configMapKeyRef and database, with its key".to_owned()),
    }
}

fn or_own<'a>(namespace: Option<&'a str>, own: &'a str) -> &'a str {
    namespace.filter(|namespace| !namespace.is_empty()).unwrap_or(own)
}

/// Visits every text that may contain variables.
fn each_text(
    wanted: &mut Synchronization,
    mut fill: impl FnMut(&mut String) -> Result<(), String>,
) -> Result<(), String> {
    for mutex in wanted.mutexes.iter_mut().chain(&mut wanted.mutex) {
        fill(&mut mutex.name)?;
        mutex.namespace.iter_mut().try_for_each(&mut fill)?;
    }
    for semaphore in wanted.semaphores.iter_mut().chain(&mut wanted.semaphore) {
        if let Some(reference) = &mut semaphore.config_map_key_ref {
            fill(&mut reference.name)?;
            fill(&mut reference.key)?;
        }
        if let Some(database) = &mut semaphore.database {
            fill(&mut database.key)?;
        }
        semaphore.namespace.iter_mut().try_for_each(&mut fill)?;
    }
    Ok(())
}
