//! What a story says of facts and orders, a line each. It decides nothing.

use octoflow_model::{Fact, Order, RunFact, RunId};

/// Returns a line for each fact of a commit but submissions, which are long.
pub(super) fn told(commit: &[(RunId, Vec<Fact>)]) -> Vec<String> {
    let facts = commit.iter().flat_map(|(run, facts)| facts.iter().map(move |fact| (run, fact)));
    facts
        .filter(|(_, fact)| !matches!(fact, Fact::Run(RunFact::Submitted(_))))
        .map(|(run, fact)| format!("fact     run {run}: {fact:?}"))
        .collect()
}

/// Returns an order in a few words.
pub(super) fn brief(order: &Order) -> String {
    match order {
        Order::Start { attempt, task } => format!("start {attempt} ({} {:?})", task.name, task.main.args),
        Order::Stop { attempt } => format!("stop {attempt}"),
        Order::Kill { attempt } => format!("kill {attempt}"),
        Order::Forget { attempt } => format!("forget {attempt}"),
    }
}
