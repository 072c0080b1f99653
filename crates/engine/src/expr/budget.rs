//! Budgets of expressions: steps and bytes of one evaluation, of one node, and of a whole run. Work is counted and
//! never timed, so that the same expressions are refused wherever and whenever they are evaluated. A meter is not part
//! of any state: it starts afresh when a run is restored; what it refused is a fact by then.

use std::cell::Cell;

use super::{
    Error, Span, Value,
    lang::{self, Env, Expression, Limits},
    when,
};

/// Bytes created, copied or scanned at the cost of one step.
pub(crate) const BYTES_A_STEP: u64 = 64;

/// Bytes of an expression's text parsed at the cost of one step.
const PARSED_A_STEP: u64 = 8;

/// Cost of compiling a pattern, in steps.
pub(crate) const COMPILING: u64 = 5_000;

/// The scope of a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BudgetScope {
    #[default]
    Evaluation,
    Node,
    Run,
}

/// Counts the steps of all expressions of one run.
#[derive(Debug, Default)]
pub struct Meter {
    /// Steps of evaluations since the run was loaded.
    spent: Cell<u64>,
    /// Steps of substituting variables, which goes on when the budget for expressions is exhausted.
    filled: Cell<u64>,
    /// Steps of evaluations for the current node.
    node: Cell<u64>,
    /// Number of nodes of the run.
    nodes: Cell<u64>,
    /// True once the run's budget was exhausted; it gets no more.
    exhausted: Cell<bool>,
}

impl Meter {
    /// Budget of all expressions of one node: a few times the most that one evaluation may take.
    pub const NODE: u64 = 2 * Limits::STEPS;
    /// Budget of all expressions of one run, besides [`Self::EACH`]: about a second of work. Hundreds of expressions
    /// that take apart a large document fit; a loop of the most expensive ones ends here.
    pub const RUN: u64 = 20_000_000;
    /// Budget that each node adds to the run's: a millisecond of work, twenty times what an ordinary node costs in all.
    pub const EACH: u64 = 20_000;

    /// Starts the budget of the next node, in a run of `nodes` nodes.
    pub fn next_node(&self, nodes: usize) {
        self.node.set(0);
        self.nodes.set(nodes as u64);
    }

    /// Returns all steps counted so far.
    pub fn total(&self) -> u64 {
        self.spent.get().saturating_add(self.filled.get())
    }

    /// Parses and evaluates an expression.
    pub fn evaluate(&self, text: &str, env: &dyn Env) -> Result<Value, Error> {
        let program = self.parse(text)?;
        self.run(&program, env)
    }

    pub fn parse(&self, text: &str) -> Result<Expression, Error> {
        self.spend(1 + text.len() as u64 / PARSED_A_STEP)?;
        lang::parse(text)
    }

    pub fn run(&self, program: &Expression, env: &dyn Env) -> Result<Value, Error> {
        let (left, scope) = self.left();
        if left == 0 {
            return Err(self.refuse(scope));
        }
        let most = Limits::default();
        let limits = match left < most.steps {
            true => Limits { steps: left, bytes: capped(left, most.bytes), scope, ..most },
            false => most,
        };
        let (outcome, spent) = program.evaluate_counted(env, limits);
        self.note(spent);
        if outcome.as_ref().is_err_and(Error::is_exhausted) && limits.scope == BudgetScope::Run {
            self.exhausted.set(true);
        }
        outcome
    }

    /// Evaluates a condition of the `when` language.
    pub fn holds(&self, text: &str) -> Result<bool, Error> {
        let patterns = text.matches("=~").count() + text.matches("!~").count();
        self.spend(1 + text.len() as u64 / PARSED_A_STEP + COMPILING * patterns as u64)?;
        when::evaluate(text)
    }

    /// Charges the work of an evaluation before it is done.
    pub fn spend(&self, steps: u64) -> Result<(), Error> {
        let (left, scope) = self.left();
        if left < steps {
            return Err(self.refuse(scope));
        }
        self.note(steps);
        Ok(())
    }

    /// Charges a text of this many bytes that was substituted or looked up.
    pub fn fill(&self, bytes: usize) -> Result<(), Error> {
        let steps = bytes as u64 / BYTES_A_STEP;
        self.filled.set(self.filled.get().saturating_add(steps));
        if self.filled.get() > self.allowance() {
            Err(refusal(BudgetScope::Run, "texts", self.allowance()))
        } else {
            Ok(())
        }
    }

    fn note(&self, steps: u64) {
        self.spent.set(self.spent.get().saturating_add(steps));
        self.node.set(self.node.get().saturating_add(steps));
    }

    fn allowance(&self) -> u64 {
        Self::RUN.saturating_add(self.nodes.get().saturating_mul(Self::EACH))
    }

    /// Returns the steps left, and the scope that would be exhausted first.
    fn left(&self) -> (u64, BudgetScope) {
        if self.exhausted.get() {
            return (0, BudgetScope::Run);
        }
        let run = self.allowance().saturating_sub(self.spent.get());
        let node = Self::NODE.saturating_sub(self.node.get());
        if run <= node { (run, BudgetScope::Run) } else { (node, BudgetScope::Node) }
    }

    fn refuse(&self, scope: BudgetScope) -> Error {
        if scope == BudgetScope::Run {
            self.exhausted.set(true);
        }
        refusal(scope, "expressions", self.allowance())
    }
}

fn capped(left: u64, most: usize) -> usize {
    usize::try_from(left.saturating_mul(BYTES_A_STEP)).map_or(most, |bytes| bytes.min(most))
}

fn refusal(scope: BudgetScope, what: &str, allowance: u64) -> Error {
    let message = match scope {
        BudgetScope::Evaluation => too_many(BudgetScope::Evaluation),
        BudgetScope::Node => format!(
            "too many steps: the {what} of this node have used up the {} steps that a node may take; compute this in a task instead",
            Meter::NODE
        ),
        BudgetScope::Run => format!(
            "too many steps: the {what} of this run have used up its budget of {allowance} steps; compute this in tasks instead, or loop over fewer items"
        ),
    };
    Error::at(Span::default(), message).exhausted()
}

/// Returns the error message for an exhausted budget of this scope.
pub(super) fn too_many(scope: BudgetScope) -> String {
    match scope {
        BudgetScope::Evaluation => format!(
            "the expression takes too many steps: one evaluation may take {}; compute this in a task instead",
            Limits::STEPS
        ),
        BudgetScope::Node => format!(
            "the expression takes too many steps: all expressions of one node may take {} together; compute this in a task instead",
            Meter::NODE
        ),
        BudgetScope::Run => format!(
            "the expression takes too many steps: the expressions of this run have used up its budget of {} steps and {} for each node; compute this in tasks instead, or loop over fewer items",
            Meter::RUN,
            Meter::EACH
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTLY: &str = "len(map(1..3000, map(1..3000, map(1..3000, #)))) == 0";

    #[test]
    fn one_evaluation_names_its_own_limit() {
        let error = Meter::default().evaluate(COSTLY, &()).unwrap_err();
        assert!(error.is_exhausted());
        assert!(error.message.contains("one evaluation may take 2000000"), "{error}");
    }

    #[test]
    fn a_node_pays_for_all_its_expressions_and_the_next_one_begins_anew() {
        let meter = Meter::default();
        meter.next_node(1);
        let errors: Vec<String> = (0..4).map(|_| meter.evaluate(COSTLY, &()).unwrap_err().message).collect();
        assert!(errors[0].contains("one evaluation"), "{errors:?}");
        assert!(errors[3].contains("node"), "{errors:?}");
        meter.next_node(2);
        assert_eq!(meter.evaluate("1 + 1", &()).unwrap(), Value::Int(2));
    }

    #[test]
    fn a_run_that_spent_everything_gets_nothing_more() {
        let meter = Meter::default();
        let mut evaluations = 0;
        let told = loop {
            meter.next_node(evaluations);
            evaluations += 1;
            let error = meter.evaluate(COSTLY, &()).unwrap_err();
            assert!(error.is_exhausted());
            if error.message.contains("this run") {
                break error.message;
            }
            assert!(evaluations < 100, "the run is never out of steps");
        };
        assert!(told.contains("budget of"), "{told}");
        let before = meter.total();
        for node in 0..1_000 {
            meter.next_node(node);
            assert!(meter.evaluate("1 + 1", &()).unwrap_err().message.contains("this run"));
        }
        assert_eq!(meter.total(), before, "what is refused costs nothing");
        assert!(meter.fill(1_000).is_ok(), "an exit handler still finds its variables");
    }

    #[test]
    fn ordinary_expressions_pass_however_many_nodes_have_them() {
        let meter = Meter::default();
        for node in 0..20_000 {
            meter.next_node(node);
            assert_eq!(meter.evaluate("asInt('3') * 2 + len('hello')", &()).unwrap(), Value::Int(11));
            assert!(meter.holds("a == a && 1 < 2").unwrap());
            meter.fill(2_000).unwrap();
        }
    }

    #[test]
    fn texts_of_megabytes_in_every_node_come_to_an_end() {
        let meter = Meter::default();
        let refused = (0..100_000).position(|node| {
            meter.next_node(node);
            meter.fill(2 << 20).is_err()
        });
        assert!(refused.is_some_and(|node| node > 1_000), "{refused:?}");
    }

    #[test]
    fn conditions_pay_for_their_patterns() {
        let meter = Meter::default();
        let text = vec!["'a' =~ 'a'"; 1_000].join(" && ");
        assert!(meter.holds(&text).unwrap_err().is_exhausted());
    }
}
