//! The fields of parameters and artifacts, wherever they stand: as inputs, outputs or arguments.

use super::container::CONFIG_KEY;
use crate::shape::{ANY, BOOL, EMPTY, Field, MODE, SCALAR, Shape, TEXT};

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
    // A list or mapping is taken too, as JSON text.
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
    Field::refused("event", "Take it from an event"),
]]);

/// Inputs and arguments.
pub(super) static ARGUMENT_ARTIFACTS: Shape = Shape::List(&ARGUMENT_ARTIFACT);
pub(super) static ARGUMENT_ARTIFACT: Shape = Shape::Object(&[ARTIFACT, STORES]);

static OUTPUT_ARTIFACTS: Shape = Shape::List(&OUTPUT_ARTIFACT);
static OUTPUT_ARTIFACT: Shape = Shape::Object(&[ARTIFACT, KEYED_STORES, OTHER_STORES]);

const ARTIFACT: &[Field] = &[
    Field::yes("name", &TEXT, "The name, unique in its list"),
    Field::yes("path", &TEXT, "Where the task finds or leaves it"),
    Field::yes("from", &TEXT, "The artifact it is taken from"),
    Field::yes("fromExpression", &TEXT, "An expression that chooses the artifact it is taken from"),
    Field::yes("raw", &RAW, "The content itself"),
    Field::yes("subPath", &TEXT, "A part of the artifact it is taken from"),
    Field::yes("mode", &MODE, "Permission bits of the file"),
    Field::yes("recurseMode", &BOOL, "Give the permission bits to everything below too"),
    Field::yes("optional", &BOOL, "It may be missing"),
    Field::yes("archive", &ARCHIVE, "How it is packed"),
    Field::yes("globalName", &TEXT, "An output's name among the outputs of the whole run"),
    Field::yes("archiveLogs", &BOOL, "Keep the logs; they are always kept here"),
    Field::yes("deleted", &BOOL, "Whether its content is gone"),
    Field::refused("artifactGC", "Delete it when the run ends or is deleted"),
];

static RAW: Shape = Shape::Object(&[&[Field::yes("data", &TEXT, "The text")]]);

static ARCHIVE: Shape = Shape::Object(&[&[
    Field::yes("none", &EMPTY, "As it is"),
    Field::yes("tar", &TAR, "As a tar archive, compressed"),
    Field::refused("zip", "As a zip archive"),
]]);
static TAR: Shape = Shape::Object(&[&[Field::yes("compressionLevel", &LEVEL, "How hard to compress")]]);
static LEVEL: Shape = Shape::Int { least: 0, most: 9 };

const STORES: &[Field] = &[
    Field::refused("s3", "Keep it in an S3 bucket"),
    Field::refused("gcs", "Keep it in Google Cloud Storage"),
    Field::refused("oss", "Keep it in Alibaba Cloud OSS"),
    Field::refused("azure", "Keep it in Azure Blob Storage"),
    Field::refused("hdfs", "Keep it in HDFS"),
    Field::refused("artifactory", "Keep it in Artifactory"),
    Field::refused("http", "Load or store it over HTTP"),
    Field::refused("git", "Check out a git repository"),
    Field::refused("plugin", "Load or store it through a plugin"),
];

const OTHER_STORES: &[Field] = STORES.split_at(4).1;

/// An output that names only a key is kept in the default repository, which is the local store here.
const KEYED_STORES: &[Field] = &[
    Field::yes("s3", &KEYED, "The key in the default repository, or an S3 bucket"),
    Field::yes("gcs", &KEYED, "The key in the default repository, or Google Cloud Storage"),
    Field::yes("oss", &KEYED, "The key in the default repository, or Alibaba Cloud OSS"),
    Field::yes("azure", &KEYED, "The key in the default repository, or Azure Blob Storage"),
];

const LOCAL: &str = "artifacts are kept in the local store and found through the task that made them";

static KEYED: Shape = Shape::Object(&[&[
    Field::ignored("key", LOCAL, "The name in the repository"),
    Field::ignored("blob", LOCAL, "The name in the repository"),
    Field::refused("bucket", "Name another repository"),
    Field::refused("container", "Name another repository"),
    Field::refused("endpoint", "Name another repository"),
    Field::refused("region", "Name another repository"),
    Field::refused("insecure", "Name another repository"),
    Field::refused("accessKeySecret", "Name another repository"),
    Field::refused("secretKeySecret", "Name another repository"),
    Field::refused("sessionTokenSecret", "Name another repository"),
    Field::refused("serviceAccountKeySecret", "Name another repository"),
    Field::refused("accountKeySecret", "Name another repository"),
    Field::refused("roleARN", "Name another repository"),
    Field::refused("useSDKCreds", "Name another repository"),
    Field::refused("createBucketIfNotPresent", "Create another repository"),
    Field::refused("encryptionOptions", "Name another repository"),
    Field::refused("caSecret", "Name another repository"),
    Field::refused("securityToken", "Name another repository"),
    Field::refused("lifecycleRule", "Name another repository"),
]]);

pub(super) static ARCHIVE_LOCATION: Shape = Shape::Object(&[
    &[Field::yes("archiveLogs", &BOOL, "Keep the logs; they are always kept here")],
    STORES,
    &[Field::refused("raw", "Hold the content itself")],
]);
