//! What the failure of a pod means: the rules of the failure policy, in order, and the limit of its index.

use octoflow_model::kubejob::{ContainerExit, Counted, ExitOperator, FailureAction, FailureRule};

use super::turn::Turn;

/// The condition of a pod that was ended for reasons outside of it.
pub(super) const DISRUPTION_TARGET: &str = "DisruptionTarget";

/// What a rule found in a failed pod.
enum Match<'p> {
    Exit(&'p ContainerExit),
    Condition,
}

impl Turn<'_> {
    /// Returns what a failed pod counts as, and the message of a rule that fails the whole job. `disruption` is the reason
    /// of the pod's condition, if it was disrupted.
    pub(super) fn failure(&self, pod: u32, exits: &[ContainerExit], disruption: &str) -> (Counted, Option<String>) {
        let mut rules = self.run.program.rules.iter().enumerate();
        let found = rules.find_map(|(at, rule)| Some((at, rule, matched(rule, exits, disruption)?)));
        let Some((at, rule, what)) = found else { return (self.counted_failure(pod), None) };
        match rule.action {
            FailureAction::Ignore => (Counted::Ignored, None),
            FailureAction::FailIndex => (Counted::FailedIndex, None),
            FailureAction::Count => (self.counted_failure(pod), None),
            FailureAction::FailJob => {
                let place = format!("{}/{}", self.run.state.head.namespace, self.run.pod_name(pod));
                let message = match what {
                    Match::Exit(exit) => format!(
                        "Container {} for pod {place} failed with exit code {} matching FailJob rule at index {at}",
                        exit.name, exit.code
                    ),
                    Match::Condition => {
                        format!("Pod {place} has condition {DISRUPTION_TARGET} matching FailJob rule at index {at}")
                    }
                };
                (self.counted_failure(pod), Some(message))
            }
        }
    }

    /// Returns what a failure counts as that no rule is about: its index has failed after the last try.
    fn counted_failure(&self, pod: u32) -> Counted {
        let (state, limit) = (&self.run.state, self.run.program.limit_per_index);
        let index = state.pods[pod as usize].index;
        let before = index.and_then(|index| state.failures.get(&index)).map_or(0, |failures| failures.counted);
        match (index, limit) {
            (Some(_), Some(limit)) if before >= limit => Counted::FailedIndex,
            (Some(_) | None, _) => Counted::Failed,
        }
    }
}

fn matched<'p>(rule: &FailureRule, exits: &'p [ContainerExit], disruption: &str) -> Option<Match<'p>> {
    if let Some(codes) = &rule.on_exit_codes {
        let named = |exit: &&ContainerExit| codes.container_name.as_ref().is_none_or(|name| *name == exit.name);
        let fits = |exit: &&ContainerExit| match codes.operator {
            ExitOperator::In => codes.values.contains(&exit.code),
            ExitOperator::NotIn => !codes.values.contains(&exit.code),
        };
        return exits.iter().find(|exit| exit.code != 0 && named(exit) && fits(exit)).map(Match::Exit);
    }
    // A pod that is not disrupted does not have the condition at all.
    let holds = |status: Option<&str>| !disruption.is_empty() && status.is_none_or(|status| status == "True");
    let conditions = &rule.on_pod_conditions;
    let found = conditions.iter().any(|one| one.kind == DISRUPTION_TARGET && holds(one.status.as_deref()));
    found.then_some(Match::Condition)
}

#[cfg(test)]
mod tests {
    use octoflow_model::kubejob::{ExitCodes, PodCondition};

    use super::*;

    fn of_codes(name: Option<&str>, operator: ExitOperator, values: &[i32]) -> FailureRule {
        let codes = ExitCodes { container_name: name.map(str::to_owned), operator, values: values.to_vec() };
        FailureRule { on_exit_codes: Some(codes), ..FailureRule::default() }
    }

    #[test]
    fn exit_codes_are_looked_for_in_the_named_container() {
        let exits = [("a", 1), ("b", 2)].map(|(name, code)| ContainerExit { name: name.to_owned(), code });
        let found = |rule: FailureRule| match matched(&rule, &exits, "") {
            Some(Match::Exit(exit)) => exit.code,
            Some(Match::Condition) | None => 0,
        };
        assert_eq!(found(of_codes(None, ExitOperator::In, &[2, 3])), 2);
        assert_eq!(found(of_codes(Some("a"), ExitOperator::In, &[2, 3])), 0);
        assert_eq!(found(of_codes(None, ExitOperator::NotIn, &[1])), 2);
        assert_eq!(found(of_codes(Some("a"), ExitOperator::NotIn, &[1])), 0);
        assert_eq!(found(of_codes(Some("c"), ExitOperator::NotIn, &[9])), 0, "there is no such container");
    }

    #[test]
    fn only_a_disrupted_pod_has_the_condition() {
        let rule = |kind: &str, status: Option<&str>| FailureRule {
            on_pod_conditions: vec![PodCondition { kind: kind.to_owned(), status: status.map(str::to_owned) }],
            ..FailureRule::default()
        };
        assert!(matched(&rule(DISRUPTION_TARGET, None), &[], "PreemptionByScheduler").is_some());
        assert!(matched(&rule(DISRUPTION_TARGET, Some("True")), &[], "PreemptionByScheduler").is_some());
        assert!(matched(&rule(DISRUPTION_TARGET, None), &[], "").is_none());
        assert!(matched(&rule(DISRUPTION_TARGET, Some("False")), &[], "PreemptionByScheduler").is_none());
        assert!(matched(&rule("Ready", None), &[], "PreemptionByScheduler").is_none());
    }
}
