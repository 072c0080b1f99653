//! Decides everything that follows from one input, until nothing is left to decide. Each decision is a fact that is
//! folded at once, so later decisions of the turn see it.

use std::collections::HashMap;

use octoflow_model::{
    Fact, NodeIx, Time,
    argo::{Items, NodeFinished, NodeKind, NodeList, OutputValues, Phase, WorkflowFact},
};

use super::{meter::MeterTrigger, node::Body, run::Run, view::View};
use crate::{
    dialects::dialect::DialectRun,
    engine::{
        SharedState,
        slice::{Slice, Work},
    },
    meters::Definition,
    run::effect::Effects,
};

pub struct Turn<'a> {
    pub run: &'a mut Run,
    pub now: Time,
    pub world: &'a SharedState,
    pub(super) effects: Effects,
    /// Metrics that were first read in this turn. The engine learns of them when the turn ends.
    pub(super) defined: HashMap<String, Definition>,
    /// Cache entries written in this turn, by cache and key.
    pub(super) written: HashMap<(String, String), Vec<u8>>,
    slice: Slice,
    /// True once everything is decided that follows from the change.
    settled: bool,
}

impl<'a> Turn<'a> {
    pub fn new(run: &'a mut Run, now: Time, world: &'a SharedState) -> Self {
        let slice = Slice::new(run.meter.total());
        run.meter.next_node(run.state.nodes.len());
        Self {
            run,
            now,
            world,
            effects: Effects::default(),
            defined: HashMap::new(),
            written: HashMap::new(),
            slice,
            settled: false,
        }
    }

    /// Limits how much work this turn may do. The rest is left to the next turn.
    pub(crate) fn limit(&mut self, work: Work) {
        self.slice.limit = work;
    }

    /// Returns the work done so far.
    pub(crate) fn done(&self) -> Work {
        self.slice.done(self.run.meter.total())
    }

    /// Whether the slice is used up and at least one fact was decided: a slice without a fact would never make
    /// progress.
    pub(super) fn is_spent(&self) -> bool {
        !self.effects.facts.is_empty() && self.done() >= self.slice.limit
    }

    /// Stops a loop that expands this node, because the slice [is used up](Self::is_spent). The next slice resumes
    /// exactly here, so that slices change when something is decided and never what.
    pub(super) fn pause(&mut self, at: NodeIx) {
        self.run.todo.agenda.push_front(at);
        self.run.todo.paused = true;
    }

    /// Whether a run that is shutting down may yield wherever its slice is used up. Its open nodes reach the same end
    /// in any order, also when a restart resumes with those that are left.
    fn may_yield(&self) -> bool {
        self.run.state.head.shutdown.is_some() && !self.run.todo.agenda.is_empty() && self.is_spent()
    }

    /// Decides until nothing is left to decide, or until a loop paused. Returns true if work is left.
    pub fn settle(&mut self) -> bool {
        loop {
            if std::mem::take(&mut self.run.todo.paused) || self.may_yield() {
                return true;
            }
            self.slice.visited();
            self.run.meter.next_node(self.run.state.nodes.len());
            if let Some(at) = self.next() {
                self.visit(at);
            } else if std::mem::take(&mut self.run.todo.run) {
                self.visit_run();
            } else {
                self.settled = true;
                return false;
            }
        }
    }

    /// Returns the effects of the turn. A run with more to decide asks for its locks, and has its requests sent, with its
    /// last slice: neither waits for room, so they would reach the run before it has decided everything.
    pub(super) fn into_effects(mut self) -> Effects {
        let (requests, pods): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.run.todo.queued).into_iter().partition(|at| self.run.is_request(*at));
        let todo = &mut self.run.todo;
        self.effects.queued = pods;
        self.effects.wakes = std::mem::take(&mut todo.wakes);
        let mut wants = Vec::new();
        if self.settled {
            self.effects.queued.extend(requests);
            wants = std::mem::take(&mut todo.wants);
        } else {
            todo.queued = requests;
        }
        let run = &*self.run;
        self.effects.lock_requests = wants.into_iter().filter_map(|node| Some((node, run.waiter(node)?))).collect();
        self.effects
    }

    /// Picks the next node to visit: changed nodes first, then nodes parked by a parallelism limit.
    fn next(&mut self) -> Option<NodeIx> {
        let todo = &mut self.run.todo;
        if let Some(at) = todo.agenda.pop_front() {
            return Some(at);
        }
        while let Some(boundary) = self.run.todo.with_free_slot.front().copied() {
            let room = self.boundary_has_room(boundary);
            let todo = &mut self.run.todo;
            if !room {
                // Nodes that are still parked are resumed when the next child ends.
                todo.with_free_slot.pop_front();
                continue;
            }
            match todo.parked_in.get_mut(&boundary).and_then(std::collections::VecDeque::pop_front) {
                Some(at) => {
                    todo.parked_nodes.remove(&(Some(boundary), at));
                    return Some(at);
                }
                None => {
                    todo.parked_in.remove(&boundary);
                    todo.with_free_slot.pop_front();
                }
            }
        }
        if self.run.todo.run_parked && self.view().pods_have_room() {
            self.run.todo.run_parked = false;
            self.run.todo.run = true;
            return None;
        }
        if self.view().pods_have_room()
            && let Some(at) = self.run.todo.parked.pop_front()
        {
            self.run.todo.parked_nodes.remove(&(None, at));
            return Some(at);
        }
        None
    }

    pub(super) fn visit(&mut self, at: NodeIx) {
        if self.run.state.finished() {
            return;
        }
        let node = self.run.state.node(at);
        if node.settled {
            return;
        }
        if node.phase.fulfilled() {
            return self.follow(at);
        }
        if node.barred {
            return self.visit_barred(at);
        }
        let kind = node.kind;
        if node.hooked {
            self.fire(at);
        }
        if matches!(kind, NodeKind::Steps | NodeKind::Dag) {
            let node = self.run.state.node(at);
            if node.wake.is_some_and(|wake| wake <= self.now) {
                return self.decide(WorkflowFact::Expired { node: at, at: self.now });
            }
            // A node added just before the run reached its node limit must not make its calls.
            if node.children.is_empty()
                && let Some(why) = super::room::full(self.run.state.nodes.len(), self.world.max_nodes)
            {
                return self.finish(at, Phase::Error, why);
            }
        }
        match kind {
            NodeKind::Pod | NodeKind::Http => self.visit_leaf(at),
            NodeKind::Suspend => self.visit_suspend(at),
            NodeKind::Steps => self.visit_steps(at),
            NodeKind::StepGroup => self.visit_group(at),
            NodeKind::Dag => self.visit_dag(at),
            NodeKind::TaskGroup => self.visit_task_group(at),
            NodeKind::Retry => self.visit_retry(at),
            NodeKind::Skipped => unreachable!("a skipped node is final from the start"),
            // Containers follow their pod, which is visited itself.
            NodeKind::Container => {}
        }
    }

    /// Records a decision: folds the fact, notes its effects and reads the metrics that it triggers.
    pub(super) fn decide(&mut self, fact: impl Into<Fact>) {
        let fact = fact.into();
        let trigger = self.trigger(&fact);
        if let Some(MeterTrigger::End(phase)) = trigger {
            self.meter_end(phase);
        }
        // What is decided about nodes changes no state of the whole.
        let of_whole = matches!(&fact, Fact::Run(_) | Fact::Workflow(WorkflowFact::Began { .. }));
        let life = of_whole.then(|| self.run.life_state());
        self.run.apply(&fact);
        if let Some(before) = life {
            self.effects.note_life(before, self.run.life_state(), self.now);
        }
        self.slice.decided();
        if let Fact::Workflow(WorkflowFact::Expanded { items: Items::List(items), .. }) = &fact {
            self.slice.listed(items.len());
        }
        if let Fact::Run(fact) = &fact {
            self.effects.note(fact);
        } else if let Fact::Workflow(fact) = &fact {
            self.note(fact);
        } else {
            unreachable!("a workflow decides nothing of other dialects: {fact:?}");
        }
        self.effects.facts.push(fact);
        if let Some(trigger) = trigger {
            self.meter(trigger);
        }
    }

    pub(super) fn finish(&mut self, at: NodeIx, phase: Phase, message: impl Into<String>) {
        self.finish_with(at, phase, message.into(), OutputValues::default(), NodeList::default());
    }

    pub(super) fn finish_with(
        &mut self,
        at: NodeIx,
        phase: Phase,
        message: String,
        outputs: OutputValues,
        outbound: NodeList,
    ) {
        self.finish_logged(at, phase, message, outputs, outbound, 0);
    }

    /// Like [`finish_with`](Self::finish_with), for a task whose log has `log_bytes` bytes.
    pub(super) fn finish_logged(
        &mut self,
        at: NodeIx,
        phase: Phase,
        message: String,
        outputs: OutputValues,
        outbound: NodeList,
        log_bytes: u64,
    ) {
        let room = (self.run.state.weight, self.world.max_bytes);
        let (phase, message, outputs) = super::room::ending(room, phase, message, outputs);
        self.close_containers(at, &[], phase, &message);
        if phase == Phase::Succeeded {
            self.memoize_outputs(at, &outputs);
        }
        self.decide(WorkflowFact::Finished(Box::new(NodeFinished {
            node: at,
            phase,
            message,
            at: self.view().over_at(at),
            outputs,
            outbound,
            log_bytes,
        })));
    }
}

impl View<'_> {
    pub(super) fn next_node(&self) -> NodeIx {
        NodeIx(self.run.state.nodes.len() as u32)
    }

    pub(super) fn pods_have_room(&self) -> bool {
        self.run.has_room()
    }

    /// Adds the nodes that whatever comes after this one hangs off in the drawing. Most nodes are their own end: those of
    /// a loop of a million items must not cost an allocation each.
    pub(super) fn add_outbound(&self, at: NodeIx, found: &mut NodeList) {
        let mut open = Vec::new();
        let mut next = Some(at);
        while let Some(at) = next.take().or_else(|| open.pop()) {
            let node = self.run.state.node(at);
            match node.kind {
                NodeKind::Pod | NodeKind::Http | NodeKind::Container | NodeKind::Skipped | NodeKind::Suspend => {
                    found.push(at)
                }
                NodeKind::Retry => match self.last_attempt(at) {
                    Some(last) => open.push(last),
                    None => found.push(at),
                },
                NodeKind::TaskGroup => {
                    if let Body::TaskGroup(expansion) = &node.body
                        && !expansion.nodes.is_empty()
                    {
                        open.extend(expansion.nodes.iter().rev().copied());
                    } else {
                        found.push(at);
                    }
                }
                NodeKind::Steps | NodeKind::Dag | NodeKind::StepGroup if node.outbound.is_empty() => found.push(at),
                NodeKind::Steps | NodeKind::Dag | NodeKind::StepGroup => found.extend(node.outbound.iter()),
            }
        }
    }

    /// Finds the last attempt of a retried call. Hooks are children of the retry node too, but not attempts.
    pub(super) fn last_attempt(&self, retry: NodeIx) -> Option<NodeIx> {
        let is_attempt =
            |at: &&NodeIx| matches!(self.run.state.node(**at).role, octoflow_model::argo::Role::Attempt(_));
        self.run.state.node(retry).children.iter().rev().find(is_attempt).copied()
    }
}
