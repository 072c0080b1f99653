//! Lists the fields of custom metrics, on a workflow or on a template.

use crate::admit::shape::{BOOL, Field, SCALAR, Shape, TEXT};

pub(super) static METRICS: Shape =
    Shape::Object(&[&[Field::yes("prometheus", &PROMETHEUSES, "The metrics, in the order they are read")]]);

static PROMETHEUSES: Shape = Shape::List(&PROMETHEUS);
static PROMETHEUS: Shape = Shape::Object(&[&[
    Field::yes("name", &TEXT, "The name, published with `argo_workflows_` before it"),
    Field::yes("help", &TEXT, "What it is, the same wherever the name is used"),
    Field::yes("labels", &LABELS, "What tells the series of a metric apart"),
    Field::yes("when", &TEXT, "Publish it only if this condition is true"),
    Field::yes("counter", &COUNTER, "It goes up by a value"),
    Field::yes("gauge", &GAUGE, "It goes up and down"),
    Field::yes("histogram", &HISTOGRAM, "It counts values by their size"),
]]);

static LABELS: Shape = Shape::List(&LABEL);
static LABEL: Shape = Shape::Object(&[&[
    Field::yes("key", &TEXT, "The label"),
    Field::yes("value", &SCALAR, "Its value; avoid one that is new every time"),
]]);

static COUNTER: Shape = Shape::Object(&[&[
    Field::yes("value", &SCALAR, "By how much it goes up"),
    Field::refused("realtime", "Follow a running node, which only a gauge can"),
]]);

static GAUGE: Shape = Shape::Object(&[&[
    Field::yes("value", &SCALAR, "What it becomes, or by how much it changes"),
    Field::yes("realtime", &BOOL, "Follow how long the node or the run has been at work, until the run ends"),
    Field::yes("operation", &OPERATION, "What the value does to it, `Set` when left out"),
]]);
static OPERATION: Shape = Shape::Word(&["Set", "Add", "Sub"]);

static HISTOGRAM: Shape = Shape::Object(&[&[
    Field::yes("value", &SCALAR, "The value to count"),
    Field::yes("buckets", &BUCKETS, "The upper bounds it is counted under, rising"),
]]);
static BUCKETS: Shape = Shape::List(&SCALAR);
