//! Judges loaded objects against each other. `run` and `lint` share it, so that what one refuses is what the other
//! calls an error. It tells problems; it prints and stores nothing.

use std::collections::{BTreeMap, BTreeSet};

use octoflow_engine::{
    admit::examine,
    argo::{
        admit::{Surroundings, examine_binding, examine_cron, examine_template},
        fields::{CLAIM, CONFIG_MAP, SECRET, WORKFLOW_TEMPLATE},
        refer::Reach,
    },
    shape::{self, Shape},
    taskset::{admit::examine_group, fields::POD_GROUP},
};
use octoflow_manifest::{Path, Problem, Problems};
use octoflow_store::Reader;
use serde_json::Value;

use crate::{adjust, load::Loaded, workflow::text};

/// The code of an object without a name.
const NAME_MISSING: &str = "OF1014";

/// Everything there is to tell about one object, warnings too, each at its place in the text.
pub(crate) fn judge(one: &Loaded, around: &Around<'_>) -> Problems {
    let found = if is_beside(one.kind()) {
        let (mut problems, warnings) = match Reach::of_kind(one.kind()) {
            Some(_) => examine_template(&one.value, around),
            None => check_beside(one),
        };
        problems.extend(warnings);
        problems
    } else if let Some(examine) = kept(one.kind()) {
        let (mut problems, warnings) = examine(&one.value, around);
        problems.extend(warnings);
        problems
    } else {
        match examine(&one.value, around) {
            Ok(admitted) => admitted.warnings.into_iter().chain(nameless(&one.value)).collect(),
            Err(mut problems) => {
                let readable = matches!(one.value.get("metadata"), None | Some(Value::Null | Value::Object(_)));
                problems.extend(nameless(&one.value).filter(|_| one.kind() == "Workflow" && readable));
                problems.0
            }
        }
    };
    Problems(found.into_iter().map(|problem| one.locate(problem)).collect())
}

/// Problems and warnings of an object.
type Examine = fn(&Value, &dyn Surroundings) -> (Vec<Problem>, Vec<Problem>);

/// How an object is judged that a server keeps and that makes workflows.
fn kept(kind: &str) -> Option<Examine> {
    match kind {
        "CronWorkflow" => Some(examine_cron),
        "WorkflowEventBinding" => Some(examine_binding),
        _ => None,
    }
}

/// Whether objects of this kind are kept by a server and make workflows there.
pub(crate) fn is_kept(kind: &str) -> bool {
    kept(kind).is_some()
}

/// Whether objects of this kind only stand beside what runs.
pub(crate) fn is_beside(kind: &str) -> bool {
    beside(kind).is_some()
}

fn beside(kind: &str) -> Option<&'static Shape> {
    match kind {
        "ConfigMap" => Some(&CONFIG_MAP),
        "Secret" => Some(&SECRET),
        "PersistentVolumeClaim" => Some(&CLAIM),
        "PodGroup" => Some(&POD_GROUP),
        "WorkflowTemplate" | "ClusterWorkflowTemplate" => Some(&WORKFLOW_TEMPLATE),
        _ => None,
    }
}

/// Problems and warnings, not yet located.
pub(crate) fn check_beside(one: &Loaded) -> (Vec<Problem>, Vec<Problem>) {
    if one.kind() == "PodGroup" {
        return examine_group(&one.value);
    }
    let shape = beside(one.kind()).expect("only objects with a shape are checked here");
    let mut checked = shape::check(&one.value, shape);
    if text(&one.value["metadata"], "name").is_empty() {
        let path = Path::root().join("metadata").join("name");
        checked.problems.push(Problem::error(NAME_MISSING, format!("the {} has no name", one.kind())).path(path));
    }
    (checked.problems, checked.warnings)
}

pub(crate) fn nameless(workflow: &Value) -> Option<Problem> {
    let metadata = &workflow["metadata"];
    let has_name = !text(metadata, "name").is_empty() || !text(metadata, "generateName").is_empty();
    (!has_name).then(|| {
        Problem::error(NAME_MISSING, "the workflow has neither a name nor a generateName")
            .path(Path::root().join("metadata"))
            .help("add one, or pass --name or --generate-name")
    })
}

/// What workflows may refer to: the objects of the files, and those of earlier runs.
pub(crate) struct Around<'a> {
    objects: BTreeMap<(&'a str, &'a str, &'a str), &'a Value>,
    stored: Option<Box<dyn Shelf>>,
}

/// Objects that are kept somewhere and may be referred to.
pub(crate) trait Shelf {
    fn object(&self, kind: &str, namespace: &str, name: &str) -> Option<Value>;
    fn names(&self, kind: &str, namespace: &str) -> Vec<String>;
    /// Whether it is there, also where nobody may look into it.
    fn has(&self, kind: &str, namespace: &str, name: &str) -> bool {
        self.object(kind, namespace, name).is_some()
    }
}

impl Shelf for Reader {
    fn object(&self, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        let object = Self::object(self, kind, namespace, name).ok()??;
        serde_json::from_slice(&object.body).ok()
    }

    fn has(&self, kind: &str, namespace: &str, name: &str) -> bool {
        match Self::object(self, kind, namespace, name) {
            Ok(found) => found.is_some(),
            // It is there; only whoever runs it needs to look into it.
            Err(error) => matches!(error, octoflow_store::Error::NoSecretsKey),
        }
    }

    fn names(&self, kind: &str, namespace: &str) -> Vec<String> {
        let objects = self.objects(kind, Some(namespace)).unwrap_or_default();
        objects.into_iter().map(|object| object.name).collect()
    }
}

impl<'a> Around<'a> {
    pub(crate) fn new(objects: impl IntoIterator<Item = &'a Value>, stored: Option<Box<dyn Shelf>>) -> Self {
        let objects = objects
            .into_iter()
            .map(|object| {
                let (kind, name) = (text(object, "kind"), text(&object["metadata"], "name"));
                let namespace = if kind == Reach::Cluster.kind() { "" } else { adjust::namespace(object) };
                ((kind, namespace, name), object)
            })
            .collect();
        Self { objects, stored }
    }

    fn has(&self, kind: &str, namespace: &str, name: &str) -> bool {
        self.objects.contains_key(&(kind, namespace, name))
            || self.stored.as_ref().is_some_and(|shelf| shelf.has(kind, namespace, name))
    }
}

impl Around<'_> {
    /// From the files, else as earlier runs left it.
    fn given(&self, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        if let Some(object) = self.objects.get(&(kind, namespace, name)) {
            return Some((*object).clone());
        }
        self.stored.as_ref()?.object(kind, namespace, name)
    }

    /// Only objects of the files are looked into; what earlier runs brought is believed.
    fn has_key(&self, kind: &str, namespace: &str, name: &str, fields: &[&str], key: &str) -> bool {
        let object = self.objects.get(&(kind, namespace, name));
        object.is_none_or(|object| fields.iter().any(|field| object[*field].get(key).is_some()))
    }
}

impl Surroundings for Around<'_> {
    fn has_config_map(&self, namespace: &str, name: &str) -> bool {
        self.has("ConfigMap", namespace, name)
    }

    fn has_secret(&self, namespace: &str, name: &str) -> bool {
        self.has("Secret", namespace, name)
    }

    fn has_claim(&self, namespace: &str, name: &str) -> bool {
        self.has("PersistentVolumeClaim", namespace, name)
    }

    fn has_config_key(&self, namespace: &str, name: &str, key: &str) -> bool {
        self.has_key("ConfigMap", namespace, name, &["data", "binaryData"], key)
    }

    fn has_secret_key(&self, namespace: &str, name: &str, key: &str) -> bool {
        self.has_key("Secret", namespace, name, &["data", "stringData"], key)
    }

    fn config_map(&self, namespace: &str, name: &str) -> Option<Value> {
        self.given("ConfigMap", namespace, name)
    }

    fn pod_group(&self, namespace: &str, name: &str) -> Option<Value> {
        self.given("PodGroup", namespace, name)
    }

    fn template(&self, reach: Reach, namespace: &str, name: &str) -> Option<Value> {
        self.given(reach.kind(), shelf(reach, namespace), name)
    }

    fn template_names(&self, reach: Reach, namespace: &str) -> Vec<String> {
        let namespace = shelf(reach, namespace);
        let stored = self.stored.as_ref().map(|shelf| shelf.names(reach.kind(), namespace));
        let given = self.objects.keys().filter(|(kind, space, _)| (*kind, *space) == (reach.kind(), namespace));
        let given = given.map(|(_, _, name)| (*name).to_owned());
        let names: BTreeSet<String> = given.chain(stored.into_iter().flatten()).collect();
        names.into_iter().collect()
    }
}

/// Where templates of this reach are kept.
fn shelf(reach: Reach, namespace: &str) -> &str {
    match reach {
        Reach::Namespace => namespace,
        Reach::Cluster => "",
    }
}
