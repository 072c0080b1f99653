//! Lists the fields of objects that may be loaded beside a workflow: ConfigMaps, Secrets and claims.

use super::{METADATA, NO_PODS, OBJECT};
use crate::admit::shape::{ANY, BOOL, Field, QUANTITY_MAP, Shape, TEXT, TEXT_MAP, TEXTS};

pub static CONFIG_MAP: Shape = Shape::Object(&[
    OBJECT,
    &[
        Field::yes("data", &TEXT_MAP, "Named texts"),
        Field::yes("binaryData", &TEXT_MAP, "Named bytes, in base64"),
        Field::yes("immutable", &BOOL, "It never changes"),
    ],
]);

pub static SECRET: Shape = Shape::Object(&[
    OBJECT,
    &[
        Field::yes("data", &TEXT_MAP, "Named bytes, in base64"),
        Field::yes("stringData", &TEXT_MAP, "Named texts"),
        Field::yes("type", &TEXT, "What the entries are for"),
        Field::yes("immutable", &BOOL, "It never changes"),
    ],
]);

pub static CLAIM: Shape = Shape::Object(&[OBJECT, CLAIM_BODY]);

/// Shape of a claim that a workflow creates for itself.
pub(super) static CLAIM_TEMPLATE: Shape = Shape::Object(&[
    &[
        Field::yes("apiVersion", &TEXT, "Its version"),
        Field::yes("kind", &TEXT, "Its kind"),
        Field::yes("metadata", &METADATA, "Its name, which mounts use"),
    ],
    CLAIM_BODY,
]);

const CLAIM_BODY: &[Field] = &[
    Field::yes("spec", &CLAIM_SPEC, "What is asked for"),
    Field::ignored("status", "the store sets it", "What was given"),
];

/// Shape of what a claim asks for.
pub static CLAIM_SPEC: Shape = Shape::Object(&[&[
    Field::yes("accessModes", &TEXTS, "Who may use it at one time"),
    Field::yes("resources", &CLAIM_RESOURCES, "How much room it needs"),
    Field::ignored("storageClassName", NO_PODS, "What kind of storage"),
    Field::ignored("volumeMode", NO_PODS, "Files or blocks"),
    Field::ignored("volumeName", NO_PODS, "The volume it must get"),
    Field::ignored("volumeAttributesClassName", NO_PODS, "What quality of storage"),
    Field::yes("selector", &ANY, "Which volumes it may get"),
    Field::refused("dataSource", "Fill it from a snapshot or another claim"),
    Field::refused("dataSourceRef", "Fill it from a snapshot or another claim"),
]]);

static CLAIM_RESOURCES: Shape = Shape::Object(&[&[
    Field::yes("requests", &QUANTITY_MAP, "At least so much"),
    Field::yes("limits", &QUANTITY_MAP, "At most so much"),
]]);
