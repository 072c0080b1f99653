//! The controller: the event loop on a thread of its own, between the store and a runtime. Its handle can be used from anywhere.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        mpsc::{self, Receiver, Sender},
    },
    thread::JoinHandle,
    time::Duration,
};

use octoflow_engine::{
    Command,
    engine::SharedState,
    explain::complete,
    kinds,
    schedule::{Scheduler, spec::NodeSpec},
};
use octoflow_model::{Fact, RunId, Time, submission::Stored};
use octoflow_runtime::{
    artifacts::ArtifactClient,
    calls::{Caller, HttpRuntime},
    egress::Policy,
    null::NullRuntime,
    port::{Condition, Runtime, Sink},
    process::{self, hostpath::HostPaths},
    route::Router,
    threads::ThreadOwner,
};
use octoflow_store::{Batch, BusyTimer, Foreground, Reader, SecretsKey, Store};
use serde_json::Value;

use crate::{
    Capacity, Claim, Error, Explanation, Supervisor, clock,
    event_loop::{
        EventLoop, Explained, Limits, Message, Ports, StartProgress, Watcher, cache,
        port::SystemClock,
        restore::{self, each_keyed},
    },
    maintenance::sweep::{self, LocatedDeletion, Sweeper},
    new_uid,
    node::{self, NodeConfig},
    objects::{Machine, Objects, StoreCatalog},
    read,
};

mod archiver;
mod dispatch;
mod features;
mod handle;
pub mod hooks;
mod rerun;
mod start;
mod worker;

use archiver::Archiver;
use dispatch::Dispatcher;
pub use handle::owned;
pub(crate) use handle::{Author, Handle, owned_namespace, unless_outage};
use hooks::{DeliveryTotals, HookQueue, Hooks};
use worker::{Outgoing, Worker};

pub struct Config {
    pub data_dir: PathBuf,
    /// What this machine was measured to have.
    pub capacity: Capacity,
    /// What somebody configured about it.
    pub node: NodeConfig,
    pub place: Place,
    /// Encrypts what Secrets are encrypted with.
    pub secrets_key: Option<SecretsKey>,
}

/// Where tasks run.
pub enum Place {
    /// As processes of this machine.
    Processes(Box<process::Config>),
    /// Nowhere: everything succeeds at once. For measuring the controller itself.
    Nowhere,
}

/// What someone wants run. The manifest must have been admitted.
pub struct Submit {
    pub namespace: String,
    pub name: String,
    pub manifest: Value,
    /// What the manifest refers to, as admission found it.
    pub stored: Stored,
    /// Makes asking twice make one run.
    pub claim: Option<Claim>,
}

/// A handle to the running controller.
pub struct Controller {
    handle: Handle,
    thread: Mutex<Option<JoinHandle<Result<(), Error>>>>,
    dispatcher: Dispatcher,
    sweeper: Arc<Mutex<Sweeper>>,
    hooks: Hooks,
    progress: Arc<StartProgress>,
    supervisor: Supervisor,
    /// Of the event loop.
    busy: BusyTimer,
    /// This machine, without what people have changed about it.
    node: Arc<NodeSpec>,
    opened: Time,
    data_dir: PathBuf,
}

impl Controller {
    /// Opens the data directory for writing and starts the engine. Nothing runs until it is submitted or restored.
    /// The texts are notices for people, e.g. about what the machine cannot do.
    pub fn open(config: Config) -> Result<(Self, Vec<String>), Error> {
        Self::start(config, StartProgress::default())
    }

    /// The same for whoever restores every unfinished run before anything else: their journals are read then, once.
    /// Until that is done, what the runtime reports waits.
    pub fn open_for_restore(config: Config) -> Result<(Self, Vec<String>), Error> {
        Self::start(config, StartProgress::pending())
    }

    fn start(config: Config, progress: StartProgress) -> Result<(Self, Vec<String>), Error> {
        let store = Store::open_keyed(&config.data_dir, config.secrets_key.clone())?;
        let plaintext = store.plaintext_left();
        let clock_trouble = clock::resume(&config.data_dir).err();
        let reader = store.reader()?;
        let node = Arc::new(node::machine(config.capacity, &config.node, &config.data_dir));
        let limits = Limits::from(NodeSpec::clone(&node));
        let (mut engine, mut unread) = restore::engine(&reader, &limits, clock::steady())?;
        if let Some(owner) = octoflow_store::foreign_owner(&config.data_dir) {
            let dir = config.data_dir.display();
            unread.push(format!(
                "the data directory {dir} belongs to uid {owner}, who can read and change everything in it"
            ));
        }
        // Nobody may take a lock from an open run because that has not been restored here.
        let respected = if progress.is_pending() { Vec::new() } else { reader.unfinished()? };
        for row in respected {
            unread.extend(restore::reserve_locks(&mut engine, &reader, &row)?);
        }
        let progress = Arc::new(progress);
        let next_run = reader.next_run_id()?.0;
        let (messages, inbox) = mpsc::channel();
        let sink = || -> Sink {
            let reports = messages.clone();
            Box::new(move |batch| {
                // The controller is closing when nobody listens; the runtime keeps what it knows for the next one.
                let _ = reports.send(Message::Reports(batch));
            })
        };
        let (policy, plugin_policy, host_paths) = reachable(&config.place);
        let (supervisor, busy) = (Supervisor::default(), BusyTimer::default());
        let mut sweeper = Sweeper::new(store.clone(), config.data_dir.clone(), policy.clone(), supervisor.clone());
        for deletion in sweep::due_deletions(&config.data_dir, &reader)? {
            sweeper.send(deletion.locate(engine.shared()));
        }
        let sweeper = Arc::new(Mutex::new(sweeper));
        let owner = supervisor.clone();
        let thread_owner = ThreadOwner::new(move |thread, why| owner.failed(thread, why));
        let (runtime, mut notices): (Box<dyn Runtime>, Vec<String>) = match config.place {
            Place::Processes(mut config) => {
                config.thread_owner = thread_owner.clone();
                let (runtime, notices) = process::open(*config, sink())?;
                (Box::new(runtime), notices.into_iter().map(|notice| notice.0).collect())
            }
            Place::Nowhere => (Box::new(NullRuntime::new(sink())), Vec::new()),
        };
        let (work_items, to_do) = mpsc::channel();
        let machine =
            Machine { data_dir: config.data_dir.as_path().into(), host_paths: host_paths.into(), node: node.clone() };
        let hook_channel = HookQueue::new();
        let hook_queue = hook_channel.0.clone();
        let caller = Caller::new(&plugin_policy);
        let handle = Handle::new(
            messages.clone(),
            store.clone(),
            next_run,
            work_items.clone(),
            machine,
            hook_queue.clone(),
            caller,
        );
        let hooks = Hooks::start(hook_channel, engine.plugins().clone(), store.clone(), &plugin_policy, &supervisor)?;
        let objects =
            Objects::start(handle.clone(), &config.data_dir, policy.clone(), sink(), work_items, to_do, &supervisor)
                .map_err(Error::Thread)?;
        let calls = HttpRuntime::new(&policy, &plugin_policy, sink(), &thread_owner).map_err(Error::Thread)?;
        let runtime: Box<dyn Runtime> = Box::new(Router::new(runtime, Box::new(calls), Box::new(objects)));
        let dispatcher = Dispatcher::start(runtime, messages.clone())?;
        let data_dir = config.data_dir.clone();
        let failed = messages.clone();
        store.on_failure(Arc::new(move |error| {
            // An event loop that is gone decides nothing.
            let _ = failed.send(Message::Failed(error));
        }));
        let runtime = dispatcher.queue();
        let ports = Ports {
            storage: Box::new(store.clone()),
            clock: Box::new(SystemClock),
            outlet: Arc::new(Outgoing { runtime: runtime.clone(), sweeper: sweeper.clone(), hooks: hook_queue }),
            inbox: messages.clone(),
        };
        let worker = Worker {
            event_loop: EventLoop::new(engine, limits, ports, handle.in_flight.clone(), progress.clone()),
            inbox,
            runtime,
            archiver: Archiver::new(supervisor.clone(), messages, store.clone()),
            store,
            data_dir: data_dir.clone(),
            busy: busy.clone(),
        };
        let thread = supervisor.spawn("event-loop", move || worker.run()).map_err(Error::Thread)?;
        let (thread, opened) = (Mutex::new(Some(thread)), clock::now());
        let controller =
            Self { handle, thread, dispatcher, sweeper, hooks, progress, supervisor, busy, data_dir, node, opened };
        notices.extend(unread);
        notices.extend(plaintext.map(|left| left.to_string()));
        notices.extend(clock_trouble.map(|why| {
            format!(
                "the file `clock` cannot be used, so after a restart of the machine only its wall clock counts: {why}"
            )
        }));
        Ok((controller, notices))
    }

    /// Keeps a ConfigMap, a Secret, a WorkflowTemplate or a ClusterWorkflowTemplate; later runs can refer to it.
    pub fn put_object(&self, mut object: Value) -> Result<(), Error> {
        if object["kind"] == "ConfigMap" {
            cache::keep_entries(&self.handle.store, &mut object)?;
        }
        let wrong = match kinds::of_manifest(&object) {
            Ok(kind) => self.handle.check_declared(kind, &object)?,
            Err(_) => Vec::new(),
        };
        if !wrong.is_empty() {
            let what = format!(
                "{} `{}`",
                object["kind"].as_str().unwrap_or_default(),
                object["metadata"]["name"].as_str().unwrap_or_default()
            );
            return Err(Error::Object {
                what,
                why: octoflow_engine::Problems(wrong).render(false).trim_end().to_owned(),
            });
        }
        self.handle.put_object(&object, new_uid()?)
    }

    /// Accepts a run. When this returns it is on disk and will not be lost.
    pub fn submit(&self, submit: Submit) -> Result<RunId, Error> {
        self.enter(submit, None)
    }

    /// The same, and every fact of the run from the first on.
    pub fn submit_watched(&self, submit: Submit) -> Result<(RunId, Receiver<Vec<Fact>>), Error> {
        let (watcher, facts) = mpsc::channel();
        Ok((self.enter(submit, Some(watcher))?, facts))
    }

    fn enter(&self, submit: Submit, watcher: Option<Sender<Vec<Fact>>>) -> Result<RunId, Error> {
        self.handle.enter(submit, new_uid()?, None, watcher)
    }

    /// An interrupted run goes on where it was, and so do the runs it made. Every fact of it is told, those of the past
    /// first.
    pub fn restore_run(&self, run: RunId) -> Result<Receiver<Vec<Fact>>, Error> {
        // Those it made first: what waits for them asks how they are.
        for child in self.handle.open_descendants(run)?.into_iter().rev() {
            drop(self.handle.restore_run(child)?);
        }
        self.handle.restore_run(run)
    }

    /// Every unfinished run goes on; all of them are read before the first may start anything, so that nobody takes a
    /// lock or a slot that somebody else holds. What cannot be read is left as it is and told.
    pub(crate) fn restore_all(&self) -> Result<Vec<String>, Error> {
        loop {
            let taken = start::restore_all(&self.handle.store, &self.progress).and_then(|found| {
                let start::Found { runs, unreadable, notices } = found;
                self.handle.ask(|reply| Message::RestoreAll { runs, unreadable, reply })?;
                Ok(notices)
            });
            match taken {
                // Storage is out of order; the event loop repairs that.
                Err(error) if error.is_outage() => std::thread::sleep(start::AFTER_OUTAGE),
                taken => return taken,
            }
        }
    }

    /// How far the restore of unfinished runs is.
    pub fn start_progress(&self) -> &StartProgress {
        &self.progress
    }

    /// Runs that are not over and were made by this one.
    pub fn open_children(&self, run: RunId) -> Result<Vec<(RunId, String)>, Error> {
        self.handle.open_children(run)
    }

    /// Tells a run to do something. When this returns it is decided and on disk. Ending a run ends those it owns.
    pub fn command(&self, run: RunId, command: Command) -> Result<(), Error> {
        self.handle.command(run, command)
    }

    /// The facts of a run from now on, each batch after it is durable. Closed after the last.
    pub fn watch(&self, run: RunId) -> Receiver<Vec<Fact>> {
        let (watcher, facts) = mpsc::channel();
        // A controller that is gone sends nothing, and the receiver sees it closed.
        let _ = self.handle.messages.send(Message::Watch { run, watcher: Watcher::Facts(watcher) });
        facts
    }

    /// The run as people see it, open or finished.
    pub fn object(&self, run: RunId) -> Result<Value, Error> {
        self.handle.object(run)
    }

    pub fn explain(&self, run: RunId) -> Result<Vec<Explanation>, Error> {
        let (mut reasons, scheduler) = self.explained(run)?;
        if let Some(scheduler) = scheduler {
            complete(&mut reasons, &scheduler);
        }
        reasons.extend(hooks::registry::explain(&self.handle.store.reader()?, run)?);
        Ok(reasons)
    }

    /// Explains why one node or pod waits for the scheduler; `None` if it does not.
    pub(crate) fn explain_one(&self, run: RunId, id: &str) -> Result<Option<Explanation>, Error> {
        let (reasons, scheduler) = self.explained(run)?;
        let found = reasons.into_iter().find(|one| one.wait.is_some() && one.id.as_deref() == Some(id));
        Ok(found.map(|mut found| {
            if let Some(scheduler) = scheduler {
                complete(std::slice::from_mut(&mut found), &scheduler);
            }
            found
        }))
    }

    /// Explains a run, without what takes long, which is done with the scheduler as it was then.
    fn explained(&self, run: RunId) -> Result<(Vec<Explanation>, Option<Scheduler>), Error> {
        let Some(told) = unless_outage(self.handle.ask(|reply| Message::Explain { run, reply }))? else {
            return Ok((read::explain(&self.handle.store.reader()?, run)?, None));
        };
        let Explained { reasons, scheduler } = *told;
        let reasons = match reasons {
            Some(reasons) => reasons,
            None => read::explain_with(&self.handle.store.reader()?, run, Some(&scheduler))?,
        };
        Ok((reasons, Some(scheduler)))
    }

    /// Every custom metric as the text that Prometheus reads, with the gauges that follow the runs under way here.
    pub fn metrics(&self) -> Result<String, Error> {
        self.handle.ask(|reply| Message::Metrics { reply })
    }

    /// Fetches artifacts, within the rules of this controller about where to connect to.
    pub(crate) fn artifact_client(&self) -> ArtifactClient {
        self.sweeper.lock().unwrap_or_else(std::sync::PoisonError::into_inner).artifact_client()
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Returns this machine as a node, without what people have changed about it.
    pub(crate) fn node(&self) -> &NodeSpec {
        &self.node
    }

    /// What became of deliveries to life hooks since it was opened, by key of the plugin.
    pub(crate) fn delivery_totals(&self) -> BTreeMap<String, DeliveryTotals> {
        self.hooks.counters.all()
    }

    /// Since when it is open.
    pub fn opened(&self) -> Time {
        self.opened
    }

    pub(crate) fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// Deletes artifacts beside everything else.
    pub(crate) fn sweep(&self, deletion: LocatedDeletion) {
        self.sweeper.lock().unwrap_or_else(std::sync::PoisonError::into_inner).send(deletion);
    }

    /// What a run made here may refer to.
    pub(crate) fn catalog(&self) -> Result<StoreCatalog, Error> {
        self.handle.catalog()
    }

    /// What keeps tasks from being run right now; they wait meanwhile. Nothing means that all is well. Never waits.
    pub fn runtime_conditions(&self) -> Vec<Condition> {
        self.dispatcher.conditions()
    }

    pub fn store(&self) -> &Store {
        &self.handle.store
    }

    /// Where requests are noted that somebody waits for: large runs and the store's background work step back for them.
    pub fn foreground(&self) -> &Foreground {
        self.handle.store.foreground()
    }

    /// Hears of threads that end unasked.
    pub fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// What keeps it from making progress: a thread that is gone, or one that has been busy with one thing for longer
    /// than `longest`. Never waits.
    pub fn stalled(&self, longest: Duration) -> Option<String> {
        if let Some(failure) = self.supervisor.failure() {
            return Some(failure.to_string());
        }
        let threads = [("event loop", self.busy.busy_for()), ("store's writer", self.handle.store.busy_for())];
        threads.into_iter().find_map(|(thread, busy)| {
            let busy = busy.filter(|busy| *busy > longest)?;
            Some(format!("the {thread} has been busy with one thing for {} s", busy.as_secs()))
        })
    }

    /// Everything decided is on disk when this returns. Running tasks stay with the runtime and can be adopted by the next process.
    pub fn close(&self) -> Result<(), Error> {
        self.progress.cancel();
        self.supervisor.close();
        let _ = self.handle.messages.send(Message::Close);
        let worker = self.thread.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        let worked = worker.map_or(Ok(()), |worker| worker.join().unwrap_or(Err(Error::Gone)));
        // What followed the last decisions, such as letting go of ended tasks, is done once this is through.
        let settled = self.handle.store.commit_wait(Batch::new());
        self.sweeper.lock().unwrap_or_else(std::sync::PoisonError::into_inner).finish();
        self.dispatcher.close();
        self.hooks.close();
        self.handle.store.clone().close()?;
        settled?;
        worked
    }
}

/// What runs can refer to, as the store has it.
pub(crate) fn world(reader: &Reader) -> Result<SharedState, Error> {
    let mut world = SharedState::default();
    each_keyed(reader, |parsed| world.put(parsed.kind, &parsed.namespace, &parsed.name, parsed.data))?;
    Ok(world)
}

/// Returns what requests reach, what calls of plugins reach, and which paths of the machine tasks may mount.
fn reachable(place: &Place) -> (Policy, Policy, HostPaths) {
    match place {
        Place::Processes(config) => (config.egress.clone(), config.plugin_egress.clone(), config.host_paths.clone()),
        // Whoever measures has plugins and hooks on the same machine.
        Place::Nowhere => (Policy::strict(), Policy::local(), HostPaths::Any),
    }
}
