//! Field tables of submitted jobs and of features: whether each field is supported, ignored, or refused. How fields combine is
//! checked by admission, and by the compiler of features.

use crate::{
    admit::shape::{ANY, BOOL, Field, POSITIVE, Shape, TEXT, TEXTS},
    dialects::argo::fields::OBJECT,
};

pub static SUBMITTED_JOB: Shape = Shape::Object(&[
    OBJECT,
    &[
        Field::yes("spec", &SPEC, "The job, and who submits it"),
        Field::ignored("status", "a new run gets a status of its own", "What became of an earlier run"),
    ],
]);

pub static FEATURE: Shape =
    Shape::Object(&[OBJECT, &[Field::yes("spec", &FEATURE_SPEC, "Its plugins, and which jobs they are for")]]);

static FREE: Shape = Shape::Map(&ANY);

static SPEC: Shape = Shape::Object(&[&[
    Field::yes("userID", &TEXT, "Whose job it is, as the submitter says"),
    Field::yes("jobName", &TEXT, "What people call it; the name of the object is its id"),
    Field::yes("jobKind", &TEXT, "The kind that plugins are selected by; it stays when the job is translated"),
    Field::yes("header", &FREE, "What else selectors can be about"),
    Field::yes("job", &FREE, "The job itself: a TaskSet, or what a translator makes one of"),
    Field::yes("cluster", &TEXT, "The cluster, in the words of the submitter"),
    Field::yes("submittedBy", &TEXT, "Who handed it in; the server writes it"),
    Field::yes("suspend", &BOOL, "Call no plugin until it is resumed"),
    Field::yes("shutdown", &Shape::Word(&["Stop", "Terminate"]), "End it: politely, or at once"),
]]);

static FEATURE_SPEC: Shape = Shape::Object(&[&[
    Field::yes("author", &TEXT, "Who wrote it; part of the keys of its plugins"),
    Field::yes("description", &TEXT, "What it is for"),
    Field::yes("enabled", &BOOL, "Whether its plugins are called; `false` when left out"),
    Field::yes("jobSelector", &SELECTOR, "The jobs its plugins are for, unless a plugin says otherwise"),
    Field::yes("authorization", &TEXT, "Sent to its plugins as `Authorization: Basic`; written and never shown"),
    Field::yes("secret", &TEXT, "Key of the signatures of its life hooks' deliveries; written and never shown"),
    Field::yes("plugins", &Shape::List(&PLUGIN), "Its plugins, at most one of each type"),
]]);

static PLUGIN: Shape = Shape::Object(&[&[
    Field::yes("pluginType", &TEXT, "What it does: the word of a stage, or LifeHook"),
    Field::yes("callAddress", &TEXT, "A URL, or builtin:NAME"),
    Field::yes("description", &TEXT, "What it is for"),
    Field::yes("jobSelector", &SELECTOR, "The jobs it is for; what it leaves out is the feature's"),
    Field::yes("timeoutSeconds", &POSITIVE, "How long one call may take; 5 when left out, 30 at most"),
    Field::yes("tries", &POSITIVE, "How often a call is tried; 3 when left out, 10 at most"),
    Field::yes("concurrency", &POSITIVE, "How many calls may be under way at once; 16 when left out, 256 at most"),
    Field::yes("onFailure", &TEXT, "Of a FactorGenerator: `ignore` goes on without it; `fail` when left out"),
    Field::yes("options", &ANY, "Settings of a built-in plugin"),
]]);

static SELECTOR: Shape = Shape::Object(&[&[
    Field::yes("conditions", &Shape::List(&CONDITION), "Named conditions on the header"),
    Field::yes("expression", &TEXT, "How they combine, with && || ! and parentheses; `*` means every job"),
    Field::yes("states", &TEXTS, "Of a life hook: the states it hears of; `*` means all"),
]]);

static CONDITION: Shape = Shape::Object(&[&[
    Field::yes("name", &TEXT, "What the expression calls it"),
    Field::yes("key", &TEXT, "Path of a value in the header, names joined by dots"),
    Field::yes("expect", &TEXT, "The value; a regular expression, between slashes one that is searched"),
]]);
