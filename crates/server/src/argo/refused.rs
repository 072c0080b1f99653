//! What cannot be done with things as they stand. Argo's clients are told that the request was wrong, not that there
//! is a conflict: they take every conflict for a name that exists.

use axum::http::StatusCode;
use octoflow_control::{Error, registry};

use crate::fault::Fault;

pub(crate) const REFUSED: &str = "FailedPrecondition";

/// For commands to runs.
pub(crate) fn refused(fault: registry::Fault) -> Fault {
    match fault {
        registry::Fault::Controller(Error::Refused(why)) => no(&why),
        registry::Fault::Controller(Error::Again(why)) => no(&why),
        other => other.into(),
    }
}

/// The words that clients know.
pub(crate) fn over(verb: &str, name: &str) -> Fault {
    no(&format!("cannot {verb} a completed workflow: {name}"))
}

fn no(why: &dyn std::fmt::Display) -> Fault {
    Fault::new(StatusCode::BAD_REQUEST, REFUSED, why.to_string())
}
