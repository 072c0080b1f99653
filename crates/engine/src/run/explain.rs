//! Explanations of why a part of a run waits, or how it ended, in words that every dialect shares.

use octoflow_model::Time;

/// The state of one part of a run (a node, a role, a replica, or the whole) and its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    pub node: String,
    /// Empty for a task that is no node yet.
    pub phase: String,
    pub reason: String,
    pub since: Option<Time>,
}
