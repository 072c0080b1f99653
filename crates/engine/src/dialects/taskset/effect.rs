//! Effects of each decision about a TaskSet outside of it: freed room, gangs, control units, and notifications.

use octoflow_model::{
    NodeIx,
    taskset::{SetFact, SetPhase, StopReason},
};

use super::turn::Turn;

/// Replicas that are reset for another attempt in the time in which one is queued.
const BEGUN_A_MEMBER: usize = 16;

impl Turn<'_> {
    /// Records the effects of a decision that was just folded; `before` is the phase the TaskSet had.
    pub(super) fn note(&mut self, fact: &SetFact, before: SetPhase) {
        let (effects, state) = (&mut self.effects, &self.run.state);
        // The first replica that is up makes the TaskSet running; its end may be the first report about it.
        effects.change.phase |= before == SetPhase::AttemptPreparing && state.phase == SetPhase::AttemptRunning;
        match fact {
            // No caller waits for a start: it may be committed together with what comes next.
            SetFact::Started { .. } => return,
            SetFact::Began { attempt, .. } => {
                self.slice.covered(state.replicas.len() / BEGUN_A_MEMBER);
                effects.change.phase = true;
                effects.change.units.push((*attempt, true));
            }
            SetFact::Ending { replica, why, .. } => {
                effects.ending.push(NodeIx(*replica));
                if *why == StopReason::Preempted {
                    effects.preempted.push(NodeIx(*replica));
                }
            }
            SetFact::Ended(end) => effects.freed.push(NodeIx(end.replica)),
            // It waits no more.
            SetFact::Dropped { replica, .. } => effects.freed.push(NodeIx(*replica)),
            SetFact::Over { attempt, .. } => {
                effects.gangs_dissolved = true;
                effects.change.phase = true;
                effects.change.units.push((*attempt, false));
            }
            SetFact::Queued { count, .. } => self.slice.covered(*count as usize),
            SetFact::Launched { .. }
            | SetFact::Again { .. }
            | SetFact::RoleJudged { .. }
            | SetFact::RoleOver { .. }
            | SetFact::Judged { .. } => {}
        }
        self.effects.change.urgent = true;
    }
}
