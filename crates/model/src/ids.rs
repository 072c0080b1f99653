//! Id newtypes, so that a run id can never be passed as a revision. Holds identity only; each thing is described in its
//! own module.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// One submitted run of any dialect. Drawn from the store's counter, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub u64);

/// A position in the journal. Grows with every commit; it is what users see as `resourceVersion`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Revision(pub u64);

/// Index of a node in its run, in order of creation. Facts and links use it instead of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeIx(pub u32);

impl NodeIx {
    pub fn at(self) -> usize {
        self.0 as usize
    }
}

/// One attempt of one task. It fences reports: a report that names an attempt which is no longer the task's current one
/// is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AttemptId {
    pub run: RunId,
    pub task: NodeIx,
    pub attempt: u32,
}

macro_rules! shown_as_number {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}
shown_as_number!(RunId, Revision, NodeIx);

/// `run-task-attempt`, safe as a file name.
impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.run, self.task, self.attempt)
    }
}

/// A text that is not of the form `run-task-attempt`.
#[derive(Debug, PartialEq, Eq)]
pub struct NotAnAttempt;

impl FromStr for AttemptId {
    type Err = NotAnAttempt;

    fn from_str(text: &str) -> Result<Self, NotAnAttempt> {
        let mut parts = text.split('-');
        let mut next = || parts.next().ok_or(NotAnAttempt);
        let run = next()?.parse().map_err(|_| NotAnAttempt)?;
        let task = next()?.parse().map_err(|_| NotAnAttempt)?;
        let attempt = next()?.parse().map_err(|_| NotAnAttempt)?;
        match parts.next() {
            Some(_) => Err(NotAnAttempt),
            None => Ok(Self { run: RunId(run), task: NodeIx(task), attempt }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_id_survives_its_text_form() {
        let id = AttemptId { run: RunId(12), task: NodeIx(345), attempt: 6 };
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!("12-345".parse::<AttemptId>(), Err(NotAnAttempt));
        assert_eq!("1-2-3-4".parse::<AttemptId>(), Err(NotAnAttempt));
    }
}
