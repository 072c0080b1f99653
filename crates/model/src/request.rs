//! Work that is a question rather than a process: an HTTP request, something done to a kept object, a list of stored
//! artifacts. A request says everything its runtime needs; what the answer means is the dialect's to say.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{location::Location, task::EnvValue};

/// What a task asks for instead of running a process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Request {
    Http(HttpRequest),
    Object(ObjectRequest),
    Listing(ListingRequest),
}

/// What came of a request that was answered, well or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    Http(HttpResponse),
    /// The object as it is after what was asked for; `Null` when it is gone.
    Object(Value),
    /// The keys found.
    Listing(Vec<String>),
    /// It was done, and what came of it is bad: a condition of the manifest says so.
    Failed(String),
    /// It could not be done; says why.
    Refused(String),
    /// It was ended before it was answered.
    Stopped,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HttpRequest {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, EnvValue)>,
    pub body: Vec<u8>,
    /// How long the whole exchange may take.
    pub timeout: Duration,
    /// The server's certificate is checked.
    pub verify: bool,
}

impl HttpRequest {
    /// Asking twice is the same as asking once, so it may be asked again when nobody knows whether it was.
    pub fn repeatable(&self) -> bool {
        matches!(self.method.as_str(), "GET" | "HEAD" | "OPTIONS" | "PUT" | "DELETE")
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HttpResponse {
    pub status: u16,
    /// One entry a line, names as the server spelled them.
    pub headers: Vec<(String, String)>,
    pub body: String,
}

/// Something to be done to an object that is kept beside the runs, or to a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObjectRequest {
    pub action: ObjectAction,
    /// The object, or the change to it, as text.
    pub manifest: ManifestText,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// Whoever asks becomes the object's owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// Where the object is unless its manifest says otherwise.
    pub namespace: String,
    /// Wait until this holds; all of it must.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success: Option<String>,
    /// Looked at first: any of it ends the wait badly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ManifestText {
    Inline(String),
    /// The artifact that holds it.
    Stored {
        artifact: crate::task::StoredArtifact,
        sub_path: Option<String>,
    },
    /// It lies elsewhere and must be brought here first.
    Located {
        location: Location,
        sub_path: Option<String>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ObjectAction {
    Get,
    Create,
    Apply,
    Delete,
    Replace,
    Patch(PatchKind),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PatchKind {
    /// The default of the dialect: lists of named things are merged by name. Kinds of the dialect itself refuse it.
    Strategic,
    /// Fields replace fields, null removes them.
    Merge,
    /// A list of operations.
    Json,
}

/// The run that asks, as an owner reference names it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Owner {
    pub name: String,
    pub uid: String,
}

/// Names the stored artifacts whose keys begin like that of the location.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListingRequest {
    pub location: Location,
    /// Taken off the front of every key: what the local store puts before the keys of a store it stands in for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cut: String,
}
