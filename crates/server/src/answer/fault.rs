//! Errors of requests, independent of the face. `answer` encodes them.

use axum::http::StatusCode;
use octoflow_control::{Error, StartProgress, registry};

/// One problem of the request.
pub(crate) use octoflow_control::registry::Cause;

/// `Retry-After` during a storage outage, in seconds: the interval of the repair attempts.
const AFTER_OUTAGE: u32 = 5;

/// `Retry-After` while many large runs are shown, in seconds: some of them are sent by then.
const WHILE_BUSY: u32 = 5;

#[derive(Debug)]
pub(crate) struct Fault {
    pub status: StatusCode,
    /// Reason of the Kubernetes API.
    pub reason: &'static str,
    pub message: String,
    /// Plural (for an invalid object: kind) and name of the object concerned.
    pub about: Option<(&'static str, String)>,
    pub causes: Vec<Cause>,
    /// `Retry-After` in seconds, if a retry may help.
    pub retry_after: Option<u32>,
}

impl Fault {
    pub(crate) fn new(status: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self { status, reason, message: message.into(), about: None, causes: Vec::new(), retry_after: None }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    pub(crate) fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", message)
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", message)
    }

    pub(crate) fn method_not_allowed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "Conflict", message)
    }

    #[allow(dead_code, reason = "so far the registry alone says so, and faces try how they tell it")]
    pub(crate) fn gone(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    pub(crate) fn too_large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
    }

    pub(crate) fn not_implemented(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, "NotImplemented", message)
    }

    /// The server is shutting down; another one may be up soon.
    pub(crate) fn closing() -> Self {
        let fault = Self::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", "the server is closing");
        Self { retry_after: Some(1), ..fault }
    }

    /// Runs are still being resumed, so answers would be wrong.
    pub(crate) fn starting(progress: &StartProgress) -> Self {
        let (read, total) = progress.journals();
        let text = format!("starting: {read} of {total} runs read");
        Self { retry_after: Some(1), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", text) }
    }

    /// The server took too long.
    pub(crate) fn timed_out(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message)
    }

    /// The client took too long to send its request.
    pub(crate) fn too_slow(message: impl Into<String>) -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "Timeout", message)
    }

    pub(crate) fn too_many(message: impl Into<String>, retry_after: u32) -> Self {
        let fault = Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message);
        Self { retry_after: Some(retry_after), ..fault }
    }

    /// The controller failed; the request itself was fine.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
    }
}

impl From<registry::Fault> for Fault {
    fn from(fault: registry::Fault) -> Self {
        use registry::Fault as From;
        let message = fault.to_string();
        let of = |status, reason| Self::new(status, reason, message.clone());
        match fault {
            From::NotFound { kind, name } => {
                Self { about: Some((kind.plural, name)), ..of(StatusCode::NOT_FOUND, "NotFound") }
            }
            From::Exists { kind, name } => {
                Self { about: Some((kind.plural, name)), ..of(StatusCode::CONFLICT, "AlreadyExists") }
            }
            From::Conflict { kind, name, .. } => {
                Self { about: Some((kind.plural, name)), ..of(StatusCode::CONFLICT, "Conflict") }
            }
            From::Invalid { kind, name, causes } => {
                Self { about: Some((kind.name, name)), causes, ..of(StatusCode::UNPROCESSABLE_ENTITY, "Invalid") }
            }
            From::Owned { kind, name, causes } => {
                Self { about: Some((kind.plural, name)), causes, ..of(StatusCode::CONFLICT, "Conflict") }
            }
            From::Forbidden { kind, name, .. } => {
                Self { about: Some((kind.plural, name)), ..of(StatusCode::FORBIDDEN, "Forbidden") }
            }
            From::TooLarge { kind, name, .. } => {
                Self { about: Some((kind.plural, name)), ..of(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge") }
            }
            From::Busy { kind, name } => {
                let fault = of(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable");
                Self { about: Some((kind.plural, name)), retry_after: Some(WHILE_BUSY), ..fault }
            }
            From::BadRequest(_) => of(StatusCode::BAD_REQUEST, "BadRequest"),
            From::ReadOnly { .. } => of(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed"),
            From::Expired => of(StatusCode::GONE, "Expired"),
            From::Controller(Error::Refused(_) | Error::KeyTaken { .. }) => of(StatusCode::CONFLICT, "Conflict"),
            From::Controller(Error::Rerun(_)) => of(StatusCode::BAD_REQUEST, "BadRequest"),
            From::Controller(Error::Gone | Error::Broken(_)) => {
                Self { retry_after: Some(1), ..of(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable") }
            }
            From::Controller(error) if error.is_full() => {
                let fault = of(StatusCode::INSUFFICIENT_STORAGE, "InsufficientStorage");
                Self { retry_after: Some(AFTER_OUTAGE), ..fault }
            }
            From::Controller(error) if error.is_outage() => {
                let fault = of(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable");
                Self { retry_after: Some(AFTER_OUTAGE), ..fault }
            }
            From::Controller(_) => of(StatusCode::INTERNAL_SERVER_ERROR, "InternalError"),
        }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        registry::Fault::from(error).into()
    }
}
