//! Folds facts into the state of a workflow. The fold never decides, fails or reads the time, and no other code writes
//! the state. It also emits notes of what changed for the work list, which it does not see.

use std::{collections::BTreeMap, ops::Deref, sync::Arc};

use octoflow_model::{
    Fact, IdMap, IdSet, NodeIx, RunId, RunPhase,
    argo::{NodeAdded, NodeFinished, NodeKind, NodeList, Phase, Role, WorkflowFact},
    submission::Submission,
};

use super::{
    node::{Body, Dag, Expansion, Group, Leaf, Node},
    program::{CompiledTemplate, Graph, Program},
    room,
    run::{Run, State},
    todo::{Note, Todo},
};
use crate::run::head::Head;

mod daemon;
mod life;
mod lock;
mod place;
mod reuse;
mod whole;

/// Read-only state of a run. Only the fold can write it.
#[derive(Clone, Debug, PartialEq)]
pub struct Folded(State);

impl Deref for Folded {
    type Target = State;

    fn deref(&self) -> &State {
        &self.0
    }
}

/// A state while one fact is folded into it.
struct Fold<'a> {
    state: &'a mut State,
    notes: &'a mut Vec<Note>,
    program: &'a Program,
    /// True if the run follows a previous one (retry or resubmit).
    resumes: bool,
}

impl Run {
    /// Creates the initial run from a submission and its compiled program.
    pub(crate) fn with(id: RunId, submission: &Submission, program: Arc<Program>) -> Self {
        let state = State {
            head: Head::new(
                submission,
                &program.workflow.metadata,
                program.workflow.spec.suspend,
                program.workflow.spec.shutdown,
            ),
            phase: RunPhase::Pending,
            message: String::new(),
            began: None,
            ended: None,
            parameters: BTreeMap::new(),
            exported: BTreeMap::new(),
            exported_artifacts: BTreeMap::new(),
            expired: IdSet::default(),
            lock: None,
            nodes: Vec::new(),
            root: None,
            exit: None,
            daemons: IdMap::default(),
            fired: IdMap::default(),
            due: IdMap::default(),
            active_pods: 0,
            active_children: IdMap::default(),
            failed_children: IdMap::default(),
            logs: Vec::new(),
            placed: IdMap::default(),
            hosts: Vec::new(),
            preempted: IdMap::default(),
            children: IdMap::default(),
            progress: (0, 0),
            following: Vec::new(),
            unmetered: None,
            weight: 0,
            before: submission.previous.as_deref().cloned().unwrap_or_default(),
        };
        let manifest = crate::run::written(&submission.manifest);
        let todo = Todo { run: true, ..Todo::default() };
        let stored = submission.stored.clone();
        let known = submission.context.clone();
        Self {
            id,
            state: Folded(state),
            program,
            stored,
            known,
            resumes: submission.previous.is_some(),
            manifest,
            todo,
            notes: Vec::new(),
            asleep: false,
            meter: crate::expr::Meter::default(),
            instances: IdMap::default(),
            demands: Default::default(),
        }
    }

    /// Folds one fact into the state.
    pub fn apply(&mut self, fact: &Fact) {
        let (notes, program) = (&mut self.notes, &*self.program);
        let mut fold = Fold { state: &mut self.state.0, notes, program, resumes: self.resumes };
        // The journal of a workflow never holds facts of other dialects.
        if let Fact::Run(fact) = fact {
            fold.state.head.apply(fact);
            fold.follow_head(fact);
        } else if let Fact::Workflow(fact) = fact {
            fold.apply(fact);
        }
        self.enter_notes();
    }
}

impl<'a> Fold<'a> {
    fn note(&mut self, note: Note) {
        self.notes.push(note);
    }

    fn apply(&mut self, fact: &WorkflowFact) {
        match fact {
            WorkflowFact::Added(added) => self.add(added),
            WorkflowFact::Wanted { node, locks } => self.want(*node, locks),
            WorkflowFact::Waiting { node, lock, holders, message, .. } => self.wait(*node, lock, holders, message),
            WorkflowFact::Locked { node, wake, .. } => self.unbar(*node, *wake),
            WorkflowFact::Expanded { node, call, items } => {
                self.state.weight += room::of_items(items);
                if let Some(expansion) = self.expansion_mut(*node, *call) {
                    expansion.items = Some(items.clone());
                }
            }
            WorkflowFact::Launched { node, at, deadline, on } => self.launch(*node, *at, *deadline, on.as_deref()),
            WorkflowFact::Preempted { node, at, message } => self.preempt(*node, *at, message),
            WorkflowFact::Requeued { node, at, attempt, wake, log_bytes } => {
                self.requeue(*node, *at, *attempt, *wake, *log_bytes);
            }
            WorkflowFact::Started { node, at } => self.start(*node, *at),
            WorkflowFact::ChildCreated { node, run, .. } => {
                self.state.children.insert(*node, *run);
            }
            WorkflowFact::Progressed { node, done, total } => {
                self.change_share(*node, |node| node.progress = Some(Box::new((*done, *total))));
            }
            WorkflowFact::Stopping { node, message } => {
                let slot = &mut self.state.nodes[node.at()];
                slot.move_to(Leaf::Stopping);
                slot.message = Some(message.as_str().into());
                slot.wake = None;
            }
            WorkflowFact::Backoff { node, until, message, .. } => {
                let slot = &mut self.state.nodes[node.at()];
                slot.wake = Some(*until);
                slot.message = Some(message.as_str().into());
                self.note(Note::Wake(*until, Some(*node)));
            }
            WorkflowFact::Finished(finished) => self.finish(finished),
            WorkflowFact::Settled { node } => self.settle(*node),
            WorkflowFact::Daemoned { node } => self.daemon_up(*node),
            WorkflowFact::Dismissed { node } => self.dismiss(*node),
            WorkflowFact::Due { node, hook } => self.state.due.entry(*node).or_default().push(hook.clone()),
            WorkflowFact::Recalled { node, cache, key, hit } => self.recall(*node, cache, key, *hit),
            // The cache is not the run's.
            WorkflowFact::Memoized { .. } => {}
            WorkflowFact::Supplied { node, parameters, message } => self.supply(*node, parameters, message),
            WorkflowFact::Expired { node, .. } => self.expire(*node),
            WorkflowFact::Began { at, parameters, labels, annotations } => {
                self.state.head.describe(labels, annotations);
                self.begin(*at, parameters);
            }
            WorkflowFact::Exported { parameter, artifact } => self.export(parameter.as_ref(), artifact.as_ref()),
            WorkflowFact::Metered(metered) => self.keep_gauge(metered),
            WorkflowFact::Unmetered { message } => self.state.unmetered = Some(message.clone()),
        }
    }

    fn add(&mut self, added: &NodeAdded) {
        let at = NodeIx(self.state.nodes.len() as u32);
        self.state.weight += added.name.len() as u64 + room::of_inputs(&added.inputs);
        for before in added.after.iter() {
            self.state.nodes[before.at()].children.push(at);
        }
        let above = added.parent.map(|parent| self.state.node(parent));
        let handler = match &added.role {
            Role::Exit => true,
            Role::Hook(name) => name == super::hook::EXIT,
            Role::Entry
            | Role::RunHook(_)
            | Role::Group(_)
            | Role::Step { .. }
            | Role::Task(_)
            | Role::Item(_)
            | Role::Attempt(_)
            | Role::Container(_) => false,
        };
        let node = Node {
            name: added.name.as_str().into(),
            kind: added.kind,
            role: added.role.clone(),
            phase: added.phase,
            settled: false,
            followed: added.followed,
            hooked: added.hooked,
            after_end: handler || above.is_some_and(|parent| parent.after_end),
            host: None,
            depth: added.boundary.map_or(0, |boundary| self.state.node(boundary).depth + 1),
            parent: added.parent,
            boundary: added.boundary,
            template: added.template.as_deref().map(|name| match self.program.compiled(name) {
                Some(compiled) => compiled.key.clone(),
                None => name.into(),
            }),
            message: (!added.message.is_empty()).then(|| added.message.as_str().into()),
            display: added.display.as_deref().map(Into::into),
            created_at: added.at,
            started: added.at,
            ran: false,
            finished: added.phase.fulfilled().then_some(added.at),
            wake: added.wake,
            children: Vec::new(),
            outbound: NodeList::default(),
            inputs: (!added.inputs.is_empty()).then(|| Box::new(added.inputs.clone())),
            outputs: None,
            progress: None,
            barred: added.barred,
            lock: None,
            daemoned: false,
            dismissed: false,
            memo: None,
            reuse: None,
            body: Body::Plain,
        };
        let open = !added.phase.fulfilled();
        if let (true, Some(wake)) = (open, added.wake) {
            self.note(Note::Wake(wake, Some(at)));
        }
        self.state.nodes.push(node);
        if self.resumes {
            self.compare_with_before(at, added.reused);
        }
        self.state.nodes[at.at()].body = self.new_body(at);
        self.join_parent(at, added);
        if open {
            self.count(at, 1);
            self.note(Note::Changed(at));
        } else {
            self.settle_unless_followed(at);
        }
        if added.kind.executable() {
            let (done, total) = self.state.node(at).share();
            self.state.progress.0 += done;
            self.state.progress.1 += total;
            if open && added.kind.tasked() && !added.barred {
                self.note(Note::Queued(at));
            }
        }
    }

    /// Links a new node into the bookkeeping of its parent.
    fn join_parent(&mut self, at: NodeIx, added: &NodeAdded) {
        match (&added.role, added.parent) {
            (Role::Entry, _) => {
                self.state.root = Some(at);
                self.note(Note::RunChanged);
            }
            (Role::RunHook(name), _) => self.fire(None, name, at),
            (Role::Hook(name), Some(parent)) => self.fire(Some(parent), name, at),
            (Role::Exit, _) => self.state.exit = Some(at),
            (role, Some(parent)) => match (role, &mut self.state.nodes[parent.at()].body) {
                (Role::Group(_), Body::Steps { groups }) => groups.push(at),
                (Role::Step { step, .. }, Body::Group(group)) => {
                    group.open += 1;
                    let expansion = &mut group.calls[*step as usize];
                    expansion.nodes.push(at);
                    expansion.open += 1;
                    while group.calls.get(group.cursor as usize).is_some_and(Expansion::complete) {
                        group.cursor += 1;
                    }
                }
                (Role::Task(task), Body::Dag(dag)) => {
                    dag.nodes[*task as usize] = Some(at);
                    dag.made += 1;
                    dag.open += 1;
                }
                (Role::Item(_), Body::TaskGroup(expansion)) => {
                    expansion.nodes.push(at);
                    expansion.open += 1;
                }
                (Role::Attempt(_), Body::Retry { attempts }) => {
                    attempts.push(at);
                    let retry = &mut self.state.nodes[parent.at()];
                    retry.message = None;
                    retry.wake = None;
                }
                (Role::Container(_), _) => {}
                (role, body) => unreachable!("a node of role {role:?} cannot join a parent with body {body:?}"),
            },
            (role, None) => unreachable!("a node of role {role:?} has a parent"),
        }
    }

    fn new_body(&self, at: NodeIx) -> Body {
        let node = self.state.node(at);
        if node.phase.fulfilled() {
            return Body::Plain;
        }
        match node.kind {
            NodeKind::Pod | NodeKind::Http if node.barred => Body::Leaf(Leaf::Barred),
            NodeKind::Pod | NodeKind::Http => Body::Leaf(Leaf::Queued),
            NodeKind::Steps => Body::Steps { groups: Vec::new() },
            NodeKind::StepGroup => {
                let Role::Group(index) = node.role else { unreachable!("a step group has the role of one") };
                let Some(steps) = node.parent else { unreachable!("a step group belongs to a steps node") };
                let calls = self.compiled_of(steps).group_size(index);
                Body::Group(Group { calls: vec![Expansion::default(); calls], cursor: 0, open: 0 })
            }
            NodeKind::Dag => Body::Dag(Box::new(new_dag(self.compiled_of(at).graph()))),
            NodeKind::TaskGroup => Body::TaskGroup(Expansion::default()),
            NodeKind::Retry => Body::Retry { attempts: Vec::new() },
            NodeKind::Skipped | NodeKind::Suspend | NodeKind::Container => Body::Plain,
        }
    }

    fn finish(&mut self, finished: &NodeFinished) {
        let at = finished.node;
        self.state.children.remove(&at);
        self.change_share(at, |node| node.enter(finished.phase));
        self.state.weight += room::of_outputs(&finished.outputs);
        if finished.log_bytes > 0 {
            self.state.logs.push((at, self.state.attempt_number(at), finished.log_bytes));
        }
        let node = &mut self.state.nodes[at.at()];
        node.message = (!finished.message.is_empty()).then(|| finished.message.as_str().into());
        node.finished = Some(finished.at);
        node.wake = None;
        node.outbound.clone_from(&finished.outbound);
        if !finished.outputs.is_empty() {
            node.outputs = Some(Box::new(finished.outputs.clone()));
        }
        let called = matches!(node.role, Role::Step { .. } | Role::Task(_) | Role::Item(_));
        if finished.phase.bad()
            // A daemon that was up before it failed does not count: it must not keep other calls from starting.
            && !node.daemoned
            && let (true, true, Some(boundary)) = (called, node.kind != NodeKind::TaskGroup, node.boundary)
        {
            *self.state.failed_children.entry(boundary).or_insert(0) += 1;
        }
        let was_daemon = node.daemoned;
        if node.kind.tasked() {
            self.state.placed.remove(&at);
        }
        self.state.expired.remove(&at);
        self.close_body(at);
        if !was_daemon {
            self.count(at, -1);
        }
        let node = &mut self.state.nodes[at.at()];
        node.barred = false;
        let lock = node.lock.take();
        // The slot it kept between its attempts is free.
        if let (NodeKind::Retry, Some(true), Some(boundary)) = (node.kind, lock.map(|lock| lock.held), node.boundary) {
            self.note(Note::ChildOver(boundary));
        }
        self.look_at_watchers();
        self.settle_unless_followed(at);
    }

    /// Changes a node and updates the run's progress by the difference.
    fn change_share(&mut self, at: NodeIx, change: impl FnOnce(&mut Node)) {
        let node = &mut self.state.nodes[at.at()];
        let before = node.share();
        change(node);
        if node.kind.executable() {
            let (done, total) = node.share();
            let sum = &mut self.state.progress;
            *sum = (sum.0 + done - before.0, sum.1 + total - before.1);
        }
    }

    /// Drops the bookkeeping that only the calls of an ended boundary needed.
    fn close_body(&mut self, at: NodeIx) {
        match std::mem::replace(&mut self.state.nodes[at.at()].body, Body::Plain) {
            Body::Steps { groups } => {
                for group in groups {
                    self.state.nodes[group.at()].body = Body::Plain;
                }
            }
            Body::Dag(dag) => {
                for node in dag.nodes.iter().flatten() {
                    self.state.nodes[node.at()].body = Body::Plain;
                }
            }
            // Later calls of the same boundary may still ask for the nodes of a group or a loop.
            body @ (Body::Group(_) | Body::TaskGroup(_)) => self.state.nodes[at.at()].body = body,
            Body::Plain | Body::Leaf(_) | Body::Retry { .. } => {}
        }
        self.state.failed_children.remove(&at);
        self.note(Note::Finished(at));
    }

    fn settle_unless_followed(&mut self, at: NodeIx) {
        let node = self.state.node(at);
        if node.followed && node.phase.completed() || node.hooked {
            self.note(Note::Changed(at));
        } else {
            self.settle(at);
        }
    }

    /// Marks a node as settled, that is, nothing about it is open any more, and notifies its parent.
    fn settle(&mut self, at: NodeIx) {
        let node = &mut self.state.nodes[at.at()];
        if std::mem::replace(&mut node.settled, true) {
            return;
        }
        let was_daemon = node.daemoned && !matches!(node.role, Role::Attempt(_));
        self.state.fired.remove(&Some(at));
        self.state.due.remove(&Some(at));
        self.note(Note::Settled(at));
        if was_daemon { self.daemon_settled(at) } else { self.notify_parent(at) }
    }

    /// Notifies the parent that it need not wait for this node any longer.
    pub(super) fn notify_parent(&mut self, at: NodeIx) {
        let node = self.state.node(at);
        let (role, parent) = (node.role.clone(), node.parent);
        let Some(parent) = parent else {
            self.note(Note::RunChanged);
            return;
        };
        match (role, &mut self.state.nodes[parent.at()].body) {
            (Role::Step { step, .. }, Body::Group(group)) => {
                group.open -= 1;
                group.calls[step as usize].open -= 1;
            }
            (Role::Task(task), Body::Dag(dag)) => {
                dag.open -= 1;
                self.release(parent, task);
            }
            (Role::Item(_), Body::TaskGroup(expansion)) => expansion.open -= 1,
            // A parent that is over counts no more, and these are not counted.
            (Role::Step { .. } | Role::Task(_) | Role::Item(_), _)
            | (Role::Entry | Role::Exit | Role::Group(_) | Role::Attempt(_), _)
            | (Role::Hook(_) | Role::RunHook(_) | Role::Container(_), _) => {}
        }
        self.note(Note::Changed(parent));
    }

    /// Decrements the wait counters of the tasks that depend on a settled task, and notes those that become ready.
    fn release(&mut self, dag: NodeIx, task: u32) {
        let compiled = self.compiled_of(dag);
        let Body::Dag(body) = &mut self.state.nodes[dag.at()].body else { return };
        for dependent in &compiled.graph().tasks[task as usize].dependents {
            body.waits[*dependent as usize] -= 1;
            if body.waits[*dependent as usize] == 0 {
                self.notes.push(Note::Ready { dag, task: *dependent });
            }
        }
    }

    /// Updates the counters that parallelism limits are checked against.
    pub(super) fn count(&mut self, at: NodeIx, change: i32) {
        let node = self.state.node(at);
        // A node that waits for a lock must not take the slot of one that could release that lock.
        if node.barred {
            return;
        }
        let (kind, boundary, counts) = (node.kind, node.boundary, node.counts_as_child());
        if kind == NodeKind::Pod {
            self.state.active_pods = self.state.active_pods.saturating_add_signed(change);
        }
        if let (true, Some(boundary)) = (counts, boundary) {
            let active = self.state.active_children.entry(boundary).or_insert(0);
            *active = active.saturating_add_signed(change);
            if *active == 0 {
                self.state.active_children.remove(&boundary);
            }
            if change < 0 {
                self.note(Note::ChildOver(boundary));
            }
        }
    }

    fn compiled_of(&self, at: NodeIx) -> &'a Arc<CompiledTemplate> {
        self.state.compiled_of(at, self.program)
    }

    fn expansion_mut(&mut self, node: NodeIx, call: u32) -> Option<&mut Expansion> {
        match &mut self.state.nodes[node.at()].body {
            Body::Group(group) => group.calls.get_mut(call as usize),
            Body::TaskGroup(expansion) => Some(expansion),
            Body::Plain | Body::Leaf(_) | Body::Steps { .. } | Body::Dag(_) | Body::Retry { .. } => None,
        }
    }
}

impl Node {
    fn enter(&mut self, phase: Phase) {
        debug_assert!(self.phase.leads_to(phase), "a node that is {} never becomes {phase}", self.phase);
        self.phase = phase;
    }

    fn move_to(&mut self, leaf: Leaf) {
        debug_assert!(self.leaf().is_some_and(|now| now.leads_to(leaf)), "{:?} never becomes {leaf}", self.body);
        self.body = Body::Leaf(leaf);
    }
}

impl State {
    fn enter(&mut self, phase: RunPhase) {
        debug_assert!(self.phase.leads_to(phase), "a run that is {} never becomes {phase}", self.phase);
        self.phase = phase;
    }
}

fn new_dag(graph: &Graph) -> Dag {
    Dag {
        nodes: vec![None; graph.tasks.len()],
        waits: graph.tasks.iter().map(|task| task.needs.len() as u32).collect(),
        made: 0,
        open: 0,
    }
}
