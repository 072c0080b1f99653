//! The kinds of objects a resource template can ask for. A new kind is a row here and a way to keep it.

use octoflow_engine::{
    argo::{
        admit::admit_template,
        fields::{KINDS, shape_of},
        refer::Reach,
        resource,
    },
    shape,
};
use serde_json::Value;

/// A kind and how it is kept.
#[derive(Debug)]
pub(super) struct Kind {
    pub name: &'static str,
    pub plural: &'static str,
    short: &'static str,
    pub keeping: Keeping,
    /// A kind of the dialect's own; merging lists by name is not defined for it.
    pub custom: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeping {
    /// It runs.
    Run,
    /// As it was given, in a namespace or in none.
    Shelf { namespaced: bool },
}

const SHELF: Keeping = Keeping::Shelf { namespaced: true };

static KNOWN: [Kind; 6] = [
    Kind { name: "Workflow", plural: "workflows", short: "wf", keeping: Keeping::Run, custom: true },
    Kind { name: "WorkflowTemplate", plural: "workflowtemplates", short: "wftmpl", keeping: SHELF, custom: true },
    Kind {
        name: "ClusterWorkflowTemplate",
        plural: "clusterworkflowtemplates",
        short: "cwft",
        keeping: Keeping::Shelf { namespaced: false },
        custom: true,
    },
    Kind { name: "ConfigMap", plural: "configmaps", short: "cm", keeping: SHELF, custom: false },
    Kind { name: "Secret", plural: "secrets", short: "secret", keeping: SHELF, custom: false },
    Kind {
        name: "PersistentVolumeClaim",
        plural: "persistentvolumeclaims",
        short: "pvc",
        keeping: SHELF,
        custom: false,
    },
];

/// By the word of a manifest or of a command line; the reason names what is known.
pub(super) fn find(word: &str) -> Result<&'static Kind, String> {
    let bare = word.split('.').next().unwrap_or_default();
    let is = |kind: &&Kind| {
        kind.name.eq_ignore_ascii_case(bare) || kind.plural.eq_ignore_ascii_case(bare) || kind.short == bare
    };
    KNOWN.iter().find(is).ok_or_else(|| {
        let names: Vec<&str> = KNOWN.iter().map(|kind| kind.name).collect();
        let given = if word.is_empty() { "an object without a kind".to_owned() } else { format!("kind {word}") };
        format!("{given} is not kept here; a resource template can ask for: {}", names.join(", "))
    })
}

impl Kind {
    /// Everything that is wrong with an object of this kind, in one text.
    pub(super) fn check(&self, object: &Value) -> Result<(), String> {
        let version = KINDS.iter().find(|known| known.name == self.name).map_or("", |known| known.api_version);
        if object["apiVersion"] != version {
            return Err(format!("a {} has apiVersion {version}, not {}", self.name, object["apiVersion"]));
        }
        let problems = if Reach::of_kind(self.name).is_some() {
            admit_template(object).0
        } else {
            shape_of(self.name).map(|shape| shape::check(object, shape).problems).unwrap_or_default()
        };
        if problems.is_empty() { Ok(()) } else { Err(resource::listed(&problems)) }
    }

    pub(super) fn not_found(&self, name: &str) -> String {
        format!("{} \"{name}\" not found", self.plural)
    }

    pub(super) fn exists(&self, name: &str) -> String {
        format!("{} \"{name}\" already exists", self.plural)
    }
}
