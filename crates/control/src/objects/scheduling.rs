//! Queues and PriorityClasses between the store and the engine: what is stored is told to the engine in the order of the
//! commits, and all of it at a start.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use octoflow_engine::{
    Input, Problem,
    kinds::{
        Kind,
        core::NAMESPACE,
        scheduling::{self, ClassObject, PRIORITY_CLASS, QUEUE, QueueState, QueueTree},
    },
    schedule::{
        TaskRef,
        spec::{NodeSpec, Quantities, QueueSpec},
    },
};
use octoflow_store::{Reader, Store};
use serde_json::Value;

use crate::{Error, node};

/// A change of what the scheduler works with.
#[derive(Debug)]
pub(crate) enum SchedulingChange {
    Queue {
        name: String,
        spec: Option<Box<QueueSpec>>,
    },
    Class {
        name: String,
        class: Option<ClassObject>,
    },
    /// People have changed something about a node, which is stored.
    Node(Box<NodeSpec>),
    /// A node joined, or has other amounts than before. What people have changed about it is applied to it.
    Joined(Box<NodeSpec>),
    /// A node is gone.
    Left {
        node: String,
    },
    /// Ends what runs on a node.
    Drain {
        node: String,
    },
    /// Ends one task, which waits again.
    Evict {
        task: TaskRef,
        why: String,
    },
}

impl SchedulingChange {
    /// Reads the change that storing an object of this kind is; `None` if the scheduler does not know the kind.
    pub(crate) fn of_object(kind: &Kind, object: &Value) -> Option<Self> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if *kind == QUEUE {
            return Some(Self::Queue { name, spec: Some(Box::new(scheduling::queue(object))) });
        }
        (*kind == PRIORITY_CLASS).then(|| Self::Class { name, class: Some(scheduling::class(object)) })
    }

    /// Returns the change that deleting an object is.
    pub(crate) fn of_deletion(kind: &str, name: &str) -> Option<Self> {
        let name = name.to_owned();
        // Queues that always exist are as at the beginning again.
        let always =
            matches!(name.as_str(), octoflow_engine::schedule::spec::ROOT | octoflow_engine::schedule::spec::DEFAULT);
        match kind {
            _ if kind == QUEUE.key && always => {
                let spec = Some(Box::new(QueueSpec::new(name.as_str())));
                Some(Self::Queue { name, spec })
            }
            _ if kind == QUEUE.key => Some(Self::Queue { name, spec: None }),
            _ if kind == PRIORITY_CLASS.key => Some(Self::Class { name, class: None }),
            _ => None,
        }
    }

    /// Reports whether it is known again after an outage: it is in the store, or the event loop keeps the node.
    pub(crate) fn is_kept(&self) -> bool {
        match self {
            Self::Queue { .. } | Self::Class { .. } | Self::Node(_) | Self::Joined(_) | Self::Left { .. } => true,
            Self::Drain { .. } | Self::Evict { .. } => false,
        }
    }

    pub(crate) fn into_input(self) -> Input {
        match self {
            Self::Queue { name, spec } => Input::Queue { name, spec },
            Self::Class { name, class } => Input::Class {
                name,
                class: class.map(|class| class.spec),
                is_default: class.is_some_and(|class| class.is_default),
            },
            Self::Node(spec) | Self::Joined(spec) => Input::Node { name: spec.name.to_string(), spec: Some(spec) },
            Self::Left { node } => Input::Node { name: node, spec: None },
            Self::Drain { node } => Input::Drain { node },
            Self::Evict { task, why } => Input::Evict { task, why },
        }
    }
}

/// Calls `take` for every queue and class that is stored.
pub(crate) fn each_stored(reader: &Reader, mut take: impl FnMut(SchedulingChange)) -> Result<(), Error> {
    for kind in [&QUEUE, &PRIORITY_CLASS] {
        for object in reader.objects(kind.key, None)? {
            let body = node::body(kind, &object)?;
            SchedulingChange::of_object(kind, &body).into_iter().for_each(&mut take);
        }
    }
    Ok(())
}

/// All queues and classes as they are stored.
#[derive(Clone, Debug, Default)]
pub(crate) struct Declared {
    queues: QueueTree,
    /// Whether a class is the default, by name.
    classes: BTreeMap<String, bool>,
    /// The queue of a namespace, by its name.
    namespaces: BTreeMap<String, String>,
}

/// The kinds that say something about scheduling.
const KINDS: [&Kind; 3] = [&QUEUE, &PRIORITY_CLASS, &NAMESPACE];

impl Declared {
    pub(crate) fn load(reader: &Reader) -> Result<Self, Error> {
        let mut all = Self::default();
        for kind in KINDS {
            for object in reader.objects(kind.key, None)? {
                all.put(kind, &node::body(kind, &object)?);
            }
        }
        Ok(all)
    }

    fn put(&mut self, kind: &Kind, object: &Value) {
        if *kind == QUEUE {
            self.queues.put(scheduling::queue(object), scheduling::is_closed(object));
        } else if *kind == PRIORITY_CLASS {
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            self.classes.insert(name, scheduling::is_default_class(object));
        } else if *kind == NAMESPACE {
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            match scheduling::named_queue(&object["metadata"]) {
                Some(queue) => drop(self.namespaces.insert(name, queue.to_owned())),
                None => drop(self.namespaces.remove(&name)),
            }
        }
    }

    fn remove(&mut self, kind: &str, name: &str) {
        if kind == QUEUE.key {
            self.queues.remove(name);
        } else if kind == PRIORITY_CLASS.key {
            self.classes.remove(name);
        } else if kind == NAMESPACE.key {
            self.namespaces.remove(name);
        }
    }

    pub(crate) fn queue(&self, name: &str) -> QueueState {
        self.queues.state(name)
    }

    /// Returns a queue and those above it.
    pub(crate) fn queue_path(&self, name: &str) -> Vec<QueueSpec> {
        self.queues.specs(name)
    }

    pub(crate) fn is_closed(&self, name: &str) -> bool {
        self.queues.is_closed(name)
    }

    pub(crate) fn queue_names(&self) -> Vec<String> {
        self.queues.names().map(str::to_owned).collect()
    }

    pub(crate) fn queue_of_namespace(&self, namespace: &str) -> Option<String> {
        self.namespaces.get(namespace).cloned()
    }

    pub(crate) fn has_class(&self, name: &str) -> bool {
        self.classes.contains_key(name)
    }

    pub(crate) fn class_names(&self) -> Vec<String> {
        self.classes.keys().cloned().collect()
    }

    /// Returns the class that is the default, unless it has this name.
    pub(crate) fn other_default(&self, name: &str) -> Option<&str> {
        self.classes.iter().find(|(other, is_default)| **is_default && *other != name).map(|(other, _)| other.as_str())
    }

    /// Returns everything that is wrong with a queue at its place.
    pub(crate) fn check_queue(&self, object: &Value, has_work: impl Fn(&str) -> bool) -> Vec<Problem> {
        self.queues.check(&scheduling::queue(object), has_work)
    }

    /// Returns what is wrong with guarantees beside what all nodes were declared to have: more would stop every other queue.
    pub(crate) fn check_guarantees(&self, object: &Value, totals: &Quantities) -> Vec<Problem> {
        let spec = scheduling::queue(object);
        let beyond = spec.guarantee.keys().filter_map(|resource| {
            let (all, most) = (self.queues.guaranteed(&spec, resource), *totals.get(resource)?);
            (all > most).then(|| scheduling::guaranteed_too_much(resource, all, most))
        });
        beyond.collect()
    }

    pub(crate) fn check_delete_queue(&self, name: &str, has_work: impl Fn(&str) -> bool) -> Result<(), String> {
        self.queues.check_delete(name, has_work)
    }
}

/// What is declared, kept up to date by whoever stores it. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct SharedDeclared(Arc<Mutex<Option<Declared>>>);

impl SharedDeclared {
    /// Shows what is declared; reads it from the store if nobody has yet.
    pub(crate) fn read<T>(&self, reader: &Reader, ask: impl FnOnce(&Declared) -> T) -> Result<T, Error> {
        let mut known = self.lock();
        if known.is_none() {
            *known = Some(Declared::load(reader)?);
        }
        Ok(ask(known.get_or_insert_default()))
    }

    /// Returns the queue of a namespace. The store is read by the first who asks.
    pub(crate) fn queue_of_namespace(&self, store: &Store, namespace: &str) -> Result<Option<String>, Error> {
        if let Some(known) = self.lock().as_ref() {
            return Ok(known.queue_of_namespace(namespace));
        }
        self.read(&store.reader()?, |declared| declared.queue_of_namespace(namespace))
    }

    pub(crate) fn put(&self, kind: &Kind, object: &Value) {
        if !KINDS.contains(&kind) {
            return;
        }
        if let Some(known) = self.lock().as_mut() {
            known.put(kind, object);
        }
    }

    pub(crate) fn remove(&self, kind: &str, name: &str) {
        if let Some(known) = self.lock().as_mut() {
            known.remove(kind, name);
        }
    }

    /// Has it read again: nobody knows whether a commit is durable that has failed.
    pub(crate) fn forget(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Declared>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
