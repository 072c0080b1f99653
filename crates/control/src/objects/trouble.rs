//! Failures of an action on an object: a refusal ends the attempt, unavailable storage only delays it.

use crate::{Error, registry::Fault, supervisor::whole};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    Refused(String),
    /// Storage is unavailable; the action is retried.
    Unavailable,
}

impl From<String> for Trouble {
    fn from(why: String) -> Self {
        Self::Refused(why)
    }
}

impl From<&str> for Trouble {
    fn from(why: &str) -> Self {
        Self::Refused(why.to_owned())
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        if error.is_outage() { Self::Unavailable } else { Self::Refused(whole(&error)) }
    }
}

impl From<octoflow_store::Error> for Trouble {
    fn from(error: octoflow_store::Error) -> Self {
        Error::from(error).into()
    }
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Controller(error) => error.into(),
            fault => Self::Refused(fault.to_string()),
        }
    }
}
