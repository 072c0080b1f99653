//! The options of the verbs as queries write them. Reading only; a value that says nothing sensible is refused.

use octoflow_control::registry::{FieldSelector, LabelSelector, ListOptions, Selection, WriteOptions};
use octoflow_model::Revision;

use super::target::Target;
use crate::{call::Call, fault::Fault, query::Query};

/// What becomes of fields that a kind does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Validation {
    /// The object is refused.
    Strict,
    /// They are left out and told.
    Warn,
    /// They are left out.
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

/// Everything but pages.
pub(super) fn list(call: &Call, target: &Target) -> Result<ListOptions, Fault> {
    let mut selection = selection(&call.query)?;
    // Where the path names one, only that one is meant.
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
        // Whoever does not say so is known by its program's name.
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
