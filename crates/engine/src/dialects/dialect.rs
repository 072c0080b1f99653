//! The interface between the engine and the dialects: traits of runs, turns and programs. A dialect implements them in
//! its own folder and has one row in the table of kinds; nothing outside asks which dialect a run is.

use std::{any::Any, fmt, io, sync::Arc};

use octoflow_manifest::{Path, Problems};
use octoflow_model::{
    AttemptId, Claim, Fact, MutableMetadata, NodeIx, Order, Report, RunId, Submission, Task, Time,
    garbage::{Garbage, GcStrategy},
    plugin::LifeState,
    submission::Stored,
    task::{Labels, placement::Assignment},
};
use serde_json::Value;

use crate::{
    admit::{Admitted, Catalog},
    engine::{
        SharedState,
        input::{Command, CommandKind, Refusal},
        locks::{Holder, Locks, Ready, Wait, Waiter},
        slice::Work,
    },
    kinds::{self, Kind},
    meters::Live,
    run::{
        Run,
        effect::Effects,
        explain::Explanation,
        follow::Follow,
        head::Head,
        life, mark,
        plan::{PlanBounds, WorkflowPlan},
        rerun::Reruns,
        view::RunView,
    },
    schedule::{Gang, Scheduler, spec::Demand},
};

/// A dialect: the part of a row in the table of kinds that only kinds of runs have.
#[derive(Debug)]
pub struct Dialect {
    /// The kind of the objects that run.
    pub kind: &'static Kind,
    /// The phases of a run, in display order.
    pub phases: &'static [PhaseWord],
    pub status: StatusFields,
    /// Maximum length of the name of a run.
    pub max_name_length: usize,
    /// The label of a pod that names its run.
    pub pod_label: &'static str,
    /// Renders pods, events, logs and nodes from the objects of its runs.
    pub view: &'static dyn RunView,
    /// Interprets its facts for clients that follow a run.
    pub follow: &'static dyn Follow,
    /// Implements retry and resubmit.
    pub reruns: &'static dyn Reruns,
    /// The commands that its runs take. The others are refused before they reach a run.
    pub commands: &'static [CommandKind],
    /// Why a pod cannot be deleted on its own, and what to do instead. `None`: the run replaces a deleted pod.
    pub pod_delete_refusal: Option<&'static str>,
    /// True if every attempt has an object that its pods belong to ([`DialectRun::unit`]).
    pub has_units: bool,
    /// True if changes of the run as a whole are distinguishable from changes of its parts, so that an observer of the
    /// former only is not woken for each part.
    pub has_run_level_changes: bool,
    /// True if field selectors may use fields of the whole object, not only those in the index of runs.
    pub selects_by_object: bool,
    /// True if Argo's API serves its runs.
    pub in_argo_api: bool,
    /// True if submitters may pass parameters and an entrypoint.
    pub takes_arguments: bool,
    /// Previews what would run, in which order, as far as that is known beforehand; or the reason why there is no
    /// preview.
    pub plan: Result<PlanOf, &'static str>,
    /// The noun for a group of equal pods in messages.
    pub group_noun: &'static str,
    /// Layout of a table of its nodes.
    pub node_table: NodeTable,
    /// Renders a table row from the index of runs alone, if the index has everything the columns need.
    pub summary_cells: Option<fn(&Summary<'_>, Time) -> Vec<Value>>,
    /// Removes from an object what grows with the size of its run, as [`DialectRun::summary`] leaves it out.
    pub summarize: fn(&mut Value),
    /// Admits a manifest; a refused one gets all errors and warnings.
    pub examine: fn(&Value, &dyn Catalog) -> Result<Admitted, Problems>,
    /// Compiles an admitted manifest; on error returns the reason in one sentence.
    pub compile: fn(&Value, &Stored) -> Result<Program, String>,
    /// Explains a finished run from its object.
    pub explain_ended: fn(&Value) -> Vec<Explanation>,
    /// Returns every change of an open run's `spec` that is not allowed, with its path and the reason. The others are
    /// made with [`Command::Amend`]. `None`: only suspension and shutdown change.
    pub forbidden_changes: Option<ForbiddenChanges>,
    /// True if life hooks hear of it instead of the runs that it orders: they are one and the same job to them.
    pub tells_for_children: bool,
    /// Reports whether the tasks of a manifest need a key pair, which is drawn when it is submitted. `None`: never.
    pub wants_keys: Option<fn(&Value) -> bool>,
    /// Writes into a manifest who submits it, which nobody can say of himself. `None`: its manifests do not say.
    pub sign: Option<fn(&mut Value, &str)>,
    /// True if a name is an id: no two of its runs share one, in whatever namespaces.
    pub names_are_ids: bool,
}

/// Equal tasks as a manifest alone describes them.
#[derive(Clone, Debug)]
pub struct StaticTask {
    /// Where their pod is written.
    pub path: Path,
    /// The gang that they start with, and where it is named.
    pub gang: Option<(String, Path)>,
    pub demand: Demand,
    /// False if the queue depends on values of the run.
    pub queue_known: bool,
    /// How many start at once.
    pub count: u32,
    /// False if a condition decides whether they run at all.
    pub certain: bool,
}

/// A function that compares two versions of a `spec`.
pub type ForbiddenChanges = fn(&Value, &Value) -> Vec<(String, String)>;

/// A function that previews a manifest.
pub type PlanOf = fn(&Value, &Stored, PlanBounds) -> Result<WorkflowPlan, String>;

/// Layout of a table of a run's nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeTable {
    /// Steps that call templates.
    Steps,
    /// Replicas, which have retries and addresses.
    Members,
}

/// A phase of a run, as displayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhaseWord {
    pub word: &'static str,
    pub class: PhaseClass,
}

/// The dialect-independent meaning of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhaseClass {
    /// Nothing has run yet.
    Waiting,
    Running,
    /// Over, successfully.
    Succeeded,
    /// Over, unsuccessfully.
    Failed,
}

impl PhaseWord {
    pub const fn new(word: &'static str, class: PhaseClass) -> Self {
        Self { word, class }
    }
}

impl PhaseClass {
    pub fn is_final(self) -> bool {
        match self {
            Self::Waiting | Self::Running => false,
            Self::Succeeded | Self::Failed => true,
        }
    }
}

/// Paths of the status fields that every run has, such as `phase` or `state.phase`.
#[derive(Debug, Clone, Copy)]
pub struct StatusFields {
    pub phase: &'static str,
    pub message: &'static str,
    pub started: &'static str,
    pub finished: &'static str,
}

impl StatusFields {
    /// The names most Kubernetes objects use, for a run of an unknown kind.
    pub const USUAL: Self = Self { phase: "phase", message: "message", started: "startedAt", finished: "finishedAt" };

    /// Returns the value at one of these paths below a status.
    pub fn value<'v>(status: &'v Value, path: &str) -> &'v Value {
        path.split('.').fold(status, |value, field| &value[field])
    }

    /// Sets the value at one of these paths below a status.
    pub fn put(status: &mut Value, path: &str, value: Value) {
        *path.split('.').fold(status, |inner, field| &mut inner[field]) = value;
    }
}

/// A run as the index of runs describes it.
#[derive(Debug, Clone, Copy)]
pub struct Summary<'a> {
    pub name: &'a str,
    pub phase: &'a str,
    pub message: &'a str,
    pub progress: &'a str,
    pub priority: i64,
    pub created: Time,
    pub started: Option<Time>,
    pub finished: Option<Time>,
}

impl Dialect {
    /// Returns the class of a phase; `None` for an unknown word.
    pub fn phase_class(&self, phase: &str) -> Option<PhaseClass> {
        self.phases.iter().find(|known| known.word == phase).map(|known| known.class)
    }

    /// Returns the phase of a run from its object; the first phase if the object has none yet.
    pub fn phase_of<'a>(&self, object: &'a Value) -> &'a str {
        match StatusFields::value(&object["status"], self.status.phase).as_str() {
            None | Some("") => self.phases.first().map_or("", |first| first.word),
            Some(phase) => phase,
        }
    }

    /// Reports whether the object's phase is final.
    pub fn is_decided(&self, object: &Value) -> bool {
        self.phase_class(self.phase_of(object)).is_some_and(PhaseClass::is_final)
    }
}

/// Removes fields of an object's status.
pub(crate) fn remove_status(object: &mut Value, fields: &[&str]) {
    if let Some(status) = object["status"].as_object_mut() {
        status.retain(|field, _| !fields.contains(&field.as_str()));
    }
}

/// Returns the dialect of a manifest; on error, the reason in one sentence.
pub fn of(manifest: &Value) -> Result<&'static Dialect, String> {
    kinds::dialect_of(manifest).map_err(|problem| problem.message)
}

/// A compiled manifest with the objects it refers to. It is immutable, so runs of the same manifest can share it.
#[derive(Clone, Debug)]
pub struct Program(pub(crate) Arc<dyn DialectProgram>);

impl Program {
    /// Compiles a manifest; on error returns the reason in one sentence. An admitted manifest always compiles.
    pub fn compile(manifest: &Value, stored: &Stored) -> Result<Self, String> {
        (of(manifest)?.compile)(manifest, stored)
    }
}

pub(crate) trait DialectProgram: fmt::Debug + Send + Sync {
    /// Returns its tasks as far as the manifest alone describes them. `inherited` is the queue of its namespace.
    fn static_tasks(&self, manifest: &Value, inherited: Option<&str>) -> Vec<StaticTask>;
    /// Creates a run of a submission.
    fn open(self: Arc<Self>, id: RunId, submission: &Submission) -> Run;
}

/// The scheduling state of a task of an open run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// Queued in the scheduler.
    Queued,
    /// A runtime has it.
    Placed,
    /// A runtime has it and was ordered to end it.
    Ending,
    /// No runtime has it, and it keeps its room: it is started again in its place.
    Held,
}

/// A run of some dialect. All methods only read, except the fold.
pub trait DialectRun: Any + Send {
    fn dialect(&self) -> &'static Dialect;
    fn id(&self) -> RunId;
    fn head(&self) -> &Head;
    fn finished(&self) -> bool;
    /// Reports whether its end is decided, although something of it may still be there.
    fn is_decided(&self) -> bool {
        self.finished()
    }
    /// Returns its phase, in the dialect's word.
    fn phase(&self) -> &'static str;
    fn message(&self) -> &str;

    /// Returns its state as life hooks and job lists name it. It costs the same however large the run is.
    fn life_state(&self) -> LifeState {
        life::state_of(self.dialect(), self.head(), self.phase(), self.finished(), self.began().is_some())
    }

    /// Returns the header by which life hooks choose the runs that they hear of.
    fn hook_header(&self) -> Value {
        life::header(self.dialect(), self.head(), &self.labels())
    }

    fn began(&self) -> Option<Time>;
    fn ended(&self) -> Option<Time>;

    /// Returns the labels it can be selected by.
    fn labels(&self) -> Labels {
        self.head().labels.clone()
    }

    /// Returns what else lists find it by; see `octoflow_model::plugin::term`. It never changes.
    fn terms(&self) -> Labels {
        Labels::new()
    }

    /// Returns its progress: the work done, and the work known so far.
    fn progress(&self) -> (u64, u64);
    /// Returns the priority of the run as a whole.
    fn run_priority(&self) -> i32;

    /// Returns the parameters it was submitted with, by name.
    fn parameters(&self) -> Vec<(&str, &str)> {
        Vec::new()
    }

    /// Reports whether the manifest names owners.
    fn is_owned(&self) -> bool;
    /// Returns its mutable metadata.
    fn marks(&self) -> MutableMetadata {
        mark::marks(self.manifest(), self.head(), &self.labels())
    }

    /// Returns the manifest as it was given.
    fn manifest(&self) -> Value;
    /// Renders the object of the run from the manifest it was submitted with.
    fn object_of(&self, manifest: Value) -> Value;
    /// Renders the object of the run with only the nodes for which `keep`, given id and type, is true.
    fn object_where(&self, keep: &dyn Fn(&str, &str) -> bool) -> Value {
        let _ = keep;
        self.object_of(self.manifest())
    }

    /// Returns the number of its nodes or replicas.
    fn size(&self) -> usize;
    /// Renders the object of the run without the parts that grow with its size.
    fn summary(&self) -> Value;
    /// Returns when it expires after its end, in its local time; `None`: never.
    fn due(&self) -> Option<Time>;
    /// Reports whether a runtime has this attempt, and it is the current one.
    fn is_placed(&self, attempt: AttemptId) -> bool;
    /// Returns the earliest time that reports about this task can have.
    fn earliest_report(&self, at: NodeIx) -> Time;

    /// Returns the artifacts to be deleted with the run, or before.
    fn garbage(&self, strategy: Option<GcStrategy>) -> Vec<Garbage> {
        let _ = strategy;
        Vec::new()
    }

    /// Returns the attempts whose logs belong to its tasks, by node id or pod name.
    fn attempts(&self) -> Vec<(String, AttemptId)>;
    /// Returns the log lengths of ended attempts that wrote something.
    fn log_sizes(&self) -> Vec<(AttemptId, u64)>;
    fn replaced_runs(&self) -> &[RunId];

    /// Returns the control unit of an attempt: the object that its pods belong to.
    fn unit(&self, attempt: u32) -> Option<Value> {
        let _ = attempt;
        None
    }

    /// Explains what has failed so far, and why everything open is open.
    fn explain(&self, scheduler: Option<&Scheduler>, locks: Option<&Locks>) -> Vec<Explanation>;

    /// Writes the record: `{"object": …, "tasks": {node id: index}, "elsewhere": {node id or pod: its attempt}, "logs":
    /// {attempt: length of its log}, "runs": [runs it replaced], "garbage": [artifacts to be deleted]}`.
    fn write_record(&self, to: &mut dyn io::Write) -> io::Result<()>;

    /// Returns the gauges that track it, evaluated at its local time.
    fn live_meters(&self, now: Time) -> Vec<Live> {
        let _ = now;
        Vec::new()
    }

    /// Folds one fact into the state.
    fn apply(&mut self, fact: &Fact);
    /// Drops the notes that folding an old journal left about work done long ago.
    fn settle_journal(&mut self);
    /// Schedules a visit of everything open, and sets every timer again.
    fn reopen(&mut self);
    /// Reports whether a timer set earlier is still needed.
    fn awaits(&self, at: Time, node: Option<NodeIx>) -> bool;
    fn is_queued(&self, at: NodeIx) -> bool;
    /// Returns what the scheduler needs to know about a task.
    fn demand(&self, at: NodeIx) -> Arc<Demand>;
    /// Returns when a task began to wait for the scheduler, in its local time. It comes from facts, so that a restart
    /// changes nobody's place.
    fn waits_since(&self, at: NodeIx) -> Time;
    /// Returns the node and devices of a task that a runtime has; `None` if its fact names none.
    fn assignment(&self, at: NodeIx) -> Option<Assignment>;
    /// Returns when a task was launched, in its local time.
    fn launched_at(&self, at: NodeIx) -> Time;
    /// Returns tasks that are not over, except those that may not start yet.
    fn open_tasks(&self) -> Vec<(NodeIx, TaskState)>;

    /// Reports whether the task is a request, which uses no resources of the machine.
    fn is_request(&self, at: NodeIx) -> bool {
        let _ = at;
        false
    }

    /// Reports whether a task that a runtime has occupies no room in the scheduler.
    fn is_weightless(&self, at: NodeIx) -> bool {
        self.is_request(at)
    }

    /// Reports whether a task may keep its room after its attempt is over, because it is started again in its place.
    fn may_keep_room(&self, at: NodeIx) -> bool {
        let _ = at;
        false
    }

    /// Returns tasks that started with their gangs.
    fn joined(&self) -> Vec<(NodeIx, Gang)> {
        Vec::new()
    }

    /// Reports whether the attempt is current, is not being ended, and has not got the run it ordered yet.
    fn wants_child(&self, attempt: AttemptId) -> bool {
        let _ = attempt;
        false
    }

    /// Returns the run that a task has ordered and waits for, once it was created.
    fn child_of(&self, at: NodeIx) -> Option<RunId> {
        let _ = at;
        None
    }

    /// Reports whether the task must hear of every change of the run it ordered, not only of its phase and its end.
    fn follows_parts_of(&self, at: NodeIx, child: &Run) -> bool {
        let _ = (at, child);
        false
    }

    /// Returns the command that everything gets that it has ordered, if it was told to end and ends with all of them.
    fn stop_for_children(&self) -> Option<Command> {
        None
    }

    /// Returns the nodes (or the run itself) that wait for locks.
    fn waiters(&self) -> Vec<(Option<NodeIx>, Waiter)> {
        Vec::new()
    }

    fn held_locks(&self) -> Vec<(Holder, Vec<Claim>, String)> {
        Vec::new()
    }

    fn ready_for_locks(&self, node: Option<NodeIx>) -> Ready {
        let _ = node;
        Ready::Later
    }

    /// Returns what ends only after a node has: what is around it, and the run (`None`).
    fn ends_after(&self, at: NodeIx) -> Vec<Option<NodeIx>> {
        let _ = at;
        vec![None]
    }

    /// Returns the objects that it brings along, as they are now. They are stored with it and belong to it.
    fn objects(&self) -> Vec<Value> {
        Vec::new()
    }

    /// Reports whether it creates no task until this claim of its namespace exists.
    fn awaits_claim(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// Returns the name of a node or replica for people.
    fn label_of(&self, at: NodeIx) -> String;

    /// Begins a turn at the run's local time.
    fn turn<'a>(&'a mut self, now: Time, shared: &'a SharedState) -> Box<dyn DialectTurn + 'a>;
}

/// What happened to a run that another one ordered.
#[derive(Clone, Copy, Debug)]
pub enum ChildEvent<'a> {
    /// It was submitted, in this input.
    Created(&'a Run),
    /// It has changed: its phase or its end, and everything else if the parent follows its parts.
    Changed(&'a Run),
    /// It was deleted before its end.
    Deleted(&'a Run),
}

/// One turn of a run: applies a change and decides what follows from it.
pub trait DialectTurn {
    /// Limits the work of the turn. What follows from it in the end does not depend on it.
    fn limit(&mut self, work: Work);
    /// Returns the work done so far: visits, facts, and the members that facts name.
    fn done(&self) -> Work;
    /// Decides until nothing is left or the limit is reached; returns whether something is left. What is left follows
    /// from the state, so that a restart goes on with it.
    fn settle(&mut self) -> bool;
    fn wake(&mut self, node: Option<NodeIx>);
    fn report(&mut self, report: Report);
    fn command(&mut self, command: &Command) -> Result<(), Refusal>;
    /// Carries out a command, and keeps why it was given if the dialect keeps reasons.
    fn command_because(&mut self, command: &Command, reason: &str) -> Result<(), Refusal> {
        let _ = reason;
        self.command(command)
    }
    /// Takes what happened to the run that an attempt ordered. The attempt is current and placed.
    fn child(&mut self, attempt: AttemptId, event: ChildEvent<'_>) {
        unreachable!("{attempt} of a dialect that orders no runs has none: {event:?}");
    }

    /// Starts a task that the scheduler admitted, on the node it chose.
    fn launch(&mut self, at: NodeIx, assignment: Assignment);
    /// Ends a running task for another one, or because its node is drained. It waits again as a new attempt, which costs
    /// none of its retries. Does nothing if no runtime has the task, or if it is being ended already.
    fn preempt(&mut self, at: NodeIx, why: String);
    /// Repeats the stop order of a task that is being ended: the first one may have been lost.
    fn resend_stop(&mut self, at: NodeIx);
    fn attempt_id(&self, at: NodeIx) -> AttemptId;
    fn describe(&mut self, at: NodeIx) -> Result<Task, String>;
    fn order(&mut self, order: Order);

    /// Records that the node, or the run itself, acquired all locks it requested.
    fn locked(&mut self, node: Option<NodeIx>) {
        unreachable!("{node:?} of a dialect without locks asked for none");
    }

    fn wait_for(&mut self, node: Option<NodeIx>, wait: Wait) {
        unreachable!("{node:?} of a dialect without locks waits for none: {wait:?}");
    }

    fn refuse_locks(&mut self, node: Option<NodeIx>, why: &str) {
        unreachable!("{node:?} of a dialect without locks asked for none: {why}");
    }

    /// Records that the run waits in a circle of runs, or no longer does.
    fn tell_deadlock(&mut self, message: Option<String>);

    fn into_effects(self: Box<Self>) -> Effects;
}
