//! The one table of kinds: what every object is called, by group and name, how it is kept, checked, described and printed.
//! Engine, registry, server and command line ask it; nobody else keeps a list of kinds. A dialect's folder has its rows.
//! It is data and pure functions: it stores nothing and knows no paths.

mod cell;
mod column;
pub mod core;
mod refuse;

use std::fmt;

use octoflow_manifest::Problem;
use octoflow_model::Time;
use serde_json::Value;

use crate::{
    admit::Catalog,
    argo,
    dialect::Dialect,
    shape::{self, Shape},
    taskset,
};

pub use column::Column;
pub use refuse::{dialect_of, of_manifest};
pub(crate) use {
    cell::{human, joined, short, since, text},
    column::{AGE, NAME, number, text as text_column, wide},
};

/// What is wrong with an object, and what is worth a warning.
pub type Findings = (Vec<Problem>, Vec<Problem>);

/// A kind of object.
pub struct Kind {
    /// Empty for the core group.
    pub group: &'static str,
    pub version: &'static str,
    pub name: &'static str,
    pub plural: &'static str,
    pub singular: &'static str,
    pub short: &'static [&'static str],
    /// Words that stand for several kinds.
    pub categories: &'static [&'static str],
    /// What one is called in a sentence.
    pub noun: &'static str,
    /// The name of the kind in the database and in journals. No two kinds share one, whatever their groups are.
    pub key: &'static str,
    pub namespaced: bool,
    pub keeping: Keeping,
    /// Other names of the group, which paths and manifests may use as well. Lists of groups do not tell them. Several kinds may
    /// share one, and it may be the group of other kinds.
    pub aliases: &'static [&'static str],
    /// What schemas of the group are called before the name of the kind.
    pub schema_prefix: &'static str,
    /// Its fields. Without it, the kind cannot be loaded from a file.
    pub shape: Option<&'static Shape>,
    /// It has a status that others write than its owner.
    pub has_status: bool,
    /// It is judged by whoever uses it: one that nobody uses may be wrong.
    pub is_template: bool,
    /// A server starts runs for it.
    pub starts_runs: bool,
    /// What to say to somebody who wants to run it: why not, and what to do.
    pub not_run: Option<(&'static str, &'static str)>,
    /// Judges one by itself; its fields alone where there is nothing else.
    pub check: Option<fn(&Value) -> Findings>,
    /// Judges one together with what it refers to.
    pub examine: Option<fn(&Value, &dyn Catalog) -> Findings>,
    /// What is worth a warning in one that is accepted; without it, what its fields say.
    pub advise: Option<fn(&Value) -> Vec<Problem>>,
    /// What tables of them show.
    pub columns: &'static [Column],
    /// The cells of a row of such a table, one a column.
    pub cells: fn(&Value, Time) -> Vec<Value>,
}

/// Where objects of a kind live.
#[derive(Debug, Clone, Copy)]
pub enum Keeping {
    /// It runs: the engine has it, then the archive.
    Run(&'static Dialect),
    /// As it was given.
    Stored,
    /// Nobody keeps it; it is another way to look at something else.
    View,
}

/// What one folder brings to the table.
pub struct Rows {
    pub kinds: &'static [&'static Kind],
    /// Kinds of the same groups that are known only to be refused by name.
    pub refused: &'static [&'static str],
}

/// The table. A new dialect is a line here.
static TABLE: [&Rows; 3] = [&argo::ROWS, &taskset::ROWS, &core::ROWS];

/// Stands for the kind of a run that this version does not know: a newer one has written it. It is no row of the table.
pub static UNKNOWN: Kind = Kind { plural: "runs", singular: "run", noun: "run", ..Kind::new("", "v1", "Run") };

/// Every kind.
pub fn all() -> impl Iterator<Item = &'static Kind> + Clone {
    TABLE.iter().flat_map(|rows| rows.kinds).copied()
}

/// Those that can be loaded from files.
pub fn loadable() -> impl Iterator<Item = &'static Kind> + Clone {
    all().filter(|kind| kind.shape.is_some())
}

/// Those that run.
pub fn of_runs() -> impl Iterator<Item = &'static Kind> + Clone {
    all().filter(|kind| kind.runs())
}

/// Names of kinds that are known only to be refused.
pub fn refused() -> impl Iterator<Item = &'static str> + Clone {
    TABLE.iter().flat_map(|rows| rows.refused).copied()
}

/// By group and name, as manifests write them.
pub fn find(group: &str, name: &str) -> Option<&'static Kind> {
    all().find(|kind| kind.name == name && kind.is_of(group))
}

/// By group and plural, as paths write them.
pub fn of_plural(group: &str, plural: &str) -> Option<&'static Kind> {
    all().find(|kind| kind.plural == plural && kind.is_of(group))
}

/// By what the database calls it.
pub fn of_key(key: &str) -> Option<&'static Kind> {
    all().find(|kind| kind.key == key)
}

/// By any of its names, as people write them: `ConfigMap`, `configmaps`, `cm`, `workflows.argoproj.io`. A word without a group
/// means the first kind it fits.
pub fn of_word(word: &str) -> Option<&'static Kind> {
    let (bare, group) = word.split_once('.').map_or((word, None), |(bare, group)| (bare, Some(group)));
    all().find(|kind| kind.answers_to(bare) && group.is_none_or(|group| kind.is_of(group)))
}

/// The group of an `apiVersion`: empty for the core group.
pub fn group_of(api_version: &str) -> &str {
    api_version.rsplit_once('/').map_or("", |(group, _)| group)
}

impl Kind {
    /// A kind that is kept as it is given, with nothing else to say of it.
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
            key: name,
            namespaced: true,
            keeping: Keeping::Stored,
            aliases: &[],
            schema_prefix: "",
            shape: None,
            has_status: false,
            is_template: false,
            starts_runs: false,
            not_run: None,
            check: None,
            examine: None,
            advise: None,
            columns: &[NAME, AGE],
            cells: cell::name_and_age,
        }
    }

    /// `argoproj.io/v1alpha1`, or `v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The group is the kind's, or an alias of it.
    pub fn is_of(&self, group: &str) -> bool {
        self.group == group || self.aliases.contains(&group)
    }

    /// What a manifest says in `apiVersion` means this kind's group and version.
    pub fn speaks(&self, api_version: &str) -> bool {
        let version = api_version.rsplit('/').next().unwrap_or_default();
        self.is_of(group_of(api_version)) && version == self.version
    }

    /// The word, in any case, is one of its names.
    pub fn answers_to(&self, word: &str) -> bool {
        let names = [self.name, self.plural, self.singular];
        names.iter().any(|name| name.eq_ignore_ascii_case(word)) || self.short.contains(&word)
    }

    /// `workflows.argoproj.io`, or `configmaps`.
    pub fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }

    pub fn dialect(&self) -> Option<&'static Dialect> {
        match self.keeping {
            Keeping::Run(dialect) => Some(dialect),
            Keeping::Stored | Keeping::View => None,
        }
    }

    pub fn runs(&self) -> bool {
        self.dialect().is_some()
    }

    /// It is kept as it was given.
    pub fn is_kept(&self) -> bool {
        matches!(self.keeping, Keeping::Stored)
    }

    /// Nobody keeps it: it shows something else.
    pub fn is_view(&self) -> bool {
        matches!(self.keeping, Keeping::View)
    }

    /// It is given beside what runs, and does nothing by itself.
    pub fn is_beside(&self) -> bool {
        self.is_kept() && self.shape.is_some() && !self.starts_runs
    }

    /// Judges one by itself.
    pub fn check(&self, object: &Value) -> Findings {
        match (self.check, self.shape) {
            (Some(check), _) => check(object),
            (None, Some(shape)) => {
                let checked = shape::check(object, shape);
                (checked.problems, checked.warnings)
            }
            (None, None) => Findings::default(),
        }
    }

    /// The closed JSON Schema of the kind, when it can be loaded.
    pub fn schema(&self) -> Option<Value> {
        let version = self.api_version();
        Some(shape::schema(self.name, self.shape?, &[("apiVersion", &version), ("kind", self.name)]))
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
