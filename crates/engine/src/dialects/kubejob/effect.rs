//! Effects of each decision about a job outside of it: freed room and notifications.

use octoflow_model::{
    NodeIx,
    kubejob::{KubeJobFact, PodOutcome, PodStop},
};

use super::turn::Turn;

impl Turn<'_> {
    /// Records the effects of a decision that was just folded.
    pub(super) fn note(&mut self, fact: &KubeJobFact) {
        let effects = &mut self.effects;
        match fact {
            // No caller waits for a start: it may be committed together with what comes next.
            KubeJobFact::Started { .. } => return,
            KubeJobFact::Began { .. } | KubeJobFact::Judged { .. } | KubeJobFact::Amended { .. } => {
                effects.change.phase = true;
            }
            KubeJobFact::Ending { pod, why, .. } => {
                effects.ending.push(NodeIx(*pod));
                if *why == PodStop::Preempted {
                    effects.preempted.push(NodeIx(*pod));
                }
            }
            KubeJobFact::Ended(end) => {
                if end.outcome != PodOutcome::Restarted {
                    effects.freed.push(NodeIx(end.pod));
                }
            }
            KubeJobFact::Removed { pods, .. } => {
                self.slice.covered(pods.len());
                effects.freed.extend(pods.iter().copied().map(NodeIx));
            }
            KubeJobFact::Created { count, .. } => self.slice.covered(*count as usize),
            KubeJobFact::Launched { .. } | KubeJobFact::Ready { .. } => {}
        }
        self.effects.change.urgent = true;
    }
}
