//! The seam between the engine and the dialects: what is asked of a run and of its turn. A dialect implements these traits in
//! its own folder and has one row in the table; nothing outside asks which dialect a run is.

use std::{any::Any, fmt, io, sync::Arc};

use octoflow_manifest::Problems;
use octoflow_model::{
    AttemptId, Claim, Fact, Marks, NodeIx, Order, Report, RunId, Submission, Task, Time,
    argo::{GcStrategy, garbage::Garbage},
    submission::Stored,
    task::{Labels, Resources},
};
use serde_json::Value;

use crate::{
    admit::Admitted,
    argo::{self, admit::Surroundings},
    effect::Effects,
    engine::World,
    explain::Explanation,
    head::Head,
    input::{Command, Refusal},
    locks::{Holder, Locks, Ready, Wait, Waiter},
    meters::Live,
    run::Run,
    schedule::{Gang, Scheduler},
    slice::Work,
    taskset,
};

/// A row of the table of dialects.
#[derive(Debug)]
pub struct Dialect {
    /// The kind of the objects that run.
    pub kind: &'static str,
    pub api_version: &'static str,
    /// What a run is called in messages.
    pub noun: &'static str,
    /// Judges a manifest, and tells of a refused one everything there is to tell.
    pub examine: fn(&Value, &dyn Surroundings) -> Result<Admitted, Problems>,
    /// Makes an admitted manifest ready to run; the reason, in one sentence, when it cannot be.
    pub compile: fn(&Value, &Stored) -> Result<Program, String>,
    /// Tells from the object of a run that is over what became of it.
    pub explain_ended: fn(&Value) -> Vec<Explanation>,
}

/// Every dialect. The first one is what a manifest is taken for that does not say what it is.
pub static DIALECTS: [&Dialect; 2] = [&argo::DIALECT, &taskset::DIALECT];

/// The dialect of a manifest.
pub fn of(manifest: &Value) -> &'static Dialect {
    DIALECTS.iter().find(|dialect| manifest["kind"] == dialect.kind).copied().unwrap_or(DIALECTS[0])
}

/// A manifest with what it refers to, made ready to run. It never changes, so runs of the same manifest can share it.
#[derive(Clone, Debug)]
pub struct Program(pub(crate) Arc<dyn DialectProgram>);

impl Program {
    /// The reason, in one sentence, when the manifest cannot be made ready. An admitted manifest always can.
    pub fn compile(manifest: &Value, stored: &Stored) -> Result<Self, String> {
        (of(manifest).compile)(manifest, stored)
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
    fn marks(&self) -> Marks;
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
