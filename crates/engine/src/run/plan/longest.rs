//! Counts the tasks of a plan and finds its critical path: the longest chain of tasks that wait for each other.

use std::time::Duration;

use super::{CallCondition, NotExpanded, PlannedCall, Rounds, WorkflowPlan};

/// Task counts and critical path of a plan.
#[derive(Clone, Debug, Default)]
pub struct LongestPath {
    /// Number of tasks that run in any case, without retries.
    pub least: usize,
    /// Maximum number of tasks; `None` if a loop or a recursion leaves it open.
    pub most: Option<usize>,
    /// Tasks of the longest chain, in order.
    pub chain: Vec<String>,
    /// Duration of the longest chain, as far as the durations of its tasks are known.
    pub span: Option<Duration>,
}

/// Returns the usual duration of a template's tasks.
pub type TypicalDuration<'a> = &'a dyn Fn(&str) -> Option<Duration>;

/// Finds the longest chain: the slowest, if `typical` knows any durations, else the one with the most tasks.
pub fn longest_path(plan: &WorkflowPlan, typical: TypicalDuration<'_>) -> LongestPath {
    let root = weigh(&plan.root, None, typical);
    let exit = plan.exit.as_ref().map(|exit| weigh(exit, Some(""), typical));
    let whole = match exit {
        Some(exit) => Weight {
            least: root.least + exit.least,
            most: add(root.most, exit.most),
            chain: root.chain.then(exit.chain),
        },
        None => root,
    };
    let span = (whole.chain.span > Duration::ZERO).then_some(whole.chain.span);
    LongestPath { least: whole.least, most: whole.most, chain: whole.chain.names, span }
}

struct Weight {
    least: usize,
    most: Option<usize>,
    chain: Chain,
}

#[derive(Clone, Default)]
struct Chain {
    names: Vec<String>,
    span: Duration,
}

impl Chain {
    fn then(mut self, next: Self) -> Self {
        self.names.extend(next.names);
        self.span += next.span;
        self
    }

    fn longer(self, other: Self) -> Self {
        if (other.span, other.names.len()) > (self.span, self.names.len()) { other } else { self }
    }
}

fn add(one: Option<usize>, other: Option<usize>) -> Option<usize> {
    one.zip(other).map(|(one, other)| one.saturating_add(other))
}

/// Sums up one item and everything below it. The tree is as deep as templates may nest, so recursion is safe. Names are
/// qualified by their call, except below the entrypoint, which has nothing above it.
fn weigh(item: &PlannedCall, above: Option<&str>, typical: TypicalDuration<'_>) -> Weight {
    if matches!(item.condition, CallCondition::Never(_)) {
        return Weight { least: 0, most: Some(0), chain: Chain::default() };
    }
    let name = match above {
        None | Some("") => item.name.clone(),
        // The name of an iteration contains that of its call.
        Some(_) if matches!(item.rounds, Rounds::Once) && item.name.ends_with(')') => item.name.clone(),
        Some(above) => format!("{above}.{}", item.name),
    };
    let (hooks, body): (Vec<&PlannedCall>, Vec<&PlannedCall>) = item.children.iter().partition(|child| child.hook);
    let hidden = match item.rounds {
        Rounds::Known(rounds) => rounds.saturating_sub(body.len()),
        Rounds::Once | Rounds::Open(_) => 0,
    };
    // Whatever calls nothing is a task, of whichever kind, except a suspension.
    let is_task = body.is_empty() && !matches!(item.kind.as_str(), "" | "Steps" | "DAG" | "Suspend");
    let mut weight = if is_task {
        let chain = Chain { names: vec![name], span: typical(&item.template).unwrap_or_default() };
        Weight { least: 1, most: Some(1), chain }
    } else {
        sum(&body, if above.is_none() { "" } else { &name }, hidden, typical)
    };
    if matches!(item.rounds, Rounds::Open(_)) || matches!(item.cut, Some(NotExpanded::Recursion | NotExpanded::Size)) {
        weight.most = None;
    }
    for hook in hooks {
        let hook = weigh(hook, above.map(|_| ""), typical);
        weight.most = add(weight.most, hook.most);
        weight.least = weight.least.saturating_add(hook.least);
        weight.chain = weight.chain.then(hook.chain);
    }
    if item.condition != CallCondition::Always || item.depends.is_some() || matches!(item.rounds, Rounds::Open(_)) {
        weight.least = 0;
    }
    weight
}

/// Sums up siblings, each of which begins when all it needs are over. `hidden` more of them are like the last.
fn sum(children: &[&PlannedCall], above: &str, hidden: usize, typical: TypicalDuration<'_>) -> Weight {
    let mut total = Weight { least: 0, most: Some(0), chain: Chain::default() };
    let mut ends: Vec<Chain> = Vec::with_capacity(children.len());
    for (at, child) in children.iter().enumerate() {
        let weight = weigh(child, Some(above), typical);
        let times = if at + 1 == children.len() { hidden.saturating_add(1) } else { 1 };
        total.least = total.least.saturating_add(weight.least.saturating_mul(times));
        total.most = add(total.most, weight.most.map(|most| most.saturating_mul(times)));
        let before = child.needs.iter().filter_map(|need| ends.get(*need).cloned());
        let before = before.reduce(Chain::longer).unwrap_or_default();
        let end = before.then(weight.chain);
        total.chain = total.chain.longer(end.clone());
        ends.push(end);
    }
    total
}
