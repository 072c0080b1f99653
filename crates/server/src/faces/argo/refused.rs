//! Commands that a run refuses in its current state. Argo's clients get a bad request rather than a conflict, because
//! they take every conflict for an existing name.

use axum::http::StatusCode;
use octoflow_control::{Error, registry};

use crate::answer::fault::Fault;

pub(crate) const REFUSED: &str = "FailedPrecondition";

/// Translates the error of a command to a run.
pub(crate) fn refused(fault: registry::Fault) -> Fault {
    match fault {
        registry::Fault::Controller(Error::Refused(why)) => no(&why),
        registry::Fault::Controller(Error::Rerun(why)) => no(&why),
        other => other.into(),
    }
}

/// Refusal in the words that clients know.
pub(crate) fn over(verb: &str, name: &str) -> Fault {
    no(&format!("cannot {verb} a completed workflow: {name}"))
}

fn no(why: &dyn std::fmt::Display) -> Fault {
    Fault::new(StatusCode::BAD_REQUEST, REFUSED, why.to_string())
}
