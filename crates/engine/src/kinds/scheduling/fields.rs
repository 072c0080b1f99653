//! Field tables of queues, PodGroups and PriorityClasses: whether each field is supported or ignored. How fields combine is
//! checked beside them.

use crate::{
    admit::shape::{BOOL, Field, INT32, QUANTITY_MAP, Shape, TEXT},
    dialects::argo::fields::OBJECT,
};

const NO_CLUSTERS: &str = "all nodes belong to this server";

/// A queue of tasks and its share of all nodes.
pub(super) static QUEUE: Shape = Shape::Object(&[
    OBJECT,
    &[
        Field::yes("spec", &QUEUE_SPEC, "Its place among the queues, and its share"),
        Field::ignored("status", "the server counts for itself", "What is in use, and its state"),
    ],
]);

static QUEUE_SPEC: Shape = Shape::Object(&[&[
    Field::yes("parent", &TEXT, "The queue above it; `root` when left out"),
    Field::yes(
        "weight",
        &Shape::Int { least: 1, most: i32::MAX as i64 },
        "Its part of what the parent has, among its siblings, of resources that `deserved` does not name; 1 when left out",
    ),
    Field::yes("priority", &INT32, "Siblings of a higher priority are served first; 0 when left out"),
    Field::yes("guarantee", &GUARANTEE, "What is kept for it, also while it has no work"),
    Field::yes("deserved", &QUANTITY_MAP, "What it gets back from others when it has work; lent to them meanwhile"),
    Field::yes("capability", &QUANTITY_MAP, "The most it uses, with what it borrows"),
    Field::yes("reclaimable", &BOOL, "Whether others may take back what it borrowed; true when left out"),
    Field::yes(
        "dequeueStrategy",
        &Shape::Word(&["strict", "traverse"]),
        "strict: nothing passes the first task that does not fit; traverse when left out",
    ),
    Field::ignored(
        "affinity",
        "labels of nodes and selectors of tasks decide where tasks run",
        "Groups of nodes for it",
    ),
    Field::ignored("extendClusters", NO_CLUSTERS, "Clusters whose jobs go through it"),
    Field::ignored("type", NO_CLUSTERS, "What kind of queue it is"),
]]);

static GUARANTEE: Shape = Shape::Object(&[&[Field::yes("resource", &QUANTITY_MAP, "How much of each resource")]]);

/// Members that start together or not at all.
pub(super) static POD_GROUP: Shape = Shape::Object(&[
    OBJECT,
    &[
        Field::yes("spec", &POD_GROUP_SPEC, "How many start together, and in which queue they wait"),
        Field::ignored("status", "the server counts for itself", "How many run"),
    ],
]);

static POD_GROUP_SPEC: Shape = Shape::Object(&[&[
    Field::yes("minMember", &Shape::Int { least: 0, most: i32::MAX as i64 }, "So many members start together, or none"),
    Field::yes("minTaskMember", &COUNTS, "So many of each role must be among them, by role"),
    Field::yes("queue", &TEXT, "The queue its members wait in"),
    Field::yes("priorityClassName", &TEXT, "The PriorityClass of its members"),
    Field::ignored("minResources", "what the members ask for is counted", "What they need together"),
    Field::ignored("networkTopology", "nodes have no network topology here", "How near their nodes must be"),
    Field::ignored("subGroupPolicy", "a group has no parts but its roles", "Groups within the group"),
]]);

static COUNTS: Shape = Shape::Map(&Shape::Int { least: 0, most: i32::MAX as i64 });

/// A priority that tasks name.
pub(super) static PRIORITY_CLASS: Shape = Shape::Object(&[
    OBJECT,
    &[
        Field::yes("value", &INT32, "The priority of its tasks; at most one billion"),
        Field::yes("globalDefault", &BOOL, "Whether tasks without a class and a priority have it"),
        Field::yes(
            "preemptionPolicy",
            &Shape::Word(&["PreemptLowerPriority", "Never"]),
            "Whether its tasks end tasks of lower classes in their queue; PreemptLowerPriority when left out",
        ),
        Field::yes("description", &TEXT, "When to use it"),
    ],
]);
