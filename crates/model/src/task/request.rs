//! Requests: tasks that run no process, but send an HTTP request, act on a stored object, or list stored artifacts. A
//! request contains everything its runtime needs; the dialect interprets the answer.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    ids::RunId,
    task::{EnvValue, location::Location},
};

/// A request that a task makes instead of running a process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Request {
    Http(HttpRequest),
    Object(ObjectRequest),
    Listing(ListingRequest),
}

/// The result of a request, successful or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    Http(HttpResponse),
    /// The object after the action; `Null` if it is gone.
    Object(Value),
    /// The keys found.
    Listing(Vec<String>),
    /// The action was done, and a condition of the manifest declares its result a failure.
    Failed(String),
    /// The action could not be done; holds the reason.
    Refused(String),
    /// The request was cancelled before it was answered.
    Stopped,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HttpRequest {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, EnvValue)>,
    pub body: Vec<u8>,
    /// Timeout of the whole exchange.
    pub timeout: Duration,
    /// True if the server's certificate is verified.
    pub verify: bool,
}

impl HttpRequest {
    /// Reports whether the request is idempotent, so that it may be sent again when it is unknown whether it was sent.
    pub fn repeatable(&self) -> bool {
        matches!(self.method.as_str(), "GET" | "HEAD" | "OPTIONS" | "PUT" | "DELETE")
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HttpResponse {
    pub status: u16,
    /// One entry per header line, names as the server spelled them.
    pub headers: Vec<(String, String)>,
    pub body: String,
}

/// An action on a stored object or a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObjectRequest {
    pub action: ObjectAction,
    /// The object or the patch, as text.
    pub manifest: ManifestText,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// If set, the requesting run becomes the object's owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// Namespace of the object unless its manifest names one.
    pub namespace: String,
    /// Success condition to wait for; all its terms must hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success: Option<String>,
    /// Failure condition, evaluated first: any of its terms ends the wait as failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The run that this request has created already. It is waited for and never created again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<RunId>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ManifestText {
    Inline(String),
    /// In a stored artifact.
    Stored {
        artifact: crate::task::StoredArtifact,
        sub_path: Option<String>,
    },
    /// In an external store; it must be fetched first.
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
    /// Strategic merge patch, the dialect's default: lists of named items are merged by name. Kinds of the dialect
    /// itself refuse it.
    Strategic,
    /// JSON merge patch: fields replace fields, null removes them.
    Merge,
    /// JSON patch: a list of operations.
    Json,
}

/// The requesting run, as an owner reference names it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Owner {
    pub name: String,
    pub uid: String,
}

/// Lists the stored artifacts whose keys start with the location's key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListingRequest {
    pub location: Location,
    /// Prefix to remove from every key: the one the local store adds to keys of a store it substitutes for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cut: String,
}
