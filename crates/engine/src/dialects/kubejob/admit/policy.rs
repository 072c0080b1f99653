//! Validates the failure policy and the success policy of a job.

use octoflow_model::kubejob::{
    ExitCodes, ExitOperator, FailureAction, FailureRule, Job, ReplacementPolicy, SuccessRule,
};

use crate::{
    admit::{
        code,
        findings::{At, Findings},
        shape,
    },
    dialects::kubejob::indexes::Indexes,
    expr::nearest,
};

/// The most rules of each policy, as in Kubernetes.
const MAX_RULES: usize = 20;
/// The most exit codes, and conditions, of a rule.
const MAX_VALUES: usize = 255;
const MAX_CONDITIONS: usize = 20;
/// The only conditions that a pod can have here besides those that say how far it has come.
const DISRUPTION: &str = "DisruptionTarget";

pub(super) fn check(job: &Job, at: &At<'_>, report: &mut Findings) {
    if let Some(policy) = &job.spec.pod_failure_policy {
        let place = at.key("podFailurePolicy");
        let restarts = job.spec.template.spec.restart_policy.as_deref().is_some_and(|word| word == "OnFailure");
        if restarts {
            report.error(&place, code::POLICY, || {
                "podFailurePolicy needs `restartPolicy: Never`: otherwise containers are started again in place"
                    .to_owned()
            });
        }
        if job.spec.pod_replacement_policy == Some(ReplacementPolicy::TerminatingOrFailed) {
            report.error(&at.key("podReplacementPolicy"), code::POLICY, || {
                "podReplacementPolicy must be Failed when there is a podFailurePolicy".to_owned()
            });
        }
        let rules_at = place.key("rules");
        number_of_rules(policy.rules.len(), &rules_at, report);
        for (index, rule) in policy.rules.iter().enumerate().take(MAX_RULES) {
            failure_rule(job, rule, &rules_at.index(index), report);
        }
    }
    if let Some(policy) = &job.spec.success_policy {
        let place = at.key("successPolicy");
        let rules_at = place.key("rules");
        if policy.rules.is_empty() {
            report.error(&rules_at, code::REQUIRED, || "at least one rule is required".to_owned());
        }
        number_of_rules(policy.rules.len(), &rules_at, report);
        for (index, rule) in policy.rules.iter().enumerate().take(MAX_RULES) {
            success_rule(job, rule, &rules_at.index(index), report);
        }
    }
}

fn number_of_rules(count: usize, at: &At<'_>, report: &mut Findings) {
    if count > MAX_RULES {
        report.error(at, shape::code::OUT_OF_RANGE, || format!("{count} rules are more than {MAX_RULES}"));
    }
}

fn failure_rule(job: &Job, rule: &FailureRule, at: &At<'_>, report: &mut Findings) {
    if rule.action == FailureAction::FailIndex && job.spec.backoff_limit_per_index.is_none() {
        report.error(&at.key("action"), code::POLICY, || "FailIndex needs backoffLimitPerIndex".to_owned());
    }
    match (&rule.on_exit_codes, rule.on_pod_conditions.is_empty()) {
        (Some(_), false) => report
            .error(at, code::POLICY, || "onExitCodes and onPodConditions exclude each other in one rule".to_owned()),
        (None, true) => report.error(at, code::REQUIRED, || "a rule needs onExitCodes or onPodConditions".to_owned()),
        (Some(codes), true) => exit_codes(job, codes, &at.key("onExitCodes"), report),
        (None, false) => {}
    }
    let place = at.key("onPodConditions");
    if rule.on_pod_conditions.len() > MAX_CONDITIONS {
        report.error(&place, shape::code::OUT_OF_RANGE, || format!("more than {MAX_CONDITIONS} conditions"));
    }
    for (index, condition) in rule.on_pod_conditions.iter().enumerate() {
        let (place, kind) = (place.index(index), condition.kind.as_str());
        if kind.is_empty() {
            report.error(&place.key("type"), code::REQUIRED, || "type is required".to_owned());
        } else if kind != DISRUPTION {
            report.warn(&place.key("type"), code::POLICY, || {
                format!("no pod gets the condition `{}` here, so this never applies", shape::short(kind))
            });
        }
    }
}

fn exit_codes(job: &Job, codes: &ExitCodes, at: &At<'_>, report: &mut Findings) {
    let values_at = at.key("values");
    if codes.values.is_empty() {
        report.error(&values_at, code::REQUIRED, || "at least one exit code is required".to_owned());
    }
    if codes.values.len() > MAX_VALUES {
        report.error(&values_at, shape::code::OUT_OF_RANGE, || format!("more than {MAX_VALUES} exit codes"));
    }
    let unordered = codes.values.windows(2).position(|pair| pair[0] >= pair[1]);
    if let Some(index) = unordered {
        report.error(&values_at.index(index + 1), code::POLICY, || {
            "exit codes must be ordered, and each may be written once".to_owned()
        });
    }
    if codes.operator == ExitOperator::In
        && let Some(index) = codes.values.iter().position(|value| *value == 0)
    {
        report.error(&values_at.index(index), code::POLICY, || "exit code 0 is no failure".to_owned());
    }
    let Some(name) = codes.container_name.as_deref() else { return };
    let pod = &job.spec.template.spec;
    let all = || pod.init_containers.iter().chain(&pod.containers).filter_map(|one| one.container.name.as_deref());
    if !all().any(|known| known == name) {
        report.error_with(&at.key("containerName"), code::UNKNOWN_TASK, || {
            let message = format!("the pods have no container `{}`", shape::short(name));
            (message, nearest(name, all()).map(|near| format!("did you mean `{near}`?")))
        });
    }
}

fn success_rule(job: &Job, rule: &SuccessRule, at: &At<'_>, report: &mut Findings) {
    let all = job.spec.completions.unwrap_or(0);
    let mut count = all;
    if rule.succeeded_indexes.is_none() && rule.succeeded_count.is_none() {
        report.error(at, code::REQUIRED, || "a rule needs succeededIndexes or succeededCount".to_owned());
    }
    if let Some(text) = &rule.succeeded_indexes {
        let place = at.key("succeededIndexes");
        match Indexes::parse(text) {
            Err(why) => return report.error(&place, code::POLICY, || why),
            Ok(indexes) => {
                count = indexes.count();
                if let Some(last) = indexes.last().filter(|last| *last >= all) {
                    report.error(&place, shape::code::OUT_OF_RANGE, || {
                        format!("there is no index {last}: the last of {all} completions is {}", all.saturating_sub(1))
                    });
                }
            }
        }
    }
    let place = at.key("succeededCount");
    match rule.succeeded_count {
        Some(0) => report.error(&place, shape::code::OUT_OF_RANGE, || "must be greater than 0".to_owned()),
        Some(wanted) if wanted > count => report.error(&place, shape::code::OUT_OF_RANGE, || {
            format!("succeededCount {wanted} is more than the {count} indexes it is about")
        }),
        Some(_) | None => {}
    }
}
