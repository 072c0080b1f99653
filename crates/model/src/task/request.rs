//! Requests: tasks that run no process, but send an HTTP request, act on a stored object, or list stored artifacts. A
//! request contains everything its runtime needs; the dialect interprets the answer.

use std::{collections::BTreeMap, time::Duration};

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
    /// Creates a run from a stored template.
    Make(MakeRequest),
    /// Deletes runs that are over, by uid.
    Remove(Vec<String>),
    /// Tests addresses until all of them answer.
    Probe(ProbeRequest),
    /// Creates a run of a manifest.
    Submit(SubmitRequest),
    /// Asks a plugin that is part of this program.
    Builtin(BuiltinRequest),
}

/// The result of a request, successful or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    Http(HttpResponse),
    /// The object after the action; `Null` if it is gone.
    Object(Value),
    /// The keys found.
    Listing(Vec<String>),
    /// All addresses have answered.
    Probed,
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
    /// True if redirects are followed; otherwise a redirect is the answer.
    #[serde(default = "follows")]
    pub follow: bool,
    /// Sent as the header `Idempotency-Key`. Whoever gets it knows the request if it comes again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The lane of a call to a plugin. Without one the request is a task's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<Lane>,
    /// Limit of the response body in bytes, unless it is that of the runtime; a larger one is an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_body: Option<u64>,
}

fn follows() -> bool {
    true
}

impl HttpRequest {
    /// Returns a request without headers and body, sent as tasks do.
    pub fn new(method: &str, url: impl Into<String>, timeout: Duration) -> Self {
        Self {
            method: method.to_owned(),
            url: url.into(),
            headers: Vec::new(),
            body: Vec::new(),
            timeout,
            verify: true,
            follow: true,
            idempotency_key: None,
            lane: None,
            max_body: None,
        }
    }

    /// Reports whether the request may be sent again when it is unknown whether it was sent: its method is idempotent,
    /// or its key makes it so.
    pub fn repeatable(&self) -> bool {
        self.idempotency_key.is_some() || matches!(self.method.as_str(), "GET" | "HEAD" | "OPTIONS" | "PUT" | "DELETE")
    }
}

/// Requests to one receiver, which wait for each other and for nobody else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lane {
    pub name: String,
    /// How many of them may be under way at once.
    pub limit: u32,
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
    /// How often the requesting run was retried before. Its uid and the numbers of its nodes are the same in each try; what it
    /// creates is not.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retries: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
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

/// Creates a run from a stored template, as the template is at that moment. A missing template is waited for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MakeRequest {
    /// Kind of the template, by its key in the table of kinds.
    pub template_kind: String,
    pub template: String,
    pub namespace: String,
    /// Name of the run.
    pub name: String,
    /// What the run's uid follows from, beside the uid of the requesting run. No two runs that it orders have the same.
    pub seed: String,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    /// The reference to the requesting run as owner.
    pub owner: Value,
    /// What is changed in the specification of the template, in the terms of its dialect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<Value>,
    /// The run that this request has created already. It is waited for and never created again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<RunId>,
}

/// Creates a run of a manifest, which is admitted as every other is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SubmitRequest {
    pub namespace: String,
    /// Name of the run.
    pub name: String,
    /// What the run's uid follows from, beside the uid of the requesting run. No two runs that it orders have the same.
    pub seed: String,
    pub manifest: Value,
    /// The run that this request has created already. It is waited for and never created again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<RunId>,
}

/// Asks a plugin that is part of this program. It answers with [`Answer::Object`], or refuses with the reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BuiltinRequest {
    /// Name of the plugin, without `builtin:` in front.
    pub name: String,
    /// Settings of the plugin, as its feature has them.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub options: Value,
    /// What a plugin over the network is sent: `{factors, header, job}`.
    pub input: Value,
    /// The submitted job that asks.
    pub namespace: String,
    pub job: String,
}

/// Tests addresses in turn, again and again, until all of them answer in one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeRequest {
    /// Hosts with ports.
    pub addresses: Vec<String>,
    /// The request that must be answered with a success; without one a connection is enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<ProbedPath>,
    /// Time between two rounds.
    pub every: Duration,
    /// Timeout of each test.
    pub timeout: Duration,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbedPath {
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<(String, String)>,
}
