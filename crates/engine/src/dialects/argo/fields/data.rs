//! Lists the fields of parameters and artifacts, as inputs, outputs or arguments.

use super::{
    container::CONFIG_KEY,
    location::{ARTIFACT_GC, READ_ONLY, STORES},
};
use crate::admit::shape::{ANY, BOOL, EMPTY, Field, MODE, SCALAR, Shape, TEXT};

pub(super) static INPUTS: Shape = Shape::Object(&[&[
    Field::yes("parameters", &PARAMETERS, "Named texts"),
    Field::yes("artifacts", &ARGUMENT_ARTIFACTS, "Named files and directories, and where they are put"),
]]);

pub(super) static OUTPUTS: Shape = Shape::Object(&[&[
    Field::yes("parameters", &PARAMETERS, "Named texts"),
    Field::yes("artifacts", &OUTPUT_ARTIFACTS, "Named files and directories, and where they are found"),
    Field::ignored("result", "a run fills it in", "What it wrote to its standard output"),
    Field::ignored("exitCode", "a run fills it in", "The exit code of its main process"),
]]);

pub(super) static PARAMETERS: Shape = Shape::List(&PARAMETER);
static PARAMETER: Shape = Shape::Object(&[&[
    Field::yes("name", &TEXT, "The name, unique in its list"),
    // A list or mapping is accepted too, as JSON text.
    Field::yes("value", &ANY, "The value"),
    Field::yes("default", &ANY, "The value when none is given"),
    Field::yes("enum", &CHOICES, "The only values allowed"),
    Field::yes("valueFrom", &VALUE_FROM, "Where the value comes from"),
    Field::yes("globalName", &TEXT, "An output's name among the outputs of the whole run"),
    Field::yes("description", &TEXT, "What it is, for people"),
]]);
static CHOICES: Shape = Shape::List(&SCALAR);

static VALUE_FROM: Shape = Shape::Object(&[&[
    Field::yes("path", &TEXT, "A file the task writes"),
    Field::yes("parameter", &TEXT, "A parameter of a step or task"),
    Field::yes("expression", &TEXT, "An expression over the results of steps or tasks"),
    Field::yes("supplied", &EMPTY, "Whoever resumes the run supplies it"),
    Field::yes("configMapKeyRef", &CONFIG_KEY, "A key of a ConfigMap"),
    Field::yes("default", &ANY, "The value when the source gives none"),
    Field::yes("jsonPath", &TEXT, "Of a resource template: a path template into the object"),
    Field::yes("jqFilter", &TEXT, "Of a resource template: a jq filter over the object"),
    Field::refused_for("event", "Take it from an event", "Only a WorkflowEventBinding sees an event"),
]]);

/// Shape of artifacts as inputs and arguments.
pub(super) static ARGUMENT_ARTIFACTS: Shape = Shape::List(&ARGUMENT_ARTIFACT);
pub(super) static ARGUMENT_ARTIFACT: Shape = Shape::Object(&[ARTIFACT, RAW_TEXT, STORES, READ_ONLY]);

static OUTPUT_ARTIFACTS: Shape = Shape::List(&OUTPUT_ARTIFACT);
static OUTPUT_ARTIFACT: Shape = Shape::Object(&[ARTIFACT, STORES, NO_OUTPUT]);

const ARTIFACT: &[Field] = &[
    Field::yes("name", &TEXT, "The name, unique in its list"),
    Field::yes("path", &TEXT, "Where the task finds or leaves it"),
    Field::yes("from", &TEXT, "The artifact it is taken from"),
    Field::yes("fromExpression", &TEXT, "An expression that chooses the artifact it is taken from"),
    Field::yes("subPath", &TEXT, "A part of the artifact it is taken from"),
    Field::yes("mode", &MODE, "Permission bits of the file"),
    Field::yes("recurseMode", &BOOL, "Give the permission bits to everything below too"),
    Field::yes("optional", &BOOL, "It may be missing"),
    Field::yes("archive", &ARCHIVE, "How it is packed"),
    Field::yes("globalName", &TEXT, "An output's name among the outputs of the whole run"),
    Field::yes("archiveLogs", &BOOL, "Keep the main container's log as the artifact `main-logs`"),
    Field::yes("deleted", &BOOL, "Whether its content is gone"),
    Field::yes("artifactGC", &ARTIFACT_GC, "When it is deleted"),
];

const RAW_TEXT: &[Field] = &[Field::yes("raw", &RAW, "The content itself")];

/// Locations that cannot be written to.
const NO_OUTPUT: &[Field] = &[
    Field::refused("raw", "Hold the content itself, which a task is about to make"),
    Field::refused("git", "Commit to a git repository"),
];

static RAW: Shape = Shape::Object(&[&[Field::yes("data", &TEXT, "The text")]]);

static ARCHIVE: Shape = Shape::Object(&[&[
    Field::yes("none", &EMPTY, "As it is"),
    Field::yes("tar", &TAR, "As a tar archive, compressed"),
    Field::yes("zip", &EMPTY, "As a zip archive"),
]]);
static TAR: Shape = Shape::Object(&[&[Field::yes("compressionLevel", &LEVEL, "How hard to compress")]]);
static LEVEL: Shape = Shape::Int { least: 0, most: 9 };
