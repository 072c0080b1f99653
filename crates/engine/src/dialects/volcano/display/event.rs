//! Events of jobs: phases it entered, and what became of its pods. Derived from the object.

use octoflow_model::volcano::PodPhase;
use serde_json::Value;

use super::{list, pods, text};
use crate::{
    dialects::volcano::ended::failure,
    run::view::{EventDetails, event},
};

/// Returns all events of a job with their sort keys.
pub(super) fn all(job: &Value) -> Vec<(String, Value)> {
    let status = &job["status"];
    let mut events = Vec::new();
    let mut say = |reason: &str, about: &str, message: String, at: &Value, bad: bool, count: u64| {
        if at.is_string() {
            let source = "vc-controller-manager";
            events.push(event(job, &EventDetails { reason, about, message: &message, at, bad, count, source }));
        }
    };
    say("JobCreated", "", "Job was accepted".to_owned(), &job["metadata"]["creationTimestamp"], false, 1);
    let last = list(&status["conditions"]).len().saturating_sub(1);
    for (number, condition) in list(&status["conditions"]).iter().enumerate().skip(1) {
        let phase = text(condition, "status");
        let why = if number == last { text(&status["state"], "message") } else { "" };
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        let bad = matches!(phase, "Failed" | "Terminated" | "Aborted" | "Restarting");
        // The end comes after everything else.
        let about = if matches!(phase, "Completed" | "Failed" | "Terminated") { "~" } else { "" };
        let (reason, message) = (format!("Job{phase}"), format!("Job is {phase}{why}"));
        say(&reason, &format!("{about}{number}"), message, &condition["lastTransitionTime"], bad, 1);
    }
    let awaited = &status["awaitedClaims"];
    for claim in list(&awaited["names"]).iter().filter_map(Value::as_str) {
        let message = format!("No pod is created: the claim {claim} is not there");
        say("FailedCreate", claim, message, &awaited["since"], true, 1);
    }
    let deadlock = &status["deadlock"];
    say("Deadlock", "~deadlock", text(deadlock, "message").to_owned(), &deadlock["at"], true, 1);
    for pod in pods(job) {
        let name = text(pod, "name");
        if let Some(count @ 1..) = pod["restarts"].as_u64() {
            let message = format!("Containers of pod {name} were started again");
            say("BackOff", name, message, &pod["transitionTime"], true, count);
        }
        let preempted = &pod["preempted"];
        if let Some(count @ 1..) = preempted["count"].as_u64() {
            let message = format!("Pod {name} was ended: {}", text(preempted, "message"));
            say("Preempted", name, message, &preempted["at"], true, count);
        }
        if text(pod, "phase") == PodPhase::Failed.word() {
            say("PodFailed", name, format!("Pod {name} failed: {}", failure(pod)), &pod["finishedAt"], true, 1);
        }
    }
    events
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn phases_and_failed_pods_are_told_once_each() {
        let at = "2020-01-01T00:00:00Z";
        let phase = |word: &str| json!({"status": word, "lastTransitionTime": at});
        let job = json!({
            "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
            "metadata": {"name": "demo", "namespace": "n", "uid": "u", "creationTimestamp": at},
            "status": {
                "state": {"phase": "Failed", "message": "0 of 1 pods succeeded"},
                "conditions": [phase("Pending"), phase("Running"), phase("Failed")],
                "pods": [{"name": "demo-a-0", "phase": "Failed", "finishedAt": at, "restarts": 0,
                          "terminated": {"exitCode": 3, "reason": "Error", "message": "no luck\n"}}],
            },
        });
        let events = all(&job);
        let told: Vec<(&str, &str)> =
            events.iter().map(|(_, event)| (text(event, "reason"), text(event, "type"))).collect();
        let wanted =
            [("JobCreated", "Normal"), ("JobRunning", "Normal"), ("JobFailed", "Warning"), ("PodFailed", "Warning")];
        assert_eq!(told, wanted);
        assert_eq!(events[2].1["message"], "Job is Failed: 0 of 1 pods succeeded");
        assert_eq!(events[3].1["message"], "Pod demo-a-0 failed: Error (exit code 3): no luck");
    }
}
