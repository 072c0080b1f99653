//! Replicas: launching their pods, handling reports, and deciding what follows the end of a pod.

use std::time::Duration;

use octoflow_model::{
    AttemptId, NodeIx, Order, Report, Time,
    task::placement::Assignment,
    taskset::{PodEnd, ReplicaPhase, SetFact, StopReason, Terminated},
};

use super::{program::is_retryable, turn::Turn};
use crate::{pod::ended::ContainerEnd, run::placement};

/// Minimum retry delay of a replica whose task could not be built.
pub(super) const MIN_RETRY_DELAY: Duration = Duration::from_secs(1);

impl Turn<'_> {
    pub fn attempt_id(&self, at: NodeIx) -> AttemptId {
        self.run.attempt_of(at.0).unwrap_or(AttemptId { run: self.run.id, task: at, attempt: 0 })
    }

    /// Visits a replica whose retry delay or deadline may have passed.
    pub(super) fn visit_replica(&mut self, replica: u32) {
        let state = &self.run.state.replicas[replica as usize];
        let due = state.wake.is_some_and(|wake| wake <= self.now);
        let may_start = |turn: &Self| turn.may_start(turn.run.program.role_of(replica));
        match state.phase {
            ReplicaPhase::AttemptRetryPending if due && may_start(self) => {
                self.decide(SetFact::Again { replica, at: self.now });
            }
            ReplicaPhase::AttemptPending if may_start(self) => {
                self.decide(SetFact::Queued { first: replica, count: 1, at: self.now });
            }
            ReplicaPhase::AttemptAssigned | ReplicaPhase::AttemptRunning if due => {
                self.end_pod(replica, StopReason::Deadline, "it ran longer than activeDeadlineSeconds".to_owned());
            }
            ReplicaPhase::AttemptPending
            | ReplicaPhase::AttemptPreparing
            | ReplicaPhase::AttemptAssigned
            | ReplicaPhase::AttemptRunning
            | ReplicaPhase::AttemptDeletionRequested
            | ReplicaPhase::AttemptRetryPending
            | ReplicaPhase::Completed => {}
        }
    }

    /// Starts the pod of a replica that the scheduler admitted.
    pub fn launch(&mut self, at: NodeIx, assignment: Assignment) {
        match self.build_task(at, &assignment) {
            Ok(task) => {
                let role = self.run.program.role_of(at.0);
                let span = self.run.program.spec(role).template.spec.active_deadline_seconds;
                let deadline = span.map(|span| self.now.saturating_add(Duration::from_secs(span)));
                let on = placement::recorded(assignment, self.run.known.host.as_deref());
                self.decide(SetFact::Launched { replica: at.0, at: self.now, deadline, on });
                self.effects.orders.push(Order::Start { attempt: self.attempt_id(at), task: Box::new(task) });
            }
            Err(why) => self.pod_ended(at.0, None, None, format!("CreateContainerConfigError: {why}"), 0),
        }
    }

    /// Ends a running pod for another.
    pub(crate) fn preempt(&mut self, at: NodeIx, why: String) {
        let phase = self.run.state.replicas[at.at()].phase;
        if matches!(phase, ReplicaPhase::AttemptAssigned | ReplicaPhase::AttemptRunning) {
            self.end_pod(at.0, StopReason::Preempted, why);
        }
    }

    /// Handles a report about a pod. Reports about a pod that is not the replica's current one are ignored.
    pub fn report(&mut self, report: Report) {
        let attempt = report.attempt();
        let replica = attempt.task.0;
        let phase = self.run.state.replicas.get(attempt.task.at()).map(|state| state.phase);
        let owned = phase.is_some_and(ReplicaPhase::placed) && self.run.attempt_of(replica) == Some(attempt);
        if !owned {
            if matches!(report, Report::Ended { .. } | Report::Answered { .. }) {
                self.effects.orders.push(Order::Forget { attempt });
            }
            return;
        }
        match report {
            Report::Started { at, .. } => {
                if phase == Some(ReplicaPhase::AttemptAssigned) {
                    self.decide(SetFact::Started { replica, at });
                }
            }
            Report::Ended { end, .. } => {
                let log_bytes = end.log_bytes;
                let ContainerEnd { started, terminated, reason } = ContainerEnd::of(*end);
                self.pod_ended(replica, started, terminated, reason, log_bytes);
                self.effects.orders.push(Order::Forget { attempt });
            }
            Report::Lost { why, .. } => {
                self.pod_ended(replica, None, None, format!("Lost: {why}"), 0);
                self.effects.orders.push(Order::Forget { attempt });
            }
            Report::Answered { .. }
            | Report::Container { .. }
            | Report::Ready { .. }
            | Report::Progress { .. }
            | Report::Waiting { .. } => {}
        }
    }

    /// Records the end of a pod: the replica has an outcome, or is retried, or its role is over and it has none.
    fn pod_ended(
        &mut self,
        replica: u32,
        started: Option<Time>,
        terminated: Option<Terminated>,
        reason: String,
        log_bytes: u64,
    ) {
        let role = self.run.program.role_of(replica);
        let state = &self.run.state.replicas[replica as usize];
        let evicted = state.closing.filter(|why| *why != StopReason::Cleaning);
        let code = terminated.as_ref().map(|terminated| terminated.exit_code);
        let well = code == Some(0) && evicted.is_none();
        let reason = match evicted {
            Some(why) => why.word().to_owned(),
            None => reason,
        };
        let judged = self.run.state.roles[role].verdict.is_some();
        let requeued = evicted == Some(StopReason::Preempted) && !judged;
        let policy = &self.run.program.spec(role).retry_policy;
        let left = policy.retry && u64::from(state.retried) < policy.max_retry_count;
        let again = !judged
            && !requeued
            && !well
            && left
            && !self.run.state.closing()
            && is_retryable(policy, code.filter(|_| evicted.is_none()));
        // A task that never reached a runtime fails again at once; without a delay this would be a busy loop.
        let least = if state.phase.placed() { Duration::ZERO } else { MIN_RETRY_DELAY };
        let again = again.then(|| self.now.saturating_add(Duration::from_secs(policy.delay).max(least)));
        let outcome = (!judged && !requeued && again.is_none()).then_some(well);
        let message = match again {
            Some(again) => format!("tried again at {again}"),
            None if requeued => state.phase_message.clone(),
            None => String::new(),
        };
        let at = self.now;
        let pod_end = PodEnd { replica, at, started, terminated, reason, outcome, again, log_bytes, message, requeued };
        self.decide(SetFact::Ended(Box::new(pod_end)));
    }
}
