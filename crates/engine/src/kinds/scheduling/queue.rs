//! Queues as the scheduler reads them, and their admission on their own. How they stand to each other is checked by
//! [`QueueTree`](super::QueueTree).

use std::{sync::Arc, time::Duration};

use octoflow_manifest::{Path, Problem};
use serde_json::Value;

use super::{fields, quantities, quantities::render};
use crate::{
    admit::{
        code,
        shape::{self, short},
    },
    expr::calendar,
    kinds::ErrorsAndWarnings,
    schedule::spec::{Quantities, QueueSpec, ROOT},
};

/// Annotation: `spread` puts tasks on the emptiest node, `pack` on the fullest that fits.
pub const PLACEMENT: &str = "octoflow.io/placement";
/// Annotation: after this time a task is first in the queue.
pub const LONGEST_WAIT: &str = "octoflow.io/longest-wait";

/// Whether a queue takes work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueState {
    Open,
    /// It, or a queue above it, is closed: nothing new.
    Closed,
    /// It has queues below it, and only leaves take work.
    Inner,
    Missing,
}

/// Reads a queue that was admitted.
pub fn queue(object: &Value) -> QueueSpec {
    read(object, &mut Vec::new())
}

/// Reports whether somebody has closed the queue.
pub fn is_closed(object: &Value) -> bool {
    matches!(object["status"]["state"].as_str(), Some("Closed" | "Closing"))
}

pub(super) fn check(object: &Value) -> ErrorsAndWarnings {
    let checked = shape::check(object, &fields::QUEUE);
    let (mut problems, warnings) = (checked.problems, checked.warnings);
    let spec = read(object, &mut problems);
    let bounds: [(&str, &Quantities, &str, &Quantities); 3] = [
        ("guarantee", &spec.guarantee, "deserved", &spec.deserved),
        ("guarantee", &spec.guarantee, "capability", &spec.capability),
        ("deserved", &spec.deserved, "capability", &spec.capability),
    ];
    for (lower, least, upper, most) in bounds {
        for (resource, amount) in least {
            if let Some(most) = most.get(resource).filter(|most| *most < amount) {
                let (amount, most) = (render(resource, *amount), render(resource, *most));
                let message = format!("{lower} of {resource} is {amount}, more than {upper}, which is {most}");
                problems.push(Problem::error(code::QUEUE, message).path(place(lower).join(resource.as_str())));
            }
        }
    }
    if spec.name.as_ref() == ROOT && spec.parent.is_some() {
        let message = "root is above all queues and has no parent";
        problems.push(Problem::error(code::QUEUE, message).path(Path::root().join("spec").join("parent")));
    }
    (problems, warnings)
}

/// Returns the path of a field with amounts.
/// Returns the problem of guarantees that are together more than all nodes have.
pub fn guaranteed_too_much(resource: &str, all: u64, most: u64) -> Problem {
    let (all, most) = (render(resource, all), render(resource, most));
    let message = format!("guarantees of {resource} are {all} together, more than all nodes have, which is {most}");
    Problem::error(code::QUEUE, message).path(place("guarantee").join(resource))
}

pub(super) fn place(field: &str) -> Path {
    let path = Path::root().join("spec").join(field);
    if field == "guarantee" { path.join("resource") } else { path }
}

fn read(object: &Value, problems: &mut Vec<Problem>) -> QueueSpec {
    let (metadata, spec) = (&object["metadata"], &object["spec"]);
    let name: Arc<str> = metadata["name"].as_str().unwrap_or_default().into();
    let amounts =
        |map: &Value, field: &str, problems: &mut Vec<Problem>| quantities::read(map, &place(field), problems);
    QueueSpec {
        parent: spec["parent"].as_str().filter(|parent| !parent.is_empty()).map(Into::into),
        weight: spec["weight"].as_u64().and_then(|weight| u32::try_from(weight).ok()).unwrap_or(1),
        priority: spec["priority"].as_i64().and_then(|priority| i32::try_from(priority).ok()).unwrap_or(0),
        guarantee: amounts(&spec["guarantee"]["resource"], "guarantee", problems),
        deserved: amounts(&spec["deserved"], "deserved", problems),
        capability: amounts(&spec["capability"], "capability", problems),
        reclaimable: spec["reclaimable"] != false,
        strict: spec["dequeueStrategy"] == "strict",
        spread: placement(&metadata["annotations"], problems),
        longest_wait: longest_wait(&metadata["annotations"], problems),
        ..QueueSpec::new(name)
    }
}

fn annotation(name: &str) -> Path {
    Path::root().join("metadata").join("annotations").join(name)
}

fn placement(annotations: &Value, problems: &mut Vec<Problem>) -> bool {
    match annotations[PLACEMENT].as_str() {
        None | Some("pack") => false,
        Some("spread") => true,
        Some(other) => {
            let message = format!("`{}` is not a placement; write spread or pack", short(other));
            problems.push(Problem::error(code::QUEUE, message).path(annotation(PLACEMENT)));
            false
        }
    }
}

fn longest_wait(annotations: &Value, problems: &mut Vec<Problem>) -> Option<Duration> {
    let text = annotations[LONGEST_WAIT].as_str()?;
    let wait = calendar::duration(text).and_then(|wait| Duration::try_from(wait).ok()).filter(|wait| !wait.is_zero());
    if wait.is_none() {
        let message = format!("`{}` is not a time such as 90s, 30m or 2h", short(text));
        problems.push(Problem::error(code::DURATION, message).path(annotation(LONGEST_WAIT)));
    }
    wait
}
