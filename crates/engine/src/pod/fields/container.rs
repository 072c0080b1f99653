//! The fields of containers, as Kubernetes names them.

use super::{NO_PODS, volume::VOLUME_MOUNTS};
use crate::admit::shape::{BOOL, Field, QUANTITY_MAP, Shape, TEXT, TEXTS};

const NO_PROBES: &str = "a daemon counts as ready once its process runs";

const NO_STDIN: &str = "nobody can attach to a task here, so its standard input is empty";

pub(crate) const FIELDS: &[Field] = &[
    Field::yes("name", &TEXT, "The container's name in messages, `main` when left out"),
    Field::yes("image", &TEXT, "The image; recorded, and used where no command is given"),
    Field::yes("command", &TEXTS, "The program and its first arguments"),
    Field::yes("args", &TEXTS, "Further arguments"),
    Field::yes("env", &ENVS, "Environment variables"),
    Field::yes("envFrom", &ENV_FROMS, "Environment variables from whole ConfigMaps and Secrets"),
    Field::yes("workingDir", &TEXT, "The directory to run in"),
    Field::yes("volumeMounts", &VOLUME_MOUNTS, "Which volumes it sees, and where"),
    Field::yes("resources", &RESOURCES, "What it needs, and what it may use"),
    Field::yes("tty", &BOOL, "Give it a terminal"),
    Field::ignored("stdin", NO_STDIN, "Keep its standard input open"),
    Field::ignored("stdinOnce", NO_PODS, "Close its standard input after the first client"),
    Field::ignored("imagePullPolicy", "no image is pulled here", "When its image is pulled"),
    Field::ignored("lifecycle", NO_PODS, "Commands around its start and end"),
    Field::ignored("livenessProbe", NO_PODS, "How to see that it is alive"),
    Field::ignored("readinessProbe", NO_PROBES, "How to see that it is ready"),
    Field::ignored("startupProbe", NO_PODS, "How to see that it has started"),
    Field::ignored("ports", NO_PODS, "The ports it listens on"),
    Field::ignored("resizePolicy", NO_PODS, "How its resources may change"),
    Field::ignored("restartPolicy", NO_PODS, "When it is restarted"),
    Field::ignored("restartPolicyRules", NO_PODS, "After which exit codes it is restarted"),
    Field::ignored("securityContext", NO_PODS, "Its user and rights"),
    Field::refused("volumeDevices", "Give it block devices"),
];

static ENVS: Shape = Shape::List(&ENV);
static ENV: Shape = Shape::Object(&[&[
    Field::yes("name", &TEXT, "The variable"),
    Field::yes("value", &TEXT, "Its value"),
    Field::yes("valueFrom", &ENV_SOURCE, "Where its value comes from"),
]]);

static ENV_SOURCE: Shape = Shape::Object(&[&[
    Field::yes("configMapKeyRef", &CONFIG_KEY, "A key of a ConfigMap"),
    Field::yes("secretKeyRef", &CONFIG_KEY, "A key of a Secret"),
    Field::yes("fieldRef", &FIELD_REF, "A field of the task: metadata.name, metadata.namespace or metadata.uid"),
    Field::refused("resourceFieldRef", "Take it from the container's resources"),
    Field::refused("fileKeyRef", "Take it from a file"),
]]);

static FIELD_REF: Shape = Shape::Object(&[&[
    Field::yes("fieldPath", &TEXT, "The field"),
    Field::yes("apiVersion", &TEXT, "The version its path is written for"),
]]);

/// One key of a ConfigMap or Secret.
pub(crate) static CONFIG_KEY: Shape = Shape::Object(&[&[
    Field::yes("name", &TEXT, "The ConfigMap or Secret"),
    Field::yes("key", &TEXT, "The key in it"),
    Field::yes("optional", &BOOL, "It may be missing"),
]]);

static ENV_FROMS: Shape = Shape::List(&ENV_FROM);
static ENV_FROM: Shape = Shape::Object(&[&[
    Field::yes("prefix", &TEXT, "What each name begins with"),
    Field::yes("configMapRef", &NAME_REF, "A ConfigMap"),
    Field::yes("secretRef", &NAME_REF, "A Secret"),
]]);

static NAME_REF: Shape = Shape::Object(&[&[
    Field::yes("name", &TEXT, "The ConfigMap or Secret"),
    Field::yes("optional", &BOOL, "It may be missing"),
]]);

static RESOURCES: Shape = Shape::Object(&[&[
    Field::yes("requests", &QUANTITY_MAP, "What must be free before it starts"),
    Field::yes("limits", &QUANTITY_MAP, "What it may use at most; memory and ephemeral-storage are held to it"),
    Field::ignored("claims", NO_PODS, "Devices it uses"),
]]);
