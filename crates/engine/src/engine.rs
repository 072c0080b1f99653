//! The engine: open runs, the scheduler, the timers, and the single entry point [`Engine::handle`]. It is a pure state
//! machine: its owner makes the returned facts durable before it sends the returned orders.

pub mod input;
pub mod locks;
pub mod slice;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use octoflow_model::{
    Claim, Fact, IdMap, Limit, Order, Report, RunFact, RunId, Time, meta::KeyedData, submission::Submission,
    task::placement::Assignment,
};

use crate::{
    dialects::{
        argo::{self, memo},
        dialect::{DialectRun, DialectTurn, Program, TaskState},
    },
    engine::{
        input::{Command, Input, Outcome, Refusal},
        locks::{Holder, Locks},
        slice::Work,
    },
    meters::{Live, Meters},
    plugins::PluginTable,
    run::{
        OpenError, Run,
        effect::{Change, Decided, Effects},
        life::Lived,
    },
    schedule::{PreemptionKind, Scheduler, TaskRef, spec::NodeSpec},
};

pub(crate) mod capacity;
pub use capacity::Capacity;

mod child;
mod command;
mod deadlock;
mod place;
mod restore;
mod timers;

use command::ChildRuns;
use deadlock::DeadlockCheck;
use place::enqueue;
use timers::Timers;

/// Kinds of objects whose values tasks and parameters can reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Keyed {
    ConfigMap,
    Secret,
    /// A claim, which has no values: that it exists is all that counts.
    Claim,
}

/// State shared by all runs: ConfigMaps and Secrets, plugins, custom metrics, size limits.
#[derive(Debug)]
pub struct SharedState {
    keyed: BTreeMap<(Keyed, String, String), KeyedData>,
    pub(crate) meters: Meters,
    /// The plugins that submitted jobs meet.
    pub(crate) plugins: Arc<PluginTable>,
    /// Maximum number of nodes of a run, and of bytes of its names and values.
    pub(crate) max_nodes: usize,
    pub(crate) max_bytes: u64,
}

impl Default for SharedState {
    fn default() -> Self {
        Self {
            keyed: BTreeMap::new(),
            meters: Meters::default(),
            plugins: Arc::default(),
            max_nodes: argo::MAX_NODES,
            max_bytes: argo::MAX_BYTES,
        }
    }
}

impl SharedState {
    pub fn keyed(&self, kind: Keyed, namespace: &str, name: &str) -> Option<&KeyedData> {
        self.keyed.get(&(kind, namespace.to_owned(), name.to_owned()))
    }

    pub fn put(&mut self, kind: Keyed, namespace: &str, name: &str, data: KeyedData) {
        self.keyed.insert((kind, namespace.to_owned(), name.to_owned()), data);
    }

    /// Returns how many holders a lock allows now.
    pub(crate) fn limit(&self, claim: &Claim) -> Result<u32, String> {
        let Limit::Key { namespace, map, key, otherwise } = &claim.limit else { return Ok(1) };
        let data = self.keyed(Keyed::ConfigMap, namespace, map);
        let text = match (data.and_then(|data| data.entries.get(key)), otherwise) {
            (Some(text), _) => String::from_utf8_lossy(text),
            (None, Some(limit)) => return Ok(*limit),
            (None, None) if data.is_some() => {
                return Err(format!("ConfigMap '{map}' in namespace '{namespace}' has no key '{key}'"));
            }
            (None, None) => return Err(format!("ConfigMap '{map}' not found in namespace '{namespace}'")),
        };
        text.trim().parse().map_err(|_| {
            format!("the limit of {} is not a whole number from 0: '{}'", claim.key, crate::admit::shape::short(&text))
        })
    }
}

pub struct Engine {
    runs: IdMap<RunId, Run>,
    children: ChildRuns,
    shared: SharedState,
    scheduler: Scheduler,
    locks: Locks,
    wakes: Timers,
    /// Work that one input may do.
    slice: Work,
    /// Work left for the current input.
    left: Work,
    /// Runs with more to decide than one input may, each once, longest waiting first. Until such a run has decided
    /// everything, only commands reach it: reports, timers, locks and room wait, so that it decides what it would have
    /// decided in one go.
    unsettled: VecDeque<RunId>,
    /// Reports about tasks of unsettled runs, in order of arrival.
    deferred: BTreeMap<RunId, Vec<Report>>,
    /// Tasks of unsettled runs that the scheduler has admitted.
    postponed: BTreeMap<RunId, Vec<(TaskRef, Assignment)>>,
    /// Commands of runs to runs they have ordered, decided in this input and not carried out yet.
    commands: VecDeque<(RunId, Command)>,
    /// Runs that end because the run that ordered them does, and have not been told yet. They are told with later inputs
    /// if one may not do it all; after a restart they are found again, because what ordered them waits for them.
    stops: VecDeque<(RunId, Command)>,
    /// True if scheduling was cut short by the work limit: a task may be admitted, or a lock granted, with the next
    /// input.
    unscheduled: bool,
    deadlock: DeadlockCheck,
    /// Runs that were told that they wait in a circle.
    deadlocked: BTreeSet<RunId>,
}

/// Construction parameters of an engine.
#[derive(Debug)]
pub struct Setup {
    /// The nodes that are there from the beginning. More come with [`Input::Node`].
    pub nodes: Vec<NodeSpec>,
    /// Work that one input may do. The rest is done with the next [`Input::Tick`], which is due at once.
    pub slice: Work,
    /// Limits on the nodes of a run and on the bytes of its names and values; capped by the engine's own.
    pub max_nodes: usize,
    pub max_bytes: u64,
    /// Persisted custom metrics.
    pub meters: Meters,
}

impl From<Capacity> for Setup {
    fn from(capacity: Capacity) -> Self {
        Self {
            nodes: vec![capacity.into()],
            slice: Work::MAX,
            max_nodes: argo::MAX_NODES,
            max_bytes: argo::MAX_BYTES,
            meters: Meters::default(),
        }
    }
}

impl Engine {
    pub fn new(setup: impl Into<Setup>) -> Self {
        let Setup { nodes, slice, max_nodes, max_bytes, meters } = setup.into();
        let shared = SharedState {
            meters,
            max_nodes: max_nodes.min(argo::MAX_NODES),
            max_bytes: max_bytes.min(argo::MAX_BYTES),
            ..SharedState::default()
        };
        let slice = slice.max(1);
        let mut scheduler = Scheduler::default();
        nodes.into_iter().for_each(|node| scheduler.put_node(node));
        Self {
            runs: IdMap::default(),
            children: ChildRuns::default(),
            shared,
            scheduler,
            locks: Locks::default(),
            wakes: Timers::default(),
            slice,
            left: slice,
            unsettled: VecDeque::new(),
            deferred: BTreeMap::new(),
            postponed: BTreeMap::new(),
            commands: VecDeque::new(),
            stops: VecDeque::new(),
            unscheduled: false,
            deadlock: DeadlockCheck::default(),
            deadlocked: BTreeSet::new(),
        }
    }

    /// Reports whether the run has more to decide than one input may, and continues with a later one.
    pub fn is_unsettled(&self, run: RunId) -> bool {
        self.unsettled.contains(&run)
    }

    /// Reports whether work is left that needs no further input.
    pub fn has_more(&self) -> bool {
        self.unscheduled || !self.unsettled.is_empty() || !self.stops.is_empty()
    }

    /// Stores or removes a ConfigMap or Secret. All lock waiters are checked again: it may hold the limit of a
    /// semaphore.
    fn put_object(&mut self, key: (Keyed, String, String), data: Option<KeyedData>) {
        self.locks.recheck_all();
        let Some(data) = data else {
            self.shared.keyed.remove(&key);
            return;
        };
        let slot = self.shared.keyed.entry(key).or_default();
        // A cache that is replaced keeps the entries that runs have added to it.
        let before = std::mem::replace(slot, data);
        if memo::is_cache(slot) && memo::is_cache(&before) {
            for (key, entry) in before.entries {
                slot.entries.entry(key).or_insert(entry);
            }
        }
    }

    /// Wakes the runs that wait for a claim that is there now.
    fn wake_awaiting(&mut self, namespace: &str, claim: &str, now: Time, outcome: &mut Outcome) {
        let waits = |(_, run): &(&RunId, &Run)| run.namespace() == namespace && run.awaits_claim(claim);
        let mut runs: Vec<RunId> = self.runs.iter().filter(waits).map(|(id, _)| *id).collect();
        runs.sort_unstable();
        for run in runs {
            self.turn(run, now, outcome, |turn| turn.wake(None));
        }
    }

    /// Returns a ConfigMap or Secret as it is now, including cache entries added by runs.
    pub fn keyed(&self, kind: Keyed, namespace: &str, name: &str) -> Option<&KeyedData> {
        self.shared.keyed(kind, namespace, name)
    }

    pub fn run(&self, run: RunId) -> Option<&Run> {
        self.runs.get(&run)
    }

    /// Returns the run as its dialect's type.
    pub fn run_of<R: DialectRun>(&self, run: RunId) -> Option<&R> {
        self.run(run)?.of()
    }

    /// Returns the values of custom metrics. They belong to no run and outlive the runs that published them.
    pub fn meters(&self) -> &Meters {
        &self.shared.meters
    }

    /// Returns the gauges that track open runs, evaluated now.
    pub fn live_meters(&self, now: Time) -> Vec<Live> {
        self.runs.values().flat_map(|run| run.live_meters(run.local(now))).collect()
    }

    pub fn shared(&self) -> &SharedState {
        &self.shared
    }

    /// Returns the plugins that there are now.
    pub fn plugins(&self) -> &Arc<PluginTable> {
        &self.shared.plugins
    }

    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    pub fn locks(&self) -> &Locks {
        &self.locks
    }

    /// Returns when to call again with [`Input::Tick`] if no other input comes first.
    pub fn wake_at(&self) -> Option<Time> {
        if self.has_more() {
            return Some(Time(i64::MIN));
        }
        let timer = self.wakes.first().map(|(at, _, _)| at);
        timer.into_iter().chain(self.scheduler.wake_at()).chain(self.deadlock.wake_at()).min()
    }

    fn release(&mut self, run: RunId) -> Option<Run> {
        let released = self.runs.remove(&run);
        released.iter().for_each(|run| self.children.remove(run));
        self.locks.release_run(run);
        self.scheduler.leave(run);
        self.wakes.remove_run(run);
        self.deferred.remove(&run);
        self.postponed.remove(&run);
        self.deadlocked.remove(&run);
        released
    }

    pub fn handle(&mut self, input: Input, now: Time) -> Outcome {
        let mut outcome = Outcome::default();
        self.left = self.slice;
        // Whoever raises a limit or brings a node may end a circle without a fact of any run.
        let outside = matches!(&input, Input::Object { .. } | Input::Node { .. } | Input::Queue { .. });
        match input {
            Input::Submit { run, submission, program } => self.submit(run, submission, program, now, &mut outcome),
            Input::Begin { run } => self.turn(run, now, &mut outcome, |_| ()),
            Input::Command { run, command } => self.command(run, &command, now, &mut outcome),
            Input::Report(mut report) => {
                let run = report.attempt().run;
                if let (Report::Ended { attempt, .. } | Report::Answered { attempt, .. }, false) =
                    (&report, self.runs.contains_key(&run))
                {
                    // The run was released; only the runtime still keeps the attempt.
                    outcome.orders.push(Order::Forget { attempt: *attempt });
                }
                if let Some(run) = self.runs.get(&run) {
                    // The runtime's clock may have been changed: nothing began before it was ordered, or is yet to
                    // come.
                    let now = run.local(now);
                    let since = run.earliest_report(report.attempt().task).min(now);
                    report.retime(|time| run.local(time).clamp(since, now));
                }
                if self.is_unsettled(run) {
                    self.free_room(&report, now);
                    self.deferred.entry(run).or_default().push(report);
                } else {
                    self.turn(run, now, &mut outcome, |turn| turn.report(report));
                }
            }
            Input::Tick => self.tick(now, &mut outcome),
            Input::Object { kind, namespace, name, data } => {
                let awaited = (kind == Keyed::Claim && data.is_some()).then(|| (namespace.clone(), name.clone()));
                self.put_object((kind, namespace, name), data);
                if let Some((namespace, name)) = awaited {
                    self.wake_awaiting(&namespace, &name, now, &mut outcome);
                }
            }
            Input::Node { name, spec } => match spec {
                Some(spec) => self.scheduler.put_node(*spec),
                None => self.scheduler.remove_node(&name),
            },
            Input::Drain { node } => self.drain(&node, now, &mut outcome),
            Input::Evict { task, why } => {
                self.scheduler.note_ending(task, PreemptionKind::Drained);
                self.turn(task.run, now, &mut outcome, |turn| turn.preempt(task.node, why));
            }
            Input::Queue { name, spec } => match spec {
                Some(spec) => self.scheduler.put_queue(*spec),
                None => self.scheduler.remove_queue(&name),
            },
            Input::Class { name, class, is_default } => self.scheduler.put_class(&name, class, is_default),
            Input::Plugins(plugins) => self.shared.plugins = plugins,
            Input::Usage(records) => records.iter().for_each(|record| self.scheduler.restore_usage(record)),
            Input::Continue { runs } => {
                for run in runs {
                    self.left = self.slice;
                    let assumed_running = self.continue_run(run, now, &mut outcome);
                    outcome.assumed_running.extend(assumed_running);
                }
            }
            // Nothing is scheduled while runs that were decided elsewhere are added and removed.
            Input::Restore(run) => {
                self.restore(*run);
                return outcome;
            }
            Input::ReserveLocks(run) => {
                self.adopt_locks(&run);
                return outcome;
            }
            Input::Release { run } => {
                self.tell_of_deletion(run, now, &mut outcome);
                self.drop_tasks(run, now, &mut outcome);
                outcome.released = self.release(run).map(Box::new);
                return outcome;
            }
        }
        self.command_children(now, &mut outcome);
        self.schedule(now, &mut outcome);
        // A task that could not be launched may have ended its run, and that run the ones it ordered.
        self.command_children(now, &mut outcome);
        self.deadlock.note(outside || !outcome.decided.is_empty());
        self.check_deadlocks(now, &mut outcome);
        self.prune_timers();
        outcome.series = self.shared.meters.take_touched();
        outcome.usage = self.scheduler.take_usage(now);
        outcome
    }

    /// Removes timers at the head that have become pointless; they would only wake the caller for nothing.
    fn prune_timers(&mut self) {
        while let Some(timer @ (at, id, node)) = self.wakes.first()
            && self.runs.get(&id).is_none_or(|run| !run.awaits(run.local(at), node))
        {
            self.wakes.remove(&timer);
        }
    }

    fn submit(
        &mut self,
        id: RunId,
        mut submission: Box<Submission>,
        program: Option<Program>,
        now: Time,
        outcome: &mut Outcome,
    ) {
        if submission.ordered_by.is_some_and(|attempt| !self.is_wanted(attempt)) {
            outcome.refusal = Some(Refusal::Unwanted { name: submission.name.clone() });
            return;
        }
        let parent = submission.ordered_by.and_then(|attempt| self.runs.get(&attempt.run));
        submission.context.quiet = parent.is_some_and(|parent| parent.dialect().tells_for_children);
        parent.into_iter().for_each(|parent| child::inherit_author(&mut submission, parent.head()));
        let opened = match program {
            Some(program) => Ok(Run::with(id, &submission, program)),
            None => Run::open(id, &submission),
        };
        match opened {
            Ok(run) => {
                self.children.insert(&run);
                self.runs.insert(id, run);
                let life = self.runs[&id].at_first();
                let change = Change { submitted: true, urgent: true, life, ..Change::default() };
                let facts = vec![Fact::Run(RunFact::Submitted(submission))];
                outcome.decided.push(Decided { run: id, facts, change, lived: 0 });
                self.tell_of_creation(id, now, outcome);
            }
            Err(why) => outcome.refusal = Some(Refusal::Invalid(why.to_string())),
        }
    }

    fn tick(&mut self, now: Time, outcome: &mut Outcome) {
        let due: Vec<_> = self.wakes.due(now).filter(|(_, run, _)| !self.is_unsettled(*run)).copied().collect();
        for wake @ (_, run, node) in due {
            if self.left == 0 {
                break;
            }
            // An earlier timer may have left this run with more to decide.
            if !self.is_unsettled(run) {
                self.wakes.remove(&wake);
                self.turn(run, now, outcome, |turn| turn.wake(node));
            }
        }
        // Timers of one run must not starve another.
        self.left = self.slice;
        while let Some(run) = self.unsettled.pop_front() {
            if self.runs.contains_key(&run) {
                self.turn(run, now, outcome, |_| ());
                return self.deliver_deferred(run, now, outcome);
            }
        }
    }

    /// Delivers the deferred reports and admitted tasks to a run that has decided everything.
    fn deliver_deferred(&mut self, run: RunId, now: Time, outcome: &mut Outcome) {
        if self.is_unsettled(run) {
            return;
        }
        self.locks.recheck_skipped();
        for (task, assignment) in self.postponed.remove(&run).unwrap_or_default() {
            // A command may have ended it meanwhile, which freed its room.
            if self.runs.get(&run).is_some_and(|run| run.is_queued(task.node)) {
                self.launch(task, assignment, now, outcome);
            }
        }
        let mut reports = self.deferred.remove(&run).unwrap_or_default().into_iter();
        while !self.is_unsettled(run)
            && let Some(report) = reports.next()
        {
            self.turn(run, now, outcome, |turn| turn.report(report));
        }
        if reports.len() > 0 {
            self.deferred.insert(run, reports.collect());
        }
    }

    /// Runs one turn: lets a run decide everything that follows from a change, and applies the effects.
    fn turn(&mut self, id: RunId, now: Time, outcome: &mut Outcome, change: impl FnOnce(&mut dyn DialectTurn)) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        let local = run.local(now);
        let mut turn = run.turn(local, &self.shared);
        turn.limit(self.left);
        change(&mut *turn);
        // A run with more to decide than one input may waits for its turn, whatever other input it gets.
        if !self.unsettled.contains(&id) && turn.settle() {
            self.unsettled.push_back(id);
        }
        self.left = self.left.saturating_sub(turn.done());
        let effects = turn.into_effects();
        self.apply_effects(id, effects, now, outcome);
    }

    /// Applies the effects of a turn outside its run, and adds its facts and orders to the outcome.
    fn apply_effects(&mut self, id: RunId, effects: Effects, now: Time, outcome: &mut Outcome) {
        let Effects {
            facts,
            orders,
            ending,
            freed,
            unlocked,
            preempted,
            gangs_dissolved,
            metered,
            commands,
            cached,
            queued,
            wakes,
            lock_requests,
            change,
        } = effects;
        self.commands.extend(commands);
        for node in ending {
            self.scheduler.set_ending(TaskRef { run: id, node });
        }
        for node in preempted {
            self.scheduler.quit_gang(TaskRef { run: id, node });
        }
        if !freed.is_empty() {
            self.locks.recheck_skipped();
        }
        for node in freed {
            self.scheduler.release(TaskRef { run: id, node }, now);
        }
        for node in unlocked {
            self.locks.release(Holder { run: id, node: Some(node) });
        }
        if change.ended {
            self.locks.release_run(id);
        }
        if gangs_dissolved {
            self.scheduler.leave(id);
        }
        metered.iter().for_each(|metered| self.shared.meters.take(metered));
        for (node, waiter) in lock_requests {
            self.locks.enqueue(Holder { run: id, node }, waiter);
        }
        if let Some(run) = self.runs.get(&id) {
            // What was decided later in the turn may have ended it.
            for node in queued.into_iter().filter(|node| run.is_queued(*node)) {
                enqueue(&mut self.scheduler, run, TaskRef { run: id, node });
            }
            for (at, node) in wakes {
                self.wakes.insert((run.engine_time(at), id, node));
            }
            for entry in cached {
                let name = (Keyed::ConfigMap, run.namespace().to_owned(), entry.cache);
                // A user may have created a ConfigMap of that name meanwhile that is not a cache.
                if self.shared.keyed.get(&name).is_none_or(memo::is_cache) {
                    let map = self.shared.keyed.entry(name).or_default();
                    memo::keep(map, &entry.node, entry.at, &entry.key, &entry.outputs);
                }
            }
        }
        outcome.orders.extend(orders);
        if !facts.is_empty() {
            let whole = change.phase || change.lifecycle || change.ended;
            let lived = self.runs.get_mut(&id).map_or(0, |run| {
                let before = run.lived();
                run.set_lived(before + change.life.len() as u32);
                before
            });
            outcome.decided.push(Decided { run: id, facts, change, lived });
            self.tell_of_change(id, whole, now, outcome);
        }
    }
}

/// Rebuilds a run from its journal.
pub fn fold(id: RunId, facts: impl IntoIterator<Item = Fact>) -> Result<Run, OpenError> {
    let mut facts = facts.into_iter();
    let Some(Fact::Run(RunFact::Submitted(submission))) = facts.next() else {
        return Err(OpenError::NoSubmission(id));
    };
    let mut run = Run::open(id, &submission)?;
    let mut lived = Lived::new(&run);
    for fact in facts {
        run.apply(&fact);
        lived.follow(&run);
    }
    run.set_lived(lived.count());
    run.settle_journal();
    Ok(run)
}
