//! Encodes values and faults as HTTP responses, in the format of each face. Nothing else does.

pub(crate) mod fault;
pub(crate) mod follow;
pub(crate) mod pieces;
pub(crate) mod query;
pub(crate) mod stream;
pub(crate) mod warning;

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, Response, StatusCode, header},
};
use octoflow_control::registry::SharedText;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{answer::fault::Fault, faces::submission::code_of, route::Face};

pub(crate) type Answer = Response<Body>;

pub(crate) fn json(value: &impl Serialize) -> Answer {
    with_status(StatusCode::OK, value)
}

pub(crate) fn with_status(status: StatusCode, value: &impl Serialize) -> Answer {
    match serde_json::to_vec(value) {
        Ok(bytes) => bytes_as(status, "application/json", bytes),
        Err(error) => bytes_as(
            StatusCode::INTERNAL_SERVER_ERROR,
            "text/plain; charset=utf-8",
            format!("the answer cannot be written down: {error}").into_bytes(),
        ),
    }
}

/// Answers with the text of an object, which other answers may send too.
pub(crate) fn shared(text: SharedText) -> Answer {
    let mut answer = bytes_as(StatusCode::OK, "application/json", Vec::new());
    *answer.body_mut() = Body::from(Bytes::from_owner(text));
    answer
}

/// Encodes an object for [`shared`].
pub(crate) fn encode(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).expect("a value can always be written to memory")
}

pub(crate) fn text(text: impl Into<String>) -> Answer {
    bytes_as(StatusCode::OK, "text/plain; charset=utf-8", text.into().into_bytes())
}

pub(crate) fn bytes_as(status: StatusCode, kind: &'static str, bytes: Vec<u8>) -> Answer {
    let mut answer = Response::new(Body::from(bytes));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

pub(crate) fn fault(face: Face, fault: &Fault) -> Answer {
    let body = match face {
        Face::Kube => status(fault),
        Face::Argo => json!({"code": grpc_code(fault), "message": fault.message}),
        Face::Submission => json!({"code": code_of(fault).word(), "msg": fault.message}),
        Face::Own => json!({"error": {
            "code": fault.status.as_u16(), "reason": fault.reason, "message": fault.message,
            "causes": fault.causes.iter().map(cause).collect::<Vec<_>>(),
        }}),
    };
    let mut answer = with_status(if face == Face::Argo { argo_status(fault) } else { fault.status }, &body);
    if let Some(seconds) = fault.retry_after {
        answer.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    if fault.status == StatusCode::UNAUTHORIZED {
        answer.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    answer
}

/// Encodes a fault as the `Status` object of the Kubernetes API.
pub(crate) fn status(fault: &Fault) -> Value {
    let mut details = json!({});
    if let Some((plural, name)) = &fault.about {
        details["kind"] = json!(plural);
        details["name"] = json!(name);
    }
    if !fault.causes.is_empty() {
        details["causes"] = fault.causes.iter().map(cause).collect();
    }
    if let Some(seconds) = fault.retry_after {
        details["retryAfterSeconds"] = json!(seconds);
    }
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": fault.message,
        "reason": fault.reason, "details": details, "code": fault.status.as_u16(),
    })
}

fn cause(cause: &fault::Cause) -> Value {
    json!({"reason": cause.reason, "message": cause.message, "field": cause.field})
}

/// Maps the status for Argo's clients, which know one status for all invalid input.
pub(crate) fn argo_status(fault: &Fault) -> StatusCode {
    match fault.status {
        StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
        status => status,
    }
}

/// Returns the gRPC code that corresponds to the HTTP status.
pub(crate) fn grpc_code(fault: &Fault) -> u8 {
    match fault.status.as_u16() {
        401 => 16,
        403 => 7,
        404 | 410 => 5,
        409 if fault.reason == "AlreadyExists" => 6,
        409 => 10,
        413 | 429 | 431 | 507 => 8,
        405 | 501 => 12,
        503 => 14,
        504 => 4,
        400 if fault.reason == crate::faces::argo::REFUSED => 9,
        400..=499 => 3,
        _ => 13,
    }
}
