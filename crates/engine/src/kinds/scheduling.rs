//! The kinds of scheduling: queues, PodGroups and PriorityClasses. Rows of the table of kinds, and their table columns.
//! They are stored as given; numbers in a status are added by whoever serves them.

mod class;
mod fields;
mod group;
mod quantities;
mod queue;
#[cfg(test)]
mod tests;
mod tree;

use octoflow_model::Time;
use serde_json::{Value, json};

pub use class::{ClassObject, class, is_default_class, second_default};
pub use quantities::{parse as parse_quantity, parse_all as parse_quantities, render as render_quantity};
pub use queue::{LONGEST_WAIT, PLACEMENT, QueueState, guaranteed_too_much, is_closed, queue};
pub use tree::QueueTree;

use super::{AGE, Column, Kind, NAME, Rows, number, since, text, text_column, wide};

/// The label or annotation names that put a run or a pod into a queue, the most specific first.
pub const QUEUE_NAMES: [&str; 3] =
    ["volcano.sh/queue-name", "scheduling.volcano.sh/queue-name", "kueue.x-k8s.io/queue-name"];

/// Returns the queue that labels or annotations name; labels win.
pub fn named_queue(metadata: &Value) -> Option<&str> {
    let parts = [&metadata["labels"], &metadata["annotations"]];
    let named = parts.into_iter().flat_map(|part| QUEUE_NAMES.iter().map(move |name| part[*name].as_str()));
    named.flatten().find(|queue| !queue.is_empty())
}

const VOLCANO: &str = "scheduling.volcano.sh";

pub(super) static ROWS: Rows =
    Rows { kinds: &[&QUEUE, &POD_GROUP, &INCUBATOR_POD_GROUP, &PRIORITY_CLASS], refused: &[] };

pub static QUEUE: Kind = Kind {
    plural: "queues",
    singular: "queue",
    short: &["q", "queue-v1beta1"],
    noun: "queue",
    namespaced: false,
    schema_prefix: "sh.volcano.scheduling.v1beta1.",
    shape: Some(&fields::QUEUE),
    has_status: true,
    has_computed_status: true,
    check: Some(queue::check),
    columns: &[
        NAME,
        text_column("Parent", "The queue above it"),
        wide(number("Weight", "Its part of what its parent has, where nothing is declared")),
        wide(text_column("State", "Whether it takes new work")),
        wide(number("Running", "Tasks that run")),
        wide(number("Pending", "Tasks that wait")),
        wide(text_column("Allocated", "What its tasks use")),
        wide(AGE),
    ],
    cells: queue_cells,
    ..Kind::new(VOLCANO, "v1beta1", "Queue")
};

pub static POD_GROUP: Kind = Kind {
    short: &["pg", "podgroup-v1beta1"],
    schema_prefix: "sh.volcano.scheduling.v1beta1.",
    ..pod_group(VOLCANO, "v1beta1")
};

/// PodGroups as older manifests write them. They are the same objects.
pub static INCUBATOR_POD_GROUP: Kind = Kind {
    schema_prefix: "io.k8s.incubator.scheduling.v1alpha1.",
    alternate_of: Some(&POD_GROUP),
    ..pod_group("scheduling.incubator.k8s.io", "v1alpha1")
};

const GROUP_COLUMNS: &[Column] = &[
    NAME,
    text_column("Status", "Whether its members wait or run"),
    number("minMember", "So many start together"),
    number("Runnings", "Members that run"),
    AGE,
    wide(text_column("Queue", "The queue its members wait in")),
];

const fn pod_group(group: &'static str, version: &'static str) -> Kind {
    Kind {
        plural: "podgroups",
        singular: "podgroup",
        shape: Some(&fields::POD_GROUP),
        has_status: true,
        has_computed_status: true,
        check: Some(group::check),
        columns: GROUP_COLUMNS,
        cells: group_cells,
        ..Kind::new(group, version, "PodGroup")
    }
}

pub static PRIORITY_CLASS: Kind = Kind {
    plural: "priorityclasses",
    singular: "priorityclass",
    short: &["pc"],
    namespaced: false,
    schema_prefix: "io.k8s.api.scheduling.v1.",
    shape: Some(&fields::PRIORITY_CLASS),
    check: Some(class::check),
    columns: &[
        NAME,
        number("Value", "The priority of its tasks"),
        Column { kind: "boolean", ..text_column("Global-Default", "Whether tasks without a class have it") },
        AGE,
        text_column("PreemptionPolicy", "Whether its tasks end lower ones"),
    ],
    cells: class_cells,
    ..Kind::new("scheduling.k8s.io", "v1", "PriorityClass")
};

fn name_and_age(object: &Value, now: Time) -> (Value, Value) {
    let metadata = &object["metadata"];
    (metadata["name"].clone(), json!(since(&metadata["creationTimestamp"], now)))
}

fn queue_cells(object: &Value, now: Time) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let (name, age) = name_and_age(object, now);
    let parent = match (spec["parent"].as_str(), name.as_str()) {
        (Some(parent), _) if !parent.is_empty() => json!(parent),
        (_, Some(crate::schedule::spec::ROOT)) => json!(""),
        _ => json!(crate::schedule::spec::ROOT),
    };
    let allocated = status["allocated"].as_object().into_iter().flatten();
    let allocated: Vec<String> =
        allocated.map(|(name, amount)| format!("{name}={}", amount.as_str().unwrap_or_default())).collect();
    vec![
        name,
        parent,
        json!(spec["weight"].as_i64().unwrap_or(1)),
        json!(status["state"].as_str().unwrap_or("Open")),
        json!(status["running"].as_i64().unwrap_or(0)),
        json!(status["pending"].as_i64().unwrap_or(0)),
        json!(allocated.join(",")),
        age,
    ]
}

fn group_cells(object: &Value, now: Time) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let (name, age) = name_and_age(object, now);
    vec![
        name,
        json!(status["phase"].as_str().unwrap_or_default()),
        json!(spec["minMember"].as_i64().unwrap_or(0)),
        json!(status["running"].as_i64().unwrap_or(0)),
        age,
        text(&spec["queue"]),
    ]
}

fn class_cells(object: &Value, now: Time) -> Vec<Value> {
    let (name, age) = name_and_age(object, now);
    vec![
        name,
        object["value"].clone(),
        json!(object["globalDefault"] == true),
        age,
        json!(object["preemptionPolicy"].as_str().unwrap_or("PreemptLowerPriority")),
    ]
}
