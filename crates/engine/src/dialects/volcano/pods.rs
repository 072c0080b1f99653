//! Pods: launching them, handling reports, and deciding what follows their ends.

use std::time::Duration;

use octoflow_model::{
    AttemptId, NodeIx, Order, Report, Shutdown, Time,
    pod::Terminated,
    task::placement::Assignment,
    volcano::{Event, JobFact, PodEnd, PodOutcome, PodPhase, PodStop},
};

use super::{program::RestartPolicy, turn::Turn};
use crate::{pod::ended::ContainerEnd, run::placement};

/// Delay before a container is started again for the second time; it doubles. The first time there is none.
const FIRST_BACK_OFF: Duration = Duration::from_secs(10);
const LONGEST_BACK_OFF: Duration = Duration::from_secs(300);

/// The end of an attempt, as a runtime tells it.
struct AttemptEnd {
    container: ContainerEnd,
    log_bytes: u64,
    /// False if containers cannot be started again where it was.
    restartable: bool,
}

impl Turn<'_> {
    pub fn attempt_id(&self, at: NodeIx) -> AttemptId {
        self.run.attempt_of(at.0).unwrap_or(AttemptId { run: self.run.id, task: at, attempt: 0 })
    }

    /// Visits a pod whose back-off, deadline or delayed action may be due.
    pub(super) fn visit_pod(&mut self, pod: u32) {
        let slot = &self.run.state.pods[pod as usize];
        if slot.wake.is_some_and(|wake| wake <= self.now) {
            match slot.phase {
                PodPhase::BackOff if self.deadline(pod).is_some_and(|deadline| deadline <= self.now) => {
                    self.expire(pod);
                }
                PodPhase::BackOff => {
                    let on = slot.on.as_deref().cloned().unwrap_or_default();
                    self.launch(NodeIx(pod), on);
                }
                PodPhase::Starting | PodPhase::Running => {
                    let message = "it ran longer than activeDeadlineSeconds".to_owned();
                    self.end_pod(pod, PodStop::Deadline, message);
                }
                PodPhase::Absent
                | PodPhase::Queued
                | PodPhase::Terminating
                | PodPhase::Succeeded
                | PodPhase::Failed => {}
            }
        }
        self.act_if_due(pod);
    }

    /// Returns the deadline of a pod that is, or is about to be, given to a runtime.
    fn deadline(&self, pod: u32) -> Option<Time> {
        let task = self.run.program.task_of(pod);
        let span = self.run.program.spec(task).template.spec.active_deadline_seconds?;
        let since = self.run.state.pods[pod as usize].since.unwrap_or(self.now);
        Some(since.saturating_add(Duration::from_secs(span)))
    }

    /// Fails a pod whose deadline passed while its containers waited to be started again.
    fn expire(&mut self, pod: u32) {
        let terminated = self.run.state.pods[pod as usize].terminated.as_deref().cloned();
        let reason = PodStop::Deadline.word().to_owned();
        self.finish_pod(pod, PodOutcome::Failed, ContainerEnd { started: None, terminated, reason }, None, 0);
    }

    /// Starts a pod that the scheduler admitted, or the containers of one that keeps its place.
    pub fn launch(&mut self, at: NodeIx, assignment: Assignment) {
        match self.build_task(at, &assignment) {
            Ok(task) => {
                let first = !self.run.state.admitted;
                self.launches = true;
                let deadline = self.deadline(at.0);
                let on = placement::recorded(assignment, self.run.known.host.as_deref());
                self.decide(JobFact::Launched { pod: at.0, at: self.now, deadline, on });
                self.effects.orders.push(Order::Start { attempt: self.attempt_id(at), task: Box::new(task) });
                if first {
                    self.let_in();
                }
            }
            Err(why) => {
                let reason = format!("CreateContainerConfigError: {why}");
                let container = ContainerEnd { started: None, terminated: None, reason };
                self.finish_pod(at.0, PodOutcome::Failed, container, None, 0);
            }
        }
    }

    /// Notes that the gang was let in: before that its pods do not exist for others, so they are pending from now on.
    fn let_in(&mut self) {
        if self.run.program.tasks.iter().all(|task| task.rule(Event::PodPending, None).is_none()) {
            return;
        }
        let pending = |phase| matches!(phase, PodPhase::Queued | PodPhase::Starting);
        let all = self.run.state.pods.iter().enumerate();
        let pods: Vec<u32> = all.filter(|(_, pod)| pending(pod.phase)).map(|(at, _)| at as u32).collect();
        self.are_pending(&pods);
    }

    /// Ends a pod for another, or because its node is drained.
    pub(crate) fn preempt(&mut self, at: NodeIx, why: String) {
        let phase = self.run.state.pods[at.at()].phase;
        if matches!(phase, PodPhase::Starting | PodPhase::Running | PodPhase::BackOff) {
            self.end_pod(at.0, PodStop::Preempted, why);
        }
    }

    pub(super) fn end_pod(&mut self, pod: u32, why: PodStop, message: String) {
        let held = self.run.state.pods[pod as usize].phase == PodPhase::BackOff;
        self.decide(JobFact::Ending { pod, at: self.now, why, message });
        if held {
            // No runtime has it, so it is gone at once.
            let slot = &self.run.state.pods[pod as usize];
            let terminated = slot.terminated.as_deref().cloned();
            self.stopped(pod, why, ContainerEnd { started: slot.started, terminated, reason: String::new() }, 0);
        } else {
            self.resend_stop(NodeIx(pod));
        }
    }

    /// Sends a pod its stop order, possibly again: the first one may have been lost, or the shutdown was escalated.
    pub(crate) fn resend_stop(&mut self, at: NodeIx) {
        let Some(attempt) = self.run.attempt_of(at.0) else { return };
        let at_once = self.run.state.head.shutdown == Some(Shutdown::Terminate);
        self.effects.orders.push(if at_once { Order::Kill { attempt } } else { Order::Stop { attempt } });
    }

    /// Handles a report about a pod. Reports about an attempt that is not the current one are ignored.
    pub fn report(&mut self, report: Report) {
        let attempt = report.attempt();
        let pod = attempt.task.0;
        let phase = self.run.state.pods.get(attempt.task.at()).map(|state| state.phase);
        let owned = phase.is_some_and(PodPhase::placed) && self.run.attempt_of(pod) == Some(attempt);
        if !owned {
            if matches!(report, Report::Ended { .. } | Report::Answered { .. }) {
                self.effects.orders.push(Order::Forget { attempt });
            }
            return;
        }
        match report {
            Report::Started { at, .. } => {
                let again = phase == Some(PodPhase::Running) && self.run.state.pods[pod as usize].started.is_none();
                if phase == Some(PodPhase::Starting) || again {
                    self.decide(JobFact::Started { pod, at });
                    self.call_off(pod, &[Event::PodPending, Event::PodFailed, Event::PodEvicted]);
                }
            }
            Report::Ended { end, .. } => {
                let log_bytes = end.log_bytes;
                let container = ContainerEnd::of(*end);
                self.attempt_ended(pod, AttemptEnd { container, log_bytes, restartable: true });
                self.effects.orders.push(Order::Forget { attempt });
            }
            Report::Lost { why, .. } => {
                let container = ContainerEnd { started: None, terminated: None, reason: format!("Lost: {why}") };
                self.attempt_ended(pod, AttemptEnd { container, log_bytes: 0, restartable: false });
                self.effects.orders.push(Order::Forget { attempt });
            }
            Report::Ready { at, ready, .. } => {
                let runs = phase == Some(PodPhase::Running) && self.run.state.pods[pod as usize].ready != ready;
                if runs && self.run.program.tasks[self.run.program.task_of(pod)].probed {
                    self.decide(JobFact::Ready { pod, at, ready });
                }
            }
            Report::Answered { .. } | Report::Container { .. } | Report::Progress { .. } | Report::Waiting { .. } => {}
        }
    }

    fn attempt_ended(&mut self, pod: u32, end: AttemptEnd) {
        let AttemptEnd { container, log_bytes, restartable } = end;
        let slot = &self.run.state.pods[pod as usize];
        if let Some(why) = slot.closing {
            return self.stopped(pod, why, container, log_bytes);
        }
        let well = container.terminated.as_ref().is_some_and(|end| end.exit_code == 0);
        let ran = slot.started.or(container.started).is_some();
        if ran {
            self.call_off(pod, &[Event::PodFailed, Event::PodEvicted]);
        }
        let task = self.run.program.task_of(pod);
        let again = restartable
            && match self.run.program.tasks[task].restart {
                RestartPolicy::Never => false,
                RestartPolicy::OnFailure => !well,
                RestartPolicy::Always => true,
            };
        if again {
            let delay = back_off(self.run.state.pods[pod as usize].restarts);
            let next = self.now.saturating_add(delay);
            self.finish_pod(pod, PodOutcome::Restarted, container, Some(next), log_bytes);
        } else {
            let outcome = if well { PodOutcome::Succeeded } else { PodOutcome::Failed };
            self.finish_pod(pod, outcome, container, None, log_bytes);
        }
    }

    /// Records the end of a pod that was ordered to end.
    fn stopped(&mut self, pod: u32, why: PodStop, container: ContainerEnd, log_bytes: u64) {
        let ContainerEnd { started, terminated, .. } = container;
        let container = ContainerEnd { started, terminated, reason: why.word().to_owned() };
        let outcome = if why == PodStop::Deadline { PodOutcome::Failed } else { PodOutcome::Gone };
        self.finish_pod(pod, outcome, container, None, log_bytes);
        if matches!(why, PodStop::Deleted | PodStop::Evicted | PodStop::Preempted) {
            self.raise(Event::PodEvicted, pod, None);
        }
    }

    /// Records what became of a pod, and raises the events that follow.
    fn finish_pod(
        &mut self,
        pod: u32,
        outcome: PodOutcome,
        container: ContainerEnd,
        again: Option<Time>,
        log_bytes: u64,
    ) {
        let ContainerEnd { started, terminated, reason } = container;
        let code = terminated.as_ref().map(|end: &Terminated| end.exit_code);
        let at = self.now;
        let end = PodEnd { pod, at, outcome, started, terminated, reason, again, log_bytes };
        self.decide(JobFact::Ended(Box::new(end)));
        self.call_off(pod, &[Event::PodPending]);
        let task = self.run.program.task_of(pod);
        let (plan, counted) = (&self.run.program.tasks[task], &self.run.state.tasks[task]);
        match outcome {
            PodOutcome::Failed => self.raise(Event::PodFailed, pod, code),
            PodOutcome::Succeeded if counted.count(PodPhase::Succeeded) == plan.count => {
                self.raise(Event::TaskCompleted, pod, None);
            }
            PodOutcome::Restarted if plan.max_retry.is_some_and(|most| self.restarts(task) >= most) => {
                self.raise(Event::TaskFailed, pod, None);
            }
            PodOutcome::Succeeded | PodOutcome::Restarted | PodOutcome::Gone => {}
        }
    }

    /// Counts the container restarts of a task's pods that have not ended.
    fn restarts(&self, task: usize) -> u32 {
        let pods = self.run.program.tasks[task].pods().map(|pod| &self.run.state.pods[pod as usize]);
        let open = |phase: PodPhase| {
            matches!(phase, PodPhase::Queued | PodPhase::Starting | PodPhase::Running | PodPhase::BackOff)
        };
        pods.filter(|pod| open(pod.phase)).fold(0, |sum: u32, pod| sum.saturating_add(pod.restarts))
    }
}

/// Returns how long a container waits before it is started again, after so many restarts.
fn back_off(restarts: u32) -> Duration {
    match restarts.checked_sub(1) {
        None => Duration::ZERO,
        Some(before) => FIRST_BACK_OFF.saturating_mul(1 << before.min(16)).min(LONGEST_BACK_OFF),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_that_end_again_and_again_wait_longer() {
        let seconds: Vec<u64> = (0..8).map(|restarts| back_off(restarts).as_secs()).collect();
        assert_eq!(seconds, [0, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(back_off(u32::MAX), LONGEST_BACK_OFF);
    }
}
