//! Drives tasks: from the scheduler's queue to the runtime and back.

use octoflow_model::{
    AttemptId, NodeIx, Order, Report, Shutdown, Time,
    argo::{InputValues, NodeKind, NodeList, OutputValues, Phase, Role, WorkflowFact},
    order::End,
    task::placement::Assignment,
};

use super::{duration, node::Leaf, pod, program::CompiledTemplate, turn::Turn, view::View};
use crate::run::placement;

impl Turn<'_> {
    /// Stops a task if the run is shutting down or its deadline has passed.
    pub(super) fn visit_leaf(&mut self, at: NodeIx) {
        let node = self.run.state.node(at);
        let Some(leaf) = node.leaf() else { return };
        if leaf == Leaf::Stopping {
            return;
        }
        if self.run.state.closes(at) && node.daemoned {
            self.stop_daemon(at, self.run.state.head.shutdown == Some(Shutdown::Terminate));
        } else if self.run.state.closes(at) {
            let message = match self.run.state.head.shutdown {
                // Two spaces, as in Argo: tools match this text.
                Some(how) => format!("workflow shutdown with strategy:  {}", how.word()),
                None => "Step exceeded its deadline".to_owned(),
            };
            self.end_leaf(at, leaf, message, self.run.state.head.shutdown == Some(Shutdown::Terminate));
        } else if node.wake.is_some_and(|wake| wake <= self.now) {
            let message = match leaf {
                Leaf::Barred | Leaf::Queued => "timeout",
                Leaf::Launched | Leaf::Running | Leaf::Preempting | Leaf::Stopping => {
                    "Pod was active on the node longer than the specified deadline"
                }
            };
            self.end_leaf(at, leaf, message.to_owned(), false);
        }
    }

    fn end_leaf(&mut self, at: NodeIx, leaf: Leaf, message: String, at_once: bool) {
        let attempt = self.view().attempt_id(at);
        match leaf {
            Leaf::Barred | Leaf::Queued => self.finish(at, Phase::Failed, message),
            Leaf::Launched | Leaf::Running | Leaf::Preempting if self.run.state.children.contains_key(&at) => {
                self.leave_child(at, at_once);
                self.finish(at, Phase::Failed, message);
            }
            Leaf::Launched | Leaf::Running | Leaf::Preempting => {
                self.decide(WorkflowFact::Stopping { node: at, message });
                self.effects.orders.push(if at_once { Order::Kill { attempt } } else { Order::Stop { attempt } });
            }
            // It was ordered to stop already.
            Leaf::Stopping => {}
        }
    }

    /// Repeats the order to stop a task: the first one may have been lost, or was not a kill.
    pub(crate) fn resend_stop(&mut self, at: NodeIx) {
        let attempt = self.view().attempt_id(at);
        let at_once = self.run.state.head.shutdown == Some(Shutdown::Terminate);
        self.effects.orders.push(if at_once { Order::Kill { attempt } } else { Order::Stop { attempt } });
    }

    /// Starts a task that the scheduler has assigned capacity to.
    pub fn launch(&mut self, at: NodeIx, assignment: Assignment) {
        match self.build_task(at, &assignment) {
            Ok((task, deadline)) => {
                let on = placement::recorded(assignment, self.run.host());
                self.decide(WorkflowFact::Launched { node: at, at: self.now, deadline, on });
                self.add_containers(at);
                self.effects.orders.push(Order::Start { attempt: self.view().attempt_id(at), task: Box::new(task) });
            }
            Err(message) => self.finish(at, Phase::Error, message),
        }
    }

    /// Ends a running task for another. A daemon that is up holds no capacity, and a request never does.
    pub(crate) fn preempt(&mut self, at: NodeIx, message: String) {
        let node = self.run.state.node(at);
        let running = matches!(node.leaf(), Some(Leaf::Launched | Leaf::Running)) && !node.phase.fulfilled();
        if running && !node.daemoned && !self.run.is_request(at) {
            self.decide(WorkflowFact::Preempted { node: at, at: self.now, message });
            self.resend_stop(at);
        }
    }

    /// Queues a node again whose preempted task is over. The end counts as nothing: neither a retry nor a result.
    fn requeue(&mut self, at: NodeIx, log_bytes: u64) {
        let node = self.run.state.node(at);
        let (name, kind) = (node.name.clone(), node.kind);
        let compiled = self.run.compiled_of(at).clone();
        let inputs = node.inputs.as_deref().cloned().unwrap_or_default();
        // The time a task may be pending counts anew, as its deadline does when it starts.
        let wake = self.view().first_wake(&name, kind, &inputs, &compiled).unwrap_or_default();
        let attempt = self.run.state.attempt_number(at) + 1;
        self.decide(WorkflowFact::Requeued { node: at, at: self.now, attempt, wake, log_bytes });
    }

    /// Takes a runtime's report about a task. Reports about an attempt that the runtime does not own any more are
    /// ignored.
    pub fn report(&mut self, report: Report) {
        let attempt = report.attempt();
        let at = attempt.task;
        let owned = (at.at() < self.run.state.nodes.len() && attempt == self.view().attempt_id(at))
            .then(|| self.run.state.node(at).leaf().filter(|leaf| leaf.owned_by_runtime()))
            .flatten();
        let Some(leaf) = owned else {
            if matches!(report, Report::Ended { .. } | Report::Answered { .. }) {
                self.effects.orders.push(Order::Forget { attempt });
            }
            return;
        };
        match report {
            Report::Started { at: time, .. } => {
                if leaf == Leaf::Launched {
                    self.decide(WorkflowFact::Started { node: at, at: time });
                    self.daemon_up(at);
                }
            }
            Report::Ended { end, .. } if leaf == Leaf::Preempting => {
                self.requeue(at, end.log_bytes);
                self.effects.orders.push(Order::Forget { attempt });
            }
            Report::Answered { .. } | Report::Lost { .. } if leaf == Leaf::Preempting => {
                self.requeue(at, 0);
                self.effects.orders.push(Order::Forget { attempt });
            }
            Report::Ended { end, .. } => {
                self.ended(at, leaf, *end);
                self.effects.orders.push(Order::Forget { attempt });
            }
            Report::Answered { answer, .. } => {
                self.answered(at, leaf, &answer);
                self.effects.orders.push(Order::Forget { attempt });
            }
            Report::Container { member, .. } => self.container_reported(at, &member),
            // A daemon is ready once it runs.
            Report::Ready { .. } => {}
            Report::Progress { done, total, .. } => {
                if self.run.state.node(at).progress.as_deref() != Some(&(done, total)) {
                    self.decide(WorkflowFact::Progressed { node: at, done, total });
                }
            }
            Report::Lost { why, .. } => {
                let stop_message =
                    self.run.state.node(at).message.as_deref().filter(|_| leaf == Leaf::Stopping).map(str::to_owned);
                match stop_message {
                    _ if self.run.state.node(at).dismissed => self.finish(at, Phase::Succeeded, ""),
                    Some(message) => self.finish(at, Phase::Failed, message),
                    None => self.finish(at, Phase::Error, format!("lost: {why}")),
                }
                self.effects.orders.push(Order::Forget { attempt });
            }
            // Nothing that a workflow asks for waits so.
            Report::Waiting { .. } => {}
        }
    }

    fn ended(&mut self, at: NodeIx, leaf: Leaf, end: End) {
        if let Some(started) = end.started
            && leaf == Leaf::Launched
        {
            self.decide(WorkflowFact::Started { node: at, at: started });
            // The task ended before its start was reported; hooks that wait for the running phase must not miss it.
            self.fire(at);
        }
        let (mut phase, mut message) = match self.instance(at) {
            Ok(instance) => pod::judge_end(&instance.template, &end),
            Err(why) => (Phase::Error, why),
        };
        let (mut outputs, missing) = self.collected(at, &end);
        if phase == Phase::Succeeded
            && let Some(missing) = missing
        {
            (phase, message) = (Phase::Error, missing);
        }
        (phase, message) = self.view().daemon_end(at, phase, message);
        if self.run.state.node(at).dismissed {
            (phase, message) = (Phase::Succeeded, String::new());
        } else if leaf == Leaf::Stopping {
            phase = Phase::Failed;
            message = self.run.state.node(at).message.as_deref().unwrap_or_default().to_owned();
        }
        if end.log_truncated {
            message =
                if message.is_empty() { "log truncated".to_owned() } else { format!("{message} (log truncated)") };
        }
        outputs.exit_code = end.exit.code().map(|code| code.to_string());
        if phase == Phase::Succeeded {
            self.export(at, &outputs);
        }
        self.close_containers(at, &end.members, phase, &message);
        self.finish_logged(at, phase, message, outputs, NodeList::default(), end.log_bytes);
    }

    /// Computes the deadline of a task that starts now: its own limits, and those of the retry around it.
    pub(super) fn leaf_deadline(
        &mut self,
        at: NodeIx,
        template: &octoflow_model::argo::Template,
    ) -> Result<Option<Time>, String> {
        let mut latest: Option<Time> = None;
        for (field, text) in
            [("activeDeadlineSeconds", &template.active_deadline_seconds), ("timeout", &template.timeout)]
        {
            let Some(text) = text else { continue };
            let span = duration::parse(&text.0).ok_or_else(|| format!("{field} is not a duration: '{}'", text.0))?;
            let until = self.now.saturating_add(span);
            latest = Some(latest.map_or(until, |latest| latest.min(until)));
        }
        let node = self.run.state.node(at);
        if let (Role::Attempt(_), Some(retry)) = (&node.role, node.parent) {
            let strategy = self.run.program.retry(template).cloned().unwrap_or_default();
            if let Some(until) = self.view().retry_latest(retry, &strategy) {
                latest = Some(latest.map_or(until, |latest| latest.min(until)));
            }
        }
        Ok(latest)
    }

    fn collected(&mut self, at: NodeIx, end: &End) -> (OutputValues, Option<String>) {
        match self.instance(at) {
            Ok(instance) => super::outputs::of_leaf(&instance.template, end),
            Err(why) => (OutputValues::default(), Some(why)),
        }
    }
}

impl View<'_> {
    pub(super) fn attempt_id(&self, at: NodeIx) -> AttemptId {
        // Each retry is a node of its own, so a node's task has further attempts only after it was preempted.
        AttemptId { run: self.run.id, task: at, attempt: self.run.state.attempt_number(at) }
    }

    /// Returns the first wake-up of a new node: the end of a suspension, or the timeout of a pending task.
    pub(super) fn first_wake(
        &self,
        name: &str,
        kind: NodeKind,
        inputs: &InputValues,
        compiled: &CompiledTemplate,
    ) -> Result<Option<Time>, String> {
        let field = match kind {
            NodeKind::Suspend => compiled.template.suspend.as_ref().and_then(|suspend| suspend.duration.as_ref()),
            NodeKind::Pod | NodeKind::Http => compiled.template.timeout.as_ref(),
            NodeKind::Steps
            | NodeKind::StepGroup
            | NodeKind::Dag
            | NodeKind::TaskGroup
            | NodeKind::Retry
            | NodeKind::Skipped
            | NodeKind::Container => None,
        };
        let Some(text) = field else { return Ok(None) };
        let scope =
            super::scope::Scope { inputs: Some(inputs), ..super::scope::Scope::new(self.run, self.now).about(name) };
        let text = super::substitute::fill(&text.0, &scope, super::substitute::Missing::Keep)
            .map_err(|error| error.to_string())?;
        let span = duration::parse(&text).ok_or_else(|| format!("'{text}' is not a duration"))?;
        Ok(Some(self.now.saturating_add(span)))
    }
}
