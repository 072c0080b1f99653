//! The single table of kinds: names, storage, validation, schema and table columns of every kind, by group and name.
//! Engine, registry, server and command line read it; no other list of kinds exists. Each dialect's folder defines its
//! rows. It is data and pure functions: it stores nothing and knows no paths.

mod cell;
mod column;
pub mod convert;
pub mod core;
mod refuse;
pub mod scheduling;

use std::fmt;

use octoflow_manifest::Problem;
use octoflow_model::{Time, request::MakeRequest};
use serde_json::Value;

use crate::{
    admit::{
        Catalog,
        shape::{self, Shape},
    },
    cron::CronRow,
    dialects::{argo, dialect::Dialect, jobflow, kubejob, submission, taskset, volcano},
    engine::input::Command,
};

pub use column::Column;
pub use refuse::{dialect_of, of_manifest};
pub(crate) use {
    cell::{human, joined, short, since, text},
    column::{AGE, NAME, number, text as text_column, wide},
};

/// Errors and warnings about an object.
pub type ErrorsAndWarnings = (Vec<Problem>, Vec<Problem>);

/// A kind of object.
pub struct Kind {
    /// Empty for the core group.
    pub group: &'static str,
    pub version: &'static str,
    pub name: &'static str,
    pub plural: &'static str,
    pub singular: &'static str,
    pub short: &'static [&'static str],
    /// Category names, such as `all`, that select several kinds.
    pub categories: &'static [&'static str],
    /// The noun for an object of this kind in messages.
    pub noun: &'static str,
    /// The word that means this kind and no other, in lists and on command lines: its name, unless a kind of another group
    /// comes first under that name; then `NAME.GROUP`.
    pub word: &'static str,
    /// The name of the kind in the database and in journals. Unique across groups.
    pub key: &'static str,
    pub namespaced: bool,
    pub storage: Storage,
    /// Alternative group names that paths and manifests may use. Discovery does not list them. Several kinds may share
    /// one, and it may be the group of other kinds.
    pub aliases: &'static [&'static str],
    /// The kind whose objects these are: the same ones, served in another group as well. Discovery lists both.
    pub alternate_of: Option<&'static Kind>,
    /// Prefix of the schema's name.
    pub schema_prefix: &'static str,
    /// Field table. A kind without one cannot be loaded from a file.
    pub shape: Option<&'static Shape>,
    /// True if it has a status subresource.
    pub has_status: bool,
    /// True if the server computes the status of a stored object; what a client writes there is dropped.
    pub has_computed_status: bool,
    /// True if it is validated only where it is used: an unused one may be invalid.
    pub is_template: bool,
    /// True if a server starts runs for it.
    pub starts_runs: bool,
    /// How it starts runs by the clock, if it does.
    pub schedule: Option<&'static CronRow>,
    /// Message and help for users who try to run it.
    pub not_run: Option<(&'static str, &'static str)>,
    /// Validates one object on its own; `None`: only its fields are checked.
    pub check: Option<fn(&Value) -> ErrorsAndWarnings>,
    /// Validates one object together with the objects it refers to.
    pub examine: Option<fn(&Value, &dyn Catalog) -> ErrorsAndWarnings>,
    /// Returns the warnings about an accepted object; `None`: those about its fields.
    pub advise: Option<fn(&Value) -> Vec<Problem>>,
    /// Returns what an object asks of a run. Creating one is a command, and nothing is stored.
    pub requests: Option<fn(&Value) -> Requested>,
    /// Makes the manifest of a run from an object of this kind, a template; `None`: runs are not made from it so.
    pub make: Option<fn(&Value, &MakeRequest) -> Value>,
    /// The kind that runs, of whose objects these are templates; their specifications are the same.
    pub template_of: Option<&'static Kind>,
    /// How the runs that were made from an object of this kind are found and told in its status.
    pub made_runs: Option<MadeRuns>,
    /// Columns of a table of these objects.
    pub columns: &'static [Column],
    /// Renders a row of such a table, one cell per column.
    pub cells: fn(&Value, Time) -> Vec<Value>,
}

/// How runs made from a template are found.
#[derive(Debug, Clone, Copy)]
pub struct MadeRuns {
    /// Key of the runs' kind in the database.
    pub kind: &'static str,
    /// The label that they have, and its value for a template of this namespace and name.
    pub label: &'static str,
    pub value: fn(&str, &str) -> String,
    /// The template's status for runs of these names.
    pub status: fn(Vec<String>) -> Value,
}

/// Storage of the objects of a kind.
#[derive(Debug, Clone, Copy)]
pub enum Storage {
    /// As a run: in the engine, then in the archive.
    Run(&'static Dialect),
    /// In the store, as given.
    Stored,
    /// Not at all; it is a view of other objects.
    View,
}

/// A command that an object asks for.
#[derive(Debug)]
pub struct Requested {
    /// Kind and name of the run it is for, which is in the namespace of the object.
    pub kind: &'static Kind,
    pub name: String,
    /// Only a run with this uid.
    pub uid: Option<String>,
    pub command: Command,
}

/// The rows of one dialect.
pub struct Rows {
    pub kinds: &'static [&'static Kind],
    /// Kinds of the same groups that are refused by name.
    pub refused: &'static [&'static str],
}

/// The table. A new dialect is a line here.
static TABLE: [&Rows; 8] = [
    &argo::ROWS,
    &taskset::ROWS,
    &kubejob::ROWS,
    &volcano::ROWS,
    &jobflow::ROWS,
    &submission::ROWS,
    &scheduling::ROWS,
    &core::ROWS,
];

/// Placeholder for the kind of a run that this version does not know: a newer one has written it. It is not in the
/// table.
pub static UNKNOWN: Kind = Kind { plural: "runs", singular: "run", noun: "run", ..Kind::new("", "v1", "Run") };

/// Returns every kind.
pub fn all() -> impl Iterator<Item = &'static Kind> + Clone {
    TABLE.iter().flat_map(|rows| rows.kinds).copied()
}

/// Returns the kinds that can be loaded from files, each once.
pub fn loadable() -> impl Iterator<Item = &'static Kind> + Clone {
    all().filter(|kind| kind.shape.is_some() && kind.alternate_of.is_none())
}

/// Returns the kinds that run, each once.
pub fn of_runs() -> impl Iterator<Item = &'static Kind> + Clone {
    all().filter(|kind| kind.runs() && kind.alternate_of.is_none())
}

/// Returns the kinds whose objects start runs by the clock.
pub fn of_schedules() -> impl Iterator<Item = (&'static Kind, &'static CronRow)> + Clone {
    all().filter_map(|kind| Some((kind, kind.schedule?)))
}

/// Returns the names of kinds that are refused by name.
pub fn refused() -> impl Iterator<Item = &'static str> + Clone {
    TABLE.iter().flat_map(|rows| rows.refused).copied()
}

/// Finds a kind by group and name, as manifests write them.
pub fn find(group: &str, name: &str) -> Option<&'static Kind> {
    all().find(|kind| kind.name == name && kind.is_of(group))
}

/// Finds a kind by group and plural, as paths write them.
pub fn of_plural(group: &str, plural: &str) -> Option<&'static Kind> {
    all().find(|kind| kind.plural == plural && kind.is_of(group))
}

/// Finds a kind by its key in the database.
pub fn of_key(key: &str) -> Option<&'static Kind> {
    all().find(|kind| kind.key == key)
}

/// Finds a kind by any of its names, as users write them: `ConfigMap`, `configmaps`, `cm`, `workflows.argoproj.io`,
/// `Job.batch`, `batch/v1/Job`. A word without a group means the first kind that matches.
pub fn of_word(word: &str) -> Option<&'static Kind> {
    if let Some((api_version, name)) = word.rsplit_once('/') {
        return all().find(|kind| kind.has_name(name) && kind.accepts_api_version(&api_version.to_ascii_lowercase()));
    }
    let Some((bare, group)) = word.split_once('.') else { return all().find(|kind| kind.has_name(word)) };
    let group = group.to_ascii_lowercase();
    all().find(|kind| kind.has_name(bare) && kind.is_of(&group))
}

/// Returns the group of an `apiVersion`: empty for the core group.
pub fn group_of(api_version: &str) -> &str {
    api_version.rsplit_once('/').map_or("", |(group, _)| group)
}

impl Kind {
    /// Creates a stored kind with default properties.
    pub const fn new(group: &'static str, version: &'static str, name: &'static str) -> Self {
        Self {
            group,
            version,
            name,
            plural: "",
            singular: "",
            short: &[],
            categories: &[],
            noun: name,
            word: name,
            key: name,
            namespaced: true,
            storage: Storage::Stored,
            aliases: &[],
            alternate_of: None,
            schema_prefix: "",
            shape: None,
            has_status: false,
            has_computed_status: false,
            is_template: false,
            starts_runs: false,
            schedule: None,
            not_run: None,
            check: None,
            examine: None,
            advise: None,
            requests: None,
            make: None,
            template_of: None,
            made_runs: None,
            columns: &[NAME, AGE],
            cells: cell::name_and_age,
        }
    }

    /// Returns `argoproj.io/v1alpha1`, or `v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Reports whether this is the kind's group, or an alias of it.
    pub fn is_of(&self, group: &str) -> bool {
        self.group == group || self.aliases.contains(&group)
    }

    /// Reports whether Kubernetes itself has kinds of this group, so that clients treat it as a built-in one.
    pub fn is_builtin(&self) -> bool {
        let name = self.group.strip_suffix(".k8s.io").unwrap_or(self.group);
        !name.contains('.')
    }

    /// Reports whether an `apiVersion` means this kind's group and version.
    pub fn accepts_api_version(&self, api_version: &str) -> bool {
        let version = api_version.rsplit('/').next().unwrap_or_default();
        self.is_of(group_of(api_version)) && version == self.version
    }

    /// Reports whether the word is one of its names, ignoring case.
    pub fn has_name(&self, word: &str) -> bool {
        let names = [self.name, self.plural, self.singular];
        names.iter().chain(self.short).any(|name| name.eq_ignore_ascii_case(word))
    }

    /// Returns the shortest lower-case word that means this kind and no other, as in `vcjob/NAME`.
    pub fn prefix(&self) -> &'static str {
        let words = [self.singular].into_iter().chain(self.short.iter().copied());
        let means_it = |word: &&str| of_word(word).is_some_and(|kind| kind == self);
        words.into_iter().find(means_it).unwrap_or(self.word)
    }

    /// Returns `workflows.argoproj.io`, or `configmaps`.
    pub fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }

    pub fn dialect(&self) -> Option<&'static Dialect> {
        match self.storage {
            Storage::Run(dialect) => Some(dialect),
            Storage::Stored | Storage::View => None,
        }
    }

    pub fn runs(&self) -> bool {
        self.dialect().is_some()
    }

    /// Reports whether its objects are stored as given.
    pub fn is_kept(&self) -> bool {
        matches!(self.storage, Storage::Stored)
    }

    /// Reports whether some of its objects exist although nobody has stored them.
    pub fn exists_unstored(&self) -> bool {
        *self == core::NAMESPACE || *self == scheduling::QUEUE
    }

    /// Reports whether it is a view of other objects.
    pub fn is_view(&self) -> bool {
        matches!(self.storage, Storage::View)
    }

    /// Reports whether it only supports runs (such as a ConfigMap) and never acts by itself.
    pub fn is_supporting(&self) -> bool {
        self.is_kept() && self.shape.is_some() && !self.starts_runs
    }

    /// Validates one object on its own.
    pub fn check(&self, object: &Value) -> ErrorsAndWarnings {
        match (self.check, self.shape) {
            (Some(check), _) => check(object),
            (None, Some(shape)) => {
                let checked = shape::check(object, shape);
                (checked.problems, checked.warnings)
            }
            (None, None) => ErrorsAndWarnings::default(),
        }
    }

    /// Returns the closed JSON Schema of the kind, if it can be loaded.
    pub fn schema(&self) -> Option<Value> {
        let version = self.api_version();
        let mut schema = shape::schema(self.name, self.shape?, &[("apiVersion", &version), ("kind", self.name)]);
        let others: Vec<String> = all().filter(|kind| kind.alternate_of == Some(self)).map(Self::api_version).collect();
        if !others.is_empty()
            && let Some(property) = schema["properties"]["apiVersion"].as_object_mut()
        {
            property.remove("const");
            property.insert("enum".to_owned(), [version].into_iter().chain(others).collect());
        }
        Some(schema)
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        (self.group, self.name) == (other.group, other.name)
    }
}

impl Eq for Kind {}

impl fmt::Debug for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.api_version(), self.name)
    }
}

#[cfg(test)]
mod tests;
