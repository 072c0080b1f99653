//! What each decision about a TaskSet means beyond the TaskSet: room, gangs, control units, and who must hear of it.

use octoflow_model::{
    NodeIx,
    taskset::{SetFact, SetPhase},
};

use super::turn::Turn;

impl Turn<'_> {
    /// Notes a decision that was just folded; the TaskSet was in this phase before.
    pub(super) fn note(&mut self, fact: &SetFact, before: SetPhase) {
        let (effects, state) = (&mut self.effects, &self.run.state);
        // A start is told to nobody who waits for it: it may be kept together with what comes next.
        effects.change.urgent |= !matches!(fact, SetFact::Started { .. });
        // The first replica that is up makes the whole TaskSet run; its end may be the first that is heard of it.
        effects.change.phase |= before == SetPhase::AttemptPreparing && state.phase == SetPhase::AttemptRunning;
        match fact {
            SetFact::Began { attempt, .. } => {
                effects.change.phase = true;
                effects.change.units.push((*attempt, true));
            }
            SetFact::Ended(parting) => effects.freed.push(NodeIx(parting.replica)),
            SetFact::Over { attempt, .. } => {
                effects.gangs_dissolved = true;
                effects.change.phase = true;
                effects.change.units.push((*attempt, false));
            }
            SetFact::Queued { .. }
            | SetFact::Launched { .. }
            | SetFact::Started { .. }
            | SetFact::Ending { .. }
            | SetFact::Again { .. }
            | SetFact::Dropped { .. }
            | SetFact::RoleJudged { .. }
            | SetFact::RoleOver { .. }
            | SetFact::Judged { .. } => {}
        }
    }
}
