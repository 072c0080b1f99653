//! The `Dialect` of submitted jobs, and its implementation of runs and turns.

use std::{io, sync::Arc};

use octoflow_model::{
    AttemptId, Fact, NodeIx, Order, Report, RunFact, RunId, Shutdown, Submission, Task, Time,
    plugin::{LifeState, term},
    submission::Stored,
    submitted::mark,
    task::{Labels, placement::Assignment},
};
use serde_json::Value;

use super::{
    Run, Turn,
    admit::{self, MAX_NAME_LENGTH},
    display::ObjectView,
    explain,
    kinds::SUBMITTED_JOB,
    program::Program,
    progress::WalkProgress,
    record,
    rerun::WalkReruns,
    run::CHILD,
    state::WalkStep,
    status,
    todo::Todo,
};
use crate::{
    dialects::dialect::{
        ChildEvent, Dialect, DialectProgram, DialectRun, DialectTurn, NodeTable, PhaseClass, PhaseWord,
        Program as AnyProgram, StaticTask, StatusFields, TaskState,
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
    kind: &SUBMITTED_JOB,
    phases: &[
        PhaseWord::new(LifeState::Waiting.word(), PhaseClass::Waiting),
        PhaseWord::new(LifeState::Running.word(), PhaseClass::Running),
        PhaseWord::new(LifeState::Suspended.word(), PhaseClass::Waiting),
        PhaseWord::new(LifeState::Succeeded.word(), PhaseClass::Succeeded),
        PhaseWord::new(LifeState::Failed.word(), PhaseClass::Failed),
        PhaseWord::new(LifeState::Stopped.word(), PhaseClass::Failed),
    ],
    status: StatusFields::USUAL,
    max_name_length: MAX_NAME_LENGTH,
    pod_label: mark::JOB,
    view: &ObjectView,
    follow: &WalkProgress,
    reruns: &WalkReruns,
    commands: &[
        CommandKind::Stop,
        CommandKind::Terminate,
        CommandKind::Suspend,
        CommandKind::Resume,
        CommandKind::Perform,
        CommandKind::Mark,
    ],
    pod_delete_refusal: None,
    has_units: false,
    has_run_level_changes: true,
    selects_by_object: true,
    in_argo_api: false,
    takes_arguments: false,
    plan: Err("a plan is made of workflows; what a submitted job becomes depends on the plugins that it meets"),
    group_noun: "job",
    node_table: NodeTable::Members,
    summary_cells: None,
    summarize: status::summarize,
    examine: admit::examine,
    compile,
    explain_ended: explain::ended,
    forbidden_changes: None,
    tells_for_children: true,
    wants_keys: None,
    sign: Some(admit::sign),
    names_are_ids: true,
};

fn compile(manifest: &Value, _: &Stored) -> Result<AnyProgram, String> {
    Ok(AnyProgram(Arc::new(Program::compile(manifest)?)))
}

impl DialectProgram for Program {
    /// The tasks are those of the run that comes out, which depends on the plugins that the job meets.
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
        self.walk_state().life().word()
    }

    fn message(&self) -> &str {
        status::message(self)
    }

    /// A final state is told when everything is over, not while the run that came out is still ended.
    fn life_state(&self) -> LifeState {
        let ending = self.state.finished.is_none() && matches!(self.state.walk.step, WalkStep::Ending(_));
        match (ending, self.state.head.suspended, self.began()) {
            (false, _, _) => self.walk_state().life(),
            (true, true, _) => LifeState::Suspended,
            (true, false, Some(_)) => LifeState::Running,
            (true, false, None) => LifeState::Waiting,
        }
    }

    fn hook_header(&self) -> Value {
        self.state.header.clone()
    }

    fn began(&self) -> Option<Time> {
        Self::began(self)
    }

    fn ended(&self) -> Option<Time> {
        self.state.finished
    }

    fn terms(&self) -> Labels {
        let spec = &self.program.job.spec;
        let terms = [
            (term::USER, &spec.user_id),
            (term::JOB_NAME, &spec.job_name),
            (term::JOB_KIND, &spec.job_kind),
            (term::CLUSTER, &spec.cluster),
        ];
        terms.into_iter().map(|(name, value)| (name.to_owned(), value.clone())).collect()
    }

    fn progress(&self) -> (u64, u64) {
        Self::progress(self)
    }

    fn run_priority(&self) -> i32 {
        0
    }

    fn is_owned(&self) -> bool {
        self.program.job.metadata.rest.contains_key("ownerReferences")
    }

    fn manifest(&self) -> Value {
        Self::manifest(self)
    }

    fn object_of(&self, manifest: Value) -> Value {
        status::object_of(self, manifest)
    }

    fn size(&self) -> usize {
        self.state.walk.trace.len() + 2
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
        self.todo = Todo { walk: true, wakes: self.state.walk.step.due().into_iter().collect() };
    }

    fn awaits(&self, at: Time, node: Option<NodeIx>) -> bool {
        node.is_none() && self.state.finished.is_none() && self.state.walk.step.due() == Some(at)
    }

    /// Its tasks are requests, which are ordered where they are decided.
    fn is_queued(&self, _: NodeIx) -> bool {
        false
    }

    fn demand(&self, _: NodeIx) -> Arc<Demand> {
        unreachable!("a submitted job has no tasks that the scheduler places");
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
        let ordered = attempt.task == CHILD && self.state.walk.step == WalkStep::HandingOver;
        ordered && !self.state.head.closing() && self.attempt_of(CHILD) == Some(attempt)
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

    fn label_of(&self, at: NodeIx) -> String {
        match self.state.walk.plugin().filter(|_| at != CHILD) {
            Some(plugin) => plugin.key.clone(),
            None => self.state.head.name.to_string(),
        }
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

    fn wake(&mut self, _: Option<NodeIx>) {
        self.run.todo.walk = true;
    }

    fn report(&mut self, report: Report) {
        Turn::report(self, report);
    }

    fn command(&mut self, command: &Command) -> Result<(), Refusal> {
        Turn::command(self, command, None)
    }

    fn command_because(&mut self, command: &Command, reason: &str) -> Result<(), Refusal> {
        Turn::command(self, command, Some(reason))
    }

    fn child(&mut self, _: AttemptId, event: ChildEvent<'_>) {
        Turn::child(self, event);
    }

    fn launch(&mut self, at: NodeIx, _: Assignment) {
        unreachable!("node {at} of a submitted job is ordered where it is decided");
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
        self.run.task(at, &self.shared.plugins)
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
