//! The `Dialect` of flows, and its implementation of runs and turns.

use std::{io, sync::Arc};

use octoflow_model::{
    AttemptId, Fact, NodeIx, Order, Report, RunFact, RunId, Shutdown, Submission, Task, Time,
    jobflow::{FlowPhase, mark},
    submission::Stored,
    task::placement::Assignment,
};
use serde_json::Value;

use super::{
    Run, Turn, admit, display::ObjectView, explain, kinds::JOB_FLOW, program::Program, progress::Progress, record,
    rerun, state::Stage, status, todo::Todo,
};
use crate::{
    dialects::{
        dialect::{
            ChildEvent, Dialect, DialectProgram, DialectRun, DialectTurn, NodeTable, PhaseClass, PhaseWord,
            Program as AnyProgram, StaticTask, StatusFields, TaskState,
        },
        volcano::admit::MAX_NAME_LENGTH,
    },
    engine::{
        SharedState,
        input::{Command, CommandKind, Refusal},
        locks::Locks,
        slice::Work,
    },
    run::{Run as AnyRun, effect::Effects, explain::Explanation, head::Head},
    schedule::{Scheduler, spec::Demand},
};

pub static DIALECT: Dialect = Dialect {
    kind: &JOB_FLOW,
    phases: &[
        PhaseWord::new(FlowPhase::Pending.word(), PhaseClass::Waiting),
        PhaseWord::new(FlowPhase::Running.word(), PhaseClass::Running),
        PhaseWord::new(FlowPhase::Succeed.word(), PhaseClass::Succeeded),
        PhaseWord::new(FlowPhase::Failed.word(), PhaseClass::Failed),
        PhaseWord::new(FlowPhase::Terminating.word(), PhaseClass::Running),
    ],
    status: StatusFields {
        phase: "state.phase",
        message: "state.message",
        started: "startedAt",
        finished: "finishedAt",
    },
    max_name_length: MAX_NAME_LENGTH,
    pod_label: mark::BY_FLOW,
    view: &ObjectView,
    follow: &Progress,
    reruns: &rerun::Retries,
    commands: &[
        CommandKind::Stop,
        CommandKind::Terminate,
        CommandKind::Suspend,
        CommandKind::Resume,
        CommandKind::Mark,
    ],
    pod_delete_refusal: None,
    has_units: false,
    has_run_level_changes: true,
    selects_by_object: true,
    in_argo_api: false,
    takes_arguments: false,
    plan: Err("a plan is made of workflows; `spec.flows` of a JobFlow is its plan"),
    group_noun: "job",
    node_table: NodeTable::Members,
    summary_cells: None,
    summarize: status::summarize,
    examine: admit::examine,
    compile,
    explain_ended: explain::ended,
    forbidden_changes: None,
    tells_for_children: false,
    wants_keys: None,
    sign: None,
    names_are_ids: false,
};

fn compile(manifest: &Value, _: &Stored) -> Result<AnyProgram, String> {
    Ok(AnyProgram(Arc::new(Program::compile(manifest)?)))
}

impl DialectProgram for Program {
    /// The tasks are those of its jobs, whose templates are read when they are made.
    fn static_tasks(&self, _: &Value, _: Option<&str>) -> Vec<StaticTask> {
        Vec::new()
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
        self.state.finished.is_some()
    }

    fn phase(&self) -> &'static str {
        self.flow_phase().word()
    }

    fn message(&self) -> &str {
        let state = &self.state;
        let open = state.head.deadlock.as_deref().filter(|_| state.finished.is_none());
        open.unwrap_or(&state.message)
    }

    fn began(&self) -> Option<Time> {
        Self::began(self)
    }

    fn ended(&self) -> Option<Time> {
        self.state.finished
    }

    fn progress(&self) -> (u64, u64) {
        Self::progress(self)
    }

    fn run_priority(&self) -> i32 {
        0
    }

    fn is_owned(&self) -> bool {
        self.program.flow.metadata.rest.contains_key("ownerReferences")
    }

    fn manifest(&self) -> Value {
        Self::manifest(self)
    }

    fn object_of(&self, manifest: Value) -> Value {
        status::object_of(self, manifest)
    }

    fn size(&self) -> usize {
        self.program.entries.len()
    }

    fn summary(&self) -> Value {
        status::summary(self)
    }

    fn due(&self) -> Option<Time> {
        None
    }

    fn is_placed(&self, attempt: AttemptId) -> bool {
        self.attempt_of(attempt.task) == Some(attempt)
    }

    fn earliest_report(&self, _: NodeIx) -> Time {
        self.state.head.created
    }

    fn attempts(&self) -> Vec<(String, AttemptId)> {
        Vec::new()
    }

    fn log_sizes(&self) -> Vec<(AttemptId, u64)> {
        Vec::new()
    }

    fn replaced_runs(&self) -> &[RunId] {
        Self::replaced_runs(self)
    }

    fn explain(&self, _: Option<&Scheduler>, _: Option<&Locks>) -> Vec<Explanation> {
        explain::explain(self)
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
        let entries = self.state.flow.entries.iter().enumerate();
        let wakes = entries.filter_map(|(at, entry)| match entry.stage {
            Stage::BackOff(until) => Some((until, Some(NodeIx(at as u32)))),
            Stage::Waiting | Stage::Wanted | Stage::Active | Stage::Over(_) => None,
        });
        self.todo = Todo { flow: true, wakes: wakes.collect(), ..Todo::default() };
    }

    fn awaits(&self, at: Time, node: Option<NodeIx>) -> bool {
        let entry = node.and_then(|node| self.state.flow.entries.get(node.at()));
        self.state.finished.is_none() && entry.is_some_and(|entry| entry.stage == Stage::BackOff(at))
    }

    /// Its tasks are requests, which are ordered where they are decided.
    fn is_queued(&self, _: NodeIx) -> bool {
        false
    }

    fn demand(&self, _: NodeIx) -> Arc<Demand> {
        unreachable!("a flow has no tasks that the scheduler places");
    }

    fn waits_since(&self, _: NodeIx) -> Time {
        self.state.head.created
    }

    fn assignment(&self, _: NodeIx) -> Option<Assignment> {
        None
    }

    fn launched_at(&self, _: NodeIx) -> Time {
        self.state.head.created
    }

    fn open_tasks(&self) -> Vec<(NodeIx, TaskState)> {
        self.open_nodes()
    }

    fn is_request(&self, _: NodeIx) -> bool {
        true
    }

    fn wants_child(&self, attempt: AttemptId) -> bool {
        let entry = self.state.flow.entries.get(attempt.task.at());
        let wanted = entry.is_some_and(|entry| entry.stage == Stage::Wanted);
        wanted && !self.told().closing && self.attempt_of(attempt.task) == Some(attempt)
    }

    fn child_of(&self, at: NodeIx) -> Option<RunId> {
        self.child(at)
    }

    fn stop_for_children(&self) -> Option<Command> {
        self.state.head.shutdown.map(|how| match how {
            Shutdown::Stop => Command::Stop,
            Shutdown::Terminate => Command::Terminate,
        })
    }

    fn follows_parts_of(&self, at: NodeIx, _: &AnyRun) -> bool {
        self.is_probed(at.at())
    }

    fn label_of(&self, at: NodeIx) -> String {
        if at.at() < self.program.entries.len() { self.program.name(at.at()).to_owned() } else { at.to_string() }
    }

    fn turn<'a>(&'a mut self, now: Time, _: &'a SharedState) -> Box<dyn DialectTurn + 'a> {
        Box::new(Turn::new(self, now))
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

    fn wake(&mut self, _: Option<NodeIx>) {
        self.run.todo.flow = true;
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

    fn launch(&mut self, at: NodeIx, _: Assignment) {
        unreachable!("node {at} of a flow is ordered where it is decided");
    }

    /// Requests are not preempted: they take no room.
    fn preempt(&mut self, _: NodeIx, _: String) {}

    fn resend_stop(&mut self, at: NodeIx) {
        Turn::resend_stop(self, at);
    }

    fn attempt_id(&self, at: NodeIx) -> AttemptId {
        self.run.attempt_of(at).expect("only what a runtime has is described")
    }

    fn describe(&mut self, at: NodeIx) -> Result<Task, String> {
        self.run.task(at)
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
