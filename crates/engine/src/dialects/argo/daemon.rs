//! Handles daemons: tasks that stay up beside the calls that come after them and end with the steps or DAG around them.
//! A daemon that is up counts as over for those that wait for it and holds no slot.

use octoflow_model::{
    NodeIx, Order, Shutdown,
    argo::{Phase, Role, WorkflowFact},
};

use super::{
    node::{Body, Leaf},
    pod,
    run::Run,
    turn::Turn,
    view::View,
};

/// Address at which other tasks reach a task of this machine.
pub(super) const ADDRESS: &str = "127.0.0.1";
/// Host name of this machine, as tasks see it.
pub(super) const HOST: &str = "localhost";

impl Run {
    /// Whether the node stays up once it runs. Only what a step or task calls can be a daemon; an entrypoint, a handler
    /// or a hook runs to its end.
    pub(super) fn is_daemon(&self, at: NodeIx) -> bool {
        self.compiled_of(at).template.daemon == Some(true) && !self.is_request(at) && self.site_of(at).is_some()
    }
}

impl Turn<'_> {
    /// Marks a daemon as up once its runtime reports that it runs.
    pub(super) fn daemon_up(&mut self, at: NodeIx) {
        if self.run.is_daemon(at) {
            self.decide(WorkflowFact::Daemoned { node: at });
            let node = self.run.state.node(at);
            let site = node.parent.filter(|_| matches!(node.role, Role::Attempt(_))).unwrap_or(at);
            self.refuse_behind(site);
        }
    }

    /// Stops the daemons of a steps or DAG node that is about to end. Returns true while one of them is not over.
    pub(super) fn dismisses(&mut self, boundary: NodeIx) -> bool {
        let Some(daemons) = self.run.state.daemons.get(&boundary).cloned() else { return false };
        for daemon in daemons {
            self.dismiss(daemon);
        }
        self.run.state.daemons.contains_key(&boundary)
    }

    /// Ends a daemon successfully, whichever of its attempts is up or being started.
    fn dismiss(&mut self, at: NodeIx) {
        let node = self.run.state.node(at);
        if node.phase.fulfilled() {
            return;
        }
        let at_once = self.run.state.head.shutdown == Some(Shutdown::Terminate);
        let Body::Retry { attempts } = &node.body else { return self.stop_daemon(at, at_once) };
        match attempts.last().copied().filter(|last| !self.run.state.node(*last).phase.fulfilled()) {
            Some(last) => self.stop_daemon(last, at_once),
            None => self.finish(at, Phase::Succeeded, ""),
        }
    }

    /// Ends a daemon that failed if its boundary waits for nothing else. The boundary could not end it before: the attempt
    /// was being stopped for its own deadline, and its end is the first sign of whether there will be another one.
    pub(super) fn is_dismissed(&mut self, at: NodeIx) -> bool {
        if let Some(boundary) = self.run.state.node(at).boundary {
            self.visit(boundary);
        }
        self.run.state.node(at).phase.fulfilled()
    }

    /// Stops the task of a daemon; the node succeeds with it.
    pub(super) fn stop_daemon(&mut self, at: NodeIx, at_once: bool) {
        let attempt = self.view().attempt_id(at);
        match self.run.state.node(at).leaf() {
            Some(Leaf::Barred | Leaf::Queued) => self.finish(at, Phase::Succeeded, ""),
            Some(Leaf::Launched | Leaf::Running | Leaf::Preempting) => {
                self.decide(WorkflowFact::Dismissed { node: at });
                self.effects.orders.push(if at_once { Order::Kill { attempt } } else { Order::Stop { attempt } });
            }
            Some(Leaf::Stopping) | None => {}
        }
    }
}

impl View<'_> {
    /// Turns a daemon's unrequested success into a failure: it should have stayed up.
    pub(super) fn daemon_end(&self, at: NodeIx, phase: Phase, message: String) -> (Phase, String) {
        if phase == Phase::Succeeded && self.run.is_daemon(at) {
            let name = pod::main_name(&self.run.compiled_of(at).template);
            return (Phase::Failed, format!("{name}: Completed (exit code 0): a daemon must not end by itself"));
        }
        (phase, message)
    }
}
