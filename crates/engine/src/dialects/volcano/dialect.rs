//! The `Dialect` of Volcano's jobs, and its implementation of runs and turns.

use std::{io, sync::Arc};

use octoflow_model::{
    AttemptId, Fact, NodeIx, Order, Report, RunFact, RunId, Submission, Task, Time,
    plugin::LifeState,
    submission::Stored,
    task::placement::Assignment,
    volcano::{JobPhase, PodPhase, mark},
};
use serde_json::Value;

use super::{
    Run, Turn, admit,
    display::ObjectView,
    ended, explain,
    kinds::JOB,
    objects, plugin,
    program::{Program, RestartPolicy},
    progress::Progress,
    record, rerun, resize, status,
    todo::Todo,
};
use crate::{
    dialects::dialect::{
        Dialect, DialectProgram, DialectRun, DialectTurn, NodeTable, PhaseClass, PhaseWord, Program as AnyProgram,
        StaticTask, StatusFields, TaskState, remove_status,
    },
    engine::{
        SharedState,
        input::{Command, CommandKind, Refusal},
        locks::Locks,
        slice::Work,
    },
    run::{Run as AnyRun, effect::Effects, explain::Explanation, head::Head, life},
    schedule::{Gang, Scheduler, spec::Demand},
};

pub static DIALECT: Dialect = Dialect {
    kind: &JOB,
    phases: &[
        PhaseWord::new(JobPhase::Pending.word(), PhaseClass::Waiting),
        PhaseWord::new(JobPhase::Running.word(), PhaseClass::Running),
        PhaseWord::new(JobPhase::Restarting.word(), PhaseClass::Running),
        PhaseWord::new(JobPhase::Aborting.word(), PhaseClass::Running),
        PhaseWord::new(JobPhase::Aborted.word(), PhaseClass::Waiting),
        PhaseWord::new(JobPhase::Completing.word(), PhaseClass::Running),
        PhaseWord::new(JobPhase::Terminating.word(), PhaseClass::Running),
        PhaseWord::new(JobPhase::Completed.word(), PhaseClass::Succeeded),
        PhaseWord::new(JobPhase::Failed.word(), PhaseClass::Failed),
        PhaseWord::new(JobPhase::Terminated.word(), PhaseClass::Failed),
    ],
    status: StatusFields {
        phase: "state.phase",
        message: "state.message",
        started: "startedAt",
        finished: "finishedAt",
    },
    max_name_length: admit::MAX_NAME_LENGTH,
    pod_label: mark::JOB_NAME,
    view: &ObjectView,
    follow: &Progress,
    reruns: &rerun::Retries,
    commands: &[
        CommandKind::Stop,
        CommandKind::Terminate,
        CommandKind::Suspend,
        CommandKind::Resume,
        CommandKind::Evict,
        CommandKind::Amend,
        CommandKind::Perform,
        CommandKind::Mark,
    ],
    pod_delete_refusal: None,
    has_units: false,
    has_run_level_changes: false,
    selects_by_object: true,
    in_argo_api: false,
    takes_arguments: false,
    plan: Err("a plan is made of workflows; the tasks of a Job start together, but for those with dependsOn"),
    group_noun: "task",
    node_table: NodeTable::Members,
    summary_cells: None,
    summarize: |object| remove_status(object, &["pods"]),
    examine: admit::examine,
    compile,
    explain_ended: ended::pods,
    forbidden_changes: Some(resize::forbidden),
    tells_for_children: false,
    wants_keys: Some(plugin::wants_keys),
    sign: None,
    names_are_ids: false,
};

fn compile(manifest: &Value, _: &Stored) -> Result<AnyProgram, String> {
    Ok(AnyProgram(Arc::new(Program::compile(manifest)?)))
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
        self.state.over
    }

    fn is_decided(&self) -> bool {
        self.state.over || self.state.phase.is_final()
    }

    fn phase(&self) -> &'static str {
        self.state.phase.word()
    }

    fn message(&self) -> &str {
        let state = &self.state;
        let open = state.head.deadlock.as_deref().filter(|_| !state.over);
        open.unwrap_or(&state.message)
    }

    /// An aborted job is not over: it is resumed, or ended for good.
    fn life_state(&self) -> LifeState {
        let state = &self.state;
        let aborted = !state.over && matches!(state.phase, JobPhase::Aborting | JobPhase::Aborted);
        if aborted {
            return LifeState::Suspended;
        }
        life::state_of(&DIALECT, &state.head, state.phase.word(), state.over, state.started.is_some())
    }

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
        self.state.pods.len()
    }

    fn summary(&self) -> Value {
        status::summary_of(self, Self::manifest(self))
    }

    fn due(&self) -> Option<Time> {
        self.expires()
    }

    fn is_placed(&self, attempt: AttemptId) -> bool {
        let pod = self.state.pods.get(attempt.task.at());
        pod.is_some_and(|pod| pod.phase.placed()) && self.attempt_of(attempt.task.0) == Some(attempt)
    }

    fn earliest_report(&self, at: NodeIx) -> Time {
        self.state.pods.get(at.at()).map(|pod| pod.transition).unwrap_or_default()
    }

    fn attempts(&self) -> Vec<(String, AttemptId)> {
        self.logs()
    }

    fn log_sizes(&self) -> Vec<(AttemptId, u64)> {
        self.state.logs.clone()
    }

    fn replaced_runs(&self) -> &[RunId] {
        Self::replaced_runs(self)
    }

    fn explain(&self, scheduler: Option<&Scheduler>, _: Option<&Locks>) -> Vec<Explanation> {
        explain::explain(self, scheduler)
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
        self.todo = Todo { job: true, ..Todo::default() };
        let (state, todo) = (&self.state, &mut self.todo);
        let of_pods = state.pods.iter().enumerate().filter_map(|(at, pod)| Some((at as u32, pod.wake?)));
        let of_actions = state.delayed.iter().map(|(pod, delayed)| (*pod, delayed.due));
        // What is overdue is due at once, in the order in which it would have been without a restart.
        todo.wakes.extend(of_pods.chain(of_actions).map(|(pod, wake)| (wake, Some(NodeIx(pod)))));
    }

    fn awaits(&self, at: Time, node: Option<NodeIx>) -> bool {
        let Some(node) = node else { return !self.state.over && !self.state.left.is_empty() };
        let delayed = self.state.delayed.get(&node.0).map(|delayed| delayed.due);
        !self.state.over && (self.state.pods[node.at()].wake == Some(at) || delayed == Some(at))
    }

    fn is_queued(&self, at: NodeIx) -> bool {
        self.state.pods[at.at()].phase == PodPhase::Queued
    }

    fn demand(&self, at: NodeIx) -> Arc<Demand> {
        self.demand_of(at)
    }

    fn waits_since(&self, at: NodeIx) -> Time {
        self.state.pods[at.at()].queued
    }

    fn assignment(&self, at: NodeIx) -> Option<Assignment> {
        let pod = &self.state.pods[at.at()];
        let keeps = pod.phase.placed() || pod.phase == PodPhase::BackOff;
        keeps.then(|| pod.on.as_deref().cloned().unwrap_or_default())
    }

    fn launched_at(&self, at: NodeIx) -> Time {
        self.state.pods[at.at()].launched
    }

    fn objects(&self) -> Vec<Value> {
        objects::all(self)
    }

    fn awaits_claim(&self, name: &str) -> bool {
        self.state.awaits.as_ref().is_some_and(|(_, claims)| claims.iter().any(|claim| claim == name))
    }

    fn label_of(&self, at: NodeIx) -> String {
        self.short_name(at.0)
    }

    fn open_tasks(&self) -> Vec<(NodeIx, TaskState)> {
        self.open_pods().collect()
    }

    fn may_keep_room(&self, at: NodeIx) -> bool {
        self.program.tasks[self.program.task_of(at.0)].restart != RestartPolicy::Never
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
