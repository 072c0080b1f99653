//! Describes the Argo dialect to the engine: its [`Dialect`] row, and the dialect traits implemented for programs, runs
//! and turns.
//! Holds no rules of its own: everything is delegated to the module that owns it.

use std::{io, sync::Arc};

use octoflow_manifest::Problems;
use octoflow_model::{
    AttemptId, Claim, Fact, NodeIx, Order, Report, RunFact, RunId, Submission, Task, Time,
    garbage::{Garbage, GcStrategy},
    submission::Stored,
    task::{Labels, placement::Assignment},
};
use serde_json::Value;

use super::{
    Run, Turn,
    admit::{self, MAX_WORKFLOW_NAME_LENGTH},
    display::ObjectView,
    ended, explain, garbage,
    kinds::{WORKFLOW, summary_cells},
    lifetime,
    node::{Body, Leaf},
    plan::plan,
    program::Program,
    progress::Progress,
    record, rerun, static_tasks, status,
    todo::Todo,
};
use crate::{
    admit::{Admitted, Catalog},
    dialects::dialect::{
        ChildEvent, Dialect, DialectProgram, DialectRun, DialectTurn, NodeTable, PhaseClass, PhaseWord,
        Program as AnyProgram, StaticTask, StatusFields, TaskState, remove_status,
    },
    engine::{
        SharedState,
        input::{Command, CommandKind, Refusal},
        locks::{Holder, Locks, Ready, Wait, Waiter},
        slice::Work,
    },
    meters::Live,
    run::{Run as AnyRun, effect::Effects, explain::Explanation, head::Head},
    schedule::{Scheduler, spec::Demand},
};

pub static DIALECT: Dialect = Dialect {
    kind: &WORKFLOW,
    phases: &[
        PhaseWord::new("Pending", PhaseClass::Waiting),
        PhaseWord::new("Running", PhaseClass::Running),
        PhaseWord::new("Succeeded", PhaseClass::Succeeded),
        PhaseWord::new("Failed", PhaseClass::Failed),
        PhaseWord::new("Error", PhaseClass::Failed),
    ],
    status: StatusFields { phase: "phase", message: "message", started: "startedAt", finished: "finishedAt" },
    max_name_length: MAX_WORKFLOW_NAME_LENGTH,
    pod_label: "workflows.argoproj.io/workflow",
    view: &ObjectView,
    follow: &Progress,
    reruns: &rerun::Retries,
    commands: &[
        CommandKind::Stop,
        CommandKind::Terminate,
        CommandKind::Suspend,
        CommandKind::Resume,
        CommandKind::Nodes,
        CommandKind::Mark,
    ],
    pod_delete_refusal: Some("stop or terminate that, or set podGC to have its pods removed"),
    has_units: false,
    has_run_level_changes: true,
    selects_by_object: false,
    in_argo_api: true,
    takes_arguments: true,
    plan: Ok(plan),
    group_noun: "group",
    node_table: NodeTable::Steps,
    summary_cells: Some(summary_cells),
    summarize: |object| remove_status(object, &["nodes"]),
    examine,
    compile,
    explain_ended: ended::failures,
    forbidden_changes: None,
    tells_for_children: false,
    wants_keys: None,
    sign: None,
    names_are_ids: false,
};

fn examine(object: &Value, others: &dyn Catalog) -> Result<Admitted, Problems> {
    let admitted = admit::examine(object, others)?;
    let warnings = admitted.warnings().to_vec();
    let (manifest, stored) = admitted.into_parts();
    Ok(Admitted { manifest, stored, warnings, program: None })
}

fn compile(manifest: &Value, stored: &Stored) -> Result<AnyProgram, String> {
    Ok(AnyProgram(Arc::new(Program::compile(manifest, stored)?)))
}

impl DialectProgram for Program {
    fn static_tasks(&self, manifest: &Value, inherited: Option<&str>) -> Vec<StaticTask> {
        static_tasks::static_tasks(manifest, self, inherited)
    }

    fn open(self: Arc<Self>, id: RunId, submission: &Submission) -> AnyRun {
        AnyRun::new(Run::with(id, submission, self))
    }
}

impl DialectRun for Run {
    fn dialect(&self) -> &'static Dialect {
        &DIALECT
    }

    fn id(&self) -> RunId {
        self.id
    }

    fn head(&self) -> &Head {
        &self.state.head
    }

    fn finished(&self) -> bool {
        self.state.finished()
    }

    fn phase(&self) -> &'static str {
        self.state.phase.word()
    }

    fn message(&self) -> &str {
        self.state.message_now()
    }

    fn began(&self) -> Option<Time> {
        self.state.began
    }

    fn ended(&self) -> Option<Time> {
        self.state.ended
    }

    fn labels(&self) -> Labels {
        status::labels(self)
    }

    fn progress(&self) -> (u64, u64) {
        self.state.progress
    }

    fn run_priority(&self) -> i32 {
        self.program.workflow.spec.priority.unwrap_or(0)
    }

    fn parameters(&self) -> Vec<(&str, &str)> {
        let given = self.program.workflow.spec.arguments.parameters.iter();
        given.filter_map(|one| Some((one.name.as_str(), one.value.as_ref()?.0.as_str()))).collect()
    }

    fn is_owned(&self) -> bool {
        self.program.workflow.metadata.rest.contains_key("ownerReferences")
    }

    fn manifest(&self) -> Value {
        Self::manifest(self)
    }

    fn object_of(&self, manifest: Value) -> Value {
        status::object_of(self, manifest)
    }

    fn object_where(&self, keep: &dyn Fn(&str, &str) -> bool) -> Value {
        status::object_where(self, keep)
    }

    fn size(&self) -> usize {
        self.state.nodes.len()
    }

    fn summary(&self) -> Value {
        status::summary(self)
    }

    fn due(&self) -> Option<Time> {
        lifetime::expires(self)
    }

    fn is_placed(&self, attempt: AttemptId) -> bool {
        let leaf = self.state.nodes.get(attempt.task.at()).and_then(|node| node.leaf());
        leaf.is_some_and(|leaf| leaf.owned_by_runtime()) && self.attempt_of(attempt.task) == Some(attempt)
    }

    fn earliest_report(&self, at: NodeIx) -> Time {
        self.state.nodes.get(at.at()).map(|node| node.started).unwrap_or_default()
    }

    fn garbage(&self, strategy: Option<GcStrategy>) -> Vec<Garbage> {
        let mut items = garbage::of(self);
        items.retain(|item| strategy.is_none_or(|strategy| item.strategy == strategy));
        items
    }

    fn attempts(&self) -> Vec<(String, AttemptId)> {
        let nodes = (0..self.state.nodes.len() as u32).map(NodeIx);
        nodes.filter_map(|at| Some((self.state.id_of(at), self.attempt_of(at)?))).collect()
    }

    fn log_sizes(&self) -> Vec<(AttemptId, u64)> {
        let logs = self.state.logs.iter();
        logs.filter_map(|(at, attempt, bytes)| Some((AttemptId { attempt: *attempt, ..self.attempt_of(*at)? }, *bytes)))
            .collect()
    }

    fn replaced_runs(&self) -> &[RunId] {
        Self::replaced_runs(self)
    }

    fn explain(&self, scheduler: Option<&Scheduler>, locks: Option<&Locks>) -> Vec<Explanation> {
        let mut found = ended::failures(&status::object(self));
        found.extend(explain::explain_with(self, scheduler, locks).into_iter().map(|one| Explanation {
            node: one.node,
            id: one.queued.map(|at| self.state.id_of(at)),
            phase: one.phase.map(|phase| phase.word().to_owned()).unwrap_or_default(),
            reason: one.reason.to_string(),
            since: one.since,
            wait: one.reason.into_wait(),
        }));
        found
    }

    fn write_record(&self, to: &mut dyn io::Write) -> io::Result<()> {
        record::write(self, to)
    }

    fn live_meters(&self, now: Time) -> Vec<Live> {
        Self::live_meters(self, now).collect()
    }

    fn apply(&mut self, fact: &Fact) {
        Self::apply(self, fact);
    }

    fn settle_journal(&mut self) {
        self.todo = Todo::default();
        self.asleep = true;
    }

    fn reopen(&mut self) {
        self.asleep = false;
        self.todo.visit_all(&self.state);
        self.todo.queued.clear();
        self.todo.wants = self.waiters().map(|(node, _)| node).collect();
        let wakes = self.state.nodes.iter().enumerate().filter(|(_, node)| !node.phase.fulfilled());
        self.todo.wakes = wakes.filter_map(|(at, node)| Some((node.wake?, Some(NodeIx(at as u32))))).collect();
        if let (Some(began), Some(seconds)) = (self.state.began, self.program.workflow.spec.active_deadline_seconds) {
            let span = std::time::Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
            self.todo.wakes.push((began.saturating_add(span), None));
        }
    }

    fn awaits(&self, at: Time, node: Option<NodeIx>) -> bool {
        let state = &self.state;
        match node {
            Some(node) => !state.node(node).phase.fulfilled() && state.node(node).wake == Some(at),
            None => !state.closing() && !state.worked(),
        }
    }

    fn is_queued(&self, at: NodeIx) -> bool {
        let node = self.state.node(at);
        node.body == Body::Leaf(Leaf::Queued) && !node.phase.fulfilled()
    }

    fn demand(&self, at: NodeIx) -> Arc<Demand> {
        self.demand_of(at)
    }

    fn waits_since(&self, at: NodeIx) -> Time {
        self.state.node(at).created_at
    }

    fn assignment(&self, at: NodeIx) -> Option<Assignment> {
        let placed = self.state.placed.get(&at)?;
        let node = self.state.host_of(at).unwrap_or_default().to_owned();
        Some(Assignment { node, devices: placed.devices.clone() })
    }

    fn launched_at(&self, at: NodeIx) -> Time {
        self.state.placed.get(&at).map_or(self.state.node(at).started, |placed| placed.at)
    }

    fn open_tasks(&self) -> Vec<(NodeIx, TaskState)> {
        let stand = |leaf| match leaf {
            Leaf::Barred => None,
            Leaf::Queued => Some(TaskState::Queued),
            Leaf::Launched | Leaf::Running => Some(TaskState::Placed),
            Leaf::Preempting | Leaf::Stopping => Some(TaskState::Ending),
        };
        self.open_leaves().filter_map(|(at, leaf)| Some((at, stand(leaf)?))).collect()
    }

    fn is_request(&self, at: NodeIx) -> bool {
        Self::is_request(self, at)
    }

    fn is_weightless(&self, at: NodeIx) -> bool {
        Self::is_request(self, at) || self.state.node(at).daemoned
    }

    fn wants_child(&self, attempt: AttemptId) -> bool {
        let leaf = self.state.nodes.get(attempt.task.at()).and_then(|node| node.leaf());
        matches!(leaf, Some(Leaf::Launched | Leaf::Running))
            && self.attempt_of(attempt.task) == Some(attempt)
            && self.is_request(attempt.task)
            && !self.state.children.contains_key(&attempt.task)
    }

    fn child_of(&self, at: NodeIx) -> Option<RunId> {
        self.state.children.get(&at).copied()
    }

    fn follows_parts_of(&self, at: NodeIx, child: &AnyRun) -> bool {
        Self::follows_parts_of(self, at, child)
    }

    fn waiters(&self) -> Vec<(Option<NodeIx>, Waiter)> {
        Self::waiters(self).collect()
    }

    fn held_locks(&self) -> Vec<(Holder, Vec<Claim>, String)> {
        Self::held_locks(self).map(|(holder, claims, name)| (holder, claims.to_vec(), name)).collect()
    }

    fn ends_after(&self, at: NodeIx) -> Vec<Option<NodeIx>> {
        Self::ends_after(self, at)
    }

    fn label_of(&self, at: NodeIx) -> String {
        self.state.display_of(at).to_owned()
    }

    fn ready_for_locks(&self, node: Option<NodeIx>) -> Ready {
        Self::ready_for_locks(self, node)
    }

    fn turn<'a>(&'a mut self, now: Time, world: &'a SharedState) -> Box<dyn DialectTurn + 'a> {
        Box::new(Turn::new(self, now, world))
    }
}

impl DialectTurn for Turn<'_> {
    fn limit(&mut self, work: Work) {
        Turn::limit(self, work);
    }

    fn done(&self) -> Work {
        Turn::done(self)
    }

    fn settle(&mut self) -> bool {
        Turn::settle(self)
    }

    fn wake(&mut self, node: Option<NodeIx>) {
        self.run.wake(node);
    }

    fn report(&mut self, report: Report) {
        Turn::report(self, report);
    }

    fn command(&mut self, command: &Command) -> Result<(), Refusal> {
        Turn::command(self, command)
    }

    fn child(&mut self, attempt: AttemptId, event: ChildEvent<'_>) {
        Turn::child(self, attempt.task, event);
    }

    fn launch(&mut self, at: NodeIx, assignment: Assignment) {
        Turn::launch(self, at, assignment);
    }

    fn preempt(&mut self, at: NodeIx, why: String) {
        Turn::preempt(self, at, why);
    }

    fn resend_stop(&mut self, at: NodeIx) {
        Turn::resend_stop(self, at);
    }

    fn attempt_id(&self, at: NodeIx) -> AttemptId {
        self.view().attempt_id(at)
    }

    fn describe(&mut self, at: NodeIx) -> Result<Task, String> {
        let on = DialectRun::assignment(self.run, at).unwrap_or_default();
        self.build_task(at, &on).map(|(task, _)| task)
    }

    fn order(&mut self, order: Order) {
        self.effects.orders.push(order);
    }

    fn locked(&mut self, node: Option<NodeIx>) {
        Turn::locked(self, node);
    }

    fn wait_for(&mut self, node: Option<NodeIx>, wait: Wait) {
        Turn::wait_for(self, node, wait);
    }

    fn refuse_locks(&mut self, node: Option<NodeIx>, why: &str) {
        Turn::refuse_locks(self, node, why);
    }

    fn tell_deadlock(&mut self, message: Option<String>) {
        if !self.run.finished() {
            self.decide(RunFact::Deadlock { at: self.now, message });
        }
    }

    fn into_effects(self: Box<Self>) -> Effects {
        Turn::into_effects(*self)
    }
}
