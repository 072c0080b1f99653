//! What a request comes to, and its code on the wire.

use axum::http::StatusCode;
use octoflow_control::registry::{self, Cause, Problem};
use serde_json::{Value, json};

use crate::answer::{self, Answer, fault::Fault};

/// The payload of an answer, if it has one.
pub(super) type Outcome = Result<Option<Value>, Refused>;

/// Codes of the envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    Succeeded,
    LackOfParam,
    WrongParam,
    UnsupportedPluginType,
    PermissionDenied,
    TargetNotFound,
    UnsupportedOperation,
    InternalError,
}

impl Code {
    pub(super) const ALL: [Self; 8] = [
        Self::Succeeded,
        Self::LackOfParam,
        Self::WrongParam,
        Self::UnsupportedPluginType,
        Self::PermissionDenied,
        Self::TargetNotFound,
        Self::UnsupportedOperation,
        Self::InternalError,
    ];

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Succeeded => "OPERATION_SUCCEEDED",
            Self::LackOfParam => "LACK_OF_PARAM",
            Self::WrongParam => "WRONG_PARAM",
            Self::UnsupportedPluginType => "UNSUPPORTED_PLUGIN_TYPE",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::TargetNotFound => "OPERATION_TARGET_NOT_FOUND",
            Self::UnsupportedOperation => "UNSUPPORTED_OPERATION",
            Self::InternalError => "INTERNAL_ERROR",
        }
    }
}

/// Why nothing came of a request.
#[derive(Debug)]
pub(super) enum Refused {
    /// The business of it: told with status 200.
    Business(Code, String),
    /// Told with the status of the fault.
    Plain(Fault),
}

impl Refused {
    pub(super) fn lacks(what: impl Into<String>) -> Self {
        Self::Business(Code::LackOfParam, what.into())
    }

    pub(super) fn wrong(why: impl Into<String>) -> Self {
        Self::Business(Code::WrongParam, why.into())
    }

    pub(super) fn missing(what: impl Into<String>) -> Self {
        Self::Business(Code::TargetNotFound, what.into())
    }

    pub(super) fn unsupported(why: impl Into<String>) -> Self {
        Self::Business(Code::UnsupportedOperation, why.into())
    }

    /// Has a refusal for what a request says its own status.
    pub(super) fn with_status(self, status: StatusCode) -> Self {
        match self {
            Self::Business(_, why) => Self::Plain(Fault::new(status, reason(status), why)),
            Self::Plain(fault) => Self::Plain(fault),
        }
    }
}

fn reason(status: StatusCode) -> &'static str {
    if status == StatusCode::NOT_FOUND { "NotFound" } else { "BadRequest" }
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        match fault.status {
            StatusCode::NOT_FOUND | StatusCode::CONFLICT | StatusCode::UNPROCESSABLE_ENTITY => {
                Self::Business(code_of(&fault), fault.message)
            }
            _ => Self::Plain(fault),
        }
    }
}

impl From<registry::Fault> for Refused {
    fn from(fault: registry::Fault) -> Self {
        Fault::from(fault).into()
    }
}

pub(super) fn answer(outcome: Outcome) -> Result<Answer, Fault> {
    let (code, msg, payload) = match outcome {
        Ok(payload) => (Code::Succeeded, String::new(), payload),
        Err(Refused::Business(code, why)) => (code, why, None),
        Err(Refused::Plain(fault)) => return Err(fault),
    };
    let mut body = json!({"code": code.word(), "msg": msg});
    if let Some(payload) = payload {
        body["payload"] = payload;
    }
    Ok(answer::json(&body))
}

/// Returns the code for a fault of anybody.
pub(crate) fn code_of(fault: &Fault) -> Code {
    match fault.status.as_u16() {
        // Too many wrong tokens came, or too much is asked for at once.
        401 | 403 | 421 | 429 => Code::PermissionDenied,
        404 => Code::TargetNotFound,
        405 | 409 | 410 => Code::UnsupportedOperation,
        422 => of_causes(&fault.causes),
        400..=499 => Code::WrongParam,
        _ => Code::InternalError,
    }
}

/// What is missing comes first, as whoever checks one parameter after the other finds it.
fn of_causes(causes: &[Cause]) -> Code {
    let has = |reason: &str| causes.iter().any(|cause| cause.reason == reason);
    match () {
        () if has("FieldValueRequired") => Code::LackOfParam,
        () if has("FieldValueNotSupported") => Code::UnsupportedPluginType,
        () => Code::WrongParam,
    }
}

/// Reads texts of a body, none of which may be missing or empty.
pub(super) fn texts<const N: usize>(body: &Value, names: [&str; N]) -> Result<[String; N], Refused> {
    let is_lacking = |name: &&str| body[*name].is_null() || body[*name] == "";
    let lacking: Vec<&str> = names.into_iter().filter(is_lacking).collect();
    if !lacking.is_empty() {
        return Err(Refused::lacks(format!("{} must be given", lacking.join(", "))));
    }
    if let Some(name) = names.into_iter().find(|name| !body[*name].is_string()) {
        return Err(Refused::wrong(format!("{name} is a text")));
    }
    Ok(names.map(|name| body[name].as_str().unwrap_or_default().to_owned()))
}

/// Refuses what has these problems; all of them are told.
pub(super) fn of_problems(problems: &[Problem]) -> Refused {
    let causes: Vec<Cause> = problems.iter().map(Cause::of).collect();
    let told = |cause: &Cause| match cause.field.as_str() {
        "" => cause.message.clone(),
        field => format!("{field}: {}", cause.message),
    };
    Refused::Business(of_causes(&causes), causes.iter().map(told).collect::<Vec<_>>().join("; "))
}
