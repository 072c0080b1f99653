//! The states that runs are told to have entered, compared with what their journals say. Every stage of the tests hands its
//! outcomes in, so the law holds for all dialects, slices of any size, and restarts between any two commits.

use std::collections::BTreeMap;

use octoflow_engine::{Decided, Run};
use octoflow_model::{Fact, RunFact, RunId, plugin::LifeState};

/// Runs as their facts alone describe them, and the states they have entered.
#[derive(Default)]
pub(crate) struct Lives(BTreeMap<RunId, (Run, Vec<LifeState>)>);

impl Lives {
    /// Takes what was decided of a run: the states told are the states entered, each once, in order and numbered.
    pub(crate) fn take(&mut self, decided: &Decided) {
        if decided.change.submitted {
            self.0.remove(&decided.run);
        }
        let before = self.of(decided.run).len();
        self.read(decided.run, &decided.facts);
        let (run, entered) = &self.0[&decided.run];
        let told: Vec<LifeState> = decided.change.life.iter().map(|(state, _)| *state).collect();
        assert_eq!(told, entered[before..], "the states told are those that the facts lead to, after {entered:?}");
        assert_eq!(decided.lived as usize, before, "states are numbered through, also over restarts");
        assert_eq!(run.finished(), entered.last().is_some_and(|state| state.is_final()), "a final state is the end");
        assert!(decided.change.life.is_sorted_by_key(|(_, at)| *at), "states are told with the times they had");
    }

    /// Begins anew with these journals: a crash has lost what was decided after them.
    pub(crate) fn reread(&mut self, journals: &BTreeMap<RunId, Vec<Fact>>) {
        self.0.clear();
        journals.iter().for_each(|(run, facts)| self.read(*run, facts));
    }

    fn read(&mut self, run: RunId, facts: &[Fact]) {
        let mut facts = facts;
        if let [Fact::Run(RunFact::Submitted(submission)), rest @ ..] = facts {
            let opened = Run::open(run, submission).expect("what was submitted opens");
            let mut entered = vec![LifeState::Waiting];
            entered.extend(Some(opened.life_state()).filter(|state| *state != LifeState::Waiting));
            self.0.insert(run, (opened, entered));
            facts = rest;
        }
        let (run, entered) = self.0.get_mut(&run).expect("the first fact of a run is its submission");
        for fact in facts {
            run.apply(fact);
            let state = run.life_state();
            if entered.last() != Some(&state) {
                assert!(!entered.iter().any(|state| state.is_final()), "no state follows a final one: {fact:?}");
                entered.push(state);
            }
        }
    }

    /// The states that a run has entered.
    pub(crate) fn of(&self, run: RunId) -> &[LifeState] {
        self.0.get(&run).map_or(&[], |(_, entered)| entered)
    }
}
