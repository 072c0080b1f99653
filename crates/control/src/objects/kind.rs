//! The kinds of objects a resource template can ask for: all that are kept, by any of their names.

use serde_json::Value;

use crate::registry::{Fault, Kind, kinds, stored};

/// By the word of a command line; the reason names what is known.
pub(super) fn find(word: &str) -> Result<&'static Kind, String> {
    kinds::of_word(word).filter(|kind| is_known(kind)).ok_or_else(|| unknown(word))
}

/// By what a manifest says: its kind, in the group of its `apiVersion` when it has one.
pub(super) fn of_manifest(api_version: &str, word: &str) -> Result<&'static Kind, String> {
    if api_version.is_empty() {
        return find(word);
    }
    let group = kinds::group_of(api_version);
    let mut ours = kinds::all().filter(|kind| kind.has_name(word) && is_known(kind));
    match ours.clone().find(|kind| kind.is_of(group)) {
        Some(kind) => Ok(kind),
        None => Err(match ours.next() {
            Some(kind) => {
                format!("a {} of {api_version} is not kept here; write apiVersion: {}", kind.name, kind.api_version())
            }
            None => unknown(word),
        }),
    }
}

fn unknown(word: &str) -> String {
    let names: Vec<&str> = kinds::all().filter(|kind| is_known(kind)).map(|kind| kind.name).collect();
    let given = if word.is_empty() { "an object without a kind".to_owned() } else { format!("kind {word}") };
    format!("{given} is not kept here; a resource template can ask for: {}", names.join(", "))
}

/// What is only looked at cannot be asked for, and namespaces are nobody's to make from within one.
fn is_known(kind: &Kind) -> bool {
    !kind.is_view() && *kind != kinds::core::NAMESPACE
}

/// A kind of the dialect's own; merging lists by name is not defined for it.
pub(super) fn is_custom(kind: &Kind) -> bool {
    !kind.group.is_empty()
}

/// Everything that is wrong with an object of this kind, in one text.
pub(super) fn check(kind: &'static Kind, object: &Value) -> Result<(), String> {
    match stored::check(kind, object) {
        Err(Fault::Invalid { causes, .. }) => {
            let told = |cause: &crate::registry::Cause| match cause.field.as_str() {
                "" => cause.message.clone(),
                field => format!("{field}: {}", cause.message),
            };
            Err(causes.iter().map(told).collect::<Vec<_>>().join("; "))
        }
        checked => checked.map_err(|fault| fault.to_string()),
    }
}

pub(super) fn not_found(kind: &Kind, name: &str) -> String {
    format!("{} \"{name}\" not found", kind.plural)
}

pub(super) fn exists(kind: &Kind, name: &str) -> String {
    format!("{} \"{name}\" already exists", kind.plural)
}
