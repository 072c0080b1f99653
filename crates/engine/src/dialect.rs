//! The seam between the engine and the dialects: what is asked of a run and of its turn. A dialect implements these traits in
//! its own folder and has one row in the table; nothing outside asks which dialect a run is.

use std::{any::Any, fmt, io, sync::Arc};

use octoflow_manifest::Problems;
use octoflow_model::{
    AttemptId, Claim, Fact, Marks, NodeIx, Order, Report, RunId, Submission, Task, Time,
    garbage::{Garbage, GcStrategy},
    submission::Stored,
    task::{Labels, Resources},
};
use serde_json::Value;

use crate::{
    admit::{Admitted, Catalog},
    argo::outlook::{Bounds, Outlook},
    effect::Effects,
    engine::World,
    explain::Explanation,
    follow::Follow,
    head::Head,
    input::{Command, Refusal},
    kinds::{self, Kind},
    locks::{Holder, Locks, Ready, Wait, Waiter},
    mark,
    meters::Live,
    rerun::Reruns,
    run::Run,
    schedule::{Gang, Scheduler},
    slice::Work,
    view::RunView,
};

/// What is known of the runs of a kind: the part of its row in the table of kinds that only runs have.
#[derive(Debug)]
pub struct Dialect {
    /// The kind of the objects that run.
    pub kind: &'static Kind,
    /// The words for how a run stands, in the order in which they are told.
    pub phases: &'static [PhaseWord],
    pub status: StatusFields,
    /// How many letters the name of a run may have.
    pub longest_name: usize,
    /// The label by which a pod says whose it is.
    pub pod_label: &'static str,
    /// The views of its runs' objects.
    pub view: &'static dyn RunView,
    /// What its facts mean to whoever follows a run.
    pub follow: &'static dyn Follow,
    /// What retry and resubmit mean.
    pub reruns: &'static dyn Reruns,
    /// Why a pod cannot be deleted by itself, and what to do instead. Without it, the run makes up for one that is.
    pub keeps_pods: Option<&'static str>,
    /// Attempts come and go with an object that their pods belong to ([`DialectRun::unit`]).
    pub has_units: bool,
    /// What becomes of a run as a whole is told apart from what becomes of its parts.
    pub whole_apart: bool,
    /// Fields that the index of runs does not have are looked for in the whole object when somebody selects by them.
    pub selects_by_object: bool,
    /// Argo's own API speaks of its runs.
    pub in_argo_api: bool,
    /// A run takes parameters and an entrypoint from whoever submits it.
    pub takes_arguments: bool,
    /// What would run, in which order, as far as that can be known beforehand; or why that is not told.
    pub outlook: Result<OutlookOf, &'static str>,
    /// How a table of its nodes looks.
    pub node_table: NodeTable,
    /// The cells of a table's row, where the index of runs has everything the columns want.
    pub summary_cells: Option<fn(&Summary<'_>, Time) -> Vec<Value>>,
    /// Judges a manifest, and tells of a refused one everything there is to tell.
    pub examine: fn(&Value, &dyn Catalog) -> Result<Admitted, Problems>,
    /// Makes an admitted manifest ready to run; the reason, in one sentence, when it cannot be.
    pub compile: fn(&Value, &Stored) -> Result<Program, String>,
    /// Tells from the object of a run that is over what became of it.
    pub explain_ended: fn(&Value) -> Vec<Explanation>,
}

/// What a plan of a manifest is made by.
pub type OutlookOf = fn(&Value, &Stored, Bounds) -> Result<Outlook, String>;

/// How a table of a run's nodes looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeTable {
    /// Steps that call templates.
    Steps,
    /// Members that are tried again and have addresses.
    Members,
}

/// A word for how a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhaseWord {
    pub word: &'static str,
    pub stand: PhaseStand,
}

/// What a phase means to those who do not know the dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhaseStand {
    /// Nothing of it has run.
    Waiting,
    Running,
    /// It is over, and well.
    Good,
    /// It is over, and not well.
    Bad,
}

impl PhaseWord {
    pub const fn new(word: &'static str, stand: PhaseStand) -> Self {
        Self { word, stand }
    }
}

impl PhaseStand {
    pub fn is_final(self) -> bool {
        match self {
            Self::Waiting | Self::Running => false,
            Self::Good | Self::Bad => true,
        }
    }
}

/// Where the status of a run's object keeps what every run has.
#[derive(Debug, Clone, Copy)]
pub struct StatusFields {
    pub phase: &'static str,
    pub message: &'static str,
    pub started: &'static str,
    pub finished: &'static str,
}

impl StatusFields {
    /// Where most objects of Kubernetes keep them, for a run of a kind that nobody knows here.
    pub const USUAL: Self = Self { phase: "phase", message: "message", started: "startedAt", finished: "finishedAt" };
}

/// What the index of runs knows of one.
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
    /// What a phase means; nothing for a word that is none.
    pub fn stand(&self, phase: &str) -> Option<PhaseStand> {
        self.phases.iter().find(|known| known.word == phase).map(|known| known.stand)
    }

    /// How a run stands by its object, in the dialect's word; the first one for a run nobody has looked at yet.
    pub fn phase_of<'a>(&self, object: &'a Value) -> &'a str {
        match object["status"][self.status.phase].as_str() {
            None | Some("") => self.phases.first().map_or("", |first| first.word),
            Some(phase) => phase,
        }
    }

    /// The phase of the object says how the run ended.
    pub fn is_decided(&self, object: &Value) -> bool {
        self.stand(self.phase_of(object)).is_some_and(PhaseStand::is_final)
    }
}

/// The dialect of a manifest; the reason, in one sentence, when it is of none.
pub fn of(manifest: &Value) -> Result<&'static Dialect, String> {
    kinds::dialect_of(manifest).map_err(|problem| problem.message)
}

/// A manifest with what it refers to, made ready to run. It never changes, so runs of the same manifest can share it.
#[derive(Clone, Debug)]
pub struct Program(pub(crate) Arc<dyn DialectProgram>);

impl Program {
    /// The reason, in one sentence, when the manifest cannot be made ready. An admitted manifest always can.
    pub fn compile(manifest: &Value, stored: &Stored) -> Result<Self, String> {
        (of(manifest)?.compile)(manifest, stored)
    }
}

pub(crate) trait DialectProgram: fmt::Debug + Send + Sync {
    /// Begins a run with what was submitted.
    fn open(self: Arc<Self>, id: RunId, submission: &Submission) -> Run;
}

/// Where a task of an open run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stand {
    /// It waits for room.
    Queued,
    /// A runtime has it.
    Placed,
    /// A runtime has it and was told to end it.
    Ending,
}

/// A run of some dialect. Everything here reads, but for the fold and the lists it fills for the engine.
pub trait DialectRun: Any + Send {
    fn dialect(&self) -> &'static Dialect;
    fn id(&self) -> RunId;
    fn head(&self) -> &Head;
    fn finished(&self) -> bool;
    /// How it stands, in its dialect's word.
    fn phase(&self) -> &'static str;
    fn message(&self) -> &str;
    fn began(&self) -> Option<Time>;
    fn ended(&self) -> Option<Time>;

    /// The labels people can select it by.
    fn labels(&self) -> Labels {
        self.head().labels.clone()
    }

    /// The work done, and the work known so far.
    fn progress(&self) -> (u64, u64);
    /// The priority of the run as a whole.
    fn importance(&self) -> i32;

    /// The parameters it was submitted with, by name.
    fn parameters(&self) -> Vec<(&str, &str)> {
        Vec::new()
    }

    /// The manifest names owners.
    fn is_owned(&self) -> bool;
    /// What people have written on it.
    fn marks(&self) -> Marks {
        mark::marks(self.manifest(), self.head(), &self.labels())
    }

    /// The manifest as it was given.
    fn manifest(&self) -> Value;
    /// The run as people see it, for whoever has the manifest at hand: the one it was submitted with.
    fn object_of(&self, manifest: Value) -> Value;
    /// The run as people see it, of its nodes only those whose id and type are wanted.
    fn object_where(&self, keep: &dyn Fn(&str, &str) -> bool) -> Value {
        let _ = keep;
        self.object_of(self.manifest())
    }

    /// How many nodes or replicas it has.
    fn size(&self) -> usize;
    /// The run as people see it, but for what grows with its size.
    fn summary(&self) -> Value;
    /// When it is to be deleted after its end, in its own time; never when nobody says.
    fn due(&self) -> Option<Time>;
    /// A runtime has this attempt, and no later one took its place.
    fn is_placed(&self, attempt: AttemptId) -> bool;
    /// Nothing that a runtime says of this task can have been earlier.
    fn known_since(&self, at: NodeIx) -> Time;

    /// The artifacts to be deleted with the run, or before.
    fn garbage(&self, strategy: Option<GcStrategy>) -> Vec<Garbage> {
        let _ = strategy;
        Vec::new()
    }

    /// Which attempt's log belongs to which task, by the id people know: a node's, or the name of a pod.
    fn attempts(&self) -> Vec<(String, AttemptId)>;
    /// How long the logs of ended attempts were, of those that wrote something.
    fn log_sizes(&self) -> Vec<(AttemptId, u64)>;
    fn took_place_of(&self) -> &[RunId];

    /// The object that comes and goes with an attempt at the whole, and that its pods belong to.
    fn unit(&self, attempt: u32) -> Option<Value> {
        let _ = attempt;
        None
    }

    /// What ended badly so far, and why everything that is open is.
    fn explain(&self, scheduler: Option<&Scheduler>, locks: Option<&Locks>) -> Vec<Explanation>;

    /// Writes `{"object": …, "tasks": {node id: index}, "elsewhere": {node id or pod: its attempt}, "logs": {attempt: how
    /// long its log was}, "runs": [whose place it took], "garbage": [artifacts to be deleted]}`.
    fn write_record(&self, to: &mut dyn io::Write) -> io::Result<()>;

    /// The gauges that follow it, as they stand at its own time.
    fn live_meters(&self, now: Time) -> Vec<Live> {
        let _ = now;
        Vec::new()
    }

    /// Folds one fact into the state.
    fn apply(&mut self, fact: &Fact);
    /// Forgets what reading an old journal noted about work done long ago.
    fn settle_journal(&mut self);
    /// Looks at everything open once, and sets every wake-up again.
    fn reopen(&mut self);
    /// A wake-up set earlier still has something to wake.
    fn awaits(&self, at: Time, node: Option<NodeIx>) -> bool;
    fn take_queued(&mut self) -> Vec<NodeIx>;
    fn take_wakes(&mut self) -> Vec<(Time, Option<NodeIx>)>;
    fn is_queued(&self, at: NodeIx) -> bool;
    fn resources(&self, at: NodeIx) -> Resources;
    fn priority(&self, at: NodeIx) -> i32;
    /// Tasks that are not over, leaving out those that may not go on yet.
    fn open_tasks(&self) -> Vec<(NodeIx, Stand)>;

    /// The task is a request, which needs nothing of the machine.
    fn is_request(&self, at: NodeIx) -> bool {
        let _ = at;
        false
    }

    /// A task that is with a runtime takes none of the room others wait for.
    fn is_weightless(&self, at: NodeIx) -> bool {
        self.is_request(at)
    }

    /// The gang it must start with.
    fn gang(&self, at: NodeIx) -> Option<Gang> {
        let _ = at;
        None
    }

    /// Tasks that started with their gangs.
    fn joined(&self) -> Vec<(NodeIx, Gang)> {
        Vec::new()
    }

    /// Those that asked for locks since this was last called.
    fn take_wants(&mut self) -> Vec<(Option<NodeIx>, Waiter)> {
        Vec::new()
    }

    /// Those that wait for locks: nodes, or the run itself.
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

    /// Begins a turn at the run's own time.
    fn turn<'a>(&'a mut self, now: Time, world: &'a World) -> Box<dyn DialectTurn + 'a>;
}

/// One turn of a run: an input has changed something, and what follows is decided.
pub trait DialectTurn {
    /// Lets it do so much. A dialect whose turns are bounded anyway need not listen.
    fn limit(&mut self, work: Work) {
        let _ = work;
    }

    fn done(&self) -> Work;
    /// Decides until nothing is left, or until its limit; tells whether something is left.
    fn settle(&mut self) -> bool;
    fn wake(&mut self, node: Option<NodeIx>);
    fn report(&mut self, report: Report);
    fn command(&mut self, command: &Command) -> Result<(), Refusal>;
    /// Starts a task that was given room.
    fn launch(&mut self, at: NodeIx);
    /// Tells a task that is being ended so once more: the first order may have been lost.
    fn resend_stop(&mut self, at: NodeIx);
    fn attempt_id(&self, at: NodeIx) -> AttemptId;
    fn describe(&mut self, at: NodeIx) -> Result<Task, String>;
    fn order(&mut self, order: Order);

    /// All locks that the node, or the run itself, asked for are held from here on.
    fn locked(&mut self, node: Option<NodeIx>) {
        unreachable!("{node:?} of a dialect without locks asked for none");
    }

    fn wait_for(&mut self, node: Option<NodeIx>, wait: Wait) {
        unreachable!("{node:?} of a dialect without locks waits for none: {wait:?}");
    }

    fn refuse_locks(&mut self, node: Option<NodeIx>, why: &str) {
        unreachable!("{node:?} of a dialect without locks asked for none: {why}");
    }

    fn into_effects(self: Box<Self>) -> Effects;
}
