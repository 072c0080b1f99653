//! What a caller asks of a rerun, and why it may be refused. Data only.

use thiserror::Error;

/// Options of a retry. Whatever kept the run from succeeding always runs again; the options add to that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RerunOptions {
    /// True if nodes that the selector matches run again though they succeeded, with everything after them.
    pub restart_successful: bool,
    /// Node field selector. Ignored without `restart_successful`.
    pub selector: Option<String>,
    /// Nodes to run again, by name, id or display name, without what comes after them.
    pub nodes: Vec<String>,
    /// Nodes to run again with everything after them.
    pub from: Vec<String>,
    /// True if failures that `continueOn` excused, and what came after them, run again too.
    pub failed: bool,
    /// Arguments to replace by name, or to add.
    pub parameters: Vec<(String, String)>,
}

impl RerunOptions {
    /// Reports whether the caller names what runs again.
    pub(crate) fn chooses(&self) -> bool {
        self.restart_successful && self.selector.is_some()
            || !self.nodes.is_empty()
            || !self.from.is_empty()
            || self.failed
    }
}

/// Options of a resubmit: a new run made from an old one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResubmitOptions {
    /// True if tasks that succeeded do not run again.
    pub memoized: bool,
    /// Arguments to replace by name, or to add.
    pub parameters: Vec<(String, String)>,
}

/// Why a run cannot be rerun as requested.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RerunRefusal {
    #[error("Cannot retry a workflow in phase {phase}")]
    Open { phase: String },
    #[error("To retry a succeeded workflow, set the options restartSuccessful and nodeFieldSelector")]
    Succeeded,
    #[error("Workflow must be Failed/Error to resubmit in memoized mode")]
    NotFailed,
    #[error("'{text}' is not a node field selector; write key=value terms joined by commas")]
    Selector { text: String },
    #[error("no node matches the nodeFieldSelector '{selector}'")]
    NoMatch { selector: String },
    #[error("the workflow has no node '{node}'; give its name, id or display name")]
    NoNode { node: String },
    #[error("the parameter '{name}' cannot be '{value}'; its enum allows: {}", listed(choices))]
    NotAllowed { name: String, value: String, choices: Vec<String> },
    /// Refusal of another dialect, in its own words.
    #[error("{0}")]
    Said(String),
}

/// Lists the choices, a long list in part.
fn listed(choices: &[String]) -> String {
    const MAX_SHOWN: usize = 20;
    let shown: Vec<String> = choices.iter().take(MAX_SHOWN).map(|choice| format!("'{choice}'")).collect();
    let more = if choices.len() > MAX_SHOWN { ", …" } else { "" };
    shown.join(", ") + more
}
