//! The house: the pump on a thread of its own, between the store and a runtime. Its handle can be used from anywhere.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        mpsc::{self, Receiver, Sender},
    },
    thread::JoinHandle,
};

use octoflow_engine::{Command, Engine, argo::refer::Reach, engine::World};
use octoflow_model::{
    Fact, RunId,
    fact::{Stored, Submission},
    meta::DEFAULT_NAMESPACE,
};
use octoflow_runtime::{egress::Policy, null::NullRuntime, port::Runtime, process};
use octoflow_store::{Batch, Change, Reader, Store};
use serde_json::Value;

use crate::{
    Capacity, Error, Explanation, Pump, cache, clock,
    keyed::{self, KeyedObject},
    known, meters, new_uid, read,
    sweep::{self, Sweeper},
};

mod work;

use work::{Keeper, Message, Worker};

pub struct Config {
    pub data_dir: PathBuf,
    pub capacity: Capacity,
    pub place: Place,
}

/// Where tasks run.
pub enum Place {
    /// As processes of this machine.
    Processes(Box<process::Config>),
    /// Nowhere: everything succeeds at once. For measuring the house itself.
    Nowhere,
}

/// What someone wants run. The manifest must have been admitted.
pub struct Submit {
    pub namespace: String,
    pub name: String,
    pub manifest: Value,
    /// What the manifest refers to, as admission found it.
    pub stored: Stored,
}

/// A handle to the running house.
pub struct House {
    messages: Sender<Message>,
    worker: Mutex<Option<JoinHandle<Result<(), Error>>>>,
    store: Store,
    next_run: Mutex<u64>,
    runtime: SharedRuntime,
    /// The name of this machine.
    host: Option<String>,
    sweeper: Arc<Mutex<Sweeper>>,
}

pub(crate) type SharedRuntime = Arc<Mutex<Option<Box<dyn Runtime>>>>;
pub(crate) type Watchers = Arc<Mutex<HashMap<RunId, Vec<Sender<Vec<Fact>>>>>>;

impl House {
    /// Opens the data directory for writing and starts the engine. Nothing runs until it is submitted or taken up.
    /// The texts are notices for people, e.g. about what the machine cannot do.
    pub fn open(config: Config) -> Result<(Self, Vec<String>), Error> {
        let store = Store::open(&config.data_dir)?;
        let reader = store.reader()?;
        let mut engine = Engine::new(config.capacity);
        each_keyed(&reader, |parsed| engine.put_keyed(parsed.kind, &parsed.namespace, &parsed.name, parsed.data))?;
        let (meters, mut unread) = meters::load(&reader)?;
        *engine.meters_mut() = meters;
        // Nobody may take a lock from an open run because that has not been taken up here.
        for row in reader.unfinished()? {
            let facts = read::facts(&reader, row.run)?;
            if let Err(why) = engine.respect(row.run, facts) {
                unread.push(format!("run {} cannot be read, so its locks count as free: {why}", row.run));
            }
        }
        let next_run = reader.next_run_id()?.0;
        let (messages, inbox) = mpsc::channel();
        let reports = messages.clone();
        let sink = Box::new(move |batch| {
            // The house is closing when nobody listens; the runtime keeps what it knows for the next one.
            let _ = reports.send(Message::Reports(batch));
        });
        let policy = match &config.place {
            Place::Processes(config) => config.egress.clone(),
            Place::Nowhere => Policy::strict(),
        };
        let mut sweeper = Sweeper::new(store.clone(), config.data_dir.clone(), policy);
        for doomed in sweep::leftovers(&config.data_dir, &reader)? {
            sweeper.send(doomed.mission(engine.world()));
        }
        let sweeper = Arc::new(Mutex::new(sweeper));
        let (runtime, mut notices): (Box<dyn Runtime>, Vec<String>) = match config.place {
            Place::Processes(config) => {
                let (runtime, notices) = process::open(*config, sink)?;
                (Box::new(runtime), notices.into_iter().map(|notice| notice.0).collect())
            }
            Place::Nowhere => (Box::new(NullRuntime::new(sink)), Vec::new()),
        };
        let runtime = Arc::new(Mutex::new(Some(runtime)));
        let keeper = Keeper { data_dir: config.data_dir, sweeper: sweeper.clone() };
        let worker = Worker::new(Pump::new(engine), store.clone(), runtime.clone(), inbox, messages.clone(), keeper);
        let handle =
            std::thread::Builder::new().name("pump".to_owned()).spawn(move || worker.work()).map_err(Error::Thread)?;
        let house = Self {
            messages,
            worker: Mutex::new(Some(handle)),
            store,
            next_run: Mutex::new(next_run),
            runtime,
            host: known::host(),
            sweeper,
        };
        notices.extend(unread);
        Ok((house, notices))
    }

    /// Keeps a ConfigMap, a Secret, a WorkflowTemplate or a ClusterWorkflowTemplate; later runs can refer to it.
    pub fn put_object(&self, mut object: Value) -> Result<(), Error> {
        if let Some(reach) = object["kind"].as_str().and_then(Reach::of_kind) {
            return self.put_template(reach, &object);
        }
        cache::keep_entries(&self.store, &mut object)?;
        let parsed = keyed::parse(&object)?;
        let mut batch = Batch::new();
        batch.push(Change::PutObject {
            kind: object["kind"].as_str().unwrap_or_default().to_owned(),
            namespace: parsed.namespace.clone(),
            name: parsed.name.clone(),
            uid: new_uid()?,
            body: object.to_string().into_bytes(),
        });
        self.store.commit_wait(batch)?;
        self.ask(|reply| Message::Keyed { object: Box::new(parsed), reply })
    }

    /// Only read when something is submitted, so the engine need not hear of it.
    fn put_template(&self, reach: Reach, object: &Value) -> Result<(), Error> {
        let text = |field: &str| object["metadata"][field].as_str().filter(|text| !text.is_empty());
        let name = text("name").ok_or_else(|| Error::Object {
            what: format!("{} ``", reach.kind()),
            why: "it has no metadata.name".to_owned(),
        })?;
        let namespace = match reach {
            Reach::Namespace => text("namespace").unwrap_or(DEFAULT_NAMESPACE),
            Reach::Cluster => "",
        };
        let mut batch = Batch::new();
        batch.push(Change::PutObject {
            kind: reach.kind().to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: new_uid()?,
            body: object.to_string().into_bytes(),
        });
        self.store.commit_wait(batch)?;
        Ok(())
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
        let namespace = if submit.namespace.is_empty() { DEFAULT_NAMESPACE.to_owned() } else { submit.namespace };
        let known = known::known(&self.store, &namespace, &submit.manifest, self.host.as_deref())?;
        let submission = Submission {
            name: submit.name,
            namespace,
            uid: new_uid()?,
            at: clock::now(),
            manifest: submit.manifest,
            stored: submit.stored,
            known,
        };
        let run = {
            let mut next = self.next_run.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            *next += 1;
            RunId(*next - 1)
        };
        self.ask(|reply| Message::Submit { run, submission: Box::new(submission), watcher, reply })?;
        Ok(run)
    }

    /// An interrupted run goes on where it was. Every fact of it is told, those of the past first.
    pub fn take_up(&self, run: RunId) -> Result<Receiver<Vec<Fact>>, Error> {
        let past = read::facts(&self.store.reader()?, run)?;
        let (watcher, facts) = mpsc::channel();
        let _ = watcher.send(past.clone());
        self.ask(|reply| Message::TakeUp { run, past, watcher, reply })?;
        Ok(facts)
    }

    /// Tells a run to do something. When this returns it is decided and on disk.
    pub fn command(&self, run: RunId, command: Command) -> Result<(), Error> {
        self.ask(|reply| Message::Command { run, command, reply })
    }

    /// The facts of a run from now on, each batch after it is durable. Closed after the last.
    pub fn watch(&self, run: RunId) -> Receiver<Vec<Fact>> {
        let (watcher, facts) = mpsc::channel();
        // A house that is gone sends nothing, and the receiver sees it closed.
        let _ = self.messages.send(Message::Watch { run, watcher });
        facts
    }

    /// The run as people see it, open or finished.
    pub fn object(&self, run: RunId) -> Result<Value, Error> {
        match self.ask(|reply| Message::Object { run, reply })? {
            Some(object) => Ok(object),
            None => read::object(&self.store.reader()?, run),
        }
    }

    pub fn explain(&self, run: RunId) -> Result<Vec<Explanation>, Error> {
        match self.ask(|reply| Message::Explain { run, reply })? {
            Some(explanations) => Ok(explanations),
            None => read::explain(&self.store.reader()?, run),
        }
    }

    /// Every custom metric as the text that Prometheus reads, with the gauges that follow the runs under way here.
    pub fn metrics(&self) -> Result<String, Error> {
        self.ask(|reply| Message::Metrics { reply })
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Everything decided is on disk when this returns. Running tasks stay with the runtime and can be taken up again.
    pub fn close(self) -> Result<(), Error> {
        let _ = self.messages.send(Message::Close);
        let worker = self.worker.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        let worked = worker.map_or(Ok(()), |worker| worker.join().unwrap_or(Err(Error::Gone)));
        // What followed the last decisions, such as letting go of ended tasks, is done once this is through.
        let settled = self.store.commit_wait(Batch::new());
        self.sweeper.lock().unwrap_or_else(std::sync::PoisonError::into_inner).finish();
        let runtime = self.runtime.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(runtime) = runtime {
            runtime.close();
        }
        self.store.clone().close()?;
        settled?;
        worked
    }

    fn ask<T>(&self, message: impl FnOnce(Sender<Result<T, Error>>) -> Message) -> Result<T, Error> {
        let (reply, answer) = mpsc::channel();
        self.messages.send(message(reply)).map_err(|_| Error::Gone)?;
        answer.recv().unwrap_or(Err(Error::Gone))
    }
}

/// What runs can refer to, as the store has it.
pub(crate) fn world(reader: &Reader) -> Result<World, Error> {
    let mut world = World::default();
    each_keyed(reader, |parsed| world.put(parsed.kind, &parsed.namespace, &parsed.name, parsed.data))?;
    Ok(world)
}

fn each_keyed(reader: &Reader, mut take: impl FnMut(KeyedObject)) -> Result<(), Error> {
    for kind in ["ConfigMap", "Secret"] {
        for object in reader.objects(kind, None)? {
            let body: Value = serde_json::from_slice(&object.body)
                .map_err(|error| Error::Object { what: format!("{kind} `{}`", object.name), why: error.to_string() })?;
            take(keyed::parse(&body)?);
        }
    }
    Ok(())
}
