//! Field tables of flows and of job templates: whether each field is supported, ignored, or refused. How fields combine is
//! checked by admission.

use crate::{
    admit::shape::{ANY, BOOL, Field, Shape, TEXT, TEXTS},
    dialects::{argo::fields::OBJECT, volcano::fields::SPEC as JOB_SPEC},
};

pub static JOB_FLOW: Shape = Shape::Object(&[
    OBJECT,
    &[
        Field::yes("spec", &SPEC, "The jobs and their order"),
        Field::ignored("status", "a new run gets a status of its own", "What became of an earlier run"),
    ],
]);

pub static JOB_TEMPLATE: Shape = Shape::Object(&[
    OBJECT,
    &[
        Field::yes("spec", &JOB_SPEC, "The specification of the jobs that are made from it"),
        Field::ignored("status", "it is computed", "The jobs that were made from it"),
    ],
]);

/// Phases of a pod in Kubernetes.
pub static POD_PHASES: [&str; 5] = ["Pending", "Running", "Succeeded", "Failed", "Unknown"];

static RETAIN: Shape = Shape::Word(&["", "retain", "delete"]);
/// Every port but 0, which nobody can connect to.
static PORT: Shape = Shape::Int { least: 1, most: 65_535 };

static SPEC: Shape = Shape::Object(&[&[
    Field::yes("flows", &FLOWS, "The entries: templates, and what each waits for"),
    Field::yes("jobRetainPolicy", &RETAIN, "Whether its jobs stay once all are completed; `retain` when left out"),
    Field::yes("JobRetainPolicy", &RETAIN, "The same, in the spelling of the first versions"),
    Field::yes("suspend", &BOOL, "Make no further job until it is resumed"),
    Field::yes("shutdown", &Shape::Word(&["Stop", "Terminate"]), "End it: politely, or at once"),
]]);

static FLOWS: Shape = Shape::List(&ENTRY);
static ENTRY: Shape = Shape::Object(&[&[
    Field::yes("name", &TEXT, "The name of the template, and of the entry"),
    Field::yes("dependsOn", &DEPENDS_ON, "What must have happened before its job is made"),
    Field::yes("patch", &PATCH, "What is changed in the template's job"),
    Field::yes("retry", &RETRY, "How often a failed job is followed by another try"),
]]);

static DEPENDS_ON: Shape = Shape::Object(&[&[
    Field::yes("targets", &TEXTS, "The entries that must be completed; with a probe, those it is about"),
    Field::yes("probe", &PROBE, "Conditions on the tasks of the targets' jobs, in place of their completion"),
    Field::yes("strategy", &Shape::Word(&["all", "any"]), "Whether one of several is enough; `all` when left out"),
]]);

static PROBE: Shape = Shape::Object(&[&[
    Field::yes("httpGetList", &Shape::List(&HTTP_GET), "Requests that every running pod of a task answers"),
    Field::yes("tcpSocketList", &Shape::List(&TCP_SOCKET), "Ports that every running pod of a task accepts"),
    Field::yes("taskStatusList", &Shape::List(&TASK_STATUS), "Phases that enough pods of a task are in"),
]]);

static HTTP_GET: Shape = Shape::Object(&[&[
    Field::yes("taskName", &TEXT, "The task; every task of the targets when left out"),
    Field::yes("path", &TEXT, "The path; `/` when left out"),
    Field::yes("port", &PORT, "The port"),
    Field::yes("httpHeader", &HEADER, "A header of the request"),
]]);
static HEADER: Shape = Shape::Object(&[&[
    Field::yes("name", &TEXT, "The header's name"),
    Field::yes("value", &TEXT, "The header's value"),
]]);
static TCP_SOCKET: Shape = Shape::Object(&[&[
    Field::yes("taskName", &TEXT, "The task; every task of the targets when left out"),
    Field::yes("port", &PORT, "The port"),
]]);
static TASK_STATUS: Shape = Shape::Object(&[&[
    Field::yes("taskName", &TEXT, "The task; every task of the targets when left out"),
    Field::yes("phase", &Shape::Word(&POD_PHASES), "The phase"),
]]);

static PATCH: Shape = Shape::Object(&[&[
    Field::yes("jobSpec", &ANY, "What is merged into the specification of the job"),
    Field::yes("spec", &ANY, "The same, under another name"),
]]);

static RETRY: Shape = Shape::Object(&[&[
    Field::yes("maxRetries", &Shape::Int { least: 0, most: 1000 }, "The most tries after the first"),
    Field::yes("backoff", &TEXT, "The time before the first retry, such as 10s; it doubles with each further one"),
]]);
