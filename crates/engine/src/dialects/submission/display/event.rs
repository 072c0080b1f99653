//! Events of submitted jobs: what each plugin did, the hand-over, and the end. Derived from the object.

use serde_json::Value;

use super::{came_of, list, text};
use crate::run::view::{EventDetails, event};

const SOURCE: &str = "octoflow-submission";

/// Returns all events of a submitted job with their sort keys.
pub(super) fn all(job: &Value) -> Vec<(String, Value)> {
    let status = &job["status"];
    let mut events = Vec::new();
    let mut say = |reason: &str, about: &str, message: String, at: &Value, bad: bool, count: u64| {
        if at.is_string() {
            let source = SOURCE;
            events.push(event(job, &EventDetails { reason, about, message: &message, at, bad, count, source }));
        }
    };
    let created = &job["metadata"]["creationTimestamp"];
    say("SubmittedJobCreated", "", "the job was accepted".to_owned(), created, false, 1);
    for (number, entry) in list(&status["trace"]).iter().enumerate() {
        let (message, bad) = came_of(&entry["outcome"]);
        let plugin = text(entry, "plugin");
        let message = if message.starts_with(plugin) { message } else { format!("{plugin}: {message}") };
        let count = entry["tries"].as_u64().unwrap_or(1);
        say(text(entry, "stage"), &format!("{number:04}"), message, &entry["finishedAt"], bad, count);
    }
    let child = &status["child"];
    let made = format!("handed over as {} {}", text(child, "kind"), text(child, "name"));
    if child.is_object() {
        say("HandedOver", "~child", made, &status["handedOverAt"], false, 1);
    }
    let deadlock = &status["deadlock"];
    say("Deadlock", "~deadlock", text(deadlock, "message").to_owned(), &deadlock["at"], true, 1);
    let (phase, why) = (text(status, "phase"), text(status, "message"));
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    let mut letters = phase.chars();
    let word: String = letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect();
    let reason = format!("Job{word}");
    say(&reason, "~", format!("the job is {phase}{why}"), &status["finishedAt"], phase != "succeeded", 1);
    events
}
