//! What goes with a run that is handed in, and what comes back when it is accepted. Plain data.

use octoflow_model::{Revision, RunId};
use octoflow_store::Change;
use serde_json::Value;

use crate::Claim;

/// What goes with a run that is handed in.
pub(crate) struct Terms {
    /// Makes handing it in twice make one run.
    pub claim: Option<Claim>,
    /// The finished run whose place it takes.
    pub replaces: Option<RunId>,
    /// Kept with the run, or neither is.
    pub beside: Vec<Change>,
}

/// A run that was accepted.
pub(crate) struct Entered {
    pub run: RunId,
    /// As it stood when it was, and the commit that was part of, for those who asked.
    pub shown: Option<(Revision, Value)>,
}
