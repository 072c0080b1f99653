//! What can be asked of the controller, from any thread: keeping objects, submitting runs, telling them what to do.
//! It goes through the event loop's inbox like everybody else.

use std::{
    collections::BTreeSet,
    collections::HashMap,
    sync::{
        Arc, Mutex,
        mpsc::{self, Receiver, Sender},
    },
};

use octoflow_engine::{
    Command, Program,
    engine::Keyed,
    kinds::{self, Kind},
    schedule::{Scheduler, spec::NodeSpec},
};
use octoflow_model::{
    AttemptId, Fact, Revision, RunId,
    mark::Ownership,
    meta::DEFAULT_NAMESPACE,
    plugin::FEATURE_KIND,
    previous::PreviousRun,
    request::{Answer, BuiltinRequest},
    submission::Submission,
};
use octoflow_runtime::calls::Caller;
use octoflow_store::{Batch, Change, Filter, Page, RunRow, Store};
use serde_json::Value;
use tokio::sync::oneshot;

use super::Submit;
use crate::{
    Claim, Error, clock,
    event_loop::{Detail, Entered, InFlight, Message, Reply, RunSignal, Shown, Terms, Watcher, reserved_in, unit},
    hooks::HookQueue,
    node::{self, NodeOverlay},
    objects::{
        Key, Machine, StoreCatalog, WorkItem, keyed, known,
        scheduling::{SchedulingChange, SharedDeclared},
    },
    park, read,
};

/// More runs than one run could sensibly make; a list must end somewhere.
const MAX_CHILDREN: usize = 1_000_000;

/// Where the answer to something that was put into the inbox comes out.
type ReplyReceiver<T> = oneshot::Receiver<Result<T, Error>>;

/// Who submits a run.
pub(crate) struct Author {
    /// Whom it is charged to. `None`: its namespace.
    pub charged: Option<String>,
    pub name: Option<String>,
}

#[derive(Clone)]
pub(crate) struct Handle {
    pub messages: Sender<Message>,
    pub store: Store,
    next_run: Arc<Mutex<u64>>,
    /// Held by whoever stores values that the engine knows, until it knows them.
    pub(super) values: Arc<Mutex<()>>,
    /// Queues and classes as they are stored.
    pub(crate) declared: SharedDeclared,
    /// Held by whoever changes a queue or a class, from the check to the end.
    pub(crate) declaring: Arc<Mutex<()>>,
    /// Who waits for objects to change.
    work_items: Sender<WorkItem>,
    /// Calls plugins in trials.
    pub(crate) caller: Arc<Caller>,
    /// Who is handing in a run.
    pub(crate) in_flight: InFlight,
    /// The name of this machine.
    pub(crate) host: Option<Arc<str>>,
    /// What this machine lets steps have.
    machine: Machine,
    /// Who delivers events to life hooks.
    pub(crate) hooks: HookQueue,
}

impl Handle {
    pub(crate) fn new(
        messages: Sender<Message>,
        store: Store,
        next_run: u64,
        work_items: Sender<WorkItem>,
        machine: Machine,
        hooks: HookQueue,
        caller: Caller,
    ) -> Self {
        let (next_run, values) = (Arc::new(Mutex::new(next_run)), Arc::default());
        Self {
            messages,
            store,
            next_run,
            values,
            declared: SharedDeclared::default(),
            declaring: Arc::default(),
            work_items,
            in_flight: InFlight::default(),
            caller: Arc::new(caller),
            host: known::host().map(|host| node::dns(&host).into()),
            machine,
            hooks,
        }
    }

    /// Asks a built-in plugin in a trial.
    pub(crate) fn try_builtin(&self, request: BuiltinRequest) -> Result<Answer, Error> {
        let (to, answer) = mpsc::channel();
        let _ = self.work_items.send(WorkItem::Try(Box::new(request), to));
        answer.recv().map_err(|_| Error::Gone)
    }

    /// Returns the number that the next run gets.
    pub(crate) fn next_run(&self) -> RunId {
        RunId(*self.next_run.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// Has nobody work on a run any more. Returns the changes that belong into the commit that deletes it, and the life
    /// hooks that are to be told of after it.
    pub(crate) fn forget_run(&self, row: &RunRow) -> Result<(Batch, BTreeSet<String>), Error> {
        let dialect = kinds::of_key(&row.kind).and_then(Kind::dialect);
        let scope = dialect.map_or(row.namespace.as_str(), |dialect| reserved_in(dialect, &row.namespace));
        let name = (scope.to_owned(), row.kind.clone(), row.name.clone());
        let events = self.ask(|reply| Message::Forget { run: row.run, name, reply })?;
        let hooks = events.iter().map(|event| event.plugin.clone()).collect();
        Ok((events.into_iter().map(|event| Change::PutDelivery(Box::new(event))).collect(), hooks))
    }

    /// What a run made here may refer to.
    pub(crate) fn catalog(&self) -> Result<StoreCatalog, Error> {
        Ok(StoreCatalog::new(self.store.reader()?, self.machine.clone(), self.declared.clone()))
    }

    pub(crate) fn put_object(&self, object: &Value, uid: String) -> Result<(), Error> {
        self.put_object_with(object, uid, Batch::new()).map(drop)
    }

    /// Stores the object together with what is in the batch, before it; if that is refused, so is the object.
    pub(crate) fn put_object_with(&self, object: &Value, uid: String, mut batch: Batch) -> Result<Revision, Error> {
        let kind = kinds::of_manifest(object).map_err(|problem| {
            let what = object["kind"].as_str().unwrap_or_default().to_owned();
            Error::Object { what, why: problem.message }
        })?;
        let text = |field: &str| object["metadata"][field].as_str().filter(|text| !text.is_empty());
        let name = text("name").ok_or_else(|| Error::Object {
            what: format!("{} ``", kind.name),
            why: "it has no metadata.name".to_owned(),
        })?;
        let namespace = owned_namespace(kind.namespaced, object);
        if kind.key == FEATURE_KIND {
            return self.put_feature(object, name, uid, batch);
        }
        let change = SchedulingChange::of_object(kind, object);
        // Values and claims are the engine's to know; templates are only read when something asks for them.
        let known = [&kinds::core::CONFIG_MAP, &kinds::core::SECRET, &kinds::core::VOLUME_CLAIM];
        let keyed = match known.contains(&kind) {
            true => Some(keyed::parse(object)?),
            false => None,
        };
        let (row, kind) = (kind, kind.key);
        batch.push(Change::PutObject {
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid,
            body: object.to_string().into_bytes(),
        });
        let ties = Ownership::of(&object["metadata"]);
        batch.push(Change::SetOwners {
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            owners: ties.owner_uids(),
            deleting: ties.deleted.is_some(),
        });
        // The engine must hear of values in the order in which they were stored.
        let told = keyed.is_some() || change.is_some();
        let turn = told.then(|| self.values.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        let revision = self.commit(batch)?;
        if let Some(parsed) = keyed {
            self.ask(|reply| Message::Keyed { object: Box::new(parsed), reply })?;
        }
        self.declared.put(row, object);
        if let Some(change) = change {
            self.ask(|reply| Message::Scheduling { change: Box::new(change), reply })?;
        }
        drop(turn);
        self.changed(Key::new(kind, namespace, name));
        Ok(revision)
    }

    /// Deletes the object after what is in the batch; if that is refused, it stays.
    pub(crate) fn delete_object_with(&self, key: &Key, mut batch: Batch) -> Result<(), Error> {
        if key.kind == FEATURE_KIND {
            return self.delete_feature(key, batch);
        }
        batch.push(Change::DeleteObject {
            kind: key.kind.clone(),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
        });
        let owner = self.set_of_unit(key)?;
        let kind = match key.kind.as_str() {
            "ConfigMap" => Some(Keyed::ConfigMap),
            "Secret" => Some(Keyed::Secret),
            "PersistentVolumeClaim" => Some(Keyed::Claim),
            _ => None,
        };
        let change = SchedulingChange::of_deletion(&key.kind, &key.name);
        let told = kind.is_some() || change.is_some();
        let turn = told.then(|| self.values.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        self.commit(batch)?;
        if let Some(kind) = kind {
            let (namespace, name) = (key.namespace.clone(), key.name.clone());
            self.ask(|reply| Message::Unkeyed { kind, namespace, name, reply })?;
        }
        self.declared.remove(&key.kind, &key.name);
        if let Some(change) = change {
            self.ask(|reply| Message::Scheduling { change: Box::new(change), reply })?;
        }
        drop(turn);
        self.changed(key.clone());
        if let Some(run) = owner {
            match self.command(run, Command::Disband { unit: key.name.clone() }) {
                // What is over has nothing left to disband.
                Ok(()) | Err(Error::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Stores what people have changed about a node, unless it changed since the expected revision, and tells the engine.
    pub(crate) fn put_node(
        &self,
        node: &NodeSpec,
        overlay: &NodeOverlay,
        expected: Option<Revision>,
    ) -> Result<Revision, Error> {
        let (kind, name) = (kinds::core::NODE.key.to_owned(), node.name.to_string());
        let (namespace, body) = (String::new(), serde_json::to_vec(overlay));
        let mut batch = Batch::from(Change::Expect {
            kind: kind.clone(),
            namespace: namespace.clone(),
            name: name.clone(),
            revision: expected,
        });
        let body = body.map_err(|error| Error::Object { what: format!("Node `{name}`"), why: error.to_string() })?;
        batch.push(Change::PutObject { kind, namespace, name, uid: String::new(), body });
        let _turn = self.values.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let revision = self.commit(batch)?;
        let change = Box::new(SchedulingChange::Node(Box::new(overlay.apply(node))));
        self.ask(|reply| Message::Scheduling { change, reply })?;
        Ok(revision)
    }

    /// Returns the queue of runs in a namespace that name none.
    pub(crate) fn queue_of_namespace(&self, namespace: &str) -> Result<Option<String>, Error> {
        self.declared.queue_of_namespace(&self.store, namespace)
    }

    /// Tells the scheduler to do something, once and now.
    pub(crate) fn schedule(&self, change: SchedulingChange) -> Result<(), Error> {
        self.ask(|reply| Message::Scheduling { change: Box::new(change), reply })
    }

    /// Looks at the scheduler; `None` while nothing can be written.
    pub(crate) fn look_at_scheduler<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Scheduler) -> T + Send + 'static,
    ) -> Result<Option<T>, Error> {
        self.ask(|reply| looking(look, reply))
    }

    /// Like [`Handle::look_at_scheduler`], for callers that must not block.
    pub(crate) async fn look_at_scheduler_async<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Scheduler) -> T + Send + 'static,
    ) -> Result<Option<T>, Error> {
        let told = self.put(|reply| looking(look, reply))?;
        told.await.unwrap_or(Err(Error::Gone))
    }

    pub(super) fn commit(&self, batch: Batch) -> Result<Revision, Error> {
        self.store.commit_wait(batch).map_err(|error| {
            self.declared.forget();
            error.into()
        })
    }

    /// The open run whose control unit this object is.
    fn set_of_unit(&self, key: &Key) -> Result<Option<RunId>, Error> {
        if key.kind != unit::KIND.key {
            return Ok(None);
        }
        let reader = self.store.reader()?;
        let Some(kept) = reader.object(&key.kind, &key.namespace, &key.name)? else { return Ok(None) };
        let body: Value = serde_json::from_slice(&kept.body).unwrap_or_default();
        let Some(uid) = unit::owner(&body) else { return Ok(None) };
        Ok(reader.run_by_uid(uid)?.filter(|row| !row.archived).map(|row| row.run))
    }

    pub(super) fn changed(&self, key: Key) {
        // Nobody waits for anything once the controller closes.
        let _ = self.work_items.send(WorkItem::ObjectChanged(key));
    }

    /// Accepts a run under this identity. When this returns it is on disk and will not be lost.
    pub(crate) fn enter(
        &self,
        submit: Submit,
        uid: String,
        ordered_by: Option<AttemptId>,
        watcher: Option<Sender<Vec<Fact>>>,
    ) -> Result<RunId, Error> {
        self.enter_with(submit, uid, ordered_by, watcher, |_| Vec::new())
    }

    /// The same without waiting for it, of a manifest that was made ready already, and shows the run as it stood when it
    /// was accepted. Whoever waits for that on a thread of many does not hold the others up.
    pub(crate) async fn enter_shown(
        &self,
        submit: Submit,
        program: Program,
        uid: String,
        author: Author,
    ) -> Result<Entered, Error> {
        let claim = submit.claim.clone();
        let mut submission = self.submission(submit, uid, None)?;
        submission.context.written_by = author.name.filter(|_| author.charged.is_none());
        submission.context.submitted_by = author.charged;
        let terms = |_| Terms { claim, replaces: None, beside: Vec::new() };
        entered(self.hand(submission, Some(program), None, true, terms)?.await)
    }

    /// The same, together with other changes: all of it is kept, or none.
    pub(crate) fn enter_with(
        &self,
        submit: Submit,
        uid: String,
        ordered_by: Option<AttemptId>,
        watcher: Option<Sender<Vec<Fact>>>,
        beside: impl FnOnce(RunId) -> Vec<Change>,
    ) -> Result<RunId, Error> {
        let claim = submit.claim.clone();
        let submission = self.submission(submit, uid, ordered_by)?;
        self.hand_in(submission, None, claim, watcher, beside)
    }

    /// Accepts a run that another one orders, in the place of one that is over and that the same order was for before its
    /// owner was retried. What that one logged is kept for this one.
    pub(crate) fn enter_instead(
        &self,
        submit: Submit,
        uid: String,
        ordered_by: AttemptId,
        old: RunId,
    ) -> Result<RunId, Error> {
        let mut submission = self.submission(submit, uid, Some(ordered_by))?;
        let runs = read::numbers(&self.store.reader()?, old)?;
        submission.previous = Some(Box::new(PreviousRun { runs, ..PreviousRun::default() }));
        self.hand_in(submission, Some(old), None, None, |_| Vec::new())
    }

    fn submission(&self, submit: Submit, uid: String, ordered_by: Option<AttemptId>) -> Result<Submission, Error> {
        let namespace = if submit.namespace.is_empty() { DEFAULT_NAMESPACE.to_owned() } else { submit.namespace };
        let mut known = known::known(&self.store, &namespace, &submit.manifest, self.host.as_deref())?;
        known.queue = self.declared.queue_of_namespace(&self.store, &namespace)?;
        Ok(Submission {
            name: submit.name,
            namespace,
            uid,
            at: clock::steady().shifted(known.skew),
            manifest: submit.manifest,
            stored: submit.stored,
            context: known,
            parent: ordered_by.map(|attempt| attempt.run),
            ordered_by,
            previous: None,
        })
    }

    /// Hands a submission to the event loop, and with it the run whose place it takes.
    pub(crate) fn hand_in(
        &self,
        submission: Submission,
        replaces: Option<RunId>,
        claim: Option<Claim>,
        watcher: Option<Sender<Vec<Fact>>>,
        beside: impl FnOnce(RunId) -> Vec<Change>,
    ) -> Result<RunId, Error> {
        let terms = |run| Terms { claim, replaces, beside: beside(run) };
        Ok(entered(park::wait(self.hand(submission, None, watcher, false, terms)?))?.run)
    }

    fn hand(
        &self,
        submission: Submission,
        program: Option<Program>,
        watcher: Option<Sender<Vec<Fact>>>,
        show: bool,
        terms: impl FnOnce(RunId) -> Terms,
    ) -> Result<ReplyReceiver<Entered>, Error> {
        self.store.check_space()?;
        let run = {
            let mut next = self.next_run.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            *next += 1;
            RunId(*next - 1)
        };
        let watcher = watcher.map(Watcher::Facts);
        let (submission, terms) = (Box::new(submission), terms(run));
        self.put(|reply| Message::Submit { run, submission, program, terms, watcher, show, reply })
    }

    pub(crate) fn restore_run(&self, run: RunId) -> Result<Receiver<Vec<Fact>>, Error> {
        let past = read::facts(&self.store.reader()?, run)?;
        let (watcher, facts) = mpsc::channel();
        let _ = watcher.send(past.clone());
        self.ask(|reply| Message::Restore { run, past, watcher: Watcher::Facts(watcher), reply })?;
        Ok(facts)
    }

    pub(crate) fn command(&self, run: RunId, command: Command) -> Result<(), Error> {
        self.ask(|reply| Message::Command { run, command, reply })
    }

    pub(crate) fn object(&self, run: RunId) -> Result<Value, Error> {
        match unless_outage(self.object_at_work(run))? {
            Some(object) => Ok(object),
            None => read::object(&self.store.reader()?, run),
        }
    }

    /// Which attempt's log belongs to which node, by node id.
    pub(crate) fn attempts(&self, run: RunId) -> Result<Vec<(String, AttemptId)>, Error> {
        match unless_outage(self.ask(|reply| Message::Tasks { run, reply }))? {
            Some(attempts) => Ok(attempts),
            None => read::attempts(&self.store.reader()?, run),
        }
    }

    /// How long the logs of ended attempts were when they ended, of those that wrote something.
    pub(crate) fn log_sizes(&self, run: RunId) -> Result<HashMap<AttemptId, u64>, Error> {
        match unless_outage(self.ask(|reply| Message::LogSizes { run, reply }))? {
            Some(sizes) => Ok(sizes.into_iter().collect()),
            None => read::log_sizes(&self.store.reader()?, run),
        }
    }

    /// The run as people see it, while somebody here works on it.
    pub(crate) fn object_at_work(&self, run: RunId) -> Result<Option<Value>, Error> {
        match self.look(run)? {
            Some(Shown::Here(object)) => Ok(Some(object)),
            Some(Shown::Elsewhere(_)) => read::object(&self.store.reader()?, run).map(Some),
            None => Ok(None),
        }
    }

    /// The run as people see it if it is small, while somebody here works on it.
    pub(crate) fn look(&self, run: RunId) -> Result<Option<Shown>, Error> {
        self.ask(|reply| Message::Object { run, detail: Detail::Whole, reply })
    }

    /// The run as people see it, but for the nodes of a workflow.
    pub(crate) fn summary(&self, run: RunId) -> Result<Value, Error> {
        match unless_outage(self.ask(|reply| Message::Object { run, detail: Detail::Summary, reply }))? {
            Some(Shown::Here(object)) => Ok(object),
            Some(Shown::Elsewhere(_)) | None => read::summary(&self.store.reader()?, run),
        }
    }

    /// How many nodes or replicas a run has, while somebody here works on it.
    pub(crate) fn size_at_work(&self, run: RunId) -> Result<Option<usize>, Error> {
        self.ask(|reply| Message::Size { run, reply })
    }

    /// Signals the resource worker whenever something happens to the run, or only when its lifecycle changes.
    pub(crate) fn signal_changes(&self, run: RunId, lifecycle_only: bool) {
        let signal = RunSignal { run, to: self.work_items.clone(), lifecycle_only };
        let _ = self.messages.send(Message::Watch { run, watcher: Watcher::Signal(signal) });
    }

    pub(crate) fn open_children(&self, run: RunId) -> Result<Vec<(RunId, String)>, Error> {
        let rows = self.rows_of(run)?.into_iter().filter(|row| !row.archived);
        Ok(rows.map(|row| (row.run, row.name)).collect())
    }

    /// Parents before their children.
    pub(crate) fn open_descendants(&self, run: RunId) -> Result<Vec<RunId>, Error> {
        let mut found = Vec::new();
        let mut open = vec![run];
        while let Some(parent) = open.pop() {
            for row in self.rows_of(parent)? {
                open.push(row.run);
                if !row.archived {
                    found.push(row.run);
                }
            }
        }
        Ok(found)
    }

    fn rows_of(&self, parent: RunId) -> Result<Vec<RunRow>, Error> {
        let filter = Filter { parent: Some(parent), ..Filter::default() };
        Ok(self.store.reader()?.list(&filter, Page { limit: MAX_CHILDREN, after: None })?.0)
    }

    pub(crate) fn ask<T>(&self, message: impl FnOnce(Reply<T>) -> Message) -> Result<T, Error> {
        park::wait(self.put(message)?).unwrap_or(Err(Error::Gone))
    }

    fn put<T>(&self, message: impl FnOnce(Reply<T>) -> Message) -> Result<ReplyReceiver<T>, Error> {
        let (reply, told) = oneshot::channel();
        self.messages.send(message(reply)).map_err(|_| Error::Gone)?;
        Ok(told)
    }
}

/// While nothing can be written nobody is at work on anything, and what is on disk is all there is to see.
pub(crate) fn unless_outage<T>(told: Result<Option<T>, Error>) -> Result<Option<T>, Error> {
    match told {
        Err(error) if error.is_outage() => Ok(None),
        told => told,
    }
}

/// Message that looks at the scheduler now and tells what was seen once it is durable.
fn looking<T: Send + 'static>(look: impl FnOnce(&Scheduler) -> T + Send + 'static, reply: Reply<Option<T>>) -> Message {
    Message::Look(Box::new(move |scheduler| {
        let seen = scheduler.map(look);
        // Nobody has to listen any more.
        Box::new(move |kept| drop(reply.send(kept.map(|()| seen))))
    }))
}

/// What the event loop said to a submission. A run that was made before for the same key is as good as a new one.
fn entered(told: Result<Result<Entered, Error>, oneshot::error::RecvError>) -> Result<Entered, Error> {
    match told.unwrap_or(Err(Error::Gone)) {
        Err(Error::Made { run }) => Ok(Entered { run, shown: None }),
        entered => entered,
    }
}

/// Where an object is kept: the namespace it names, the default one, or none.
pub(crate) fn owned_namespace(namespaced: bool, object: &Value) -> &str {
    let named = object["metadata"]["namespace"].as_str().filter(|text| !text.is_empty());
    if namespaced { named.unwrap_or(DEFAULT_NAMESPACE) } else { "" }
}

/// The object belongs to whoever has this uid.
pub fn owned(object: &Value, uid: &str) -> bool {
    object["metadata"]["ownerReferences"].as_array().into_iter().flatten().any(|owner| owner["uid"] == uid)
}
