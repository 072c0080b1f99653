//! The block above a run's tree: name, status, times, parameters. Labels are padded to twenty columns, as in other
//! tools.

use std::{fmt::Write, time::Duration};

use jiff::tz::TimeZone;
use octoflow_model::Time;

use super::{
    clock,
    colour::{Colour, Paint, one_line, phase_colour},
};
use crate::source::workflow::Workflow;

/// `now` is the present, for ages and for open runs.
pub(crate) fn render(workflow: Workflow<'_>, now: Time, zone: &TimeZone, paint: Paint) -> String {
    let mut text = String::new();
    row(&mut text, "Name:", workflow.name());
    row(&mut text, "Namespace:", workflow.namespace());
    let heading = workflow.heading();
    heading.before.iter().for_each(|(name, value)| row(&mut text, name, &one_line(value)));
    row(&mut text, "Status:", &paint.paint(&workflow.phase_in_words(), phase_colour(workflow.phase())));
    if !workflow.message().is_empty() {
        row(&mut text, "Message:", &one_line(&workflow.readable(workflow.message())));
    }
    heading.after.iter().for_each(|(name, value)| row(&mut text, name, &one_line(value)));
    conditions(&mut text, workflow, paint);
    times(&mut text, workflow, now, zone);
    let progress = workflow.status()["progress"].as_str().unwrap_or_default();
    if !progress.is_empty() {
        row(&mut text, "Progress:", progress);
    }
    let resources = resources(workflow);
    if !resources.is_empty() {
        row(&mut text, "ResourcesDuration:", &resources);
    }
    named(&mut text, "Parameters:", &workflow.parameters());
    named(&mut text, "Output Parameters:", &workflow.output_parameters());
    named(&mut text, "Output Artifacts:", &workflow.output_artifacts());
    text
}

fn conditions(text: &mut String, workflow: Workflow<'_>, paint: Paint) {
    let conditions = workflow.conditions();
    if conditions.is_empty() {
        return;
    }
    row(text, "Conditions:", "");
    for (kind, status, message) in conditions {
        let shown = if message.is_empty() { status.to_owned() } else { format!("{status} ({})", one_line(message)) };
        let mark = if kind.ends_with("Error") { paint.paint("✖", Colour::Red) } else { " ".to_owned() };
        row(text, &format!("{mark}{kind}"), &shown);
    }
}

fn times(text: &mut String, workflow: Workflow<'_>, now: Time, zone: &TimeZone) {
    if let Some(created) = workflow.created() {
        row(text, "Created:", &clock::stamp(created, now, zone));
    }
    let Some(started) = workflow.started() else { return };
    row(text, "Started:", &clock::stamp(started, now, zone));
    if let Some(finished) = workflow.finished() {
        row(text, "Finished:", &clock::stamp(finished, now, zone));
    }
    row(text, "Duration:", &clock::long(workflow.finished().unwrap_or(now).since(started)));
    if let Some(seconds) = workflow.status()["estimatedDuration"].as_u64() {
        row(text, "EstimatedDuration:", &clock::long(Duration::from_secs(seconds)));
    }
}

/// Formats reserved resources: seconds times the unit.
fn resources(workflow: Workflow<'_>) -> String {
    let unit = |name: &str| match name {
        "memory" => "100Mi memory".to_owned(),
        "storage" | "ephemeral-storage" => format!("10Gi {name}"),
        other => format!("1 {other}"),
    };
    let used = workflow.status()["resourcesDuration"].as_object().into_iter().flatten();
    let used: Vec<String> =
        used.filter_map(|(name, seconds)| Some(format!("{}s*({})", seconds.as_u64()?, unit(name)))).collect();
    used.join(",")
}

fn named(text: &mut String, title: &str, values: &[(&str, String)]) {
    if values.is_empty() {
        return;
    }
    row(text, title, "");
    for (name, value) in values {
        row(text, &format!("  {}:", one_line(name)), &one_line(value));
    }
}

fn row(text: &mut String, label: &str, value: &str) {
    let line = format!("{label:<20} {value}");
    writeln!(text, "{}", line.trim_end()).expect("writing to memory does not fail");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_finished_run_is_introduced_by_its_block() {
        let object = json!({
            "kind": "Workflow",
            "metadata": {"name": "steps-z2zdn", "namespace": "default", "creationTimestamp": "2026-01-01T12:00:00Z"},
            "spec": {"arguments": {"parameters": [{"name": "message", "value": "two\nlines"}, {"name": "none"}]}},
            "status": {"phase": "Failed", "message": "child 'x' failed", "startedAt": "2026-01-01T12:00:00Z",
                       "finishedAt": "2026-01-01T12:01:13Z", "progress": "1/2",
                       "estimatedDuration": 70, "resourcesDuration": {"cpu": 7, "memory": 73},
                       "conditions": [{"type": "Completed", "status": "True"}],
                       "outputs": {"parameters": [{"name": "sum", "value": 3}]}}
        });
        let now = clock::parse("2026-01-01T12:05:13Z").unwrap();
        let expected = "\
Name:                steps-z2zdn
Namespace:           default
ServiceAccount:      unset (will run with the default ServiceAccount)
Status:              Failed
Message:             child 'x' failed
Conditions:
 Completed           True
Created:             Thu Jan 01 12:00:00 +0000 (5 minutes ago)
Started:             Thu Jan 01 12:00:00 +0000 (5 minutes ago)
Finished:            Thu Jan 01 12:01:13 +0000 (4 minutes ago)
Duration:            1 minute 13 seconds
EstimatedDuration:   1 minute 10 seconds
Progress:            1/2
ResourcesDuration:   7s*(1 cpu),73s*(100Mi memory)
Parameters:
  message:           two lines
Output Parameters:
  sum:               3
";
        assert_eq!(render(Workflow::new(&object), now, &TimeZone::UTC, Paint::OFF), expected);
    }
}
