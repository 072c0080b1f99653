//! Lists the fields of steps, DAG tasks and hooks, and of their arguments.

use super::{
    data::{ARGUMENT_ARTIFACTS, PARAMETERS},
    template::TEMPLATE,
};
use crate::admit::shape::{ANY, BOOL, Field, INT_OR_TEXT, Shape, TEXT, TEXTS};

pub(super) static STEP_GROUPS: Shape = Shape::List(&STEPS);
static STEPS: Shape = Shape::List(&STEP);
static STEP: Shape = Shape::Object(&[&CALL]);

pub(super) static TASKS: Shape = Shape::List(&TASK);
static TASK: Shape = Shape::Object(&[
    &CALL,
    &[
        Field::yes("dependencies", &TEXTS, "The tasks that must have succeeded before"),
        Field::yes("depends", &TEXT, "A condition over the results of other tasks"),
    ],
]);

// Not a constant, because a call holds templates and templates hold calls: only statics may refer to each other.
static CALL: [Field; 12] = [
    Field::yes("name", &TEXT, "The name others refer to it by"),
    Field::yes("template", &TEXT, "The template to call"),
    Field::yes("inline", &TEMPLATE, "A template of its own, only for this call"),
    Field::yes("arguments", &ARGUMENTS, "What to hand in"),
    Field::yes("withItems", &ITEMS, "Call it once for each of these items"),
    Field::yes("withParam", &TEXT, "Call it once for each element of a JSON list"),
    Field::yes("withSequence", &SEQUENCE, "Call it once for each number of a sequence"),
    Field::yes("when", &TEXT, "Call it only if this condition is true"),
    Field::yes("continueOn", &CONTINUE_ON, "Bad ends that count as good ones here"),
    Field::yes("onExit", &TEXT, "The template to run when the call has ended"),
    Field::yes("hooks", &HOOKS, "Templates to run at certain moments; the one named `exit` is an exit handler"),
    Field::yes("templateRef", &TEMPLATE_REF, "The template of a WorkflowTemplate to call"),
];

static TEMPLATE_REF: Shape = Shape::Object(&[&[
    Field::yes("name", &TEXT, "The WorkflowTemplate"),
    Field::yes("template", &TEXT, "The name of the template in it"),
    Field::yes("clusterScope", &BOOL, "It is a ClusterWorkflowTemplate"),
]]);

pub(super) static ARGUMENTS: Shape = Shape::Object(&[&[
    Field::yes("parameters", &PARAMETERS, "Named texts"),
    Field::yes("artifacts", &ARGUMENT_ARTIFACTS, "Named files and directories"),
]]);

pub(super) static HOOKS: Shape = Shape::Map(&HOOK);
static HOOK: Shape = Shape::Object(&[&[
    Field::yes("template", &TEXT, "The template to run"),
    Field::yes("arguments", &ARGUMENTS, "What to hand in"),
    Field::yes("expression", &TEXT, "Run it only if this is true"),
    Field::yes("templateRef", &TEMPLATE_REF, "The template of a WorkflowTemplate to run"),
]]);

static ITEMS: Shape = Shape::List(&ANY);

static SEQUENCE: Shape = Shape::Object(&[&[
    Field::yes("count", &INT_OR_TEXT, "How many numbers; not together with `end`"),
    Field::yes("start", &INT_OR_TEXT, "The first number, 0 when left out"),
    Field::yes("end", &INT_OR_TEXT, "The last number; counts down when it is below `start`"),
    Field::yes("format", &TEXT, "How each number is written, as printf does"),
]]);

static CONTINUE_ON: Shape = Shape::Object(&[&[
    Field::yes("error", &BOOL, "Go on when it ended in error"),
    Field::yes("failed", &BOOL, "Go on when it failed"),
]]);
