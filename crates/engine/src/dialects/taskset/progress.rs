//! Live progress of a TaskSet: folds its facts into nodes (the whole, its roles, their replicas) and events to display.

use octoflow_model::{
    Fact, NodeIx, RunPhase, Time,
    argo::{NodeKind, Phase},
    taskset::{PodEnd, SetFact, StopReason, TaskSet},
};
use serde::Deserialize;
use serde_json::Value;

use super::ident;
use crate::run::follow::{Event, Follow, FollowedNode, FollowedRun, TaskEvent};

/// Implements [`Follow`] for TaskSets.
#[derive(Debug)]
pub(super) struct Progress;

impl Follow for Progress {
    fn add_known_nodes(&self, run: &mut FollowedRun, manifest: &Value, at: Time) {
        run.add_known_nodes(manifest, at);
    }

    fn take(&self, run: &mut FollowedRun, fact: &Fact) -> Option<(Time, Event)> {
        let Fact::TaskSet(fact) = fact else { return None };
        run.take_set(fact)
    }

    fn end(&self, run: &mut FollowedRun, phase: RunPhase, at: Time) {
        run.end_root(phase, at);
    }

    fn task_event(&self, run: &FollowedRun, fact: &Fact) -> Option<TaskEvent> {
        let Fact::TaskSet(fact) = fact else { return None };
        if let SetFact::Launched { replica, .. } = fact {
            let label = run.label(run.replica_node(*replica));
            return Some(TaskEvent::Launched { task: NodeIx(*replica), attempt: None, label });
        }
        let SetFact::Ended(end) = fact else { return None };
        Some(TaskEvent::Ended { task: NodeIx(end.replica) })
    }
}

impl FollowedRun {
    /// Adds all nodes of a TaskSet, which are known from its manifest.
    fn add_known_nodes(&mut self, manifest: &Value, at: Time) {
        let Ok(set) = TaskSet::deserialize(manifest) else { return };
        self.groups = set.spec.roles.len();
        let name = self.name.clone();
        let node = |display: String, kind, holder, rank| FollowedNode {
            name: display.clone(),
            display,
            kind,
            phase: Phase::Pending,
            template: String::new(),
            message: String::new(),
            started: at,
            running: None,
            finished: None,
            boundary: None,
            holder,
            progress: (0, 1),
            rank: Some(rank),
            retries: 0,
            preempted: 0,
        };
        self.nodes.push(node(name, NodeKind::Dag, None, 0));
        for (rank, role) in set.spec.roles.iter().enumerate() {
            self.nodes.push(node(role.name.clone(), NodeKind::Dag, Some(NodeIx(0)), rank));
        }
        for (at, role) in set.spec.roles.iter().enumerate() {
            let holder = Some(role_node(at as u32));
            for index in 0..role.replicas {
                let name = ident::host_name(&role.name, index);
                self.nodes.push(node(name, NodeKind::Pod, holder, index as usize));
                self.total += 1;
            }
        }
    }

    /// Returns the node of a replica; replicas are numbered across all roles.
    fn replica_node(&self, replica: u32) -> NodeIx {
        NodeIx(1 + self.groups as u32 + replica)
    }

    fn take_set(&mut self, fact: &SetFact) -> Option<(Time, Event)> {
        match fact {
            SetFact::Began { attempt: 0, at, .. } => {
                self.began = Some(*at);
                self.phase = RunPhase::Running;
                self.nodes.first_mut()?.phase = Phase::Running;
                Some((*at, Event::Began))
            }
            SetFact::Began { attempt, at, .. } => {
                self.reset_for_attempt(*attempt);
                Some((*at, Event::Attempt(*attempt)))
            }
            SetFact::Launched { replica, .. } => {
                let attempt = self.nodes.first()?.retries;
                let at = self.replica_node(*replica);
                let (set, role) = (self.name.clone(), self.role_of(at)?);
                let seen = self.nodes.get_mut(at.at())?;
                let index = u32::try_from(seen.rank?).ok()?;
                seen.template = ident::pod_name(&set, &role, attempt, seen.retries + seen.preempted, index);
                None
            }
            SetFact::Started { replica, at } => {
                let node = self.replica_node(*replica);
                let seen = self.nodes.get_mut(node.at())?;
                seen.phase = Phase::Running;
                seen.running = Some(*at);
                seen.message.clear();
                self.replica_up(node);
                Some((*at, Event::Started(node)))
            }
            SetFact::Ending { replica, at, message, why } => {
                let node = self.replica_node(*replica);
                message.clone_into(&mut self.nodes.get_mut(node.at())?.message);
                (*why == StopReason::Preempted).then(|| (*at, Event::Preempted { node, message: message.clone() }))
            }
            SetFact::Ended(end) => self.pod_ended(end),
            SetFact::Again { replica, .. } => {
                let node = self.replica_node(*replica);
                let seen = self.nodes.get_mut(node.at())?;
                seen.retries += 1;
                (seen.running, seen.finished, seen.phase) = (None, None, Phase::Pending);
                None
            }
            SetFact::Dropped { replica, at } => {
                let node = self.replica_node(*replica);
                let seen = self.nodes.get_mut(node.at())?;
                (seen.phase, seen.finished) = (Phase::Skipped, Some(*at));
                self.done += 1;
                None
            }
            SetFact::RoleJudged { role, at, succeeded, message } => {
                let node = role_node(*role);
                let seen = self.nodes.get_mut(node.at())?;
                seen.phase = if *succeeded { Phase::Succeeded } else { Phase::Failed };
                message.clone_into(&mut seen.message);
                Some((*at, Event::Judged(node)))
            }
            SetFact::RoleOver { role, at } => {
                self.nodes.get_mut(role_node(*role).at())?.finished = Some(*at);
                None
            }
            SetFact::Judged { message, .. } => {
                message.clone_into(&mut self.nodes.first_mut()?.message);
                None
            }
            SetFact::Over { at, next, .. } => {
                let message = self.nodes.first()?.message.clone();
                next.map(|until| (*at, Event::TriedAgain { until, message }))
            }
            SetFact::Queued { .. } => None,
        }
    }

    fn pod_ended(&mut self, end: &PodEnd) -> Option<(Time, Event)> {
        let node = self.replica_node(end.replica);
        let seen = self.nodes.get_mut(node.at())?;
        seen.running = seen.running.or(end.started);
        seen.finished = Some(end.at);
        if end.requeued {
            seen.preempted += 1;
            (seen.running, seen.finished, seen.phase) = (None, None, Phase::Pending);
            return None;
        }
        let ending = summarise(end);
        if let Some(until) = end.again {
            seen.phase = Phase::Pending;
            seen.message.clone_from(&ending);
            return Some((end.at, Event::Backoff { node, until, message: ending }));
        }
        self.done += 1;
        let (phase, event) = match end.outcome {
            Some(true) => (Phase::Succeeded, Event::Finished(node)),
            Some(false) => (Phase::Failed, Event::Finished(node)),
            None => (Phase::Skipped, Event::Stopped(node)),
        };
        seen.phase = phase;
        seen.message = if phase == Phase::Failed { ending } else { String::new() };
        Some((end.at, event))
    }

    /// Marks the role of a started replica as running.
    fn replica_up(&mut self, replica: NodeIx) {
        let holder = self.nodes.get(replica.at()).and_then(|seen| seen.holder);
        let role = holder.and_then(|holder| self.nodes.get_mut(holder.at()));
        if let Some(role) = role.filter(|role| role.phase == Phase::Pending) {
            role.phase = Phase::Running;
        }
    }

    /// Resets all nodes for a new attempt.
    fn reset_for_attempt(&mut self, attempt: u32) {
        for seen in self.nodes.iter_mut() {
            (seen.phase, seen.running, seen.finished) = (Phase::Pending, None, None);
            (seen.retries, seen.preempted) = (0, 0);
            seen.message.clear();
            seen.template.clear();
        }
        if let Some(whole) = self.nodes.first_mut() {
            (whole.phase, whole.retries) = (Phase::Running, attempt);
            whole.message = format!("attempt {attempt}");
        }
        self.done = 0;
    }

    /// Marks the root node as finished.
    fn end_root(&mut self, phase: RunPhase, at: Time) {
        if let Some(whole) = self.nodes.first_mut().filter(|_| self.groups > 0) {
            whole.phase = if phase == RunPhase::Succeeded { Phase::Succeeded } else { Phase::Failed };
            whole.finished = Some(at);
        }
    }

    fn role_of(&self, replica: NodeIx) -> Option<String> {
        let holder = self.nodes.get(replica.at())?.holder?;
        self.nodes.get(holder.at()).map(|role| role.name.clone())
    }
}

fn role_node(role: u32) -> NodeIx {
    NodeIx(1 + role)
}

/// Summarises how a pod ended.
fn summarise(end: &PodEnd) -> String {
    let mut parts = Vec::new();
    if !end.reason.is_empty() {
        parts.push(end.reason.clone());
    }
    if let Some(end) = end.terminated.as_ref().filter(|end| end.exit_code != 0) {
        let words = end.message.trim();
        let words = if words.is_empty() { String::new() } else { format!(": {words}") };
        parts.push(format!("{} (exit code {}){words}", end.reason, end.exit_code));
    }
    parts.join("; ")
}
