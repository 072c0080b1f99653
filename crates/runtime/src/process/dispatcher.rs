//! The engine's record of attempts in flight: which ones the spawner has been sent, and what is wanted of them. Turns
//! orders into messages. `supervise` keeps the connection, `receive` turns messages into reports.

use std::{
    any::Any,
    collections::HashMap,
    ffi::OsString,
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use octoflow_model::{
    ids::{AttemptId, RunId},
    order::{Collected, End, Exit, Fetched, Order, Report},
    pod::MemberEnd,
    task::Task,
};

use super::{
    delay::DelayQueue,
    hosts::Hosts,
    link::Outbox,
    monitor::Monitor,
    plan::{self, PlanContext, PlanError, Planned},
    pool::{FOR_FILES, FOR_TRANSFERS, Pool},
    sys, view,
    wire::{Hello, MemberEnding, ToSpawner},
};
use crate::{
    artifacts::ArtifactClient, egress::Policy, logs::Logs, port::Sink, shortage::Shortage, threads::ThreadOwner,
};

/// Delay before a retry after a resource shortage on this side.
pub(super) const SHORTAGE_PAUSE: Duration = Duration::from_millis(500);

pub(crate) struct Dispatcher {
    pub(super) context: PlanContext,
    hosts: Hosts,
    pub(super) logs: Logs,
    pub(super) artifact_client: ArtifactClient,
    pub(super) sink: Sink,
    pub(super) outbox: Arc<Outbox>,
    pub(super) pool: Pool,
    pub(super) transfers: Pool,
    /// Attempts that were started and have not ended.
    pub(super) in_flight: Mutex<HashMap<AttemptId, InFlight>>,
    /// Artifacts fetched for attempts that have not ended.
    pub(super) fetched: Mutex<HashMap<AttemptId, Vec<(String, Fetched)>>>,
    pub(super) isolated: AtomicBool,
    pub(super) hello: Hello,
    pub(super) command: Vec<OsString>,
    pub(super) closing: Closing,
    /// State of the spawner.
    pub(super) monitor: Monitor,
    /// Retries after a pause.
    pub(super) delay_queue: Arc<DelayQueue>,
    /// Runs whose attempts must not be ended by this engine.
    pub(super) untouched_runs: Mutex<Vec<u64>>,
    /// Without isolation: files placed on the machine itself, and their attempts.
    placed: Mutex<HashMap<PathBuf, AttemptId>>,
    /// Callback for the unexpected end of a thread.
    pub(super) owner: ThreadOwner,
}

/// An attempt in flight.
#[derive(Clone)]
pub(super) struct InFlight {
    pub(super) task: Arc<Task>,
    /// True if a spawner was told to start it, or an earlier engine may have told one.
    pub(super) sent: bool,
    /// Order to end it, which is sent again to a new spawner.
    pub(super) stop: Option<EndOrder>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EndOrder {
    Stop,
    Kill,
}

impl EndOrder {
    pub(super) fn message(self, attempt: AttemptId) -> ToSpawner {
        match self {
            Self::Stop => ToSpawner::Stop(attempt),
            Self::Kill => ToSpawner::Kill(attempt),
        }
    }
}

/// Shutdown flag of the runtime, which also interrupts waits.
#[derive(Default)]
pub(super) struct Closing {
    closing: Mutex<bool>,
    changed: Condvar,
}

impl Closing {
    fn begin(&self) {
        *lock(&self.closing) = true;
        self.changed.notify_all();
    }

    pub(super) fn has_begun(&self) -> bool {
        *lock(&self.closing)
    }

    /// Waits for `pause`; returns whether the runtime is closing.
    pub(super) fn wait(&self, pause: Duration) -> bool {
        let guard = lock(&self.closing);
        let waited = self.changed.wait_timeout_while(guard, pause, |closing| !*closing);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Dispatcher {
    #[expect(clippy::too_many_arguments, reason = "each is something the runtime owns, handed over once")]
    pub(crate) fn new(
        context: PlanContext,
        sink: Sink,
        outbox: Arc<Outbox>,
        isolated: bool,
        hello: Hello,
        command: Vec<OsString>,
        policy: Policy,
        owner: ThreadOwner,
    ) -> std::io::Result<Arc<Self>> {
        let artifact_client = ArtifactClient::new(&context.data, policy).with_floor(context.space_floor);
        artifact_client.store().clear_leftovers();
        Ok(Arc::new(Self {
            hosts: Hosts::new(&context.data),
            logs: Logs::new(&context.data),
            artifact_client,
            context,
            sink,
            outbox,
            pool: Pool::new("files", FOR_FILES, &owner)?,
            transfers: Pool::new("transfers", FOR_TRANSFERS, &owner)?,
            in_flight: Mutex::default(),
            fetched: Mutex::default(),
            isolated: AtomicBool::new(isolated),
            hello,
            command,
            closing: Closing::default(),
            monitor: Monitor::default(),
            delay_queue: DelayQueue::new(owner.clone()),
            untouched_runs: Mutex::default(),
            placed: Mutex::default(),
            owner,
        }))
    }

    pub(crate) fn is_idle(&self) -> bool {
        lock(&self.in_flight).is_empty()
    }

    /// Carries out orders. A panic during one order fails that attempt and no other.
    pub(crate) fn send(self: &Arc<Self>, orders: Vec<Order>) {
        let mut messages = Vec::with_capacity(orders.len());
        for order in orders {
            let attempt = order.attempt();
            let starts = matches!(order, Order::Start { .. });
            match catch_panic(|| self.obey(order)) {
                Ok(message) => messages.extend(message),
                Err(why) if starts => {
                    let why = format!("a bug of octoflow: planning the task failed: {why}");
                    self.end_at_once(attempt, Exit::Environment(why), Vec::new());
                }
                // The attempt ends by itself, or the next spawner sweeps its files.
                Err(_) => {}
            }
        }
        self.outbox.post(&messages);
    }

    fn obey(self: &Arc<Self>, order: Order) -> Option<ToSpawner> {
        match order {
            Order::Start { attempt, task } => {
                let task = Arc::from(task);
                let flight = InFlight { task: Arc::clone(&task), sent: false, stop: None };
                let known = {
                    let mut in_flight = lock(&self.in_flight);
                    let known = in_flight.contains_key(&attempt);
                    in_flight.entry(attempt).or_insert(flight);
                    known
                };
                // Without a spawner it waits; the next spawner is asked about it and reports it as fresh.
                if known || self.monitor.is_down() { None } else { self.launch(attempt, &task) }
            }
            Order::Stop { attempt } => self.end(attempt, EndOrder::Stop),
            Order::Kill { attempt } => self.end(attempt, EndOrder::Kill),
            Order::Forget { attempt } => {
                lock(&self.fetched).remove(&attempt);
                self.clear_places(attempt);
                self.hosts.release(attempt);
                Some(ToSpawner::Forget(attempt))
            }
        }
    }

    fn end(self: &Arc<Self>, attempt: AttemptId, how: EndOrder) -> Option<ToSpawner> {
        let mut in_flight = lock(&self.in_flight);
        if let Some(flight) = in_flight.get_mut(&attempt) {
            flight.stop = flight.stop.max(Some(how));
            if !flight.sent {
                drop(in_flight);
                self.end_at_once(attempt, Exit::Signal(libc::SIGTERM), Vec::new());
                return None;
            }
        }
        Some(how.message(attempt))
    }

    pub(crate) fn adopt(self: &Arc<Self>, believed: Vec<(AttemptId, Box<Task>)>, leave: &[RunId]) {
        let ids = believed.iter().map(|(attempt, _)| *attempt).collect();
        let leave: Vec<u64> = leave.iter().map(|run| run.0).collect();
        self.hosts.adopt(&believed, leave.is_empty());
        lock(&self.untouched_runs).clone_from(&leave);
        let in_flight = believed
            .into_iter()
            .map(|(attempt, task)| (attempt, InFlight { task: Arc::from(task), sent: true, stop: None }));
        lock(&self.in_flight).extend(in_flight);
        self.outbox.post(&[ToSpawner::Adopt(ids, leave)]);
    }

    /// Returns the message that starts an attempt. An attempt that cannot be planned ends here; after a shortage it is
    /// retried.
    pub(super) fn launch(self: &Arc<Self>, attempt: AttemptId, task: &Arc<Task>) -> Option<ToSpawner> {
        let planned = self.plan(attempt, task).and_then(|planned| {
            self.claim_places(attempt, &planned.occupied).map_err(Exit::Environment)?;
            Ok(planned)
        });
        match planned {
            Ok(planned) => {
                if let Some(flight) = lock(&self.in_flight).get_mut(&attempt) {
                    flight.sent = true;
                }
                Some(if planned.stage { ToSpawner::Prepare(planned.launch) } else { ToSpawner::Start(planned.launch) })
            }
            Err(PlanError { exit: Exit::Environment(why), .. }) if Shortage::of_files(&why).is_some() => {
                let (dispatcher, task) = (Arc::clone(self), Arc::clone(task));
                self.delay_queue.after(SHORTAGE_PAUSE, move || dispatcher.launch_again(attempt, &task));
                None
            }
            Err(PlanError { exit, member }) => {
                let mut members: Vec<MemberEnding> = Vec::new();
                if let (Some(member), Some(pod)) = (member, &task.pod) {
                    members.resize(pod.members.len(), MemberEnding { started: None, ended: None, exit: None });
                    members[member].exit = Some(exit.clone().into());
                }
                let members = member_ends(task, members);
                self.end_at_once(attempt, exit, members);
                None
            }
        }
    }

    /// Retries a launch, unless the attempt was stopped meanwhile or a new spawner has been asked about it.
    fn launch_again(self: &Arc<Self>, attempt: AttemptId, task: &Arc<Task>) {
        let waits = lock(&self.in_flight).get(&attempt).is_some_and(|flight| !flight.sent);
        if waits && !self.monitor.is_down() {
            let message = catch_panic(|| self.launch(attempt, task)).unwrap_or_else(|why| {
                let why = format!("a bug of octoflow: planning the task failed: {why}");
                self.end_at_once(attempt, Exit::Environment(why), Vec::new());
                None
            });
            self.outbox.post(&Vec::from_iter(message));
        }
    }

    /// Ends an attempt that no spawner knows.
    pub(super) fn end_at_once(self: &Arc<Self>, attempt: AttemptId, exit: Exit, members: Vec<MemberEnd>) {
        if lock(&self.in_flight).remove(&attempt).is_none() {
            return;
        }
        // Reported from a pool thread: the caller must not re-enter its own sink.
        let dispatcher = Arc::clone(self);
        self.pool.run(move || (dispatcher.sink)(vec![ended_at_once(attempt, exit, members)]));
    }

    fn plan(&self, attempt: AttemptId, task: &Task) -> Result<Planned, PlanError> {
        #[cfg(test)]
        tests::fault(attempt);
        let hosts = self.hosts.acquire(attempt, task).map_err(Exit::Environment)?;
        plan::plan(attempt, task, hosts.as_deref(), self.isolated.load(Ordering::Relaxed), &self.context)
    }

    /// Ends the connection. `abruptly` also stops reading, as a crash would.
    pub(crate) fn close(&self, abruptly: bool) {
        self.closing.begin();
        self.delay_queue.close();
        self.outbox.close(abruptly);
    }

    /// Reserves the real paths that inputs need without isolation; they must be free.
    fn claim_places(&self, attempt: AttemptId, paths: &[PathBuf]) -> Result<(), String> {
        let mut placed = lock(&self.placed);
        for path in paths {
            if fs::symlink_metadata(path).is_ok() && !placed.contains_key(path) {
                return Err(format!(
                    "`{}` exists on this machine and would be overwritten: run with isolation, or change the path",
                    path.display()
                ));
            }
            placed.insert(path.clone(), attempt);
        }
        Ok(())
    }

    fn clear_places(&self, attempt: AttemptId) {
        let mut placed = lock(&self.placed);
        if placed.is_empty() {
            return;
        }
        placed.retain(|path, owner| {
            if *owner == attempt {
                remove(path);
            }
            *owner != attempt
        });
    }
}

/// Returns the ends of a task's containers, in the task's order.
pub(super) fn member_ends(task: &Task, endings: Vec<MemberEnding>) -> Vec<MemberEnd> {
    let members = task.pod.iter().flat_map(|pod| &pod.members);
    let both = members.zip(endings);
    both.map(|(member, ending)| member_end(&member.container.name, ending)).collect()
}

pub(super) fn member_end(name: &str, MemberEnding { started, ended, exit }: MemberEnding) -> MemberEnd {
    MemberEnd { name: name.to_owned(), started, ended, exit: exit.map(Exit::from) }
}

/// Removes a placed file. If that fails it stays: it harms only the next task of this path, which gets an error.
fn remove(path: &Path) {
    if fs::remove_file(path).is_err() {
        let _ = view::remove_dir(path);
    }
}

pub(super) fn ended_at_once(attempt: AttemptId, exit: Exit, members: Vec<MemberEnd>) -> Report {
    let end = End { exit, started: None, collected: Collected::default(), log_truncated: false, log_bytes: 0, members };
    Report::Ended { attempt, at: sys::now(), end: Box::new(end) }
}

/// Runs `work` and returns the message of a panic. A panic is a bug, and it costs only the attempt it is about.
pub(super) fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic: Box<dyn Any + Send>| {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        text.unwrap_or("a panic without words").to_owned()
    })
}

/// Locks a mutex even if it is poisoned: our critical sections only move values, and a panic inside one leaves them
/// whole.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
pub(super) mod tests {
    use std::{
        collections::BTreeMap,
        os::unix::net::UnixStream,
        sync::mpsc::{self, Receiver},
    };

    use octoflow_model::{
        ids::NodeIx,
        task::{TaskContainer, WantedOutputs},
        time::Time,
    };

    use super::*;
    use crate::process::{
        entrypoint::ProgramTable,
        environment::BaseEnvironment,
        wire::{Ended, Ending as WireEnding, FromSpawner, VERSION},
    };

    /// Attempts of this task panic at every fault point.
    const UNLUCKY: u32 = 13;

    pub(crate) fn fault(attempt: AttemptId) {
        assert!(attempt.task != NodeIx(UNLUCKY), "unlucky number");
    }

    fn attempt(task: u32) -> AttemptId {
        AttemptId { run: RunId(1), task: NodeIx(task), attempt: 0 }
    }

    /// Returns a dispatcher whose spawner is only the other end of a socket.
    fn dispatcher() -> (tempfile::TempDir, Arc<Dispatcher>, UnixStream, Receiver<Vec<Report>>) {
        let dir = tempfile::tempdir().unwrap();
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (sender, reports) = mpsc::channel();
        let context = PlanContext {
            data: dir.path().to_owned(),
            base: BaseEnvironment::new([], Some("/bin:/usr/bin"), &[]),
            programs: ProgramTable::new(BTreeMap::new()),
            host_paths: crate::process::hostpath::HostPaths::Any,
            visible: Vec::new(),
            storage_limit: None,
            space_floor: None,
        };
        let hello = Hello { version: VERSION, isolate: true, log_limit: 1 << 20 };
        let sink = Box::new(move |batch| drop(sender.send(batch)));
        let owner = ThreadOwner::default();
        let outbox = Outbox::new(Arc::new(ours), &owner).unwrap();
        let dispatcher =
            Dispatcher::new(context, sink, outbox, true, hello, Vec::new(), Policy::strict(), owner).unwrap();
        (dir, dispatcher, theirs, reports)
    }

    fn start(task: u32) -> Order {
        let main = TaskContainer { command: vec!["true".to_owned()], ..TaskContainer::default() };
        Order::Start { attempt: attempt(task), task: Box::new(Task { main, ..Task::default() }) }
    }

    fn only_end(reports: &Receiver<Vec<Report>>) -> (AttemptId, End) {
        let mut batch = reports.recv().unwrap();
        assert_eq!(batch.len(), 1, "{batch:?}");
        match batch.remove(0) {
            Report::Ended { attempt, end, .. } => (attempt, *end),
            other => panic!("not an end: {other:?}"),
        }
    }

    #[test]
    fn a_panic_while_planning_one_task_fails_that_task_only() {
        let (_dir, dispatcher, theirs, reports) = dispatcher();
        dispatcher.send(vec![start(1), start(UNLUCKY), start(2)]);
        let (failed, end) = only_end(&reports);
        assert_eq!(failed, attempt(UNLUCKY));
        assert!(matches!(&end.exit, Exit::Environment(why) if why.contains("unlucky number")), "{:?}", end.exit);
        assert!(reports.try_recv().is_err());
        let sent = starts(&theirs);
        assert_eq!(sent, [attempt(1), attempt(2)], "the others went out, in their order");
    }

    fn starts(theirs: &UnixStream) -> Vec<AttemptId> {
        use std::io::Read as _;
        theirs.set_nonblocking(true).unwrap();
        let mut bytes = vec![0; 1 << 16];
        let count = { theirs }.read(&mut bytes).unwrap_or(0);
        let mut rest = &bytes[..count];
        let messages = std::iter::from_fn(|| crate::process::wire::next_frame::<ToSpawner>(&mut rest).unwrap());
        messages
            .filter_map(|message| if let ToSpawner::Start(launch) = message { Some(launch.attempt) } else { None })
            .collect()
    }

    #[test]
    fn a_job_that_panics_while_collecting_still_reports() {
        let (_dir, dispatcher, _theirs, reports) = dispatcher();
        let task = Task { wanted: WantedOutputs { result: true, ..WantedOutputs::default() }, ..Task::default() };
        let flight = InFlight { task: Arc::new(task), sent: true, stop: None };
        lock(&dispatcher.in_flight).insert(attempt(UNLUCKY), flight);
        let ending = WireEnding {
            at: Time(2),
            started: Some(Time(1)),
            exit: Ended::Code(0),
            log_truncated: false,
            log_bytes: 0,
        };
        let ended = FromSpawner::Ended(attempt(UNLUCKY), ending, Vec::new(), None, false);
        let (mut told, mut answers) = (Vec::new(), Vec::new());
        dispatcher.handle_message_safely(ended, &mut Default::default(), 1, &mut told, &mut answers);
        assert!(told.is_empty());
        let (_, end) = only_end(&reports);
        assert!(matches!(&end.exit, Exit::Environment(why) if why.contains("unlucky number")), "{:?}", end.exit);
        assert_eq!(end.started, Some(Time(1)));
    }

    #[test]
    fn a_job_that_panics_while_staging_still_reports() {
        let (dir, dispatcher, _theirs, reports) = dispatcher();
        lock(&dispatcher.in_flight).insert(attempt(UNLUCKY), InFlight { task: Arc::default(), sent: true, stop: None });
        let root = fs::File::open(dir.path()).unwrap().into();
        let (mut told, mut answers) = (Vec::new(), Vec::new());
        let prepared = FromSpawner::Prepared(attempt(UNLUCKY), true);
        dispatcher.handle_message_safely(prepared, &mut [Some(root)].into(), 1, &mut told, &mut answers);
        let (_, end) = only_end(&reports);
        assert!(matches!(&end.exit, Exit::Environment(why) if why.contains("unlucky number")), "{:?}", end.exit);
    }

    #[test]
    fn a_descriptor_that_was_lost_is_never_replaced_by_that_of_another_attempt() {
        let (dir, dispatcher, _theirs, reports) = dispatcher();
        for task in [1, UNLUCKY] {
            lock(&dispatcher.in_flight)
                .insert(attempt(task), InFlight { task: Arc::default(), sent: true, stop: None });
        }
        let other = fs::File::open(dir.path()).unwrap().into();
        // The descriptor of the first was lost in transit, that of the second arrived.
        let mut descriptors = [None, Some(other)].into();
        let (mut told, mut answers) = (Vec::new(), Vec::new());
        dispatcher.handle_message_safely(
            FromSpawner::Prepared(attempt(1), true),
            &mut descriptors,
            1,
            &mut told,
            &mut answers,
        );
        assert_eq!(descriptors.len(), 1, "the first took none");
        dispatcher.handle_message_safely(
            FromSpawner::Prepared(attempt(UNLUCKY), true),
            &mut descriptors,
            1,
            &mut told,
            &mut answers,
        );
        assert!(descriptors.is_empty());
        assert_eq!(only_end(&reports).0, attempt(UNLUCKY));
        assert!(dispatcher.task_known(attempt(1)), "the first waits to be told again");
    }

    impl Dispatcher {
        fn task_known(&self, attempt: AttemptId) -> bool {
            lock(&self.in_flight).contains_key(&attempt)
        }
    }

    #[test]
    fn without_a_spawner_tasks_wait_and_can_be_stopped() {
        let (_dir, dispatcher, theirs, reports) = dispatcher();
        dispatcher.monitor.down("gone".to_owned());
        dispatcher.send(vec![start(1), start(2), Order::Stop { attempt: attempt(2) }]);
        let (ended, end) = only_end(&reports);
        assert_eq!((ended, end.exit), (attempt(2), Exit::Signal(libc::SIGTERM)));
        assert!(dispatcher.task_known(attempt(1)), "the other one waits");
        assert!(starts(&theirs).is_empty());
        assert_eq!(dispatcher.health()().len(), 1);
    }
}
