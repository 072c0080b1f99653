//! The kinds of objects a resource template can ask for: all that are kept, by any of their names.

use serde_json::Value;

use crate::registry::{Fault, KINDS, Keeping, Kind, of_word, shelf};

/// By the word of a manifest or of a command line; the reason names what is known.
pub(super) fn find(word: &str) -> Result<&'static Kind, String> {
    of_word(word).filter(|kind| is_known(kind)).ok_or_else(|| {
        let names: Vec<&str> = KINDS.iter().filter(|kind| is_known(kind)).map(|kind| kind.name).collect();
        let given = if word.is_empty() { "an object without a kind".to_owned() } else { format!("kind {word}") };
        format!("{given} is not kept here; a resource template can ask for: {}", names.join(", "))
    })
}

/// What is only looked at cannot be asked for, and namespaces are nobody's to make from within one.
fn is_known(kind: &Kind) -> bool {
    kind.keeping != Keeping::View && kind.name != "Namespace"
}

/// A kind of the dialect's own; merging lists by name is not defined for it.
pub(super) fn is_custom(kind: &Kind) -> bool {
    !kind.group.is_empty()
}

/// Everything that is wrong with an object of this kind, in one text.
pub(super) fn check(kind: &'static Kind, object: &Value) -> Result<(), String> {
    match shelf::check(kind, object) {
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
