//! What a plugin added to a document, as data: for the trace of a job, and to tell later which plugin set a value.
//! Plain and bounded data; `engine::plugins::increment` makes and reads it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The difference between a document and a later version of it that only has more.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Increment {
    pub added: Vec<Addition>,
    /// Elements of arrays that are at another index than insertions before them explain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<Movement>,
    /// How many entries were left out, because there were too many.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted: u32,
}

/// A value that the new document has more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Addition {
    /// Its path in the new document, as `octoflow_manifest::Path` writes it.
    pub path: String,
    /// Of a prepended command: the text in front. `null` if a node selector was removed.
    pub value: Value,
    /// True if it is a new element of an array, so that the elements behind it have other indexes than before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inserted: bool,
    /// True if the value is too large to be kept; `value` says so in words.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// An element of an array that changed its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Movement {
    /// Its path in the new document.
    pub path: String,
    /// Its index in the old one.
    pub from: usize,
}

impl Increment {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}
