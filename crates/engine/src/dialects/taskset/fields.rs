//! Field tables of TaskSets: whether each field is supported, ignored, or refused. The single table
//! behind admission, the schemas and the documented support list; how fields combine is checked by admission.

#[cfg(test)]
mod tests;

use octoflow_model::taskset::{Action, Condition, Event};

use crate::{
    admit::shape::{BOOL, COUNT, Field, INT_OR_TEXT, INT32, POSITIVE, Shape, TEXT},
    dialects::argo::fields::OBJECT,
    pod::fields::pod::{CONTAINER_LISTS, POD_FIELDS, POD_METADATA},
};

pub static TASK_SET: Shape = Shape::Object(&[
    OBJECT,
    &[
        Field::yes("spec", &SPEC, "What to run"),
        Field::ignored("status", "a new run gets a status of its own", "What became of an earlier run"),
    ],
]);

static SPEC: Shape = Shape::Object(&[&[
    Field::yes("roles", &ROLES, "The roles, in the order in which their events are asked"),
    Field::yes("retryPolicy", &RETRY, "How the whole is tried again when it has not succeeded"),
    Field::yes("priority", &INT32, "Higher ones are given room first; 0 when left out"),
    Field::yes("queue", &TEXT, "The queue it waits in, unless the pods or their PodGroup name one"),
    Field::yes("suspend", &BOOL, "Start nothing new until it is resumed; what runs goes on"),
    Field::yes("shutdown", &Shape::Word(&["Stop", "Terminate"]), "End it: politely, or at once"),
    Field::yes("activeDeadlineSeconds", &POSITIVE, "The most seconds all attempts together may take"),
    Field::yes("ttlSecondsAfterFinished", &COUNT, "How many seconds it stays after its end before it is deleted"),
]]);

static ROLES: Shape = Shape::List(&ROLE);
static ROLE: Shape = Shape::Object(&[&[
    Field::yes("name", &TEXT, "The role's name: 1 to 63 lower-case letters and digits"),
    Field::yes("replicas", &Shape::Int { least: 1, most: 10_000 }, "How many pods it has"),
    Field::yes("completionPolicy", &COMPLETION, "When it has succeeded, and when it has failed"),
    Field::yes("retryPolicy", &RETRY, "How each replica is tried again when it fails"),
    Field::yes("eventPolicy", &EVENTS, "What its end means for the whole"),
    Field::yes("dependsOn", &DEPENDENCIES, "The roles that must have come so far before it starts"),
    Field::yes("template", &POD_TEMPLATE, "The pod of each replica"),
]]);

/// From -1, which disables the criterion.
static CRITERION: Shape = Shape::Int { least: -1, most: i32::MAX as i64 };

static COMPLETION: Shape = Shape::Object(&[&[
    Field::yes("maxFailed", &CRITERION, "So many failed replicas make it fail; 0 means 1, -1 turns it off"),
    Field::yes("minSucceeded", &CRITERION, "So many succeeded replicas make it succeed; -1: all over and not failed"),
]]);

static RETRY: Shape = Shape::Object(&[&[
    Field::yes("retry", &BOOL, "Try again at all"),
    Field::yes("delay", &COUNT, "Seconds to wait before"),
    Field::yes("maxRetryCount", &COUNT, "The most attempts after the first"),
    Field::yes("retryableExitCodes", &CODES, "Of a role: only these are tried again, such as 137 or 1-127"),
    Field::yes("permanentExitCodes", &CODES, "Of a role: these are never tried again"),
]]);
static CODES: Shape = Shape::List(&INT_OR_TEXT);

static EVENTS: Shape = Shape::List(&EVENT);
static EVENT: Shape = Shape::Object(&[&[
    Field::yes("event", &Shape::Word(&Event::WORDS), "What happens"),
    Field::yes("action", &Shape::Word(&Action::WORDS), "What follows for the whole"),
]]);

static DEPENDENCIES: Shape = Shape::List(&DEPENDENCY);
static DEPENDENCY: Shape = Shape::Either(&TEXT, &UNTIL);
static UNTIL: Shape = Shape::Object(&[&[
    Field::yes("role", &TEXT, "The role"),
    Field::yes("condition", &Shape::Word(&Condition::WORDS), "How far it must be; `Running` when left out"),
]]);

static POD_TEMPLATE: Shape = Shape::Object(&[&[
    Field::yes("metadata", &POD_METADATA, "Labels and annotations of the pods"),
    Field::yes("spec", &POD, "The pods"),
]]);

static POD: Shape = Shape::Object(&[
    CONTAINER_LISTS,
    POD_FIELDS,
    &[Field::yes("restartPolicy", &Shape::Word(&["Never", "OnFailure", "Always"]), "Always read as `Never`")],
]);
