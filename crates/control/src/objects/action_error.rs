//! Failures of an action on an object: a refusal ends the attempt, unavailable storage only delays it.

use crate::{Error, registry::Fault, supervisor::error_chain};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ActionError {
    Refused(String),
    /// Storage is unavailable; the action is retried.
    Unavailable,
}

impl From<String> for ActionError {
    fn from(why: String) -> Self {
        Self::Refused(why)
    }
}

impl From<&str> for ActionError {
    fn from(why: &str) -> Self {
        Self::Refused(why.to_owned())
    }
}

impl From<Error> for ActionError {
    fn from(error: Error) -> Self {
        if error.is_outage() { Self::Unavailable } else { Self::Refused(error_chain(&error)) }
    }
}

impl From<octoflow_store::Error> for ActionError {
    fn from(error: octoflow_store::Error) -> Self {
        Error::from(error).into()
    }
}

impl From<Fault> for ActionError {
    fn from(fault: Fault) -> Self {
        if let Fault::Controller(error) = fault { error.into() } else { Self::Refused(fault.to_string()) }
    }
}
