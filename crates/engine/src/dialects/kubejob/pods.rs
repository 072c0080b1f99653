//! Pods: launching them, handling reports, and deciding what their ends mean.

use std::time::Duration;

use octoflow_model::{
    AttemptId, NodeIx, Order, Report, Shutdown, Time,
    kubejob::{ContainerExit, Counted, KubeJobFact, PodEnd, PodOutcome, PodPhase, PodStop, Verdict},
    order::{End, Exit},
    task::placement::Assignment,
};

use super::{backoff, turn::Turn};
use crate::{pod::ended::ContainerEnd, run::placement};

/// The end of an attempt, as a runtime tells it.
struct AttemptEnd {
    container: ContainerEnd,
    /// Containers that failed.
    exits: Vec<ContainerExit>,
    well: bool,
    /// Reason of the pod's disruption; empty if there was none.
    disruption: &'static str,
    log_bytes: u64,
    /// False if containers cannot be started again where it was.
    restartable: bool,
}

impl Turn<'_> {
    pub fn attempt_id(&self, at: NodeIx) -> AttemptId {
        self.run.attempt_of(at.0).unwrap_or(AttemptId { run: self.run.id, task: at, attempt: 0 })
    }

    /// Visits a pod whose back-off or deadline may be over.
    pub(super) fn visit_pod(&mut self, pod: u32) {
        let slot = &self.run.state.pods[pod as usize];
        if slot.wake.is_none_or(|wake| wake > self.now) {
            return;
        }
        match slot.phase {
            PodPhase::BackOff if self.pod_deadline(pod).is_some_and(|deadline| deadline <= self.now) => {
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
            PodPhase::Queued | PodPhase::Terminating | PodPhase::Succeeded | PodPhase::Failed | PodPhase::Gone => {}
        }
    }

    /// Returns the deadline of a pod that is, or is about to be, given to a runtime.
    fn pod_deadline(&self, pod: u32) -> Option<Time> {
        let span = self.run.program.job.spec.template.spec.active_deadline_seconds?;
        let since = self.run.state.pods[pod as usize].since.unwrap_or(self.now);
        Some(since.saturating_add(Duration::from_secs(span)))
    }

    /// Fails a pod whose deadline passed while its containers waited to be started again.
    fn expire(&mut self, pod: u32) {
        let slot = &self.run.state.pods[pod as usize];
        let (terminated, exits) = (slot.terminated.as_deref().cloned(), slot.exits.clone());
        let reason = PodStop::Deadline.word().to_owned();
        let container = ContainerEnd { started: None, terminated, reason };
        self.pod_failed(pod, AttemptEnd { exits, ..AttemptEnd::of(container) });
    }

    /// Starts a pod that the scheduler admitted, or the containers of one that keeps its place.
    pub fn launch(&mut self, at: NodeIx, assignment: Assignment) {
        match self.build_task(at, &assignment) {
            Ok(task) => {
                let deadline = self.pod_deadline(at.0);
                let on = placement::recorded(assignment, self.run.known.host.as_deref());
                self.decide(KubeJobFact::Launched { pod: at.0, at: self.now, deadline, on });
                self.effects.orders.push(Order::Start { attempt: self.attempt_id(at), task: Box::new(task) });
            }
            Err(why) => {
                let reason = format!("CreateContainerConfigError: {why}");
                self.pod_failed(at.0, AttemptEnd::of(ContainerEnd { started: None, terminated: None, reason }));
            }
        }
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
        let counted = self.counted_at_once(pod, why);
        self.decide(KubeJobFact::Ending { pod, at: self.now, why, counted, message });
        if held {
            // No runtime has it, so it is gone at once.
            let slot = &self.run.state.pods[pod as usize];
            let (terminated, exits) = (slot.terminated.as_deref().cloned(), slot.exits.clone());
            let container = ContainerEnd { started: slot.started, terminated, reason: String::new() };
            self.stopped(pod, why, AttemptEnd { exits, ..AttemptEnd::of(container) });
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
                    self.decide(KubeJobFact::Started { pod, at });
                }
            }
            Report::Ended { end, .. } => {
                let end = AttemptEnd::reported(*end, self.run.program.main_container());
                self.attempt_ended(pod, end);
                self.effects.orders.push(Order::Forget { attempt });
            }
            Report::Lost { why, .. } => {
                let container = ContainerEnd { started: None, terminated: None, reason: format!("Lost: {why}") };
                let lost = AttemptEnd { disruption: "DeletionByPodGC", ..AttemptEnd::of(container) };
                self.attempt_ended(pod, lost);
                self.effects.orders.push(Order::Forget { attempt });
            }
            Report::Ready { at, ready, .. } => {
                let runs = phase == Some(PodPhase::Running) && self.run.state.pods[pod as usize].ready != ready;
                if runs && self.run.program.is_probed() {
                    self.decide(KubeJobFact::Ready { pod, at, ready });
                }
            }
            Report::Answered { .. } | Report::Container { .. } | Report::Progress { .. } | Report::Waiting { .. } => {}
        }
    }

    fn attempt_ended(&mut self, pod: u32, end: AttemptEnd) {
        let slot = &self.run.state.pods[pod as usize];
        if let Some(why) = slot.closing {
            return self.stopped(pod, why, end);
        }
        if end.well {
            self.finish_pod(pod, PodOutcome::Succeeded, Some(Counted::Succeeded), end, None);
        } else if end.restartable && self.run.program.restarts {
            let next = self.now.saturating_add(backoff::of_containers(slot.restarts));
            self.finish_pod(pod, PodOutcome::Restarted, None, end, Some(next));
        } else {
            self.pod_failed(pod, end);
        }
    }

    /// Records that a pod has failed by itself.
    fn pod_failed(&mut self, pod: u32, end: AttemptEnd) {
        let (counted, fatal) = self.failure(pod, &end.exits, end.disruption);
        self.finish_pod(pod, PodOutcome::Failed, Some(counted), end, None);
        if let Some(message) = fatal {
            self.judge(Verdict::Failed, "PodFailurePolicy", message);
        }
    }

    /// Records the end of a pod that was ordered to end.
    fn stopped(&mut self, pod: u32, why: PodStop, end: AttemptEnd) {
        let disruption = match why {
            PodStop::Preempted => "PreemptionByScheduler",
            PodStop::Evicted => "EvictionByEvictionAPI",
            PodStop::Scaled | PodStop::Suspended | PodStop::Finished | PodStop::Deleted | PodStop::Deadline => "",
        };
        let container = ContainerEnd { reason: why.word().to_owned(), ..end.container };
        let end = AttemptEnd { container, disruption, ..end };
        if why == PodStop::Deadline {
            return self.pod_failed(pod, end);
        }
        let decided = self.run.state.pods[pod as usize].counted.is_some();
        let (counted, fatal) = match (decided, end.well) {
            (true, _) => (None, None),
            (false, true) => (Some(Counted::Succeeded), None),
            (false, false) => {
                let (counted, fatal) = self.failure(pod, &end.exits, disruption);
                (Some(counted), fatal)
            }
        };
        self.finish_pod(pod, PodOutcome::Gone, counted, end, None);
        if let Some(message) = fatal {
            self.judge(Verdict::Failed, "PodFailurePolicy", message);
        }
    }

    /// Records what became of a pod.
    fn finish_pod(
        &mut self,
        pod: u32,
        outcome: PodOutcome,
        counted: Option<Counted>,
        end: AttemptEnd,
        again: Option<Time>,
    ) {
        let AttemptEnd { container, exits, disruption, log_bytes, .. } = end;
        let ContainerEnd { started, terminated, reason } = container;
        let (at, disruption) = (self.now, disruption.to_owned());
        let end =
            PodEnd { pod, at, outcome, counted, started, terminated, exits, reason, disruption, again, log_bytes };
        self.decide(KubeJobFact::Ended(Box::new(end)));
    }
}

impl AttemptEnd {
    /// Returns the end of an attempt that failed and of which nothing else is known.
    fn of(container: ContainerEnd) -> Self {
        Self { container, exits: Vec::new(), well: false, disruption: "", log_bytes: 0, restartable: false }
    }

    /// Returns the end that a runtime reports. A pod has succeeded if all of its containers have.
    fn reported(end: End, main: &str) -> Self {
        let evicted = matches!(end.exit, Exit::Evicted(_));
        let mut well = end.exit == Exit::Code(0);
        let mut exits = Vec::new();
        for member in &end.members {
            let Some(exit) = &member.exit else { continue };
            well &= member.well();
            exits.extend(failed(&member.name, exit));
        }
        if end.members.is_empty() {
            exits.extend(failed(main, &end.exit));
        }
        let log_bytes = end.log_bytes;
        Self {
            container: ContainerEnd::of(end),
            exits,
            well,
            disruption: if evicted { "TerminationByKubelet" } else { "" },
            log_bytes,
            restartable: !evicted,
        }
    }
}

/// Returns the exit of a container that failed. One that could not be started has the code that Kubernetes gives it.
fn failed(name: &str, exit: &Exit) -> Option<ContainerExit> {
    let code = match exit {
        Exit::NotStarted(_) => 128,
        Exit::Environment(_) => return None,
        Exit::Code(_) | Exit::Signal(_) | Exit::OutOfMemory | Exit::Evicted(_) => exit.code()?,
    };
    (code != 0).then(|| ContainerExit { name: name.to_owned(), code })
}
