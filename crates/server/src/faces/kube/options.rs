//! Query options of the verbs. Parsing only; invalid values are refused.

use octoflow_control::registry::{FieldSelector, LabelSelector, ListOptions, Selection, WriteOptions};
use octoflow_model::Revision;

use super::target::Target;
use crate::{
    answer::{fault::Fault, query::Query},
    call::Call,
    faces::openapi::operation::{Parameter, count, flag, text, word},
};

/// Selectors.
pub(super) const SELECT: &[Parameter] =
    &[text("labelSelector", "Only objects with these labels"), text("fieldSelector", "Only objects with these fields")];

pub(super) const LIST: &[Parameter] = &[
    SELECT[0],
    SELECT[1],
    count("limit", "At most so many in one page"),
    text("continue", "Where the page before ended"),
    count("resourceVersion", "Not older than this revision"),
    word("resourceVersionMatch", &["NotOlderThan", "Exact"], "How the revision is meant"),
    flag("watch", "A stream of what happens, one JSON value a line, instead of a list"),
    count("timeoutSeconds", "A watch ends after so long"),
    flag("allowWatchBookmarks", "A watch tells how far it has come"),
    flag("sendInitialEvents", "A watch begins with what is there"),
    INCLUDE,
];

pub(super) const GET: &[Parameter] = &[
    flag("watch", "A stream of what happens to it, one JSON value a line"),
    count("timeoutSeconds", "A watch ends after so long"),
    INCLUDE,
];

const INCLUDE: Parameter =
    word("includeObject", &["None", "Metadata", "Object"], "What of each object stands beside its row of a table");

pub(super) const WRITE: &[Parameter] = &[
    DRY_RUN,
    text("fieldManager", "Who writes; at most 128 letters"),
    word("fieldValidation", &["Strict", "Warn", "Ignore"], "What becomes of fields the kind does not know"),
];

pub(super) const DELETE: &[Parameter] = &[
    DRY_RUN,
    word("propagationPolicy", &["Background", "Foreground", "Orphan"], "What becomes of what belongs to it"),
    count("gracePeriodSeconds", "Accepted; runs end in their own time"),
];

const DRY_RUN: Parameter = word("dryRun", &["All"], "Only judge; change nothing");

/// Treatment of unknown fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Validation {
    /// Refuse the object.
    Strict,
    /// Drop them with a warning.
    Warn,
    /// Drop them.
    Ignore,
}

pub(super) fn number<T: std::str::FromStr>(query: &Query, name: &str) -> Result<Option<T>, Fault> {
    let Some(text) = query.get(name) else { return Ok(None) };
    let number = text.parse().map_err(|_| Fault::bad_request(format!("{name}={text} is not a number that fits")))?;
    Ok(Some(number))
}

pub(super) fn revision(query: &Query) -> Result<Option<Revision>, Fault> {
    Ok(number(query, "resourceVersion")?.map(Revision))
}

pub(super) fn selection(query: &Query) -> Result<Selection, Fault> {
    let labels = LabelSelector::parse(query.get("labelSelector").unwrap_or_default()).map_err(Fault::bad_request)?;
    let fields = FieldSelector::parse(query.get("fieldSelector").unwrap_or_default()).map_err(Fault::bad_request)?;
    Ok(Selection { labels, fields })
}

/// Reads everything but paging.
pub(super) fn list(call: &Call, target: &Target) -> Result<ListOptions, Fault> {
    let mut selection = selection(&call.query)?;
    // If the path names an object, only that one is selected.
    if !target.name().is_empty() {
        let only = FieldSelector::parse(&format!("metadata.name={}", target.name())).map_err(Fault::bad_request)?;
        selection.fields.0.extend(only.0);
    }
    Ok(ListOptions { namespace: target.namespace.clone(), selection, limit: None, after: None })
}

pub(super) fn dry_run<'a>(words: impl Iterator<Item = &'a str>) -> Result<bool, Fault> {
    let mut dry = false;
    for word in words {
        match word {
            "All" => dry = true,
            "" => {}
            other => return Err(Fault::bad_request(format!("dryRun={other} is not known; the only value is All"))),
        }
    }
    Ok(dry)
}

pub(super) fn write(call: &Call) -> Result<WriteOptions, Fault> {
    let manager = match call.query.get("fieldManager") {
        Some(manager) => manager.to_owned(),
        // The default manager is the name of the client program.
        None => call.header("user-agent").and_then(|agent| agent.split('/').next()).unwrap_or("unknown").to_owned(),
    };
    if manager.chars().count() > 128 || manager.chars().any(char::is_control) {
        return Err(Fault::bad_request("fieldManager may be 128 printable letters long"));
    }
    Ok(WriteOptions { dry_run: dry_run(call.query.all("dryRun"))?, manager, ..WriteOptions::default() })
}

pub(super) fn validation(query: &Query) -> Result<Validation, Fault> {
    match query.get("fieldValidation") {
        Some("Strict") => Ok(Validation::Strict),
        None | Some("Warn") => Ok(Validation::Warn),
        Some("Ignore") => Ok(Validation::Ignore),
        Some(other) => {
            Err(Fault::bad_request(format!("fieldValidation={other} is not known; write Strict, Warn or Ignore")))
        }
    }
}
