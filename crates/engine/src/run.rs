//! One run of any dialect, and one turn of it: what the engine and its owners need to know of a run without asking which
//! dialect it speaks. It only hands on.

use std::sync::Arc;

use octoflow_model::{
    AttemptId, Fact, Marks, NodeIx, Order, Report, RunId, Task, Time,
    argo::{GcStrategy, WorkflowFact},
    submission::{Stored, Submission},
    task::{Labels, Resources},
    taskset::{KIND as TASK_SET, SetFact},
};
use serde_json::Value;

use crate::{
    argo::{self, node::Leaf},
    engine::World,
    input::{Command, Refusal},
    schedule::Gang,
    slice::Work,
    taskset,
};

const WORKFLOW: &str = "Workflow";

/// A run by its dialect. The variants are boxed because they are large and of different sizes.
pub enum Run {
    Argo(Box<argo::Run>),
    TaskSet(Box<taskset::Run>),
}

macro_rules! each {
    ($self:expr, $run:ident => $do:expr) => {
        match $self {
            Run::Argo($run) => $do,
            Run::TaskSet($run) => $do,
        }
    };
}

/// A manifest with what it refers to, made ready to run. It never changes, so runs of the same manifest can share it.
#[derive(Clone, Debug)]
pub enum Program {
    Argo(Arc<argo::program::Program>),
    TaskSet(Arc<taskset::program::Program>),
}

impl Program {
    /// The reason, in one sentence, when the manifest cannot be made ready. An admitted manifest always can.
    pub fn compile(manifest: &Value, stored: &Stored) -> Result<Self, String> {
        if Run::kind_of(manifest) == TASK_SET {
            return Ok(Self::TaskSet(Arc::new(taskset::program::Program::compile(manifest, stored)?)));
        }
        Ok(Self::Argo(Arc::new(argo::program::Program::compile(manifest, stored)?)))
    }
}

/// A manifest as text. Faster than to display it.
pub(crate) fn written(manifest: &Value) -> Box<str> {
    serde_json::to_string(manifest).expect("a value can be written down").into()
}

/// Where a task of an open run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stand {
    /// It waits for room.
    Queued,
    /// A runtime has it.
    Placed,
    /// A runtime has it and was told to end it.
    Ending,
}

impl Run {
    /// A run begins with what was submitted; what kind it is, its manifest says.
    pub fn open(id: RunId, submission: &Submission) -> Result<Self, String> {
        if let Some(kind) = submission.manifest["kind"].as_str()
            && ![WORKFLOW, TASK_SET].contains(&kind)
        {
            return Err(format!(
                "it is a `{kind}`, a kind of run that this version does not know: a newer version of octoflow has written it; \
                 start that version, or a newer one, to go on with this run"
            ));
        }
        Ok(Self::with(id, submission, Program::compile(&submission.manifest, &submission.stored)?))
    }

    /// The same when its manifest was made ready before.
    pub(crate) fn with(id: RunId, submission: &Submission, program: Program) -> Self {
        match program {
            Program::Argo(program) => Self::Argo(Box::new(argo::Run::with(id, submission, program))),
            Program::TaskSet(program) => Self::TaskSet(Box::new(taskset::Run::with(id, submission, program))),
        }
    }

    pub fn argo(&self) -> Option<&argo::Run> {
        match self {
            Self::Argo(run) => Some(run),
            Self::TaskSet(_) => None,
        }
    }

    pub fn into_argo(self) -> Option<argo::Run> {
        match self {
            Self::Argo(run) => Some(*run),
            Self::TaskSet(_) => None,
        }
    }

    pub fn task_set(&self) -> Option<&taskset::Run> {
        match self {
            Self::TaskSet(run) => Some(run),
            Self::Argo(_) => None,
        }
    }

    pub fn id(&self) -> RunId {
        each!(self, run => run.id)
    }

    pub fn kind(&self) -> &'static str {
        match self {
            Self::Argo(_) => WORKFLOW,
            Self::TaskSet(_) => TASK_SET,
        }
    }

    /// The kind of the run that a manifest makes; a workflow when it does not say.
    pub fn kind_of(manifest: &Value) -> &'static str {
        if manifest["kind"] == TASK_SET { TASK_SET } else { WORKFLOW }
    }

    pub fn name(&self) -> &str {
        each!(self, run => &run.state.head.name)
    }

    pub fn namespace(&self) -> &str {
        each!(self, run => &run.state.head.namespace)
    }

    pub fn uid(&self) -> &str {
        each!(self, run => &run.state.head.uid)
    }

    pub fn created(&self) -> Time {
        each!(self, run => run.state.head.created)
    }

    pub fn parent(&self) -> Option<RunId> {
        each!(self, run => run.state.head.parent)
    }

    pub fn finished(&self) -> bool {
        match self {
            Self::Argo(run) => run.state.finished(),
            Self::TaskSet(run) => run.state.over(),
        }
    }

    /// How it stands, in its dialect's word.
    pub fn phase(&self) -> &'static str {
        match self {
            Self::Argo(run) => run.state.phase.word(),
            Self::TaskSet(run) => run.state.standing.word(),
        }
    }

    pub fn message(&self) -> &str {
        match self {
            Self::Argo(run) => &run.state.message,
            Self::TaskSet(run) => &run.state.standing_message,
        }
    }

    pub fn began(&self) -> Option<Time> {
        match self {
            Self::Argo(run) => run.state.began,
            Self::TaskSet(run) => run.state.started,
        }
    }

    pub fn ended(&self) -> Option<Time> {
        match self {
            Self::Argo(run) => run.state.ended,
            Self::TaskSet(run) => run.state.finished,
        }
    }

    /// The labels people can select it by.
    pub fn labels(&self) -> Labels {
        match self {
            Self::Argo(run) => argo::status::labels(run),
            Self::TaskSet(run) => run.state.head.labels.clone(),
        }
    }

    /// The work done, and the work known so far.
    pub fn progress(&self) -> (u64, u64) {
        match self {
            Self::Argo(run) => run.state.progress,
            Self::TaskSet(run) => run.state.progress(),
        }
    }

    /// The priority of the run as a whole.
    pub fn importance(&self) -> i32 {
        match self {
            Self::Argo(run) => run.program.workflow.spec.priority.unwrap_or(0),
            Self::TaskSet(run) => run.program.set.spec.priority.unwrap_or(0),
        }
    }

    /// The parameters it was submitted with, by name.
    pub fn parameters(&self) -> Vec<(&str, &str)> {
        let Self::Argo(run) = self else { return Vec::new() };
        let given = run.program.workflow.spec.arguments.parameters.iter();
        given.filter_map(|one| Some((one.name.as_str(), one.value.as_ref()?.0.as_str()))).collect()
    }

    /// The manifest says whom it belongs to.
    pub fn is_owned(&self) -> bool {
        let metadata = match self {
            Self::Argo(run) => &run.program.workflow.metadata,
            Self::TaskSet(run) => &run.program.set.metadata,
        };
        metadata.rest.contains_key("ownerReferences")
    }

    /// What people have written on it.
    pub fn marks(&self) -> Marks {
        match self {
            Self::Argo(run) => argo::mark::marks(run),
            Self::TaskSet(run) => taskset::marks(run),
        }
    }

    /// The run as people see it.
    pub fn object(&self) -> Value {
        self.object_of(each!(self, run => run.manifest()))
    }

    /// The same for whoever has the manifest at hand: the one it was submitted with.
    pub fn object_of(&self, manifest: Value) -> Value {
        match self {
            Self::Argo(run) => argo::status::object_of(run, manifest),
            Self::TaskSet(run) => taskset::status::object_of(run, manifest),
        }
    }

    /// The run as people see it, of a workflow's nodes only those whose id and type are wanted.
    pub fn object_where(&self, keep: &dyn Fn(&str, &str) -> bool) -> Value {
        match self {
            Self::Argo(run) => argo::status::object_where(run, keep),
            Self::TaskSet(run) => taskset::status::object(run),
        }
    }

    /// How many nodes or replicas it has.
    pub fn size(&self) -> usize {
        match self {
            Self::Argo(run) => run.state.nodes.len(),
            Self::TaskSet(run) => run.state.replicas.len(),
        }
    }

    /// The run as people see it, but for the nodes of a workflow.
    pub fn summary(&self) -> Value {
        match self {
            Self::Argo(run) => argo::status::summary(run),
            Self::TaskSet(run) => taskset::status::object(run),
        }
    }

    /// When it is to be deleted after its end; never when nobody says.
    pub fn expires(&self) -> Option<Time> {
        let due = match self {
            Self::Argo(run) => argo::lifetime::expires(run),
            Self::TaskSet(run) => run.expires(),
        };
        due.map(|due| self.engine_time(due))
    }

    /// The engine's time as this run tells it: by the wall clock as it was when the run was submitted.
    pub fn local(&self, time: Time) -> Time {
        time.shifted(self.skew())
    }

    /// The other way round.
    pub(crate) fn engine_time(&self, local: Time) -> Time {
        local.shifted(self.skew().saturating_neg())
    }

    fn skew(&self) -> i64 {
        match self {
            Self::Argo(run) => run.state.head.skew,
            Self::TaskSet(run) => run.state.head.skew,
        }
    }

    /// A runtime has this attempt, and no later one took its place.
    pub(crate) fn is_placed(&self, attempt: AttemptId) -> bool {
        let at = attempt.task;
        match self {
            Self::Argo(run) => {
                let leaf = run.state.nodes.get(at.at()).and_then(|node| node.leaf());
                leaf.is_some_and(|leaf| leaf.owned_by_runtime()) && run.attempt_of(at) == Some(attempt)
            }
            Self::TaskSet(run) => {
                let replica = run.state.replicas.get(at.at());
                replica.is_some_and(|replica| replica.phase.placed()) && run.attempt_of(at.0) == Some(attempt)
            }
        }
    }

    /// Nothing that a runtime says of this task can have been earlier.
    pub(crate) fn known_since(&self, at: NodeIx) -> Time {
        let since = match self {
            Self::Argo(run) => run.state.nodes.get(at.at()).map(|node| node.started),
            Self::TaskSet(run) => run.state.replicas.get(at.at()).map(|replica| replica.transition),
        };
        since.unwrap_or_default()
    }

    /// The artifacts to be deleted with the run, or before.
    pub fn garbage(&self, strategy: Option<GcStrategy>) -> Vec<octoflow_model::argo::garbage::Garbage> {
        let Self::Argo(run) = self else { return Vec::new() };
        let mut items = argo::garbage::of(run);
        items.retain(|item| strategy.is_none_or(|strategy| item.strategy == strategy));
        items
    }

    /// Which attempt's log belongs to which task, by the id people know: a node's, or the name of a pod.
    pub fn attempts(&self) -> Vec<(String, AttemptId)> {
        match self {
            Self::Argo(run) => {
                let nodes = (0..run.state.nodes.len() as u32).map(NodeIx);
                nodes.filter_map(|at| Some((run.state.id_of(at), run.attempt_of(at)?))).collect()
            }
            Self::TaskSet(run) => run.pods(),
        }
    }

    /// How long the logs of ended attempts were, of those that wrote something.
    pub fn log_sizes(&self) -> Vec<(AttemptId, u64)> {
        match self {
            Self::Argo(run) => {
                let logs = run.state.logs.iter();
                logs.filter_map(|(at, bytes)| Some((run.attempt_of(*at)?, *bytes))).collect()
            }
            Self::TaskSet(run) => run.state.logs.clone(),
        }
    }

    pub fn took_place_of(&self) -> &[RunId] {
        each!(self, run => run.took_place_of())
    }

    /// Folds one fact into the state.
    pub fn apply(&mut self, fact: &Fact) {
        each!(self, run => run.apply(fact));
    }

    pub(crate) fn settle_journal(&mut self) {
        each!(self, run => run.settle_journal());
    }

    pub(crate) fn reopen(&mut self) {
        each!(self, run => run.reopen());
    }

    pub(crate) fn awaits(&self, at: Time, node: Option<NodeIx>) -> bool {
        each!(self, run => run.awaits(at, node))
    }

    pub(crate) fn take_queued(&mut self) -> Vec<NodeIx> {
        each!(self, run => run.take_queued())
    }

    pub(crate) fn take_wakes(&mut self) -> Vec<(Time, Option<NodeIx>)> {
        each!(self, run => run.take_wakes())
    }

    pub(crate) fn is_queued(&self, at: NodeIx) -> bool {
        each!(self, run => run.is_queued(at))
    }

    pub(crate) fn resources(&self, at: NodeIx) -> Resources {
        each!(self, run => run.resources(at))
    }

    pub(crate) fn priority(&self, at: NodeIx) -> i32 {
        each!(self, run => run.priority(at))
    }

    /// The task is a request, which needs nothing of the machine.
    pub(crate) fn asks(&self, at: NodeIx) -> bool {
        self.argo().is_some_and(|run| run.asks(at))
    }

    /// The gang it must start with.
    pub(crate) fn gang(&self, at: NodeIx) -> Option<Gang> {
        self.task_set()?.gang(at)
    }

    /// Tasks that started with their gangs.
    pub(crate) fn joined(&self) -> Vec<(NodeIx, Gang)> {
        self.task_set().map(|run| run.joined().collect()).unwrap_or_default()
    }

    /// Tasks that are not over, leaving out those that may not go on yet.
    pub(crate) fn open_tasks(&self) -> Vec<(NodeIx, Stand)> {
        match self {
            Self::Argo(run) => {
                let stand = |leaf| match leaf {
                    Leaf::Barred => None,
                    Leaf::Queued => Some(Stand::Queued),
                    Leaf::Launched | Leaf::Running => Some(Stand::Placed),
                    Leaf::Stopping => Some(Stand::Ending),
                };
                run.open_leaves().filter_map(|(at, leaf)| Some((at, stand(leaf)?))).collect()
            }
            Self::TaskSet(run) => run.open_pods().collect(),
        }
    }

    /// A task that is with a runtime takes none of the room others wait for.
    pub(crate) fn is_weightless(&self, at: NodeIx) -> bool {
        self.argo().is_some_and(|run| run.asks(at) || run.state.node(at).daemoned)
    }
}

/// One turn of a run.
pub(crate) enum Turn<'a> {
    Argo(argo::Turn<'a>),
    TaskSet(taskset::Turn<'a>),
}

macro_rules! each_turn {
    ($self:expr, $turn:ident => $do:expr) => {
        match $self {
            Turn::Argo($turn) => $do,
            Turn::TaskSet($turn) => $do,
        }
    };
}

impl<'a> Turn<'a> {
    pub(crate) fn new(run: &'a mut Run, now: Time, world: &'a World) -> Self {
        match run {
            Run::Argo(run) => Self::Argo(argo::Turn::new(run, now, world)),
            Run::TaskSet(run) => Self::TaskSet(taskset::Turn::new(run, now, world)),
        }
    }

    /// Lets it do so much. What TaskSets decide at once is bounded by their replicas.
    pub(crate) fn limit(&mut self, work: Work) {
        if let Self::Argo(turn) = self {
            turn.limit(work);
        }
    }

    pub(crate) fn done(&self) -> Work {
        match self {
            Self::Argo(turn) => turn.done(),
            Self::TaskSet(turn) => turn.facts.len() as Work,
        }
    }

    /// Tells whether something is left to decide.
    pub(crate) fn settle(&mut self) -> bool {
        match self {
            Self::Argo(turn) => turn.settle(),
            Self::TaskSet(turn) => {
                turn.settle();
                false
            }
        }
    }

    pub(crate) fn wake(&mut self, node: Option<NodeIx>) {
        each_turn!(self, turn => turn.run.wake(node));
    }

    pub(crate) fn report(&mut self, report: Report) {
        each_turn!(self, turn => turn.report(report));
    }

    pub(crate) fn command(&mut self, command: &Command) -> Result<(), Refusal> {
        each_turn!(self, turn => turn.command(command))
    }

    pub(crate) fn launch(&mut self, at: NodeIx) {
        each_turn!(self, turn => turn.launch(at));
    }

    pub(crate) fn press(&mut self, at: NodeIx) {
        each_turn!(self, turn => turn.press(at));
    }

    pub(crate) fn attempt_id(&self, at: NodeIx) -> AttemptId {
        each_turn!(self, turn => turn.attempt_id(at))
    }

    pub(crate) fn build_task(&mut self, at: NodeIx) -> Result<Task, String> {
        match self {
            Self::Argo(turn) => turn.build_task(at).map(|(task, _)| task),
            Self::TaskSet(turn) => turn.build_task(at),
        }
    }

    pub(crate) fn order(&mut self, order: Order) {
        each_turn!(self, turn => turn.orders.push(order));
    }

    /// The turn of a workflow. Only workflows have locks.
    pub(crate) fn argo(&mut self) -> Option<&mut argo::Turn<'a>> {
        match self {
            Self::Argo(turn) => Some(turn),
            Self::TaskSet(_) => None,
        }
    }

    pub(crate) fn into_parts(self) -> (Vec<Fact>, Vec<Order>) {
        each_turn!(self, turn => (turn.facts, turn.orders))
    }
}

/// The task that a fact takes from the runtimes, and whose room is free by it.
pub(crate) fn freed(fact: &Fact) -> Option<NodeIx> {
    match fact {
        Fact::Workflow(WorkflowFact::Finished(finished)) => Some(finished.node),
        // It may stay for as long as the run does; its place is for those who end by themselves.
        Fact::Workflow(WorkflowFact::Daemoned { node }) => Some(*node),
        Fact::TaskSet(SetFact::Ended(parting)) => Some(NodeIx(parting.replica)),
        _ => None,
    }
}
