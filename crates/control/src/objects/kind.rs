//! Kinds that resource templates can use: all stored kinds and runs, by any of their names.

use octoflow_model::plugin::FEATURE_KIND;
use serde_json::Value;

use crate::registry::{Fault, Kind, kinds, stored};

/// Finds a kind by a command line word; the error names the known ones.
pub(super) fn find(word: &str) -> Result<&'static Kind, String> {
    kinds::of_word(word).filter(|kind| is_known(kind)).ok_or_else(|| unknown(word))
}

/// Finds the kind of a manifest: by kind, in the group of its `apiVersion` if it has one.
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
    let known = kinds::all().filter(|kind| is_known(kind) && kind.alternate_of.is_none());
    let names: Vec<&str> = known.map(|kind| kind.word).collect();
    let given = if word.is_empty() { "an object without a kind".to_owned() } else { format!("kind {word}") };
    format!("{given} is not kept here; a resource template can ask for: {}", names.join(", "))
}

/// Views cannot be used, nor can namespaces, which must not be created from within one. Features need a privilege that
/// whoever submits runs may not have.
fn is_known(kind: &Kind) -> bool {
    !kind.is_view() && *kind != kinds::core::NAMESPACE && kind.key != FEATURE_KIND
}

/// Returns whether the kind is a custom resource, for which merging lists by name is not defined.
pub(super) fn is_custom(kind: &Kind) -> bool {
    !kind.group.is_empty()
}

/// Returns all problems of an object of this kind in one text.
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
