//! Field tables of jobs: whether each field is supported, ignored, or refused. The single table behind admission, the
//! schemas and the documented support list; how fields combine is checked by admission.

#[cfg(test)]
mod tests;

use octoflow_model::volcano::{Action, Event};

use crate::{
    admit::shape::{BOOL, COUNT, Field, INT32, Shape, TEXT, TEXTS},
    dialects::argo::fields::{CLAIM_SPEC, OBJECT},
    pod::fields::pod::{POD_FIELDS, POD_METADATA, PROBED_CONTAINER_LISTS},
};

const NO_TOPOLOGY: &str = "there is no network topology to follow";

pub static JOB: Shape = Shape::Object(&[
    OBJECT,
    &[
        Field::yes("spec", &SPEC, "What to run"),
        Field::ignored("status", "a new run gets a status of its own", "What became of an earlier run"),
    ],
]);

/// From zero, in the 32 bits of the wire format.
static COUNT32: Shape = Shape::Int { least: 0, most: i32::MAX as i64 };
/// From one, in the 32 bits of the wire format.
static POSITIVE32: Shape = Shape::Int { least: 1, most: i32::MAX as i64 };

pub static SPEC: Shape = Shape::Object(&[&[
    Field::yes("tasks", &TASKS, "The tasks, each with a number of equal pods"),
    Field::yes(
        "minAvailable",
        &COUNT32,
        "So many pods start together or not at all; the sum of the tasks' when left out",
    ),
    Field::yes("minSuccess", &POSITIVE32, "So many succeeded pods complete it"),
    Field::yes("policies", &POLICIES, "What follows events of its pods, unless their task says otherwise"),
    Field::yes("plugins", &PLUGINS, "What is added to its pods, with arguments"),
    Field::yes("queue", &TEXT, "The queue it waits in; that of the namespace, else `default`, when left out"),
    Field::yes("maxRetry", &COUNT32, "The most attempts; 3 when left out or 0"),
    Field::yes("volumes", &VOLUMES, "Directories that all of its pods share"),
    Field::yes("priorityClassName", &TEXT, "The priority class of its pods"),
    Field::yes("ttlSecondsAfterFinished", &COUNT, "How many seconds it stays after its end before it is deleted"),
    Field::yes("runningEstimate", &TEXT, "How long it is expected to run, such as 1h30m"),
    Field::yes("schedulerName", &TEXT, "Recorded; `volcano` when left out"),
    Field::yes("suspend", &BOOL, "Abort it; resuming it is another attempt"),
    Field::yes("shutdown", &Shape::Word(&["Stop", "Terminate"]), "End it: politely, or at once"),
    Field::ignored("networkTopology", NO_TOPOLOGY, "How near its pods must be to each other"),
]]);

static TASKS: Shape = Shape::List(&TASK);
static TASK: Shape = Shape::Object(&[&[
    Field::yes("name", &TEXT, "The task's name, part of its pods' names; `default` with its position when left out"),
    Field::yes("replicas", &Shape::Int { least: 0, most: 100_000 }, "How many pods it has; 1 when left out"),
    Field::yes("minAvailable", &COUNT32, "So many of its pods must be there; all when left out"),
    Field::yes("template", &POD_TEMPLATE, "Its pods"),
    Field::yes("policies", &POLICIES, "What follows events of its pods; asked before those of the job"),
    Field::yes(
        "maxRetry",
        &Shape::Int { least: -1, most: i32::MAX as i64 },
        "So many container restarts raise TaskFailed; 3 when left out or 0, -1: never",
    ),
    Field::yes("dependsOn", &DEPENDS_ON, "The tasks whose pods must run before its pods are created"),
    Field::yes("partitionPolicy", &PARTITIONS, "How its pods are divided into partitions"),
    Field::ignored("topologyPolicy", NO_TOPOLOGY, "How its pods are placed on NUMA nodes"),
]]);

static POLICIES: Shape = Shape::List(&POLICY);
static POLICY: Shape = Shape::Object(&[&[
    Field::yes("event", &Shape::Word(&Event::WORDS), "The event; `*` is every event"),
    Field::yes("events", &EVENTS, "Several events"),
    Field::yes("exitCode", &INT32, "The exit code of a failed pod's first container, in place of an event"),
    Field::yes("action", &Shape::Word(&Action::WORDS), "What follows; nothing when left out"),
    Field::yes("timeout", &TEXT, "How long to wait before, such as 10s; it is called off when the reason is gone"),
]]);
static EVENTS: Shape = Shape::List(&Shape::Word(&Event::WORDS));

static PLUGINS: Shape = Shape::Map(&TEXTS);

static VOLUMES: Shape = Shape::List(&VOLUME);
static VOLUME: Shape = Shape::Object(&[&[
    Field::yes("mountPath", &TEXT, "Where the containers see it"),
    Field::yes("volumeClaimName", &TEXT, "A claim by name"),
    Field::yes("volumeClaim", &CLAIM_SPEC, "The specification of a claim that is made for the job"),
]]);

static DEPENDS_ON: Shape = Shape::Object(&[&[
    Field::yes("name", &TEXTS, "The tasks"),
    Field::yes("iteration", &Shape::Word(&["any", "all"]), "Whether one of several is enough; `all` when left out"),
]]);

static PARTITIONS: Shape = Shape::Object(&[&[
    Field::yes("totalPartitions", &POSITIVE32, "How many partitions there are"),
    Field::yes("partitionSize", &POSITIVE32, "How many pods each has"),
    Field::yes("minPartitions", &COUNT32, "How many must be there; all when left out"),
    Field::ignored("networkTopology", NO_TOPOLOGY, "How near the pods of a partition must be to each other"),
]]);

static POD_TEMPLATE: Shape = Shape::Object(&[&[
    Field::yes("metadata", &POD_METADATA, "Labels and annotations of the pods"),
    Field::yes("spec", &POD, "The pods"),
]]);

static POD: Shape = Shape::Object(&[
    PROBED_CONTAINER_LISTS,
    POD_FIELDS,
    &[Field::yes(
        "restartPolicy",
        &Shape::Word(&["Never", "OnFailure", "Always"]),
        "Whether containers are started again in place; `Never` when left out",
    )],
]);
