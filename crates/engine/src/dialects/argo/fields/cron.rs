//! Lists the fields of a CronWorkflow: when it runs, and what.

use super::{LABELLED, OBJECT, spec::SPEC};
use crate::{
    admit::shape::{BOOL, COUNT, Field, Shape, TEXT, TEXTS},
    cron::timetable::MAX_CAUGHT_UP,
};

pub static CRON_WORKFLOW: Shape = Shape::Object(&[
    OBJECT,
    &[
        Field::yes("spec", &CRON_SPEC, "When to run, and what"),
        Field::ignored("status", "the server keeps the status", "What became of it so far"),
    ],
]);

static CRON_SPEC: Shape = Shape::Object(&[&[
    Field::yes(
        "schedules",
        &TEXTS,
        "When it runs: five fields, @hourly and its kin, or @every with a length, each also behind `CRON_TZ=Zone`",
    ),
    Field::yes("schedule", &TEXT, "One schedule, in an older spelling"),
    Field::yes("timezone", &TEXT, "The zone the schedules are meant in, such as Europe/Zurich; UTC when left out"),
    Field::yes("workflowSpec", &SPEC, "What it runs"),
    Field::yes("workflowMetadata", &LABELLED, "Labels and annotations for every run"),
    Field::yes("suspend", &BOOL, "Start nothing until it is resumed"),
    Field::yes("concurrencyPolicy", &CONCURRENCY, "What happens while an earlier run is still active"),
    Field::yes("startingDeadlineSeconds", &COUNT, "How late a missed run may still start, in seconds"),
    Field::yes("successfulJobsHistoryLimit", &COUNT, "How many runs that succeeded are kept, 3 when left out"),
    Field::yes("failedJobsHistoryLimit", &COUNT, "How many runs that failed are kept, 1 when left out"),
    Field::yes("when", &TEXT, "Run only if this holds; it sees `cronworkflow.*`"),
    Field::yes("stopStrategy", &STOP, "When to stop for good"),
    Field::yes("catchUp", &CATCH_UP, "What to do about missed times; an addition of this engine"),
]]);

static CONCURRENCY: Shape = Shape::Word(&["Allow", "Forbid", "Replace", ""]);

static STOP: Shape = Shape::Object(&[&[
    Field::yes("expression", &TEXT, "Stop once this is true, such as `cronworkflow.failed >= 3`"),
    Field::yes("condition", &TEXT, "The same, in an older spelling"),
]]);

static CATCH_UP: Shape = Shape::Object(&[&[
    Field::yes("policy", &POLICY, "`skip` none, the `latest`, or `all` of them"),
    Field::yes("limit", &LIMIT, "The most that are made up for, the newest; 10 when left out"),
]]);
static POLICY: Shape = Shape::Word(&["skip", "latest", "all"]);
static LIMIT: Shape = Shape::Int { least: 1, most: MAX_CAUGHT_UP as i64 };
