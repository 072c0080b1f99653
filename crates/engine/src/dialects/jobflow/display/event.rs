//! Events of flows: what became of its entries, and its end. Derived from the object.

use serde_json::Value;

use super::{list, text};
use crate::run::view::{EventDetails, event};

/// Returns all events of a flow with their sort keys.
pub(super) fn all(flow: &Value) -> Vec<(String, Value)> {
    let status = &flow["status"];
    let mut events = Vec::new();
    let mut say = |reason: &str, about: &str, message: String, at: &Value, bad: bool| {
        if at.is_string() {
            let source = "vc-controller-manager";
            events.push(event(flow, &EventDetails { reason, about, message: &message, at, bad, count: 1, source }));
        }
    };
    say("JobFlowCreated", "", "JobFlow was accepted".to_owned(), &flow["metadata"]["creationTimestamp"], false);
    for entry in list(&status["entries"]) {
        let (name, job, why) = (text(entry, "name"), text(entry, "job"), text(entry, "message"));
        let made = |job: &str| format!("Job {job} was made from JobTemplate {name}");
        for (number, earlier) in list(&entry["former"]).iter().enumerate() {
            // Within a second they sort before the current try, in their order.
            let about = format!("{name}#{number:04}");
            say("JobMade", &about, made(text(earlier, "name")), &earlier["madeAt"], false);
            say("JobFailed", &about, format!("{name}: {}", text(earlier, "message")), &earlier["finishedAt"], true);
        }
        if entry["uid"].is_string() {
            let at = &entry["madeAt"];
            say("JobMade", name, made(job), if at.is_string() { at } else { &entry["startedAt"] }, false);
        }
        match text(entry, "stage") {
            "Completed" => say("JobCompleted", name, format!("Job {job} is completed"), &entry["finishedAt"], false),
            "Failed" | "Terminated" | "Deleted" | "Refused" | "Stopped" | "BackOff" => {
                say("JobFailed", name, format!("{name}: {why}"), &entry["finishedAt"], true);
            }
            "Ordered" if !why.is_empty() => {
                say("JobHeld", name, format!("{name}: {why}"), &flow["metadata"]["creationTimestamp"], true);
            }
            _ => {}
        }
    }
    let deadlock = &status["deadlock"];
    say("Deadlock", "~deadlock", text(deadlock, "message").to_owned(), &deadlock["at"], true);
    let (phase, why) = (text(&status["state"], "phase"), text(&status["state"], "message"));
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    let reason = format!("JobFlow{phase}");
    say(&reason, "~", format!("JobFlow is {phase}{why}"), &status["finishedAt"], phase != "Succeed");
    events
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_try_tells_when_it_was_made_and_how_it_ended_in_that_order() {
        let at = "2020-01-01T00:00:00Z";
        let former = |number: u32| json!({"name": format!("f-a-{number}"), "uid": "u", "madeAt": at, "finishedAt": at, "message": "failed"});
        let entry = json!({
            "name": "a", "job": "f-a-3", "uid": "v", "stage": "Completed", "startedAt": at, "madeAt": at,
            "finishedAt": at, "former": [former(1), former(2)],
        });
        let flow = json!({
            "metadata": {"name": "f", "uid": "f"}, "status": {"entries": [entry], "state": {"phase": "Running"}},
        });
        let mut events = all(&flow);
        events.sort_by(|one, other| one.0.cmp(&other.0));
        let told: Vec<&str> = events.iter().map(|(_, event)| text(event, "message")).collect();
        let made = |job: u32| format!("Job f-a-{job} was made from JobTemplate a");
        assert_eq!(told, [&made(1), "a: failed", &made(2), "a: failed", &made(3), "Job f-a-3 is completed"]);
    }

    #[test]
    fn a_try_that_is_ordered_has_made_nothing_yet() {
        let entry = json!({"name": "a", "job": "f-a", "stage": "Ordered", "startedAt": "2020-01-01T00:00:00Z"});
        let flow = json!({"metadata": {"name": "f"}, "status": {"entries": [entry]}});
        assert!(all(&flow).is_empty());
    }
}
