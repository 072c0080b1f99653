//! Lists the fields of containers in templates: plain ones, scripts, init containers and sidecars, and sets.

use crate::{
    admit::shape::{BOOL, Field, INT_OR_TEXT, Shape, TEXT, TEXTS},
    pod::fields::{
        NO_PODS,
        container::{FIELDS, NO_PROBES},
        volume::VOLUME_MOUNTS,
    },
};

pub(super) use crate::pod::fields::container::CONFIG_KEY;

/// Termination messages and readiness, which nothing reads here.
const LAST_WORDS: &[Field] = &[
    Field::ignored("terminationMessagePath", NO_PODS, "Where it leaves a last message"),
    Field::ignored("terminationMessagePolicy", NO_PODS, "Where its last message comes from"),
    Field::ignored("readinessProbe", NO_PROBES, "How to see that it is ready"),
];

pub(super) static CONTAINER: Shape = Shape::Object(&[FIELDS, LAST_WORDS]);

pub(super) static SCRIPT: Shape = Shape::Object(&[FIELDS, LAST_WORDS, &[Field::yes("source", &TEXT, "The script")]]);

/// Shape of init containers and sidecars.
pub(super) static USER_CONTAINERS: Shape = Shape::List(&USER_CONTAINER);
static USER_CONTAINER: Shape = Shape::Object(&[
    FIELDS,
    LAST_WORDS,
    &[Field::yes("mirrorVolumeMounts", &BOOL, "It sees the main container's volumes at the same paths")],
]);

pub(super) static CONTAINER_SET: Shape = Shape::Object(&[&[
    Field::yes("containers", &SET_CONTAINERS, "The containers"),
    Field::yes("volumeMounts", &VOLUME_MOUNTS, "Which volumes all of them see, and where"),
    Field::yes("retryStrategy", &SET_RETRY, "How each of them is tried again inside the task when it fails"),
]]);

static SET_CONTAINERS: Shape = Shape::List(&SET_CONTAINER);
static SET_CONTAINER: Shape = Shape::Object(&[
    FIELDS,
    LAST_WORDS,
    &[Field::yes("dependencies", &TEXTS, "The containers that must have ended well before it starts")],
]);

static SET_RETRY: Shape = Shape::Object(&[&[
    Field::yes("retries", &INT_OR_TEXT, "The most attempts after the first"),
    Field::yes("duration", &TEXT, "How long to wait before the next attempt"),
]]);
