//! The fields that say on which nodes a pod may run, as Kubernetes names them.

use super::NO_PODS;
use crate::admit::shape::{Field, Shape, TEXT, TEXTS};

const NO_PREFERENCES: &str = "only requirements are followed";

/// Labels that a node must have.
pub(crate) static NODE_SELECTOR: Shape = Shape::Map(&TEXT);

pub(crate) static AFFINITY: Shape = Shape::Object(&[&[
    Field::yes("nodeAffinity", &NODE_AFFINITY, "Which nodes may run it"),
    Field::ignored("podAffinity", NO_PODS, "Which pods it wants to be near"),
    Field::ignored("podAntiAffinity", NO_PODS, "Which pods it wants to be away from"),
]]);

static NODE_AFFINITY: Shape = Shape::Object(&[&[
    Field::yes(
        "requiredDuringSchedulingIgnoredDuringExecution",
        &NODE_TERMS,
        "What a node must be like when a task is started",
    ),
    Field::ignored("preferredDuringSchedulingIgnoredDuringExecution", NO_PREFERENCES, "What it would rather have"),
]]);

static NODE_TERMS: Shape =
    Shape::Object(&[&[Field::yes("nodeSelectorTerms", &TERMS, "Alternatives, one of which must hold")]]);
static TERMS: Shape = Shape::List(&TERM);
static TERM: Shape = Shape::Object(&[&[
    Field::yes("matchExpressions", &REQUIREMENTS, "Conditions on labels, all of which must hold"),
    Field::yes("matchFields", &REQUIREMENTS, "Conditions on `metadata.name`, all of which must hold"),
]]);
static REQUIREMENTS: Shape = Shape::List(&REQUIREMENT);
static REQUIREMENT: Shape = Shape::Object(&[&[
    Field::yes("key", &TEXT, "The label, or `metadata.name`"),
    Field::yes("operator", &Shape::Word(&["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]), "How it is compared"),
    Field::yes("values", &TEXTS, "With what"),
]]);

pub(crate) static TOLERATIONS: Shape = Shape::List(&TOLERATION);
static TOLERATION: Shape = Shape::Object(&[&[
    Field::yes("key", &TEXT, "The taint; every taint when left out, with `operator: Exists`"),
    Field::yes(
        "operator",
        &Shape::Word(&["", "Equal", "Exists"]),
        "How it is compared; `Exists` tolerates every value",
    ),
    Field::yes("value", &TEXT, "The value it must have"),
    Field::yes(
        "effect",
        &Shape::Word(&["", "NoSchedule", "PreferNoSchedule", "NoExecute"]),
        "The effect; every effect when left out",
    ),
    Field::yes(
        "tolerationSeconds",
        &Shape::Int { least: i64::MIN, most: i64::MAX },
        "How long a running task stays in spite of a `NoExecute` taint; for good when left out",
    ),
]]);
