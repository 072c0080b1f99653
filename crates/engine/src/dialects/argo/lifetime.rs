//! Computes how long finished objects are kept: the run by `ttlStrategy`, the view of its pods by `podGC`.
//! Only says when; deleting is done elsewhere.

use std::{collections::BTreeMap, time::Duration};

use octoflow_model::{RunPhase, Time, argo::TtlStrategy};
use serde_json::Value;

use super::{Run, duration};

/// Default delay before the pod of an ended node is no longer shown.
const POD_DELAY: Duration = Duration::from_secs(5);

/// Returns when a finished run is to be deleted; `None` without a strategy.
pub fn expires(run: &Run) -> Option<Time> {
    let strategy = run.program.workflow.spec.ttl_strategy.as_ref()?;
    Some(run.state.ended?.saturating_add(kept_for(strategy, run.state.phase)?))
}

/// Returns the retention for this phase. The limit for a success or failure overrides the general one.
fn kept_for(strategy: &TtlStrategy, phase: RunPhase) -> Option<Duration> {
    let special = match phase {
        RunPhase::Succeeded => strategy.seconds_after_success,
        RunPhase::Failed | RunPhase::Error => strategy.seconds_after_failure,
        RunPhase::Pending | RunPhase::Running => return None,
    };
    special.or(strategy.seconds_after_completion).map(Duration::from_secs)
}

/// Whether the pod of a node is still shown, see [`pod_hidden_at`].
pub fn pod_is_shown(object: &Value, node: &Value, labels: &BTreeMap<String, String>, now: Time) -> bool {
    pod_hidden_at(object, node, labels).is_none_or(|hidden_at| hidden_at > now)
}

/// Returns the time from which the pod of a node is no longer shown, as far as known by now. `object` is the run's
/// object, `node` one of its `status.nodes`, `labels` those of the pod.
pub fn pod_hidden_at(object: &Value, node: &Value, labels: &BTreeMap<String, String>) -> Option<Time> {
    let status = &object["status"];
    let merged = &status["storedWorkflowTemplateSpec"]["podGC"];
    let policy = if merged.is_null() { &object["spec"]["podGC"] } else { merged };
    let ended = |of: &Value| of["finishedAt"].as_str().and_then(Time::parse);
    let (phase, run_phase) = (&node["phase"], &status["phase"]);
    let gone_from = match policy["strategy"].as_str() {
        Some("OnPodCompletion") => ended(node),
        Some("OnPodSuccess") => ended(node).filter(|_| phase == "Succeeded"),
        Some("OnWorkflowCompletion") => ended(status),
        Some("OnWorkflowSuccess") => ended(status).filter(|_| run_phase == "Succeeded"),
        _ => None,
    };
    let gone_from = gone_from.filter(|_| selects(&policy["labelSelector"], labels))?;
    let delay = policy["deleteDelayDuration"].as_str().and_then(duration::parse).unwrap_or(POD_DELAY);
    Some(gone_from.saturating_add(delay))
}

/// Whether a label selector matches these labels. An empty one matches all.
fn selects(selector: &Value, labels: &BTreeMap<String, String>) -> bool {
    let equal = selector["matchLabels"].as_object().into_iter().flatten();
    let mut equal = equal.map(|(key, value)| labels.get(key).map(String::as_str) == value.as_str());
    let mut conditions = selector["matchExpressions"].as_array().into_iter().flatten().map(|condition| {
        let found = condition["key"].as_str().and_then(|key| labels.get(key));
        let listed = |value: &String| condition["values"].as_array().into_iter().flatten().any(|one| one == value);
        match condition["operator"].as_str() {
            Some("In") => found.is_some_and(listed),
            Some("NotIn") => !found.is_some_and(listed),
            Some("Exists") => found.is_some(),
            Some("DoesNotExist") => found.is_none(),
            // An unknown operator matches nothing, so that nothing is removed because of it.
            _ => false,
        }
    });
    equal.all(|holds| holds) && conditions.all(|holds| holds)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_said_about_this_end_is_stronger() {
        let strategy: TtlStrategy =
            serde_json::from_value(json!({"secondsAfterCompletion": 60, "secondsAfterFailure": 0})).unwrap();
        assert_eq!(kept_for(&strategy, RunPhase::Succeeded), Some(Duration::from_secs(60)));
        assert_eq!(kept_for(&strategy, RunPhase::Error), Some(Duration::ZERO));
        assert_eq!(kept_for(&strategy, RunPhase::Running), None);
        let success: TtlStrategy = serde_json::from_value(json!({"secondsAfterSuccess": 1})).unwrap();
        assert_eq!(kept_for(&success, RunPhase::Failed), None);
    }

    #[test]
    fn pods_go_when_their_strategy_says_so() {
        let labels = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
        let (early, late) = ("2026-05-01T10:00:00Z", "2026-05-01T11:00:00Z");
        let kept = |policy: Value, phase: &str, run_phase: &str, now: &str| {
            let finished = if run_phase == "Running" { Value::Null } else { json!(late) };
            let object = json!({"spec": {"podGC": policy}, "status": {"phase": run_phase, "finishedAt": finished}});
            let node = json!({"phase": phase, "finishedAt": early});
            pod_is_shown(&object, &node, &labels, Time::parse(now).unwrap())
        };
        let strategy = |word: &str| json!({"strategy": word});
        assert!(kept(json!(null), "Succeeded", "Succeeded", "2027-01-01T00:00:00Z"));
        assert!(kept(strategy(""), "Succeeded", "Succeeded", "2027-01-01T00:00:00Z"));
        assert!(kept(strategy("OnPodCompletion"), "Failed", "Running", "2026-05-01T10:00:04Z"));
        assert!(!kept(strategy("OnPodCompletion"), "Failed", "Running", "2026-05-01T10:00:05Z"));
        assert!(kept(strategy("OnPodSuccess"), "Failed", "Running", late));
        assert!(!kept(strategy("OnPodSuccess"), "Succeeded", "Running", late));
        assert!(kept(strategy("OnWorkflowCompletion"), "Succeeded", "Running", late));
        assert!(!kept(strategy("OnWorkflowCompletion"), "Succeeded", "Failed", "2026-05-01T11:00:05Z"));
        assert!(kept(strategy("OnWorkflowSuccess"), "Succeeded", "Failed", "2026-05-01T12:00:00Z"));
        let slow = json!({"strategy": "OnPodCompletion", "deleteDelayDuration": "1h"});
        assert!(kept(slow, "Succeeded", "Running", "2026-05-01T10:59:59Z"));
        for (selector, is_kept) in [
            (json!({"matchLabels": {"a": "b"}}), false),
            (json!({"matchLabels": {"a": "c"}}), true),
            (json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b", "c"]}]}), false),
            (json!({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]}), true),
            (json!({"matchExpressions": [{"key": "z", "operator": "Exists"}]}), true),
            (json!({"matchExpressions": [{"key": "z", "operator": "DoesNotExist"}]}), false),
        ] {
            let policy = json!({"strategy": "OnPodCompletion", "labelSelector": selector});
            assert_eq!(kept(policy, "Succeeded", "Running", late), is_kept, "{selector}");
        }
    }
}
