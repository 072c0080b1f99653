//! What a run takes over from the run it comes after: results of nodes that need not be made again, and whose attempts
//! its logs are. Written down once, when it is submitted.

use std::{collections::BTreeMap, ops::Bound};

use serde::{Deserialize, Serialize};

use crate::{
    argo::{NodeKind, OutputValues, Phase},
    ids::{AttemptId, RunId},
    time::Time,
};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Before {
    /// The runs whose place it took, oldest first. The logs of their attempts are its own and go with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<RunId>,
    /// By the node's name without the run's, which is empty for the root.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub results: BTreeMap<String, Done>,
}

/// How a node ended before; it ends the same way again without being run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Done {
    /// What it is shown as.
    pub kind: NodeKind,
    pub phase: Phase,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    pub started: Time,
    pub finished: Time,
    /// A runtime said that its task began.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ran: bool,
    /// It was made by another run, and is shown as skipped here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skipped: bool,
    /// The machine it ran on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Whose log is its log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<AttemptId>,
    #[serde(default, skip_serializing_if = "OutputValues::is_empty")]
    pub outputs: OutputValues,
    /// How far its task said it was: so much of so much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<(u32, u32)>,
    /// What its cache said, when it was memoized.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memo: Option<Remembered>,
}

/// What a memoized node asked its cache for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remembered {
    pub cache: String,
    pub key: String,
    pub hit: bool,
}

/// What may follow a node's name in the name of a node that belongs to it.
const BELOW: [char; 3] = ['(', '.', '['];

impl Before {
    /// There is a result of the node or of something that belongs to it.
    pub fn touches(&self, suffix: &str) -> bool {
        self.results.contains_key(suffix) || self.reaches_below(suffix)
    }

    /// There is a result of something that belongs to the node.
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
        let done = Done {
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
        let before = Before { results: results.into(), ..Before::default() };
        for (name, touched) in
            [(".a", true), (".a.b", true), (".run", false), ("[0]", true), ("[0].x", true), (".a.b.c", false)]
        {
            assert_eq!(before.touches(name), touched, "{name}");
        }
    }
}
