//! Data a rerun takes over from the previous run: results of nodes that are not executed again, and the runs whose logs
//! it inherits. Written once, on submission.

use std::{collections::BTreeMap, ops::Bound};

use serde::{Deserialize, Serialize};

pub use crate::jobflow::EntryResult;
use crate::{
    ids::{AttemptId, RunId},
    run::{
        node::{NodeKind, Phase},
        outputs::OutputValues,
    },
    time::Time,
};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PreviousRun {
    /// The runs this one replaced, oldest first. It owns the logs of their attempts, which are deleted with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<RunId>,
    /// Reused results by node name without the run's name, which is empty for the root.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub results: BTreeMap<String, NodeResult>,
    /// What is known of the entries of a flow, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub entries: BTreeMap<String, EntryResult>,
}

/// The result of a node in the previous run; the node ends the same way without being executed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeResult {
    /// The node type it is displayed as.
    pub kind: NodeKind,
    pub phase: Phase,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    pub started: Time,
    pub finished: Time,
    /// True if a runtime reported that its task started.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ran: bool,
    /// True if the result stems from another run and is displayed as skipped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skipped: bool,
    /// The host it ran on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The attempt that owns its log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<AttemptId>,
    #[serde(default, skip_serializing_if = "OutputValues::is_empty")]
    pub outputs: OutputValues,
    /// Progress the task reported: done and total.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<(u32, u32)>,
    /// The cache lookup of a memoized node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memo: Option<CacheLookup>,
}

/// A cache lookup of a memoized node and its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheLookup {
    pub cache: String,
    pub key: String,
    pub hit: bool,
}

/// Separators between a node's name and the rest of a descendant's name.
const BELOW: [char; 3] = ['(', '.', '['];

impl PreviousRun {
    /// Reports whether there is a result of the node or of one of its descendants.
    pub fn touches(&self, suffix: &str) -> bool {
        self.results.contains_key(suffix) || self.reaches_below(suffix)
    }

    /// Reports whether there is a result of a descendant of the node.
    pub fn reaches_below(&self, suffix: &str) -> bool {
        BELOW.iter().any(|sign| {
            let start = format!("{suffix}{sign}");
            let from = (Bound::Included(start.as_str()), Bound::Unbounded);
            self.results.range::<str, _>(from).next().is_some_and(|(name, _)| name.starts_with(&start))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_touched_by_what_belongs_to_it_and_by_nothing_else() {
        let done = NodeResult {
            kind: NodeKind::Pod,
            phase: Phase::Succeeded,
            message: String::new(),
            started: Time(0),
            finished: Time(0),
            ran: true,
            skipped: false,
            host: None,
            attempt: None,
            outputs: OutputValues::default(),
            progress: None,
            memo: None,
        };
        let results = [".a.b", ".running", "[0].x(0)"].map(|name| (name.to_owned(), done.clone()));
        let before = PreviousRun { results: results.into(), ..PreviousRun::default() };
        for (name, touched) in
            [(".a", true), (".a.b", true), (".run", false), ("[0]", true), ("[0].x", true), (".a.b.c", false)]
        {
            assert_eq!(before.touches(name), touched, "{name}");
        }
    }
}
