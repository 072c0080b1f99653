//! One request in progress: caller, parameters, and access to its body and to the controller.

use std::sync::{Mutex, PoisonError};

use axum::{
    body::Body,
    extract::Request,
    http::{HeaderMap, Method, Uri},
};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use octoflow_control::{
    Claim,
    registry::{Created, Kind, Registry, Submitted, WriteOptions, looks_back},
};
use serde_json::Value;
use tokio::time::timeout;

use crate::{
    answer::{fault::Fault, query::Query},
    app::App,
    gate::access::{Caller, digest},
};

/// Header with an idempotency key chosen by the caller.
const IDEMPOTENCY_KEY: &str = "idempotency-key";
const MAX_KEY_BYTES: usize = 255;

/// Maximum size of manifests that are admitted on the request thread: that takes well under a millisecond.
const MAX_INLINE_MANIFEST_BYTES: usize = 16 << 10;

/// Decoded named parts of the path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Params(pub Vec<(String, String)>);

pub(crate) struct Call {
    pub app: App,
    pub caller: Caller,
    pub method: Method,
    pub uri: Uri,
    pub headers: HeaderMap,
    pub query: Query,
    params: Params,
    /// Hash of the request; set once the body was read, if the caller sent an idempotency key.
    fingerprint: Option<[u8; 32]>,
    /// Bytes read of the body.
    length: usize,
    /// Mutex only because a body is not `Sync`; there is never contention.
    body: Mutex<Body>,
}

impl Call {
    pub(crate) fn new(app: App, caller: Caller, params: Params, request: Request) -> Self {
        let (parts, body) = request.into_parts();
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        Self {
            app,
            caller,
            method: parts.method,
            uri: parts.uri,
            headers: parts.headers,
            query,
            params,
            fingerprint: None,
            length: 0,
            body: Mutex::new(body),
        }
    }

    /// Returns a named part of the path. Panics if the pattern does not have it.
    pub(crate) fn param(&self, name: &str) -> &str {
        let found = self.params.0.iter().find(|(known, _)| known == name);
        &found.unwrap_or_else(|| unreachable!("the path of this route has no `{name}`")).1
    }

    /// Returns a part of the path that only some routes of a handler have.
    pub(crate) fn optional_param(&self, name: &str) -> Option<&str> {
        self.params.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Reads the whole body, up to the size limit.
    pub(crate) async fn bytes(&mut self) -> Result<Vec<u8>, Fault> {
        let most = self.app.longest_body;
        let too_large = || Fault::too_large(format!("the body may have {most} bytes at most"));
        let announced = self.header("content-length").and_then(|text| text.parse::<usize>().ok());
        if announced.is_some_and(|length| length > most) {
            return Err(too_large());
        }
        let body = std::mem::take(self.body.get_mut().unwrap_or_else(PoisonError::into_inner));
        let mut body = Limited::new(body, most);
        let mut bytes = Vec::with_capacity(announced.unwrap_or_default());
        let pause = self.app.limits.stalled_after;
        loop {
            let Ok(frame) = timeout(pause, body.frame()).await else {
                let text = format!("nothing of the body came for {} seconds", pause.as_secs());
                return Err(Fault::too_slow(text));
            };
            match frame {
                None => break,
                Some(Ok(frame)) => bytes.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data)),
                Some(Err(error)) if error.is::<LengthLimitError>() => return Err(too_large()),
                Some(Err(error)) => return Err(Fault::bad_request(format!("the body could not be read: {error}"))),
            }
        }
        self.length = bytes.len();
        if self.headers.contains_key(IDEMPOTENCY_KEY) {
            let asked = [self.method.as_str().as_bytes(), self.uri.path().as_bytes(), &bytes].join(&b'\n');
            self.fingerprint = Some(digest(&asked));
        }
        Ok(bytes)
    }

    /// Returns the idempotency key, if the caller sent one. Must be called after the body was read; belongs into the
    /// options of whatever creates a run.
    pub(crate) fn claim(&self) -> Result<Option<Claim>, Fault> {
        let Some(key) = self.headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
        let key = key.to_str().ok().map(str::trim).filter(|key| (1..=MAX_KEY_BYTES).contains(&key.len()));
        let Some(key) = key else {
            let text = format!("{IDEMPOTENCY_KEY} is 1 to {MAX_KEY_BYTES} plain characters");
            return Err(Fault::bad_request(text));
        };
        let fingerprint = self.fingerprint.unwrap_or_else(|| {
            let asked = [self.method.as_str().as_bytes(), self.uri.path().as_bytes(), b""].join(&b'\n');
            digest(&asked)
        });
        let scope = format!("http/{}", self.caller.id);
        Ok(Some(Claim { scope, key: key.to_owned(), fingerprint: fingerprint.to_vec() }))
    }

    /// Reads the body as JSON; an empty body is `null`.
    pub(crate) async fn json(&mut self) -> Result<Value, Fault> {
        let bytes = self.bytes().await?;
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&bytes)
            .map_err(|error| Fault::bad_request(format!("the body is not valid JSON: {error}")))
    }

    /// Creates an object. A run of ordinary size is admitted on this thread and awaited without one, because switching
    /// threads costs more than that; anything that may take longer runs on a blocking thread.
    pub(crate) async fn create(
        &self,
        kind: &'static Kind,
        namespace: String,
        object: Value,
        options: WriteOptions,
    ) -> Result<Created, Fault> {
        let (submitted_by, written_by) = (self.caller.submitter(), self.caller.name.clone());
        let options = WriteOptions { submitted_by, written_by, ..options };
        if !kind.runs() || self.length > MAX_INLINE_MANIFEST_BYTES || looks_back(&object) {
            return self.work(move |registry| registry.create_with_warnings(kind, &namespace, object, &options)).await;
        }
        match self.app.registry.create_run(kind, &namespace, object, &options).await? {
            Submitted::New(made) => Ok(made),
            Submitted::Existing(run) => {
                self.work(move |registry| registry.made_before(kind, run, &options).map(Into::into)).await
            }
        }
    }

    /// Runs blocking work (disk, engine) away from the threads that serve requests.
    pub(crate) async fn work<T, E>(
        &self,
        work: impl FnOnce(&Registry) -> Result<T, E> + Send + 'static,
    ) -> Result<T, Fault>
    where
        T: Send + 'static,
        E: Into<Fault> + Send + 'static,
    {
        let app = self.app.clone();
        match tokio::task::spawn_blocking(move || work(&app.registry)).await {
            Ok(outcome) => outcome.map_err(Into::into),
            Err(error) => {
                tracing::error!(%error, path = self.uri.path(), "a handler broke off");
                Err(Fault::internal(format!("this is a bug of ours: the request was not dealt with: {error}")))
            }
        }
    }
}
