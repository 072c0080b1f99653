//! Inputs that many tests hand in: objects, journals read back, and runs that go on from them.

use octoflow_engine::{Engine, Input, Outcome, Refusal, engine, engine::Keyed};
use octoflow_model::{AttemptId, Fact, RunId, Task, Time, meta::KeyedData, submission::Submission};

/// A ConfigMap or Secret in the namespace `default`.
pub(crate) fn object(kind: Keyed, name: &str, data: KeyedData) -> Input {
    Input::Object { kind, namespace: "default".to_owned(), name: name.to_owned(), data: Some(data) }
}

/// Submits a run and lets it begin; what came of both.
pub(crate) fn submit(engine: &mut Engine, run: RunId, submission: Box<Submission>, now: Time) -> Outcome {
    let mut submitted = engine.handle(Input::Submit { run, submission, program: None }, now);
    let begun = engine.handle(Input::Begin { run }, now);
    let first = submitted.decided.pop();
    let mut decided = begun.decided;
    // One decision, as whoever counts what one input decides sees it.
    if let (Some(first), Some(next)) = (first, decided.first_mut()) {
        next.facts.splice(0..0, first.facts);
        next.change.submitted = true;
        next.change.life.splice(0..0, first.change.life);
        next.lived = first.lived;
    }
    Outcome { decided, orders: begun.orders, refusal: submitted.refusal.or(begun.refusal), ..submitted }
}

/// Reads a journal back; the run does nothing yet.
pub(crate) fn restore(engine: &mut Engine, run: RunId, facts: impl IntoIterator<Item = Fact>) {
    let folded = engine::fold(run, facts).expect("an own journal can be read");
    engine.handle(Input::Restore(Box::new(folded)), Time(0));
}

/// Restored runs go on: what is believed to be with the runtime, and what they decide.
pub(crate) fn go_on(engine: &mut Engine, runs: &[RunId], now: Time) -> (Vec<(AttemptId, Box<Task>)>, Outcome) {
    let mut outcome = engine.handle(Input::Continue { runs: runs.to_vec() }, now);
    assert_eq!(outcome.refusal, None::<Refusal>);
    (std::mem::take(&mut outcome.assumed_running), outcome)
}
