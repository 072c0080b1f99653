//! Effects of each decision about a job outside of it: freed room, gangs, and notifications.

use octoflow_model::{
    NodeIx,
    volcano::{JobFact, PodOutcome, PodStop},
};

use super::turn::Turn;

impl Turn<'_> {
    /// Records the effects of a decision that was just folded; `before` is the version that the job had.
    pub(super) fn note(&mut self, fact: &JobFact, before: u32) {
        let (effects, state) = (&mut self.effects, &self.run.state);
        match fact {
            // No caller waits for a start: it may be committed together with what comes next.
            JobFact::Started { .. } => return,
            JobFact::Entered { .. } => {
                effects.change.phase = true;
                effects.gangs_dissolved |= state.version != before;
            }
            JobFact::Ending { pod, why, .. } => {
                effects.ending.push(NodeIx(*pod));
                if *why == PodStop::Preempted {
                    effects.preempted.push(NodeIx(*pod));
                }
            }
            JobFact::Ended(end) => {
                if end.outcome != PodOutcome::Restarted {
                    effects.freed.push(NodeIx(end.pod));
                }
            }
            JobFact::Removed { first, count, .. } => effects.freed.extend((*first..*first + *count).map(NodeIx)),
            JobFact::Created { count, .. } => self.slice.covered(*count as usize),
            JobFact::Launched { .. }
            | JobFact::Delayed(_)
            | JobFact::DelayEnded { .. }
            | JobFact::Ready { .. }
            | JobFact::Left { .. } => {}
            JobFact::Resized(_) => {
                effects.change.phase = true;
                effects.change.objects = true;
            }
            JobFact::Awaits { .. } => effects.change.phase = true,
        }
        self.effects.change.urgent = true;
    }
}
