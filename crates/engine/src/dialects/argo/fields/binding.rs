//! Lists the fields of a WorkflowEventBinding: which events it matches, and what it submits for them.

use super::{OBJECT, data::ARGUMENT_ARTIFACTS, spec::WORKFLOW_TEMPLATE_REF};
use crate::admit::shape::{Field, Shape, TEXT, TEXT_MAP};

pub static EVENT_BINDING: Shape = Shape::Object(&[
    OBJECT,
    &[
        Field::yes("spec", &BINDING_SPEC, "Which events, and what to submit"),
        Field::ignored("status", "a binding has no status here", "What became of it elsewhere"),
    ],
]);

static BINDING_SPEC: Shape = Shape::Object(&[&[
    Field::yes("event", &EVENT, "Which events it takes"),
    Field::yes("submit", &SUBMIT, "What it submits for each of them"),
]]);

static EVENT: Shape = Shape::Object(&[&[Field::yes(
    "selector",
    &TEXT,
    "Takes an event if this is true; it sees `payload`, `metadata`, `discriminator` and `namespace`",
)]]);

static SUBMIT: Shape = Shape::Object(&[&[
    Field::yes("workflowTemplateRef", &WORKFLOW_TEMPLATE_REF, "The WorkflowTemplate that runs"),
    Field::yes("metadata", &SUBMIT_METADATA, "Name, labels and annotations of the run, each an expression"),
    Field::yes("arguments", &SUBMIT_ARGUMENTS, "What to hand in"),
]]);

static SUBMIT_METADATA: Shape = Shape::Object(&[
    &[
        Field::yes("name", &TEXT, "An expression for the name of the run"),
        Field::yes("generateName", &TEXT, "An expression for the beginning of its name"),
    ],
    &[
        Field::yes("labels", &TEXT_MAP, "An expression for each label"),
        Field::yes("annotations", &TEXT_MAP, "An expression for each annotation"),
    ],
]);

static SUBMIT_ARGUMENTS: Shape = Shape::Object(&[&[
    Field::yes("parameters", &SUBMIT_PARAMETERS, "Texts made from the event"),
    Field::yes("artifacts", &ARGUMENT_ARTIFACTS, "Named files and directories"),
]]);
static SUBMIT_PARAMETERS: Shape = Shape::List(&SUBMIT_PARAMETER);
static SUBMIT_PARAMETER: Shape = Shape::Object(&[&[
    Field::yes("name", &TEXT, "The name, unique in its list"),
    Field::yes("valueFrom", &FROM_EVENT, "Where the value comes from"),
    Field::yes("description", &TEXT, "What it is, for people"),
]]);
static FROM_EVENT: Shape = Shape::Object(&[&[Field::yes(
    "event",
    &TEXT,
    "An expression over the event; a text is taken as it is, anything else as JSON",
)]]);
