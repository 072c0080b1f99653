//! Field tables of jobs: whether each field is supported, ignored, or refused. The single table behind admission, the
//! schemas and the documented support list; how fields combine is checked by admission.

#[cfg(test)]
mod tests;

use octoflow_model::kubejob::{CompletionMode, ExitOperator, FailureAction, ReplacementPolicy};

use crate::{
    admit::shape::{ANY, BOOL, COUNT, Field, INT32, POSITIVE, Shape, TEXT, TEXT_MAP},
    dialects::argo::fields::OBJECT,
    pod::fields::pod::{POD_FIELDS, POD_METADATA, PROBED_CONTAINER_LISTS},
};

pub static JOB: Shape = Shape::Object(&[
    OBJECT,
    &[
        Field::yes("spec", &SPEC, "What to run"),
        Field::ignored("status", "a new run gets a status of its own", "What became of an earlier run"),
    ],
]);

pub static CRON_JOB: Shape = Shape::Object(&[
    OBJECT,
    &[
        Field::yes("spec", &CRON_SPEC, "When to run, and what"),
        Field::ignored("status", "the server keeps the status", "What became of it so far"),
    ],
]);

static CRON_SPEC: Shape = Shape::Object(&[&[
    Field::yes("schedule", &TEXT, "When it runs: five fields, or @hourly and its kin"),
    Field::yes("timeZone", &TEXT, "The zone the schedule is meant in, such as Europe/Zurich; UTC when left out"),
    Field::yes("jobTemplate", &JOB_TEMPLATE, "The Jobs it makes"),
    Field::yes("suspend", &BOOL, "Make no Jobs until it is resumed"),
    Field::yes("concurrencyPolicy", &CONCURRENCY, "What happens while an earlier Job is active; `Allow` when left out"),
    Field::yes("startingDeadlineSeconds", &COUNT, "How late a Job may still be made, in seconds"),
    Field::yes("successfulJobsHistoryLimit", &COUNT32, "How many complete Jobs are kept, 3 when left out"),
    Field::yes("failedJobsHistoryLimit", &COUNT32, "How many failed Jobs are kept, 1 when left out"),
]]);
static CONCURRENCY: Shape = Shape::Word(&["Allow", "Forbid", "Replace"]);
static JOB_TEMPLATE: Shape = Shape::Object(&[&[
    Field::yes("metadata", &JOB_METADATA, "Labels and annotations of the Jobs"),
    Field::yes("spec", &SPEC, "What to run"),
]]);
static JOB_METADATA: Shape = Shape::Object(&[&[
    Field::yes("labels", &TEXT_MAP, "Short texts to select Jobs by"),
    Field::yes("annotations", &TEXT_MAP, "Texts for tools and people"),
    Field::yes("name", &TEXT, "Recorded; Jobs are named by their CronJob and their time"),
    Field::ignored("namespace", "Jobs are where their CronJob is", "A namespace"),
    Field::ignored("creationTimestamp", "Jobs have their own", "When it was created"),
]]);

/// From zero, in the 32 bits of the wire format.
static COUNT32: Shape = Shape::Int { least: 0, most: i32::MAX as i64 };

static SPEC: Shape = Shape::Object(&[&[
    Field::yes("template", &POD_TEMPLATE, "Its pods"),
    Field::yes("parallelism", &COUNT32, "The most pods at once; 1 when left out"),
    Field::yes(
        "completions",
        &COUNT32,
        "So many pods have to succeed; when left out, one if parallelism is left out too, else the first ends the work",
    ),
    Field::yes(
        "completionMode",
        &Shape::Word(&CompletionMode::WORDS),
        "Whether pods have indexes: `Indexed` gives every pod one, from 0 up to completions, in JOB_COMPLETION_INDEX; `NonIndexed` when left out",
    ),
    Field::yes(
        "backoffLimit",
        &COUNT32,
        "The most failed pods; 6 when left out, without limit with a limit for each index",
    ),
    Field::yes("backoffLimitPerIndex", &COUNT32, "The most failed pods of one index"),
    Field::yes("maxFailedIndexes", &COUNT32, "The most failed indexes; the job fails at once beyond"),
    Field::yes(
        "activeDeadlineSeconds",
        &POSITIVE,
        "The most seconds it may be active, from the start or the last resume on",
    ),
    Field::yes("ttlSecondsAfterFinished", &COUNT, "How many seconds it stays after its end before it is deleted"),
    Field::yes("suspend", &BOOL, "Have no pods until it is resumed"),
    Field::yes(
        "shutdown",
        &Shape::Word(&["Stop", "Terminate"]),
        "End it: politely, or at once; an addition of this engine",
    ),
    Field::yes("podFailurePolicy", &FAILURE_POLICY, "What follows the failure of a pod"),
    Field::yes("successPolicy", &SUCCESS_POLICY, "When an Indexed job has succeeded before all indexes have"),
    Field::yes(
        "podReplacementPolicy",
        &Shape::Word(&ReplacementPolicy::WORDS),
        "Whether a pod is replaced once it is being ended, or when it has ended; `Failed` with a failure policy",
    ),
    Field::yes("manualSelector", &BOOL, "Use the selector that is written here"),
    Field::yes("selector", &ANY, "The labels that select its pods; only with manualSelector"),
    Field::yes("managedBy", &TEXT, "The controller that runs it; only Kubernetes' own name is accepted"),
]]);

static FAILURE_POLICY: Shape =
    Shape::Object(&[&[Field::yes("rules", &FAILURE_RULES, "The rules; the first that applies counts")]]);
static FAILURE_RULES: Shape = Shape::List(&FAILURE_RULE);
static FAILURE_RULE: Shape = Shape::Object(&[&[
    Field::yes(
        "action",
        &Shape::Word(&FailureAction::WORDS),
        "What follows: fail the job, fail the index, do not count it, or count it as usual",
    ),
    Field::yes("onExitCodes", &EXIT_CODES, "It applies to exit codes of containers"),
    Field::yes("onPodConditions", &POD_CONDITIONS, "It applies to conditions of the pod"),
]]);
static EXIT_CODES: Shape = Shape::Object(&[&[
    Field::yes("containerName", &TEXT, "The container; any when left out"),
    Field::yes("operator", &Shape::Word(&ExitOperator::WORDS), "Whether the code is one of these, or none of them"),
    Field::yes("values", &Shape::List(&INT32), "The exit codes, in ascending order"),
]]);
static POD_CONDITIONS: Shape = Shape::List(&POD_CONDITION);
static POD_CONDITION: Shape = Shape::Object(&[&[
    Field::yes("type", &TEXT, "The type of the condition; pods here can have `DisruptionTarget`"),
    Field::yes("status", &Shape::Word(&["True", "False", "Unknown"]), "Its status; `True` when left out"),
]]);

static SUCCESS_POLICY: Shape =
    Shape::Object(&[&[Field::yes("rules", &SUCCESS_RULES, "The rules; one that holds is enough")]]);
static SUCCESS_RULES: Shape = Shape::List(&SUCCESS_RULE);
static SUCCESS_RULE: Shape = Shape::Object(&[&[
    Field::yes("succeededIndexes", &TEXT, "The indexes that are looked at, such as `0,3-5`; all when left out"),
    Field::yes("succeededCount", &COUNT32, "How many of them have to succeed; all when left out"),
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
        &Shape::Word(&["Never", "OnFailure"]),
        "Whether failed containers are started again in place; it must be written",
    )],
]);
