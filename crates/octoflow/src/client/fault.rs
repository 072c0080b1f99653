//! Translates error responses of any face into an exit code and a message.

use serde_json::Value;
use ureq::Error;

use super::Endpoint;
use crate::{
    exit::{Exit, Failure},
    source::workflow::{list, text},
};

/// Translates the status and body of a response.
pub(super) fn failure(status: u16, body: &[u8], url: &str) -> Failure {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    // Kubernetes sends a `Status`, our own face `error`, Argo's a message and a code, the submission pipeline's a `msg`.
    let told = value.get("error").filter(|error| error.is_object()).unwrap_or(&value);
    let message = match (text(told, "message"), text(told, "msg")) {
        ("", "") => format!("the server at {url} answers with status {status}"),
        ("", message) | (message, _) => message.to_owned(),
    };
    let causes = match list(&told["details"]["causes"]) {
        [] => list(&told["causes"]),
        causes => causes,
    };
    // A failed precondition is a conflict, however the face expresses it.
    let refused = told["code"] == 9 || text(told, "reason") == "FailedPrecondition";
    let exit = if refused { Exit::Conflict } else { exit(status, !causes.is_empty()) };
    if !causes.is_empty() {
        let mut shown = String::from("the server does not accept it:");
        for cause in causes {
            let field = text(cause, "field");
            let place = if field.is_empty() { String::new() } else { format!("{field}: ") };
            shown.push_str(&format!("\n  {place}{}", text(cause, "message")));
        }
        return Failure::new(exit, shown);
    }
    let failure = Failure::new(exit, message);
    match status {
        401 => failure
            .help("say who you are with --token or OCTOFLOW_TOKEN, or where the server's data is with --data-dir"),
        403 => {
            failure.help("this token may not do that; an administrator can make another with: octoflow token create")
        }
        413 => failure.help("the server takes no larger requests"),
        429 => failure.help("the server has too much to do; try again in a while"),
        _ => failure,
    }
}

fn exit(status: u16, with_causes: bool) -> Exit {
    match status {
        401 | 403 => Exit::Denied,
        404 | 410 => Exit::NotFound,
        409 | 412 => Exit::Conflict,
        422 => Exit::InvalidManifest,
        400 if with_causes => Exit::InvalidManifest,
        400 | 405 | 415 => Exit::Usage,
        _ => Exit::Infrastructure,
    }
}

/// Translates a transport error.
pub(super) fn transport_error(error: &Error, endpoint: &Endpoint) -> Failure {
    let url = &endpoint.url;
    match error {
        Error::Timeout(_) => Failure::new(Exit::Infrastructure, format!("the server at {url} does not answer in time")),
        Error::Tls(_) | Error::Rustls(_) => {
            Failure::new(Exit::Infrastructure, format!("the server at {url} cannot be trusted: {error}"))
                .help("give its certificate with --ca-file, or trust anyone with --insecure-skip-verify")
        }
        Error::BadUri(_) => {
            Failure::usage(format!("`{url}` is no address of a server")).help("write it like http://127.0.0.1:2746")
        }
        Error::Io(io) if io.to_string().contains("certificate") || io.to_string().contains("CaUsed") => {
            Failure::new(Exit::Infrastructure, format!("the server at {url} cannot be trusted: {io}"))
                .help("give its certificate with --ca-file, or trust anyone with --insecure-skip-verify")
        }
        error if super::is_unreachable(error) => {
            let failure = Failure::new(Exit::Infrastructure, format!("no server answers at {url}"));
            if endpoint.assumed {
                failure.help("start one with: octoflow server, or name one with --server; `octoflow run` needs none")
            } else {
                failure.help("is it running, and is the address right?")
            }
        }
        error => Failure::new(Exit::Infrastructure, format!("the connection to {url} was lost: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(status: u16, body: &str) -> (Exit, String) {
        let failure = failure(status, body.as_bytes(), "http://x");
        (failure.exit, failure.to_string())
    }

    #[test]
    fn every_face_is_understood() {
        let kube = r#"{"kind":"Status","message":"bad","details":{"causes":[{"field":"spec.a","message":"no"},{"field":"","message":"nor"}]}}"#;
        assert_eq!(
            told(422, kube),
            (Exit::InvalidManifest, "the server does not accept it:\n  spec.a: no\n  nor".to_owned())
        );
        assert_eq!(told(404, r#"{"code":5,"message":"not there"}"#), (Exit::NotFound, "not there".to_owned()));
        assert_eq!(told(409, r#"{"error":{"message":"taken","causes":[]}}"#), (Exit::Conflict, "taken".to_owned()));
        assert_eq!(
            told(502, "<html>"),
            (Exit::Infrastructure, "the server at http://x answers with status 502".to_owned())
        );
        assert_eq!(told(400, r#"{"code":9,"message":"over"}"#), (Exit::Conflict, "over".to_owned()));
        assert_eq!(told(401, "{}").0, Exit::Denied);
        assert_eq!(told(400, r#"{"message":"m"}"#).0, Exit::Usage);
    }
}
