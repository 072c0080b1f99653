//! What admission refuses, with its path, all at once.

use octoflow_manifest::Severity;
use serde_json::{Value, json};

use super::{advice, examine};
use crate::{admit::Catalog, kinds::Kind};

struct Everything;

impl Catalog for Everything {
    fn has_object(&self, _: &'static Kind, _: &str, _: &str) -> bool {
        true
    }
}

fn job(spec: Value) -> Value {
    let mut spec = spec;
    let pod = &mut spec["template"]["spec"];
    if pod["containers"].is_null() {
        pod["containers"] = json!([{"name": "main", "image": "i"}]);
    }
    if pod["restartPolicy"].is_null() {
        pod["restartPolicy"] = json!("Never");
    }
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec})
}

/// The errors about a manifest, as `path: message`.
fn told(manifest: &Value) -> Vec<String> {
    let Err(problems) = examine(manifest, &Everything) else { return Vec::new() };
    let errors = problems.0.into_iter().filter(|problem| problem.severity == Severity::Error);
    errors.map(|problem| format!("{}: {}", problem.path.unwrap_or_default(), problem.message)).collect()
}

#[track_caller]
fn refuses(spec: Value, wanted: &[&str]) {
    let found = told(&job(spec));
    assert_eq!(found.len(), wanted.len(), "{found:#?}");
    for (found, wanted) in found.iter().zip(wanted) {
        assert!(found.contains(wanted), "{found} is not about {wanted}");
    }
}

#[test]
fn good_jobs_are_admitted() {
    assert_eq!(told(&job(json!({}))), [] as [&str; 0]);
    let full = json!({
        "completions": 4, "parallelism": 2, "completionMode": "Indexed", "backoffLimitPerIndex": 1, "maxFailedIndexes": 2,
        "podFailurePolicy": {"rules": [
            {"action": "FailIndex", "onExitCodes": {"containerName": "main", "operator": "In", "values": [1, 2]}},
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
        ]},
        "successPolicy": {"rules": [{"succeededIndexes": "0,2-3", "succeededCount": 1}]},
        "managedBy": "kubernetes.io/job-controller",
    });
    assert_eq!(told(&job(full)), [] as [&str; 0]);
    let manual = json!({"manualSelector": true, "selector": {"matchLabels": {"a": "b"}},
                        "template": {"metadata": {"labels": {"a": "b"}}}});
    assert_eq!(told(&job(manual)), [] as [&str; 0]);
}

#[test]
fn everything_wrong_is_told_at_once() {
    let wrong = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "Not_A_Name"},
        "spec": {"parallelism": 200_000, "selector": {}, "managedBy": "someone", "successPolicy": {"rules": []},
                 "template": {"spec": {"containers": []}}},
    });
    let found = told(&wrong);
    for part in [
        "metadata.name",
        "spec.parallelism",
        "spec.selector",
        "spec.managedBy",
        "spec.successPolicy:",
        "spec.successPolicy.rules",
        "spec.template.spec.restartPolicy",
        "spec.template.spec.containers",
    ] {
        assert!(found.iter().any(|line| line.starts_with(part)), "{part} is not in {found:#?}");
    }
}

#[test]
fn numbers_must_fit_each_other() {
    refuses(json!({"completionMode": "Indexed", "parallelism": 2}), &["completions is required"]);
    refuses(json!({"backoffLimitPerIndex": 1}), &["needs pods with indexes"]);
    let indexed = |more: Value| {
        let mut spec = json!({"completionMode": "Indexed", "completions": 3});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        spec
    };
    refuses(indexed(json!({"maxFailedIndexes": 1})), &["backoffLimitPerIndex is required"]);
    refuses(
        indexed(json!({"maxFailedIndexes": 4, "backoffLimitPerIndex": 1})),
        &["more than the number of completions"],
    );
    let rule = |rule: Value| indexed(json!({"successPolicy": {"rules": [rule]}}));
    refuses(rule(json!({})), &["succeededIndexes or succeededCount"]);
    refuses(rule(json!({"succeededIndexes": "0-3"})), &["there is no index 3"]);
    refuses(rule(json!({"succeededIndexes": "2,1"})), &["does not come after"]);
    refuses(rule(json!({"succeededIndexes": "0-1", "succeededCount": 3})), &["more than the 2 indexes"]);
    refuses(rule(json!({"succeededCount": 0})), &["must be greater than 0"]);
}

#[test]
fn rules_about_failures_must_make_sense() {
    let rule = |rule: Value| json!({"podFailurePolicy": {"rules": [rule]}});
    let codes = |codes: Value| rule(json!({"action": "FailJob", "onExitCodes": codes}));
    refuses(rule(json!({"action": "FailJob"})), &["needs onExitCodes or onPodConditions"]);
    refuses(codes(json!({"operator": "In", "values": [2, 1]})), &["must be ordered"]);
    refuses(codes(json!({"operator": "In", "values": [0]})), &["exit code 0 is no failure"]);
    refuses(codes(json!({"operator": "In", "values": []})), &["at least one exit code"]);
    refuses(codes(json!({"containerName": "mian", "operator": "NotIn", "values": [0]})), &["no container `mian`"]);
    let index = json!({"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [1]}});
    refuses(rule(index), &["FailIndex needs backoffLimitPerIndex"]);
    let mut both = rule(json!({"action": "Count", "onExitCodes": {"operator": "In", "values": [1]}}));
    both["template"]["spec"]["restartPolicy"] = json!("OnFailure");
    both["podReplacementPolicy"] = json!("TerminatingOrFailed");
    refuses(both, &["needs `restartPolicy: Never`", "must be Failed"]);
    let never = rule(json!({"action": "Ignore", "onPodConditions": [{"type": "Ready"}]}));
    let warned: Vec<String> = advice(&job(never)).into_iter().map(|problem| problem.message).collect();
    assert!(warned.iter().any(|message| message.contains("never applies")), "{warned:?}");
}

#[test]
fn selectors_are_made_unless_somebody_insists() {
    refuses(json!({"selector": {"matchLabels": {}}}), &["the selector is made for every Job"]);
    refuses(json!({"manualSelector": true}), &["selector is required"]);
    refuses(json!({"manualSelector": true, "selector": {"matchLabels": {"a": "b"}}}), &["no pod has the label a"]);
    let own = json!({"template": {"metadata": {"labels": {"controller-uid": "x"}}}});
    refuses(own, &["is made for every Job"]);
}

#[test]
fn the_restart_policy_must_be_written() {
    let mut manifest = job(json!({}));
    manifest["spec"]["template"]["spec"].as_object_mut().unwrap().remove("restartPolicy");
    assert_eq!(
        told(&manifest),
        ["spec.template.spec.restartPolicy: restartPolicy is required, and must be Never or OnFailure"]
    );
    manifest["spec"]["template"]["spec"]["restartPolicy"] = json!("Always");
    assert_eq!(told(&manifest).len(), 1);
}
