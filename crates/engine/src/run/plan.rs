//! A preview of what would run if a manifest were submitted: a tree of calls with conditions, rounds and order. Data
//! only; the dialects make it.

mod longest;

pub use longest::{LongestPath, TypicalDuration, longest_path};

/// Size limits of a plan.
#[derive(Clone, Copy, Debug)]
pub struct PlanBounds {
    /// Items of the whole tree.
    pub items: usize,
    /// Items of one loop that are written out.
    pub of_a_loop: usize,
}

impl Default for PlanBounds {
    fn default() -> Self {
        Self { items: 2_000, of_a_loop: 20 }
    }
}

#[derive(Debug)]
pub struct WorkflowPlan {
    pub entrypoint: String,
    pub locks: Vec<String>,
    /// Number of pods that the workflow allows at once.
    pub parallelism: Option<u64>,
    pub root: PlannedCall,
    /// The exit handler.
    pub exit: Option<PlannedCall>,
    /// True if the tree exceeded its size limit.
    pub cut: bool,
}

/// A call, or one iteration of a loop, and what is below it.
#[derive(Debug, Default)]
pub struct PlannedCall {
    /// Display name that its node would have.
    pub name: String,
    pub template: String,
    /// Type that its node would have; empty if the template is not known before the run.
    pub kind: String,
    pub image: Option<String>,
    pub condition: CallCondition,
    pub rounds: Rounds,
    /// Retry limit, as written.
    pub retries: Option<String>,
    pub locks: Vec<String>,
    /// Number of its children that may run at once.
    pub parallelism: Option<String>,
    /// Condition on other tasks, if it requires more than their end.
    pub depends: Option<String>,
    /// Siblings it waits for, by index.
    pub needs: Vec<usize>,
    /// Number of its wave, from 1. Siblings of one wave may run at the same time.
    pub wave: usize,
    /// True if it is a hook that follows the end of its parent.
    pub hook: bool,
    pub cut: Option<NotExpanded>,
    pub children: Vec<PlannedCall>,
}

/// Whether a call runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CallCondition {
    #[default]
    Always,
    /// The condition is known and does not hold.
    Never(String),
    /// The condition is only known at run time.
    Open(String),
}

/// Number of times a call is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Rounds {
    #[default]
    Once,
    /// A loop over this many items; its children are its iterations.
    Known(usize),
    /// A loop over items known at run time only; its children are those of one iteration.
    Open(String),
}

/// Why something is not expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotExpanded {
    /// The template is being expanded already: it calls itself.
    Recursion,
    /// Further iterations like the last one, by number.
    Rounds(usize),
    /// The tree has reached its size limit.
    Size,
}
