//! Explanations of why a part of a run waits, or how it ended, in words that every dialect shares.

use octoflow_model::Time;

use crate::schedule::{Scheduler, TaskRef, WaitReason};

/// The state of one part of a run (a node, a role, a replica, or the whole) and its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    pub node: String,
    /// The id of the node, as annotations of its pod name it, else the name of its pod; `None` if it has none.
    pub id: Option<String>,
    /// Empty for a task that is no node yet.
    pub phase: String,
    pub reason: String,
    pub since: Option<Time>,
    /// What the scheduler says about it, if it waits for that.
    pub wait: Option<Box<WaitReason>>,
}

/// Waiting tasks of a run for which the smallest change is looked for: that is tried out in copies of the scheduler.
pub(crate) const MAX_PROPOSALS: usize = 8;

/// Asks the scheduler why a task waits; of the first tasks also what would let them go.
pub(crate) fn ask(scheduler: &Scheduler, task: TaskRef, asked: &mut usize) -> Option<WaitReason> {
    *asked += 1;
    if *asked <= MAX_PROPOSALS { scheduler.explain(task) } else { scheduler.why(task) }
}

/// Completes explanations that were made with a frozen scheduler: of the first tasks that wait, what would let them go and when
/// they are expected to start. It takes long, so whoever asks does it, and not whoever decides.
pub fn complete(explanations: &mut [Explanation], scheduler: &Scheduler) {
    let waiting = explanations.iter_mut().filter_map(|one| Some((&mut one.reason, one.wait.as_mut()?)));
    for (reason, wait) in waiting.take(MAX_PROPOSALS) {
        let before = wait.to_string();
        scheduler.complete(wait);
        *reason = reason.replacen(&before, &wait.to_string(), 1);
    }
}
