//! Checks names: allowed characters and length, and no duplicates within one list.
//! References to names are checked elsewhere.

use std::collections::HashSet;

pub(super) use crate::pod::check::has_variables;

use super::{
    code,
    findings::{At, Findings},
};
use crate::{admit::shape::short, expr::nearest};

/// Maximum length of a workflow name: labels carry the name, and labels hold no more.
pub const MAX_WORKFLOW_NAME_LENGTH: usize = 63;

/// Maximum length of the names of templates, steps and tasks, which become parts of node names; longer ones are
/// unreadable.
const LONGEST: usize = 128;

/// Maximum number of names searched for a suggestion. Beyond it, the search would cost more than it helps.
const SUGGESTED: usize = 1_000;

/// Naming rules: `Field` for templates, steps and tasks; `Data` for parameters and artifacts.
#[derive(Clone, Copy)]
pub(super) enum NameRule {
    Field,
    Data,
}

/// Checks every name of a list and that it is unique. `of` names the list in messages, such as `spec.templates`.
pub(super) fn list<'n>(
    report: &mut Findings,
    at: &At<'_>,
    of: &dyn Fn() -> String,
    rule: NameRule,
    names: impl Iterator<Item = &'n str>,
) {
    let mut seen = HashSet::new();
    for (index, name) in names.enumerate() {
        let item = at.index(index);
        one(report, &item.key("name"), &|| format!("{}[{index}]", of()), rule, name, &mut seen);
    }
}

/// Checks one name of a list whose names so far are `seen`.
pub(super) fn one<'n>(
    report: &mut Findings,
    at: &At<'_>,
    of: &dyn Fn() -> String,
    rule: NameRule,
    name: &'n str,
    seen: &mut HashSet<&'n str>,
) {
    if name.is_empty() {
        report.error(at, code::REQUIRED, || format!("{}.name is required", of()));
        return;
    }
    if let Some(why) = rule.violation(name) {
        report.error(at, code::NAME, || format!("{}.name: '{}' is invalid: {why}", of(), short(name)));
    } else if !seen.insert(name) {
        report.error(at, code::DUPLICATE_NAME, || format!("{}.name '{name}' is not unique", of()));
    }
}

impl NameRule {
    fn violation(self, name: &str) -> Option<String> {
        match self {
            Self::Field if name.len() > LONGEST => Some(format!("must be no more than {LONGEST} characters")),
            Self::Field if !is_field_name(name) => Some(
                "name must consist of alpha-numeric characters or '-', and must start with an alpha-numeric character (e.g. My-name1-2, 123-NAME)"
                    .to_owned(),
            ),
            // Argo fills inputs into names before it checks them.
            Self::Data if !is_data_name(name) && !has_variables(name) => Some(
                "Parameter/Artifact name must consist of alpha-numeric characters, '_' or '-' e.g. my_param_1, MY-PARAM-1"
                    .to_owned(),
            ),
            Self::Field | Self::Data => None,
        }
    }
}

fn is_field_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

pub(super) fn is_data_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

/// Whether the name is a DNS subdomain, as Kubernetes requires of object names.
pub(super) fn is_object_name(name: &str) -> bool {
    name.split('.').all(is_label)
}

/// Whether the word is a DNS label.
pub(super) fn is_label(word: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !word.is_empty() && word.chars().all(inner) && !word.starts_with('-') && !word.ends_with('-')
}

/// Suggests the nearest of the first names of a list.
pub(super) fn suggest<'n>(word: &str, names: impl Iterator<Item = &'n str>) -> Option<String> {
    nearest(word, names.take(SUGGESTED)).map(|name| format!("did you mean `{name}`?"))
}
