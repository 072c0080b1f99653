//! Artifacts over HTTP: GET to fetch, PUT to send. Redirects are followed, each checked by the guard.

use std::{fs::File, io::Read};

use octoflow_model::{base64, location::Web, order::Fetched};
use ureq::{
    AsSendBody, Body, Error, SendBody,
    http::{Method, Request, Response, Uri, header, header::HeaderValue, request},
};

use super::{ArtifactClient, IsWanted, TransferError, copy_while_wanted, file_range};
use crate::{
    artifacts::{pack::describe, unpack::ArtifactFile},
    egress::redirect,
};

pub(super) fn get(
    artifact_client: &ArtifactClient,
    web: &Web,
    is_wanted: IsWanted<'_>,
) -> Result<(ArtifactFile, Fetched), TransferError> {
    let host = host(web)?;
    let mut answer = send(artifact_client, request_head(Method::GET, web)?, ())?;
    check(&mut answer, &host)?;
    let mut entry = artifact_client.entry()?;
    let promised = answer.body().content_length();
    let received =
        copy_while_wanted(&mut answer.body_mut().with_config().limit(u64::MAX).reader(), &mut entry, is_wanted)?;
    if promised.is_some_and(|promised| promised != received) {
        return Err(TransferError::retryable(format!("{host} sent {received} of {} bytes", promised.unwrap_or(0))));
    }
    let held = entry.into_temp().map_err(|error| TransferError::permanent(describe(error)))?;
    let fetched = Fetched { digest: held.digest, size: held.size };
    Ok((ArtifactFile { file: held.file, size: held.size, own: false, maybe_tree: false }, fetched))
}

pub(super) fn put(artifact_client: &ArtifactClient, web: &Web, file: &File, size: u64) -> Result<(), TransferError> {
    let host = host(web)?;
    let mut body = file_range(file, &(0..size)).map_err(|error| TransferError::permanent(error.to_string()))?;
    let request = request_head(Method::PUT, web)?.header(header::CONTENT_LENGTH, size.to_string());
    check(&mut send(artifact_client, request, SendBody::from_reader(&mut body))?, &host)
}

pub(super) fn delete(artifact_client: &ArtifactClient, web: &Web) -> Result<(), TransferError> {
    let host = host(web)?;
    let mut answer = send(artifact_client, request_head(Method::DELETE, web)?, ())?;
    match check(&mut answer, &host) {
        Err(failed_attempt) if failed_attempt.is_absent() => Ok(()),
        done => done,
    }
}

/// Sends a request and follows redirects.
fn send(
    artifact_client: &ArtifactClient,
    head: request::Builder,
    body: impl AsSendBody,
) -> Result<Response<Body>, TransferError> {
    let request = head.body(body).map_err(Error::from);
    let answer = request.and_then(|request| redirect::send(&artifact_client.agent, request));
    answer.map_err(|error| TransferError::of_request(&error))
}

fn request_head(method: Method, web: &Web) -> Result<request::Builder, TransferError> {
    let mut request = Request::builder().method(method).uri(&web.url);
    for (name, value) in &web.headers {
        // The value may be a secret, so it stays out of the message.
        let value = HeaderValue::from_str(value.reveal())
            .map_err(|_| TransferError::permanent(format!("its header `{name}` has a value that cannot be sent")))?;
        request = request.header(name.as_str(), value);
    }
    if let Some((user, password)) = &web.user {
        let pair = format!("{}:{}", user.reveal(), password.reveal());
        request = request.header(header::AUTHORIZATION, format!("Basic {}", base64::encode(pair.as_bytes())));
    }
    Ok(request)
}

/// Returns the host, for messages: the rest of a URL may hold secrets.
fn host(web: &Web) -> Result<String, TransferError> {
    let uri: Uri = web.url.parse().map_err(|_| TransferError::permanent("its url is not a valid one".to_owned()))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(TransferError::permanent("its url begins with neither http:// nor https://".to_owned()));
    }
    uri.host().map(str::to_owned).ok_or_else(|| TransferError::permanent("its url names no host".to_owned()))
}

/// Bytes of an error response that are shown.
const EXCERPT: u64 = 300;

fn check(answer: &mut Response<Body>, host: &str) -> Result<(), TransferError> {
    let status = answer.status().as_u16();
    if (200..300).contains(&status) {
        return Ok(());
    }
    let body = excerpt(answer, EXCERPT);
    let line = body.split_whitespace().collect::<Vec<_>>().join(" ");
    TransferError::of_status(status, host, &line).map_or(Ok(()), Err)
}

/// Returns the beginning of a response's body as text.
pub(super) fn excerpt(answer: &mut Response<Body>, most: u64) -> String {
    let mut bytes = Vec::new();
    // An unreadable rest adds nothing to the message.
    let _ = answer.body_mut().as_reader().take(most).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}
