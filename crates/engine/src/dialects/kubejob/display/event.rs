//! Events of jobs, in the words of Kubernetes' job controller: pods created and ended, conditions. Derived from the object.

use octoflow_model::kubejob::PodPhase;
use serde_json::Value;

use super::{list, pods, text};
use crate::{
    dialects::kubejob::ended::failure,
    run::view::{EventDetails, event},
};

/// Returns all events of a job with their sort keys.
pub(super) fn all(job: &Value) -> Vec<(String, Value)> {
    let status = &job["status"];
    let mut events = Vec::new();
    let mut say = |reason: &str, about: &str, message: String, at: &Value, bad: bool, count: u64| {
        if at.is_string() {
            let source = "job-controller";
            events.push(event(job, &EventDetails { reason, about, message: &message, at, bad, count, source }));
        }
    };
    for pod in pods(job) {
        let name = text(pod, "name");
        say("SuccessfulCreate", name, format!("Created pod: {name}"), &pod["createdAt"], false, 1);
        if let Some(count @ 1..) = pod["restarts"].as_u64() {
            let message = format!("Containers of pod {name} were started again");
            say("BackOff", name, message, &pod["transitionTime"], true, count);
        }
        match text(pod, "phase") {
            phase if phase == PodPhase::Failed.word() => {
                say("PodFailed", name, format!("Pod {name} failed: {}", failure(pod)), &pod["finishedAt"], true, 1);
            }
            phase if phase == PodPhase::Gone.word() => {
                let why =
                    if text(pod, "reason").is_empty() { String::new() } else { format!(" ({})", text(pod, "reason")) };
                say("SuccessfulDelete", name, format!("Deleted pod: {name}{why}"), &pod["transitionTime"], false, 1);
            }
            _ => {}
        }
    }
    for condition in list(&status["conditions"]) {
        let (kind, holds) = (text(condition, "type"), condition["status"] == "True");
        let (reason, message, bad) = match (kind, holds) {
            ("Suspended", true) => ("Suspended", "Job suspended".to_owned(), false),
            ("Suspended", false) => ("Resumed", "Job resumed".to_owned(), false),
            ("Complete", _) => ("Completed", "Job completed".to_owned(), false),
            ("Failed", _) => (text(condition, "reason"), text(condition, "message").to_owned(), true),
            _ => continue,
        };
        // The end comes after everything else.
        let about = if kind == "Suspended" { "" } else { "~end" };
        say(reason, about, message, &condition["lastTransitionTime"], bad, 1);
    }
    let deadlock = &status["deadlock"];
    say("Deadlock", "~deadlock", text(deadlock, "message").to_owned(), &deadlock["at"], true, 1);
    events
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_and_the_end_are_told_once_each() {
        let at = "2020-01-01T00:00:00Z";
        let condition = |kind: &str| {
            json!({"type": kind, "status": "True", "reason": "BackoffLimitExceeded",
                                            "message": "too many", "lastTransitionTime": at})
        };
        let job = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "demo", "namespace": "n", "uid": "u", "creationTimestamp": at},
            "status": {
                "conditions": [condition("FailureTarget"), condition("Failed")],
                "pods": [{"name": "demo-x", "phase": "Failed", "createdAt": at, "finishedAt": at, "restarts": 0,
                          "terminated": {"exitCode": 3, "reason": "Error", "message": "no luck\n"}}],
            },
        });
        let events = all(&job);
        let told: Vec<(&str, &str)> =
            events.iter().map(|(_, event)| (text(event, "reason"), text(event, "message"))).collect();
        let wanted = [
            ("SuccessfulCreate", "Created pod: demo-x"),
            ("PodFailed", "Pod demo-x failed: Error (exit code 3): no luck"),
            ("BackoffLimitExceeded", "too many"),
        ];
        assert_eq!(told, wanted);
    }
}
