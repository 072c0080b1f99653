//! The `Dialect` of TaskSets, and its implementation of runs and turns.

use std::{io, sync::Arc};

use octoflow_model::{
    AttemptId, Fact, NodeIx, Order, Report, RunFact, RunId, Submission, Task, Time,
    submission::Stored,
    task::placement::Assignment,
    taskset::{ReplicaPhase, SummaryState},
};
use serde_json::Value;

use super::{
    Run, Turn, admit, display::ObjectView, ended, explain, ident, kinds::TASK_SET, program::Program,
    progress::Progress, record, rerun, status, todo::Todo, unit,
};
use crate::{
    dialects::dialect::{
        Dialect, DialectProgram, DialectRun, DialectTurn, NodeTable, PhaseClass, PhaseWord, Program as AnyProgram,
        StaticTask, StatusFields, TaskState,
    },
    engine::{
        SharedState,
        input::{Command, CommandKind, Refusal},
        locks::Locks,
        slice::Work,
    },
    run::{Run as AnyRun, effect::Effects, explain::Explanation, head::Head},
    schedule::{Gang, Scheduler, spec::Demand},
};

pub static DIALECT: Dialect = Dialect {
    kind: &TASK_SET,
    phases: &[
        PhaseWord::new(SummaryState::Waiting.word(), PhaseClass::Waiting),
        PhaseWord::new(SummaryState::Running.word(), PhaseClass::Running),
        PhaseWord::new(SummaryState::Failed.word(), PhaseClass::Failed),
        PhaseWord::new(SummaryState::Succeeded.word(), PhaseClass::Succeeded),
    ],
    status: StatusFields { phase: "state", message: "stateMessage", started: "startAt", finished: "finishAt" },
    max_name_length: admit::MAX_NAME_LENGTH,
    pod_label: "TaskSet",
    view: &ObjectView,
    follow: &Progress,
    reruns: &rerun::Retries,
    commands: &[
        CommandKind::Stop,
        CommandKind::Terminate,
        CommandKind::Suspend,
        CommandKind::Resume,
        CommandKind::Evict,
        CommandKind::Disband,
        CommandKind::Mark,
    ],
    pod_delete_refusal: None,
    has_units: true,
    has_run_level_changes: false,
    selects_by_object: true,
    in_argo_api: false,
    takes_arguments: false,
    plan: Err("a plan is made of workflows; the roles of a TaskSet start together, but for those with dependsOn"),
    group_noun: "role",
    node_table: NodeTable::Members,
    summary_cells: None,
    summarize: status::summarize,
    examine: admit::examine,
    compile,
    explain_ended: ended::replicas,
    forbidden_changes: None,
    tells_for_children: false,
    wants_keys: None,
    sign: None,
    names_are_ids: false,
};

fn compile(manifest: &Value, stored: &Stored) -> Result<AnyProgram, String> {
    Ok(AnyProgram(Arc::new(Program::compile(manifest, stored)?)))
}

impl DialectProgram for Program {
    fn static_tasks(&self, _: &Value, inherited: Option<&str>) -> Vec<StaticTask> {
        Self::static_tasks(self, inherited)
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
        self.state.over()
    }

    fn phase(&self) -> &'static str {
        self.state.summary.word()
    }

    fn message(&self) -> &str {
        let state = &self.state;
        let open = state.head.deadlock.as_deref().filter(|_| state.finished.is_none());
        open.unwrap_or(&state.summary_message)
    }

    #[expect(
        clippy::misnamed_getters,
        reason = "to others a TaskSet begins with its first replica, not its first attempt"
    )]
    fn began(&self) -> Option<Time> {
        self.state.started
    }

    fn ended(&self) -> Option<Time> {
        self.state.finished
    }

    fn progress(&self) -> (u64, u64) {
        self.state.progress()
    }

    fn run_priority(&self) -> i32 {
        self.program.set.spec.priority.unwrap_or(0)
    }

    fn is_owned(&self) -> bool {
        self.program.set.metadata.rest.contains_key("ownerReferences")
    }

    fn manifest(&self) -> Value {
        Self::manifest(self)
    }

    fn object_of(&self, manifest: Value) -> Value {
        status::object_of(self, manifest)
    }

    fn size(&self) -> usize {
        self.state.replicas.len()
    }

    fn summary(&self) -> Value {
        status::summary(self)
    }

    fn due(&self) -> Option<Time> {
        self.expires()
    }

    fn is_placed(&self, attempt: AttemptId) -> bool {
        let replica = self.state.replicas.get(attempt.task.at());
        replica.is_some_and(|replica| replica.phase.placed()) && self.attempt_of(attempt.task.0) == Some(attempt)
    }

    fn earliest_report(&self, at: NodeIx) -> Time {
        self.state.replicas.get(at.at()).map(|replica| replica.transition).unwrap_or_default()
    }

    fn attempts(&self) -> Vec<(String, AttemptId)> {
        self.pods()
    }

    fn log_sizes(&self) -> Vec<(AttemptId, u64)> {
        self.state.logs.clone()
    }

    fn replaced_runs(&self) -> &[RunId] {
        Self::replaced_runs(self)
    }

    fn unit(&self, attempt: u32) -> Option<Value> {
        Some(unit::object(self, attempt))
    }

    fn explain(&self, scheduler: Option<&Scheduler>, _: Option<&Locks>) -> Vec<Explanation> {
        let told = |one: explain::PartExplanation| Explanation {
            node: one.node,
            id: one.pod,
            phase: one.phase.to_owned(),
            reason: one.reason,
            since: one.since,
            wait: one.wait,
        };
        explain::explain(self, scheduler).into_iter().map(told).collect()
    }

    fn write_record(&self, to: &mut dyn io::Write) -> io::Result<()> {
        record::write(self, to)
    }

    fn apply(&mut self, fact: &Fact) {
        Self::apply(self, fact);
    }

    fn settle_journal(&mut self) {
        self.todo = Todo::default();
    }

    fn reopen(&mut self) {
        let roles = 0..self.state.roles.len();
        self.todo = Todo {
            roles: roles.clone().collect(),
            starting: roles.map(|role| (role, 0)).collect(),
            set: true,
            ..Todo::default()
        };
        let (state, todo) = (&self.state, &mut self.todo);
        for (at, replica) in state.replicas.iter().enumerate() {
            if let Some(wake) = replica.wake {
                todo.wakes.push((wake, Some(NodeIx(at as u32))));
                todo.replicas.push_back(at as u32);
            }
        }
        let own = [state.wake, self.deadline()];
        self.todo.wakes.extend(own.into_iter().flatten().map(|at| (at, None)));
    }

    fn awaits(&self, at: Time, node: Option<NodeIx>) -> bool {
        match node {
            Some(node) => self.state.replicas[node.at()].wake == Some(at),
            None => {
                let deadline = self.deadline().filter(|_| !self.state.closing());
                !self.state.over() && (self.state.wake == Some(at) || deadline == Some(at))
            }
        }
    }

    fn is_queued(&self, at: NodeIx) -> bool {
        self.state.replicas[at.at()].phase == ReplicaPhase::AttemptPreparing
    }

    fn demand(&self, at: NodeIx) -> Arc<Demand> {
        self.demand_of(at)
    }

    fn waits_since(&self, at: NodeIx) -> Time {
        self.state.replicas[at.at()].queued
    }

    fn assignment(&self, at: NodeIx) -> Option<Assignment> {
        let replica = &self.state.replicas[at.at()];
        replica.phase.placed().then(|| replica.on.as_deref().cloned().unwrap_or_default())
    }

    fn launched_at(&self, at: NodeIx) -> Time {
        self.state.replicas[at.at()].launched
    }

    fn label_of(&self, at: NodeIx) -> String {
        ident::host_name(&self.program.spec(self.program.role_of(at.0)).name, self.program.index_of(at.0))
    }

    fn open_tasks(&self) -> Vec<(NodeIx, TaskState)> {
        self.open_pods().collect()
    }

    fn joined(&self) -> Vec<(NodeIx, Gang)> {
        Self::joined(self).collect()
    }

    fn turn<'a>(&'a mut self, now: Time, shared: &'a SharedState) -> Box<dyn DialectTurn + 'a> {
        Box::new(Turn::new(self, now, shared))
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
        Turn::attempt_id(self, at)
    }

    fn describe(&mut self, at: NodeIx) -> Result<Task, String> {
        let on = DialectRun::assignment(self.run, at).unwrap_or_default();
        self.build_task(at, &on)
    }

    fn order(&mut self, order: Order) {
        self.effects.orders.push(order);
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
