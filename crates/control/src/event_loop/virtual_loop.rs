//! The event loop in virtual time: the same steps as in production, with a database in memory, a clock that somebody sets,
//! and commits that become durable when somebody says so. The simulator, the fuzzer and `octoflow test` drive it.
//! It starts no thread and reads no clock.

mod scheduling;

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
        mpsc::{self, Receiver, Sender},
    },
};

use octoflow_engine::{Command, Engine, Program};
use octoflow_model::{AttemptId, Fact, Order, Report, Revision, RunId, Task, Time, submission::Submission};
use octoflow_store::{Batch, Change, Delivery, Error as StoreError, Load, MemoryStore, Reader};
use tokio::sync::oneshot;

use super::{
    Entered, EventLoop, InFlight, Limits, Message, Ports, StartProgress, Terms, Watcher,
    backpressure::Permit,
    effect::{Commit, Decisions, Effect, Settlement, Wait},
    port::{Clock, Outlet, Storage},
    restore::{self, folded, unreadable},
};
use crate::{
    Claim, Error,
    hooks::HookSignal,
    maintenance::sweep::LocatedDeletion,
    objects::keyed::{self, KeyedObject},
};

/// What outlives a crash of a virtual loop. Clones are the same disk.
#[derive(Clone)]
pub struct VirtualDisk(Arc<Mutex<MemoryStore>>);

impl VirtualDisk {
    pub fn new() -> Result<Self, Error> {
        Ok(Self(Arc::new(Mutex::new(MemoryStore::new()?))))
    }

    /// Reads what is durable.
    pub fn reader(&self) -> Result<Reader, Error> {
        Ok(lock(&self.0).reader()?)
    }

    pub fn revision(&self) -> Revision {
        lock(&self.0).revision()
    }

    /// Makes durable at once what others than the loop store.
    pub fn write(&self, batch: &Batch) -> Result<(), Error> {
        lock(&self.0).write(batch)?;
        Ok(())
    }
}

impl Storage for VirtualDisk {
    fn reader(&self) -> Result<Reader, StoreError> {
        lock(&self.0).reader()
    }

    /// Nobody competes with a virtual loop for the machine.
    fn load(&self) -> Load {
        Load { in_flight: 0, idle: None }
    }
}

#[derive(Clone)]
struct VirtualClock(Arc<AtomicI64>);

impl Clock for VirtualClock {
    fn now(&self) -> Time {
        Time(self.0.load(Ordering::Relaxed))
    }

    /// Virtual runtimes go by the engine's time.
    fn skew(&self) -> i64 {
        0
    }
}

/// Orders that went out and that nobody has taken yet.
#[derive(Default)]
struct Outgoing(Mutex<Vec<Order>>);

impl Outlet for Outgoing {
    fn send(&self, orders: Vec<Order>) {
        lock(&self.0).extend(orders);
    }

    /// There are no artifacts in virtual time.
    fn sweep(&self, _: LocatedDeletion) {}

    /// Whoever drives the loop reads from the disk what is to be delivered.
    fn hooks(&self, _: HookSignal) {}
}

/// What the runtime is told after a start or an outage.
#[derive(Debug)]
pub struct Adoption {
    pub believed: Vec<(AttemptId, Box<Task>)>,
    /// Runs that are left alone.
    pub leave: Vec<RunId>,
}

/// The answer to a submission or a command, once it is there.
pub struct Ticket {
    answer: Pending,
    _permit: Option<Permit>,
}

enum Pending {
    Submission(oneshot::Receiver<Result<Entered, Error>>),
    Command(oneshot::Receiver<Result<(), Error>>),
}

impl Ticket {
    /// The answer; nothing while none was given. A loop that crashed never answers.
    pub fn poll(&mut self) -> Option<Result<(), Error>> {
        let answer = match &mut self.answer {
            Pending::Submission(answer) => answer.try_recv().map(|answer| answer.map(drop)),
            Pending::Command(answer) => answer.try_recv(),
        };
        answer.ok()
    }
}

/// A commit that is written and whose outcome nobody was told.
pub struct Written {
    outcome: Result<Revision, StoreError>,
    then: Settlement,
}

impl Written {
    /// The orders that follow it.
    pub fn orders(&self) -> &[Order] {
        orders(&self.then)
    }

    /// The facts that are durable with it, unless it was refused.
    pub fn facts(&self) -> &[(RunId, Vec<Fact>)] {
        facts(&self.then)
    }

    pub fn refused(&self) -> Option<&StoreError> {
        self.outcome.as_ref().err()
    }
}

/// How a submission is to be accepted.
#[derive(Default)]
pub struct Acceptance {
    pub claim: Option<Claim>,
    pub replaces: Option<RunId>,
    /// Gets every fact of the run once it is durable.
    pub watcher: Option<Sender<Vec<Fact>>>,
}

/// A run that leaves the loop.
pub struct Leaving {
    run: RunId,
    answer: oneshot::Receiver<Result<Vec<Delivery>, Error>>,
}

impl Leaving {
    /// Returns what deletes the run from the disk, once nobody works on it any more.
    pub fn poll(&mut self) -> Option<Result<Batch, Error>> {
        let events = match self.answer.try_recv().ok()? {
            Ok(events) => events,
            Err(error) => return Some(Err(error)),
        };
        let events = events.into_iter().map(|event| Change::PutDelivery(Box::new(event)));
        Some(Ok(events.chain([Change::DeleteRun { run: self.run }]).collect()))
    }
}

pub struct VirtualLoop {
    event_loop: EventLoop,
    disk: VirtualDisk,
    clock: VirtualClock,
    inbox: Receiver<Message>,
    outgoing: Arc<Outgoing>,
    in_flight: InFlight,
    /// Submissions that others have under way, which put backpressure on running.
    others: Vec<Permit>,
    /// Taken from the inbox for the next step.
    messages: VecDeque<Message>,
    /// Handed to the store and not durable, oldest first.
    commits: VecDeque<Commit>,
    adoptions: Vec<Adoption>,
    wait: Wait,
    stepped: Time,
    /// The loop wants the store to be opened again.
    reopens: bool,
}

impl VirtualLoop {
    /// Starts a loop on what is on the disk: every unfinished run is restored in the first step. The texts tell of runs
    /// that cannot be read.
    pub fn open(disk: VirtualDisk, limits: Limits, now: Time) -> Result<(Self, Vec<String>), Error> {
        let reader = disk.reader()?;
        let (engine, mut notices) = restore::engine(&reader, &limits, now)?;
        let (mut runs, mut damaged) = (Vec::new(), Vec::new());
        for row in reader.unfinished()? {
            match folded(&reader, &row)? {
                Ok(restored) => runs.push(restored),
                Err((facts, why)) => {
                    notices.push(unreadable(&row, &why));
                    damaged.push((row.run, facts));
                }
            }
        }
        drop(reader);
        let (to_inbox, inbox) = mpsc::channel();
        let (clock, outgoing) = (VirtualClock(Arc::new(AtomicI64::new(now.0))), Arc::<Outgoing>::default());
        let ports = Ports {
            storage: Box::new(disk.clone()),
            clock: Box::new(clock.clone()),
            outlet: outgoing.clone(),
            inbox: to_inbox,
        };
        let (in_flight, progress) = (InFlight::default(), Arc::new(StartProgress::pending()));
        let event_loop =
            EventLoop::new(engine, Limits { all_facts: true, ..limits }, ports, in_flight.clone(), progress);
        let (reply, _) = oneshot::channel();
        let messages = VecDeque::from([Message::RestoreAll { runs, unreadable: damaged, reply }]);
        let opened = Self {
            event_loop,
            disk,
            clock,
            inbox,
            outgoing,
            in_flight,
            others: Vec::new(),
            messages,
            commits: VecDeque::new(),
            adoptions: Vec::new(),
            wait: Wait::Message(None),
            stepped: now,
            reopens: false,
        };
        Ok((opened, notices))
    }

    /// Submits an admitted manifest.
    pub fn submit(
        &mut self,
        run: RunId,
        submission: Box<Submission>,
        program: Option<Program>,
        acceptance: Acceptance,
    ) -> Ticket {
        let (reply, answer) = oneshot::channel();
        let Acceptance { claim, replaces, watcher } = acceptance;
        let watcher = watcher.map(Watcher::Facts);
        let terms = Terms { claim, replaces, beside: Vec::new() };
        self.put(Message::Submit { run, submission, program, terms, watcher, show: false, reply });
        Ticket { answer: Pending::Submission(answer), _permit: Some(self.in_flight.enter()) }
    }

    pub fn command(&mut self, run: RunId, command: Command) -> Ticket {
        let (reply, answer) = oneshot::channel();
        self.put(Message::Command { run, command, reply });
        Ticket { answer: Pending::Command(answer), _permit: None }
    }

    /// Has nobody work on a run any more, so that it can be deleted.
    pub fn forget(&mut self, run: RunId, kind: &str, namespace: &str, name: &str) -> Leaving {
        let (reply, answer) = oneshot::channel();
        let name = (namespace.to_owned(), kind.to_owned(), name.to_owned());
        self.put(Message::Forget { run, name, reply });
        Leaving { run, answer }
    }

    pub fn report(&mut self, report: Report) {
        self.put(Message::Reports(vec![report]));
    }

    /// Stores a ConfigMap or Secret, and tells the engine of it.
    pub fn put_object(&mut self, object: &KeyedObject) -> Result<(), Error> {
        let body = keyed::object(object);
        let put = Change::PutObject {
            kind: keyed::kind_name(object.kind).to_owned(),
            namespace: object.namespace.clone(),
            name: object.name.clone(),
            uid: String::new(),
            body: body.to_string().into_bytes(),
        };
        lock(&self.disk.0).write(&Batch::from(put))?;
        let (reply, _) = oneshot::channel();
        self.put(Message::Keyed { object: Box::new(object.clone()), reply });
        Ok(())
    }

    /// So many submissions of others are under way from now on.
    pub fn set_burst(&mut self, count: usize) {
        self.others = (0..count).map(|_| self.in_flight.enter()).collect();
    }

    /// Has everything that is held committed in the next step, as if somebody waited for it.
    pub fn flush(&mut self) {
        let (reply, _) = oneshot::channel();
        self.put(Message::Size { run: RunId(0), reply });
    }

    fn put(&mut self, message: Message) {
        self.messages.push_back(message);
    }

    /// When the loop must step though nobody sends it anything; nothing when it waits for a message.
    pub fn next_step(&mut self) -> Option<Time> {
        self.messages.extend(self.inbox.try_iter());
        if !self.messages.is_empty() {
            return Some(self.stepped);
        }
        match self.wait {
            Wait::Message(wait) => wait.map(|wait| self.stepped.saturating_add(wait)),
            Wait::Nap(pause) => Some(self.stepped.saturating_add(pause)),
            Wait::Closed => None,
        }
    }

    /// Takes one step at this time. Answers how many commits it made; they are the last ones of [`commits`](Self::commits).
    pub fn step(&mut self, now: Time) -> Result<usize, Error> {
        self.clock.0.store(now.0, Ordering::Relaxed);
        self.stepped = now;
        self.messages.extend(self.inbox.try_iter());
        let before = self.commits.len();
        let effects = self.event_loop.step(std::iter::from_fn(|| self.messages.pop_front()))?;
        self.wait = effects.wait;
        for effect in effects.list {
            match effect {
                Effect::Commit(commit) => self.commits.push_back(commit),
                Effect::Adopt { believed, leave } => self.adoptions.push(Adoption { believed, leave }),
                Effect::Pack(job) => {
                    let packed = job.pack(|_| {}, |_, archive| Ok(archive));
                    self.messages.push_back(Message::Packed(Box::new(packed)));
                }
                Effect::Reopen => self.reopens = true,
                Effect::QueueDeletion(_) | Effect::KeepClock => {}
            }
        }
        Ok(self.commits.len() - before)
    }

    /// The facts of each commit that is not durable, oldest first.
    pub fn commits(&self) -> impl DoubleEndedIterator<Item = &[(RunId, Vec<Fact>)]> {
        self.commits.iter().map(|commit| facts(&commit.then))
    }

    /// The orders of every commit that is not durable.
    pub fn pending_orders(&self) -> impl Iterator<Item = &Order> {
        self.commits.iter().flat_map(|commit| orders(&commit.then))
    }

    /// Writes the oldest commit to the disk. Nobody is told of it yet.
    pub fn write(&mut self) -> Option<Written> {
        let Commit { batch, then } = self.commits.pop_front()?;
        let outcome = lock(&self.disk.0).write(&batch);
        Some(Written { outcome, then })
    }

    /// Tells everybody the outcome of a commit.
    pub fn settle(&mut self, written: Written) {
        written.then.settle(written.outcome);
    }

    /// Fails every commit that is not durable, as a store does whose disk cannot be written. Whoever wrote the oldest of
    /// them before shows a disk that kept what it said it could not.
    pub fn fail(&mut self, written: Option<Written>, error: &StoreError) {
        self.put(Message::Failed(error.clone()));
        if let Some(written) = written {
            written.then.settle(Err(error.clone()));
        }
        for commit in std::mem::take(&mut self.commits) {
            commit.then.settle(Err(error.clone()));
        }
    }

    /// The loop waits for the store to be opened again; [`reopen`](Self::reopen) answers.
    pub fn wants_reopen(&self) -> bool {
        self.reopens
    }

    /// Opens the store again, or fails to with this error.
    pub fn reopen(&mut self, failure: Option<StoreError>) {
        self.reopens = false;
        let revision = self.disk.revision();
        self.put(Message::Reopened(failure.map_or(Ok(revision), Err)));
    }

    /// What the runtime was told since this was asked last.
    pub fn take_adoptions(&mut self) -> Vec<Adoption> {
        std::mem::take(&mut self.adoptions)
    }

    /// The orders that went out since this was asked last.
    pub fn take_orders(&mut self) -> Vec<Order> {
        std::mem::take(&mut *lock(&self.outgoing.0))
    }

    pub fn engine(&self) -> &Engine {
        &self.event_loop.driver.engine
    }

    /// Decisions are held that are in no commit.
    pub fn holds(&self) -> bool {
        self.event_loop.driver.holds()
    }

    /// Reports or accepted runs wait because of backpressure.
    pub fn is_behind(&self) -> bool {
        !self.event_loop.reports.is_empty() || !self.event_loop.accepted.is_empty()
    }

    /// The run was accepted and has not begun.
    pub fn is_accepted(&self, run: RunId) -> bool {
        self.event_loop.accepted.contains(&run)
    }

    /// Names and idempotency keys that are on their way to the store.
    pub fn reserved(&self) -> Vec<String> {
        let names = lock(&self.event_loop.names);
        let names = names.iter().map(|(namespace, kind, name)| format!("the name {namespace}/{kind}/{name}"));
        names.chain(self.event_loop.claims.keys().into_iter().map(|key| format!("the key {key}"))).collect()
    }

    /// Nothing is decided because the store cannot be written.
    pub fn is_out(&self) -> bool {
        matches!(self.event_loop.state, super::State::Outage(_))
    }
}

fn decisions(then: &Settlement) -> Option<&Decisions> {
    match then {
        Settlement::Decisions(decisions) => Some(decisions),
        Settlement::Call(_) => None,
    }
}

fn orders(then: &Settlement) -> &[Order] {
    decisions(then).map(|decisions| &*decisions.orders).unwrap_or_default()
}

fn facts(then: &Settlement) -> &[(RunId, Vec<Fact>)] {
    decisions(then).map(|decisions| &*decisions.watched).unwrap_or_default()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
