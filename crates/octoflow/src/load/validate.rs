//! Validates loaded objects against each other. Shared by `run` and `lint`, so that both report the same errors. It
//! prints and stores nothing.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
};

use octoflow_engine::{
    admit::{Catalog, Reach, advise_on_references, examine},
    kinds::{
        self, Kind,
        core::{CONFIG_MAP, SECRET},
        scheduling::{self, POD_GROUP, PRIORITY_CLASS, QUEUE, QueueState, QueueTree},
    },
    schedule::spec::{NodeSpec, QueueSpec},
};
use octoflow_manifest::{Path, Problem, Problems};
use octoflow_store::Reader;
use serde_json::Value;

use crate::{
    load::{Loaded, adjust},
    source::workflow::text,
};

/// Error code of an object without a name.
const NAME_MISSING: &str = "OF1014";

/// Returns all problems and warnings of one object, each at its place in the text.
pub(crate) fn validate(one: &Loaded, catalog: &FileCatalog<'_>) -> Problems {
    let found = match one.known().filter(|kind| kind.is_kept()) {
        Some(kind) => {
            let (mut problems, warnings) = match kind.examine {
                Some(examine) => examine(&one.value, catalog),
                None => check_beside(kind, one),
            };
            problems.extend(warnings);
            if kind.is_template || kind.make.is_some() || kind.starts_runs {
                problems.extend(advise_on_references(&one.value, catalog));
            }
            problems
        }
        None => match examine(&one.value, catalog) {
            Ok(admitted) => admitted.warnings.into_iter().chain(nameless(&one.value)).collect(),
            Err(mut problems) => {
                let readable = matches!(one.value.get("metadata"), None | Some(Value::Null | Value::Object(_)));
                let runs = one.known().is_some_and(Kind::runs);
                problems.extend(nameless(&one.value).filter(|_| runs && readable));
                problems.0
            }
        },
    };
    Problems(found.into_iter().map(|problem| one.locate(problem)).collect())
}

/// Returns problems and warnings of an object that does not run, not yet located.
pub(crate) fn check_beside(kind: &Kind, one: &Loaded) -> (Vec<Problem>, Vec<Problem>) {
    let (mut problems, warnings) = kind.check(&one.value);
    let told = problems.iter().any(|problem| problem.path == Some(Path::root().join("metadata")));
    if text(&one.value["metadata"], "name").is_empty() && !told {
        let path = Path::root().join("metadata").join("name");
        problems.push(Problem::error(NAME_MISSING, format!("the {} has no name", kind.name)).path(path));
    }
    (problems, warnings)
}

pub(crate) fn nameless(workflow: &Value) -> Option<Problem> {
    let metadata = &workflow["metadata"];
    let has_name = !text(metadata, "name").is_empty() || !text(metadata, "generateName").is_empty();
    (!has_name).then(|| {
        Problem::error(NAME_MISSING, format!("the {} has neither a name nor a generateName", noun(workflow)))
            .path(Path::root().join("metadata"))
            .help("add one, or pass --name or --generate-name")
    })
}

/// Returns the noun for an object that runs, for messages.
fn noun(object: &Value) -> &'static str {
    kinds::of_manifest(object).map_or(kinds::UNKNOWN.noun, |kind| kind.noun)
}

/// Catalog of objects that workflows may refer to: those of the files, and stored ones.
pub(crate) struct FileCatalog<'a> {
    objects: BTreeMap<(&'static str, &'a str, &'a str), &'a Value>,
    stored: Option<Box<dyn ObjectSource>>,
    /// All queues, once somebody asks for one.
    queues: OnceCell<QueueTree>,
    /// The nodes that tasks will run on, if that is known.
    nodes: Option<Vec<NodeSpec>>,
}

/// Store of objects that may be referred to.
pub(crate) trait ObjectSource {
    fn object(&self, kind: &'static Kind, namespace: &str, name: &str) -> Option<Value>;
    fn names(&self, kind: &'static Kind, namespace: &str) -> Vec<String>;
    /// Returns whether the object exists, also if its content cannot be read.
    fn has(&self, kind: &'static Kind, namespace: &str, name: &str) -> bool {
        self.object(kind, namespace, name).is_some()
    }
}

impl ObjectSource for Reader {
    fn object(&self, kind: &'static Kind, namespace: &str, name: &str) -> Option<Value> {
        let object = Self::object(self, kind.key, namespace, name).ok()??;
        serde_json::from_slice(&object.body).ok()
    }

    fn has(&self, kind: &'static Kind, namespace: &str, name: &str) -> bool {
        match Self::object(self, kind.key, namespace, name) {
            Ok(found) => found.is_some(),
            // It exists; only running it needs its content.
            Err(error) => matches!(error, octoflow_store::Error::NoSecretsKey),
        }
    }

    fn names(&self, kind: &'static Kind, namespace: &str) -> Vec<String> {
        let objects = self.objects(kind.key, Some(namespace)).unwrap_or_default();
        objects.into_iter().map(|object| object.name).collect()
    }
}

/// The objects of a data directory that does not exist yet.
pub(crate) struct NoObjects;

impl ObjectSource for NoObjects {
    fn object(&self, _: &'static Kind, _: &str, _: &str) -> Option<Value> {
        None
    }

    fn names(&self, _: &'static Kind, _: &str) -> Vec<String> {
        Vec::new()
    }
}

impl<'a> FileCatalog<'a> {
    pub(crate) fn new(objects: impl IntoIterator<Item = &'a Value>, stored: Option<Box<dyn ObjectSource>>) -> Self {
        let objects = objects
            .into_iter()
            .filter_map(|object| {
                let kind = kinds::of_manifest(object).ok()?;
                let namespace = if kind.namespaced { adjust::namespace(object) } else { "" };
                Some(((kind.key, namespace, text(&object["metadata"], "name")), object))
            })
            .collect();
        Self { objects, stored, queues: OnceCell::new(), nodes: None }
    }

    /// Judges tasks by these nodes.
    pub(crate) fn with_nodes(self, nodes: Option<Vec<NodeSpec>>) -> Self {
        Self { nodes, ..self }
    }

    fn has(&self, kind: &'static Kind, namespace: &str, name: &str) -> bool {
        self.objects.contains_key(&(kind.key, namespace, name))
            || self.stored.as_ref().is_some_and(|objects| objects.has(kind, namespace, name))
    }
}

impl FileCatalog<'_> {
    /// Returns an object from the files, else a stored one.
    fn given(&self, kind: &'static Kind, namespace: &str, name: &str) -> Option<Value> {
        if let Some(object) = self.objects.get(&(kind.key, namespace, name)) {
            return Some((*object).clone());
        }
        self.stored.as_ref()?.object(kind, namespace, name)
    }

    /// Returns the names of all objects of a kind without namespaces.
    fn names(&self, kind: &'static Kind) -> Vec<String> {
        let given = self.objects.keys().filter(|(key, ..)| *key == kind.key).map(|(_, _, name)| (*name).to_owned());
        let stored = self.stored.as_ref().map(|objects| objects.names(kind, ""));
        given.chain(stored.into_iter().flatten()).collect()
    }

    fn queues(&self) -> &QueueTree {
        self.queues.get_or_init(|| {
            let mut tree = QueueTree::default();
            for queue in self.names(&QUEUE).iter().filter_map(|name| self.given(&QUEUE, "", name)) {
                tree.put(scheduling::queue(&queue), scheduling::is_closed(&queue));
            }
            tree
        })
    }

    /// Returns whether an object has a key. Only objects of the files are inspected; stored ones are assumed to have
    /// it.
    fn has_key(&self, kind: &'static Kind, namespace: &str, name: &str, fields: &[&str], key: &str) -> bool {
        let object = self.objects.get(&(kind.key, namespace, name));
        object.is_none_or(|object| fields.iter().any(|field| object[*field].get(key).is_some()))
    }
}

impl Catalog for FileCatalog<'_> {
    fn has_object(&self, kind: &'static Kind, namespace: &str, name: &str) -> bool {
        self.has(kind, namespace, name)
    }

    fn has_config_key(&self, namespace: &str, name: &str, key: &str) -> bool {
        self.has_key(&CONFIG_MAP, namespace, name, &["data", "binaryData"], key)
    }

    fn has_secret_key(&self, namespace: &str, name: &str, key: &str) -> bool {
        self.has_key(&SECRET, namespace, name, &["data", "stringData"], key)
    }

    fn config_map(&self, namespace: &str, name: &str) -> Option<Value> {
        self.given(&CONFIG_MAP, namespace, name)
    }

    fn pod_group(&self, namespace: &str, name: &str) -> Option<Value> {
        self.given(&POD_GROUP, namespace, name)
    }

    fn job_template(&self, namespace: &str, name: &str) -> Option<Value> {
        kinds::all().filter(|kind| kind.make.is_some()).find_map(|kind| self.given(kind, namespace, name))
    }

    fn queue(&self, name: &str) -> Option<QueueState> {
        // Without a store nobody knows the queues that are not in the files.
        let known = self.stored.is_some() || self.objects.contains_key(&(QUEUE.key, "", name));
        known.then(|| self.queues().state(name))
    }

    fn queue_path(&self, name: &str) -> Vec<QueueSpec> {
        self.queues().specs(name)
    }

    fn nodes(&self) -> Option<Vec<NodeSpec>> {
        self.nodes.clone()
    }

    fn queue_names(&self) -> Vec<String> {
        self.queues().names().map(str::to_owned).collect()
    }

    fn has_class(&self, name: &str) -> Option<bool> {
        let found = self.has(&PRIORITY_CLASS, "", name);
        (found || self.stored.is_some()).then_some(found)
    }

    fn class_names(&self) -> Vec<String> {
        self.names(&PRIORITY_CLASS)
    }

    fn template(&self, reach: Reach, namespace: &str, name: &str) -> Option<Value> {
        self.given(reach.row(), objects(reach, namespace), name)
    }

    fn template_names(&self, reach: Reach, namespace: &str) -> Vec<String> {
        let namespace = objects(reach, namespace);
        let stored = self.stored.as_ref().map(|objects| objects.names(reach.row(), namespace));
        let given = self.objects.keys().filter(|(kind, space, _)| (*kind, *space) == (reach.row().key, namespace));
        let given = given.map(|(_, _, name)| (*name).to_owned());
        let names: BTreeSet<String> = given.chain(stored.into_iter().flatten()).collect();
        names.into_iter().collect()
    }
}

/// Returns the namespace under which templates of this reach are stored.
fn objects(reach: Reach, namespace: &str) -> &str {
    match reach {
        Reach::Namespace => namespace,
        Reach::Cluster => "",
    }
}
