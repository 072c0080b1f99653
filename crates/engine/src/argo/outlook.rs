//! What would run if a workflow were submitted: its templates expanded as far as values are known beforehand.
//! Nothing is decided here and no run is needed; where the answer depends on what tasks will say, it stays open.

mod known;
mod longest;
mod walk;

use octoflow_model::submission::Stored;
use serde_json::Value;

use super::program::Program;

pub use longest::{Longest, Took, longest};

/// How large an outlook may become.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Items of the whole tree.
    pub items: usize,
    /// Items of one loop that are written out.
    pub of_a_loop: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { items: 2_000, of_a_loop: 20 }
    }
}

#[derive(Debug)]
pub struct Outlook {
    pub entrypoint: String,
    pub locks: Vec<String>,
    /// How many pods the workflow lets run at once.
    pub parallelism: Option<u64>,
    pub root: Item,
    /// What runs last, whatever happens.
    pub exit: Option<Item>,
    /// The tree was larger than it may become.
    pub cut: bool,
}

/// One call, or one round of a loop, and what is below it.
#[derive(Debug, Default)]
pub struct Item {
    /// The display name its node would have.
    pub name: String,
    pub template: String,
    /// The type its node would have; empty when the template is not known before.
    pub kind: String,
    pub image: Option<String>,
    pub condition: Condition,
    pub rounds: Rounds,
    /// How often it is tried again, as far as that is written down.
    pub retries: Option<String>,
    pub locks: Vec<String>,
    /// How many of its children may run at once.
    pub parallelism: Option<String>,
    /// The condition on other tasks, when it is more than that they are over.
    pub depends: Option<String>,
    /// Which of its siblings it waits for, by their place.
    pub needs: Vec<usize>,
    /// Siblings of one wave may run at the same time. Counted from 1.
    pub wave: usize,
    /// It follows the end of the item it stands below.
    pub hook: bool,
    pub cut: Option<Cut>,
    pub children: Vec<Item>,
}

/// Whether it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    #[default]
    Always,
    /// The condition is known, and does not hold.
    Never(String),
    /// Known only when it is its turn.
    Open(String),
}

/// How often a call is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Rounds {
    #[default]
    Once,
    /// A loop over this many items; its children are its rounds.
    Known(usize),
    /// A loop over what is known only later; its children are those of one round.
    Open(String),
}

/// Why something is not written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The template is being expanded already; it calls itself.
    Recursion,
    /// So many more rounds like the last one.
    Rounds(usize),
    /// The tree is large enough.
    Size,
}

/// Expands an admitted manifest. The reason, in one sentence, when it cannot be read.
pub fn outlook(manifest: &Value, stored: &Stored, bounds: Bounds) -> Result<Outlook, String> {
    let program = Program::compile(manifest, stored)?;
    if let Some(flaw) = &program.flaw {
        return Err(flaw.clone());
    }
    Ok(walk::Walk::new(&program, bounds).whole())
}

#[cfg(test)]
mod tests;
