//! Effects of each decision about a flow outside of it: notifications.

use octoflow_model::jobflow::FlowFact;

use super::turn::Turn;

impl Turn<'_> {
    /// Records the effects of a decision that was just folded.
    pub(super) fn note(&mut self, fact: &FlowFact) {
        let change = &mut self.effects.change;
        change.urgent = true;
        match fact {
            FlowFact::Made { .. }
            | FlowFact::Observed { .. }
            | FlowFact::Held { .. }
            | FlowFact::Ended { .. }
            | FlowFact::Removed { .. } => change.phase = true,
            FlowFact::Wanted { .. }
            | FlowFact::Probing { .. }
            | FlowFact::ConditionMet { .. }
            | FlowFact::Removing { .. } => {}
        }
    }
}
