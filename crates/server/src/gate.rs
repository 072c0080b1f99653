//! The middleware around every handler: limits, access, timeouts, panics, metrics and audit. Handlers never see a
//! request that is not allowed.

pub(crate) mod access;
pub(crate) mod addresses;
pub(crate) mod area;
pub(crate) mod audit;
pub(crate) mod basic;
pub(crate) mod browser;
pub(crate) mod hosts;
pub(crate) mod meter;
pub(crate) mod rules;

use std::{
    net::{IpAddr, Ipv4Addr},
    panic::AssertUnwindSafe,
    time::Instant,
};

use axum::{
    body::HttpBody,
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header},
};
use futures_util::FutureExt;
use tokio::time::timeout;

use crate::{
    answer::{self, Answer, fault::Fault, query::Query},
    app::App,
    call::{Call, Params},
    gate::access::{Caller, Client, Ends},
    listen::{Peer, local::LocalUser, streams::Streamed},
    route::{Face, Need, Route},
};

/// Header with the id of a request, in both directions.
const REQUEST_ID: &str = "x-request-id";
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// Request data collected before anything is checked.
struct RequestInfo {
    began: Instant,
    id: String,
    peer: IpAddr,
    /// User at the other end of the unix socket.
    user: Option<LocalUser>,
    method: Method,
    uri: Uri,
    face: Face,
}

/// Handles a request for a path of the table.
pub(crate) async fn handle(app: App, route: Route, params: Params, mut request: Request) -> Answer {
    basic::as_bearer(request.headers_mut());
    let info = RequestInfo::new(&app, route.face, &request);
    // Background work steps back while it is answered.
    let foreground = waits(&route, request.uri()).then(|| app.foreground().enter(info.began));
    let object = audit::object(&params);
    let (answer, caller) = info.handle(&app, &route, params, request).await;
    let answer = info.finish(&app, answer, caller, object).await;
    if let Some(foreground) = foreground {
        foreground.leave(Instant::now());
    }
    answer
}

/// Handles a request for a path that is not in the table.
pub(crate) async fn refuse(app: App, face: Face, fault: Fault, request: Request) -> Answer {
    let info = RequestInfo::new(&app, face, &request);
    // Unauthorized callers learn nothing about what exists.
    let checked = info.check_size(&app, request.headers()).and_then(|()| check_origin(&app, Need::Token, &request));
    let fault = checked.err().unwrap_or(fault);
    info.finish(&app, answer::fault(face, &fault), None, None).await
}

impl RequestInfo {
    fn new(app: &App, face: Face, request: &Request) -> Self {
        let peer = request.extensions().get::<Peer>().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0);
        let sent = request.headers().get(REQUEST_ID).and_then(|value| value.to_str().ok()).filter(|id| plain(id));
        Self {
            began: Instant::now(),
            id: sent.map_or_else(|| app.meter.next_id(), str::to_owned),
            peer,
            user: request.extensions().get::<LocalUser>().copied(),
            method: request.method().clone(),
            uri: request.uri().clone(),
            face,
        }
    }

    async fn handle(&self, app: &App, route: &Route, params: Params, request: Request) -> (Answer, Option<Caller>) {
        let refused = |fault| answer::fault(self.face, &fault);
        let need = route.need(app);
        if let Err(fault) = self.check_size(app, request.headers()).and_then(|()| check_origin(app, need, &request)) {
            return (refused(fault), None);
        }
        if app.closing.is_cancelled() && need != Need::Nothing {
            return (refused(Fault::closing()), None);
        }
        if route.need != Need::Nothing && app.progress().is_pending() {
            return (refused(Fault::starting(app.progress())), None);
        }
        let ends = request.extensions().get::<Ends>().copied();
        let client = Client { address: self.peer, ends, user: self.user };
        let caller = match app.access.admit(request.headers(), client, need).await {
            Ok(caller) => caller,
            Err(denied) => return (refused(denied.fault), denied.caller),
        };
        let query = request.uri().query().unwrap_or_default();
        if let Err(fault) = area::check(app, route, need, &params, query, &caller).await {
            return (refused(fault), Some(caller));
        }
        let call = Call::new(app.clone(), caller.clone(), params, request);
        let work = AssertUnwindSafe((route.handler)(call)).catch_unwind();
        let outcome = match timeout(app.limits.request_within, work).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(panic)) => {
                let text = panic_message(panic.as_ref());
                tracing::error!(request = self.id, path = self.uri.path(), panic = text, "a handler broke off");
                Err(Fault::internal(format!("this is a bug of ours (request {}): {text}", self.id)))
            }
            Err(_) => {
                let within = app.limits.request_within.as_secs();
                Err(Fault::timed_out(format!("the request was not done within {within} seconds")))
            }
        };
        let answer = outcome.and_then(|answer| with_stream_permit(app, &caller, answer)).unwrap_or_else(refused);
        (answer, Some(caller))
    }

    /// Checks the size limits of the request.
    fn check_size(&self, app: &App, headers: &HeaderMap) -> Result<(), Fault> {
        let url = self.uri.path().len() + self.uri.query().map_or(0, |query| query.len() + 1);
        if url > app.limits.longest_url {
            let text = format!("path and query may have {} bytes at most, not {url}", app.limits.longest_url);
            return Err(Fault::new(StatusCode::URI_TOO_LONG, "RequestURITooLong", text));
        }
        let length: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        if length > app.limits.longest_headers {
            let text = format!("the headers may have {} bytes at most, not {length}", app.limits.longest_headers);
            let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
            return Err(Fault::new(status, "RequestHeaderFieldsTooLarge", text));
        }
        Ok(())
    }

    /// Finishes a request: adds common headers, and records metrics and the audit entry.
    async fn finish(self, app: &App, mut answer: Answer, caller: Option<Caller>, object: Option<String>) -> Answer {
        if let Ok(id) = HeaderValue::from_str(&self.id) {
            answer.headers_mut().insert(REQUEST_ID, id);
        }
        // A browser must not guess another content type, nor hand the answer to a page of another site.
        answer.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        answer.headers_mut().insert(RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
        if self.face == Face::Argo {
            crate::faces::argo::sign(&mut answer);
        }
        let status = answer.status();
        let took = self.began.elapsed();
        app.meter.answered(self.face, &self.method, status, took);
        let path = self.uri.path();
        let who = caller.as_ref().map_or("", |caller| caller.name.as_str());
        let millis = took.as_millis() as u64;
        let (request, method, code) = (self.id.as_str(), self.method.as_str(), status.as_u16());
        if status.is_server_error() {
            tracing::warn!(request, peer = %self.peer, who, method, path, status = code, millis, "request failed");
        } else {
            tracing::debug!(request, peer = %self.peer, who, method, path, status = code, millis, "request");
        }
        if !audit::is_audited(&self.method, status) {
            return answer;
        }
        let (answer, made) = if status.is_success() { audit::peek(answer).await } else { (answer, None) };
        app.audit.write(audit::AuditEntry {
            request: self.id,
            peer: self.user.map_or_else(|| self.peer.to_string(), |user| format!("uid {}", user.uid)),
            who: caller.map(|caller| (caller.name, caller.id)),
            method: self.method.to_string(),
            path: path.to_owned(),
            status: code,
            object,
            made,
            dry_run: Query::parse(self.uri.query().unwrap_or_default()).flag("dryRun"),
        });
        answer
    }
}

/// Whether somebody waits for the whole answer now: not a probe, nor whoever watches or follows.
fn waits(route: &Route, uri: &Uri) -> bool {
    let query = Query::parse(uri.query().unwrap_or_default());
    let lasts = ["watch", "follow", "logOptions.follow"].iter().any(|word| query.flag(word));
    route.need != Need::Nothing && !lasts
}

/// Whether the request is for us, and not sent by a page of another site.
fn check_origin(app: &App, need: Need, request: &Request) -> Result<(), Fault> {
    let asked = app.hosts.check(request.uri(), request.headers())?;
    browser::check(&app.hosts, &asked, need, request)
}

/// Takes a stream permit for an answer of unknown length: such answers stay open for long, so their number is limited.
fn with_stream_permit(app: &App, caller: &Caller, answer: Answer) -> Result<Answer, Fault> {
    if HttpBody::size_hint(answer.body()).exact().is_some() {
        return Ok(answer);
    }
    let permit = app.streams.enter(caller)?;
    Ok(answer.map(|body| Streamed::body(body, permit)))
}

fn plain(id: &str) -> bool {
    (1..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte))
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "the panic had no message".to_owned())
}
