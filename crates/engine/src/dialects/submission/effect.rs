//! Effects of each decision about a submitted job outside of it: notifications.

use octoflow_model::submitted::WalkFact;

use super::turn::Turn;

impl Turn<'_> {
    /// Records the effects of a decision that was just folded.
    pub(super) fn note(&mut self, fact: &WalkFact) {
        let change = &mut self.effects.change;
        change.urgent = true;
        match fact {
            WalkFact::Erred { .. }
            | WalkFact::Judged { .. }
            | WalkFact::Released { .. }
            | WalkFact::HandedOver { .. }
            | WalkFact::Held { .. }
            | WalkFact::Made { .. }
            | WalkFact::Observed { .. }
            | WalkFact::Over { .. } => change.phase = true,
            WalkFact::Bound { .. }
            | WalkFact::Called { .. }
            | WalkFact::Translated { .. }
            | WalkFact::Extended { .. }
            | WalkFact::Advised { .. }
            | WalkFact::RecheckDue { .. }
            | WalkFact::Told { .. } => {}
        }
    }
}
