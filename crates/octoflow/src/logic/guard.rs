//! What must hold of the engine whatever it is told. Cases run under this guard in builds with debug assertions,
//! so that every test of logic is a test of the journal too; people's tests do not pay for it.

use octoflow_engine::{Engine, engine::fold};
use octoflow_model::{Fact, RunId};

/// Folding all facts after every input takes the square of their number, so long runs are looked at less often, and the
/// longest only at their end.
const FEW: usize = 200;
const SELDOM: usize = 50;
const MANY: usize = 2000;

pub(super) const ON: bool = cfg!(debug_assertions);

/// The state of a run is what its facts tell, and facts survive being written down.
pub(super) fn is_told(engine: &Engine, run: RunId, facts: &[Fact]) {
    let Some(live) = engine.run_of::<octoflow_engine::argo::Run>(run) else { return };
    let looked_at = facts.len() <= FEW || facts.len() <= MANY && facts.len().is_multiple_of(SELDOM);
    if !looked_at && !live.state.finished() {
        return;
    }
    let written = facts.iter().map(|fact| {
        let text = serde_json::to_string(fact).expect("a fact can be written");
        let read: Fact = serde_json::from_str(&text).expect("a fact that was written can be read");
        assert_eq!(read, *fact, "a fact does not survive being written down");
        read
    });
    let folded = fold(run, written.collect::<Vec<_>>()).expect("an own journal can be read");
    let folded = folded.of::<octoflow_engine::argo::Run>().expect("a workflow stays one");
    assert_eq!(folded.state, live.state, "the fold of the facts is not the live state");
}
