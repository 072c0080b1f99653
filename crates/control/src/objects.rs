//! The runtime of resource templates: carries out their actions on objects of this controller and waits for conditions.
//! It implements the same port as the process runtime, and reaches objects and runs through the public handle only.

pub(crate) mod features;
pub mod keyed;
pub(crate) mod known;
pub(crate) mod scheduling;

use std::{
    collections::BTreeMap,
    io, iter,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, RecvTimeoutError, Sender},
    thread::JoinHandle,
    time::Duration,
};

use octoflow_engine::{
    Command,
    argo::condition::{self, Condition, ConditionResult},
    dialect,
};
use octoflow_model::{
    AttemptId, IdMap, Order, Report, Revision, RunId, Task,
    request::{Answer, BuiltinRequest, ManifestText, ObjectRequest, Request},
};
use octoflow_runtime::{
    egress::Policy,
    port::{Runtime, Sink},
};
use octoflow_store::Change;
use serde_json::Value;

use crate::{Error, Supervisor, clock, controller::Handle};
use action_error::ActionError;
pub(crate) use catalog::{Machine, StoreCatalog};
use fetch::{Fetch, Fetcher};
use make::OrderedRun;

mod act;
mod action_error;
mod builtin;
mod catalog;
mod fetch;
mod flags;
mod identity;
mod kind;
mod make;
pub mod patch;
mod run;
pub(crate) mod submitted;

/// Maximum number of queued work items examined together, to drop repeated ones.
const MAX_BATCH: usize = 1024;

/// Delay before retrying what failed because storage was unavailable.
const RETRY: Duration = Duration::from_secs(1);

/// Work item of the resource worker.
pub(crate) enum WorkItem {
    Orders(Vec<Order>),
    Adopt(Vec<(AttemptId, Box<Task>)>),
    /// This run changed.
    RunChanged(RunId),
    /// This stored object changed.
    ObjectChanged(Key),
    /// Asks a built-in plugin in a trial, which takes no place of a quota.
    Try(Box<BuiltinRequest>, Sender<Answer>),
    /// A fetch from another machine ended.
    Fetched(AttemptId, fetch::Fetched),
    Close,
}

impl WorkItem {
    /// Returns the run to check, if the item asks for nothing else.
    fn changed_run(&self) -> Option<RunId> {
        let Self::RunChanged(run) = self else { return None };
        Some(*run)
    }
}

/// Key of a stored object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub kind: String,
    pub namespace: String,
    pub name: String,
}

impl Key {
    pub(crate) fn new(kind: &str, namespace: &str, name: &str) -> Self {
        Self { kind: kind.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// Returns the change that refuses its batch unless the object is of this revision; `None` if there must be none.
    fn expect(&self, revision: Option<Revision>) -> Change {
        let Self { kind, namespace, name } = self.clone();
        Change::Expect { kind, namespace, name, revision }
    }
}

pub(crate) struct Objects {
    queue: Sender<WorkItem>,
    resource_worker: JoinHandle<Result<(), Error>>,
}

impl Objects {
    pub(crate) fn start(
        handle: Handle,
        data_dir: &Path,
        policy: Policy,
        sink: Sink,
        queue: Sender<WorkItem>,
        to_do: Receiver<WorkItem>,
        supervisor: &Supervisor,
    ) -> io::Result<Self> {
        let granted = builtin::Granted::new(handle.next_run());
        let resource_worker = ResourceWorker {
            handle,
            data_dir: data_dir.to_owned(),
            sink,
            waits: IdMap::default(),
            answers: IdMap::default(),
            retries: BTreeMap::new(),
            held: IdMap::default(),
            granted,
            queue: queue.clone(),
            fetcher: Fetcher::new(data_dir, policy),
            supervisor: supervisor.clone(),
        };
        let work = move || {
            resource_worker.work(&to_do);
            Ok(())
        };
        let resource_worker = supervisor.spawn("objects", work)?;
        Ok(Self { queue, resource_worker })
    }
}

impl Runtime for Objects {
    fn send(&mut self, orders: Vec<Order>) {
        // The resource worker runs until it is closed.
        let _ = self.queue.send(WorkItem::Orders(orders));
    }

    /// Starts each action again. An action checks whether it was done already, so nothing is made twice.
    fn adopt(&mut self, believed: Vec<(AttemptId, Box<Task>)>, _: &[RunId]) {
        let _ = self.queue.send(WorkItem::Adopt(believed));
    }

    fn close(self: Box<Self>) {
        let _ = self.queue.send(WorkItem::Close);
        // The event loop has ended, so every call of the resource worker returns at once.
        let _ = self.resource_worker.join();
    }
}

struct ResourceWorker {
    handle: Handle,
    data_dir: PathBuf,
    sink: Sink,
    waits: IdMap<AttemptId, Wait>,
    /// Answers given, until the attempt is forgotten: an engine that lost one asks again.
    answers: IdMap<AttemptId, Answer>,
    /// Work that failed because storage was unavailable, to be retried.
    retries: BTreeMap<AttemptId, Retry>,
    /// Runs that are to be made once their template is there.
    held: IdMap<AttemptId, (Key, OrderedRun)>,
    /// Jobs that a quota has let pass.
    granted: builtin::Granted,
    /// Sender to the worker's own queue, for helper threads.
    queue: Sender<WorkItem>,
    fetcher: Fetcher,
    /// Owner of the helper threads.
    supervisor: Supervisor,
}

/// Work to retry.
enum Retry {
    Act(Box<ObjectRequest>),
    /// Makes a run, whose name was busy so often.
    Make(OrderedRun, u32),
    Remove(Vec<String>),
    Builtin(Box<BuiltinRequest>),
    Judge,
    Stop(Command),
}

/// Attempt that waits for an object.
struct Wait {
    target: Target,
    success: Option<Condition>,
    failure: Option<Condition>,
    /// True if the object belongs to the attempt and ends with it.
    owned: bool,
    /// True if it waits for the run to end, in order to delete it.
    removes: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    /// Run, and its description for messages.
    Run(RunId, String),
    Stored(Key),
}

/// Result of an action.
enum ActionResult {
    /// The object as it is now, and where it is unless it was deleted.
    Done { object: Value, target: Option<Target>, removes: bool },
    /// A run was created for the attempt. From now on the engine tells the attempt what becomes of it.
    Ordered,
}

impl ResourceWorker {
    fn work(mut self, to_do: &Receiver<WorkItem>) {
        loop {
            let first = match self.retries.is_empty() && !self.fetcher.is_stuck() {
                true => to_do.recv().map_err(|_| RecvTimeoutError::Disconnected),
                false => to_do.recv_timeout(RETRY),
            };
            let first = match first {
                Ok(first) => first,
                Err(RecvTimeoutError::Timeout) => {
                    self.retry();
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let queue: Vec<WorkItem> = iter::once(first).chain(to_do.try_iter().take(MAX_BATCH)).collect();
            let mut last_change: IdMap<RunId, usize> = IdMap::default();
            for (at, item) in queue.iter().enumerate() {
                last_change.extend(item.changed_run().map(|run| (run, at)));
            }
            for (at, item) in queue.into_iter().enumerate() {
                // One check sees everything that happened so far, so of several items for the same run the last is
                // enough.
                if item.changed_run().is_some_and(|run| last_change.get(&run) != Some(&at)) {
                    continue;
                }
                if let ControlFlow::Break(()) = self.run(item) {
                    return;
                }
            }
        }
    }

    /// Retries what failed because storage was unavailable, and fetches that have no thread.
    fn retry(&mut self) {
        self.start_fetches();
        for (attempt, retries) in std::mem::take(&mut self.retries) {
            match retries {
                Retry::Act(request) => self.object(attempt, &request, true),
                Retry::Make(order, tries) => self.make(attempt, order, tries),
                Retry::Remove(uids) => self.remove_all(attempt, uids),
                Retry::Builtin(request) => self.ask_builtin(attempt, request),
                Retry::Judge => self.judge(attempt),
                Retry::Stop(command) => self.stop(attempt, command),
            }
        }
    }

    fn run(&mut self, item: WorkItem) -> ControlFlow<()> {
        match item {
            WorkItem::Orders(orders) => orders.into_iter().for_each(|order| self.order(order)),
            WorkItem::Adopt(believed) => {
                believed.into_iter().for_each(|(attempt, task)| self.begin(attempt, *task, true));
            }
            WorkItem::RunChanged(run) => self.look(|target| matches!(target, Target::Run(id, _) if *id == run)),
            WorkItem::ObjectChanged(key) => {
                self.look(|target| *target == Target::Stored(key.clone()));
                self.release_held(&key);
            }
            WorkItem::Try(request, to) => self.try_builtin(&request, &to),
            WorkItem::Fetched(attempt, fetched) => self.fetched(attempt, fetched),
            WorkItem::Close => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }

    fn order(&mut self, order: Order) {
        match order {
            Order::Start { attempt, task } => self.begin(attempt, *task, false),
            Order::Stop { attempt } => self.stop(attempt, Command::Stop),
            Order::Kill { attempt } => self.stop(attempt, Command::Terminate),
            Order::Forget { attempt } => {
                self.waits.remove(&attempt);
                self.answers.remove(&attempt);
                self.retries.remove(&attempt);
                self.held.remove(&attempt);
                self.fetcher.forget(attempt);
            }
        }
    }

    fn stop(&mut self, attempt: AttemptId, command: Command) {
        if self.fetcher.forget(attempt) {
            return self.answer(attempt, Answer::Stopped);
        }
        let unmade = matches!(self.retries.get(&attempt), Some(Retry::Act(_) | Retry::Make(..) | Retry::Builtin(_)));
        if unmade || self.held.remove(&attempt).is_some() {
            self.retries.remove(&attempt);
            return self.answer(attempt, Answer::Stopped);
        }
        let Some(wait) = self.waits.get(&attempt) else { return };
        if let (Target::Run(run, _), true) = (&wait.target, wait.owned)
            // It may be finished or stopped already.
            && self.handle.command(*run, command.clone()).is_err_and(|error| error.is_outage())
        {
            self.retries.insert(attempt, Retry::Stop(command));
            return;
        }
        self.waits.remove(&attempt);
        self.retries.remove(&attempt);
        self.answer(attempt, Answer::Stopped);
    }

    fn begin(&mut self, attempt: AttemptId, task: Task, again: bool) {
        if let Some(answer) = self.answers.get(&attempt) {
            let answer = answer.clone();
            return self.answer(attempt, answer);
        }
        let known = self.waits.contains_key(&attempt)
            || self.retries.contains_key(&attempt)
            || self.held.contains_key(&attempt);
        if known || self.fetcher.is_wanted(attempt) {
            return;
        }
        self.report(Report::Started { attempt, at: clock::now() });
        match task.call.map(|call| *call) {
            Some(Request::Object(request)) if matches!(request.manifest, ManifestText::Located { .. }) => {
                self.fetch(attempt, Fetch::Manifest(Box::new(request), again));
            }
            Some(Request::Object(request)) => self.object(attempt, &request, again),
            Some(Request::Listing(request)) => self.fetch(attempt, Fetch::Listing(request)),
            Some(Request::Make(request)) => self.make(attempt, OrderedRun::Made(Box::new(request)), 0),
            Some(Request::Submit(request)) => self.make(attempt, OrderedRun::Given(Box::new(request)), 0),
            Some(Request::Builtin(request)) => self.ask_builtin(attempt, Box::new(request)),
            Some(Request::Remove(uids)) => self.remove_all(attempt, uids),
            Some(Request::Http(_) | Request::Probe(_)) | None => {
                self.answer(attempt, Answer::Refused("this place only knows objects".to_owned()));
            }
        }
    }

    fn object(&mut self, attempt: AttemptId, request: &ObjectRequest, again: bool) {
        let parsed = |text: &Option<String>| text.as_deref().map(Condition::parse).transpose();
        let conditions = parsed(&request.success).and_then(|success| Ok((success, parsed(&request.failure)?)));
        let done = conditions
            .map_err(ActionError::from)
            .and_then(|conditions| Ok((conditions, self.act(attempt, request, again)?)));
        let ((success, failure), done) = match done {
            Ok(done) => done,
            Err(ActionError::Refused(why)) => return self.answer(attempt, Answer::Refused(why)),
            Err(ActionError::Unavailable) => {
                self.retries.insert(attempt, Retry::Act(Box::new(request.clone())));
                return;
            }
        };
        let ActionResult::Done { object, target, removes } = done else { return };
        let waits = success.is_some() || failure.is_some() || removes;
        let Some(target) = target.filter(|_| waits) else {
            return self.answer(attempt, Answer::Object(object));
        };
        if let Target::Run(run, _) = &target {
            let whole = dialect::of(&object).is_ok_and(|dialect| dialect.has_run_level_changes);
            let shallow = whole && [&success, &failure].into_iter().flatten().all(Condition::shallow);
            self.handle.signal_changes(*run, shallow);
        }
        let wait = Wait { target, success, failure, owned: request.owner.is_some(), removes };
        self.waits.insert(attempt, wait);
        self.judge(attempt);
    }

    /// Checks every attempt that waits for a matching target.
    fn look(&mut self, concerned: impl Fn(&Target) -> bool) {
        let concerned = self.waits.iter().filter(|(_, wait)| concerned(&wait.target));
        let mut concerned: Vec<AttemptId> = concerned.map(|(attempt, _)| *attempt).collect();
        concerned.sort_unstable();
        concerned.into_iter().for_each(|attempt| self.judge(attempt));
    }

    fn judge(&mut self, attempt: AttemptId) {
        let Some(wait) = self.waits.get(&attempt) else { return };
        let answer = match self.verdict(wait) {
            Ok(Some(answer)) => answer,
            Ok(None) => return,
            Err(ActionError::Refused(why)) => Answer::Refused(why),
            Err(ActionError::Unavailable) => {
                self.retries.entry(attempt).or_insert(Retry::Judge);
                return;
            }
        };
        self.waits.remove(&attempt);
        self.retries.remove(&attempt);
        self.answer(attempt, answer);
    }

    /// Evaluates the conditions; `None` while neither holds.
    fn verdict(&self, wait: &Wait) -> Result<Option<Answer>, ActionError> {
        let (object, name, at_work) = match &wait.target {
            Target::Run(run, name) => match self.handle.object_at_work(*run)? {
                Some(object) => (object, name.clone(), true),
                None => (self.handle.object(*run)?, name.clone(), false),
            },
            Target::Stored(key) => {
                let name = format!("{} '{}'", key.kind, key.name);
                let Some(object) = self.stored_object(key)? else {
                    return Ok(Some(Answer::Failed(format!("{name} was deleted while it was waited for"))));
                };
                (object, name, true)
            }
        };
        let over = matches!(wait.target, Target::Run(..)) && is_over(&object);
        if wait.removes {
            return if over { self.remove(&wait.target).map(Some) } else { Ok(None) };
        }
        Ok(match condition::evaluate(wait.success.as_ref(), wait.failure.as_ref(), &object) {
            ConditionResult::Succeeded => Some(Answer::Object(object)),
            ConditionResult::Failed(why) => Some(Answer::Failed(why)),
            // A finished run never changes again; waiting longer would be waiting for ever.
            ConditionResult::Pending if over => {
                let phase = dialect::of(&object).map_or("", |dialect| dialect.phase_of(&object));
                Some(Answer::Failed(format!("{name} ended {phase}, and the success condition does not hold")))
            }
            ConditionResult::Pending if !at_work => Some(Answer::Refused(format!(
                "{name} is not over and no process is running it; resume it with `octoflow run --resume` first"
            ))),
            ConditionResult::Pending => None,
        })
    }

    fn answer(&mut self, attempt: AttemptId, answer: Answer) {
        self.answers.insert(attempt, answer.clone());
        self.report(Report::Answered { attempt, at: clock::now(), answer: Box::new(answer) });
    }

    fn report(&self, report: Report) {
        (self.sink)(vec![report]);
    }
}

/// Returns whether a run has ended and will not change by itself.
fn is_over(object: &Value) -> bool {
    dialect::of(object).is_ok_and(|dialect| dialect.view.is_over(object))
}
