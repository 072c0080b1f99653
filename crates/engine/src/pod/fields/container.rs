//! The fields of containers, as Kubernetes names them.

use super::{NO_PODS, volume::VOLUME_MOUNTS};
use crate::admit::shape::{BOOL, Field, QUANTITY_MAP, Shape, TEXT, TEXTS};

pub(crate) const NO_PROBES: &str = "a daemon counts as ready once its process runs";

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
    Field::ignored("startupProbe", NO_PODS, "How to see that it has started"),
    Field::ignored("ports", NO_PODS, "The ports it listens on"),
    Field::ignored("resizePolicy", NO_PODS, "How its resources may change"),
    Field::ignored("restartPolicy", NO_PODS, "When it is restarted"),
    Field::ignored("restartPolicyRules", NO_PODS, "After which exit codes it is restarted"),
    Field::ignored("securityContext", NO_PODS, "Its user and rights"),
    Field::refused("volumeDevices", "Give it block devices"),
];

/// The readiness probe where nobody waits for readiness.
pub(crate) const UNPROBED: &[Field] = &[Field::ignored("readinessProbe", NO_PROBES, "How to see that it is ready")];

/// The readiness probe where it is run.
pub(crate) const PROBED: &[Field] =
    &[Field::yes("readinessProbe", &PROBE, "How to see that it is ready; without one it is while it runs")];

static PROBE: Shape = Shape::Object(&[&[
    Field::yes("exec", &EXEC, "Ready if a command in the container succeeds"),
    Field::yes("httpGet", &HTTP_GET, "Ready if a GET is answered with a code from 200 to 399"),
    Field::yes("tcpSocket", &TCP_SOCKET, "Ready if a connection is accepted"),
    Field::refused("grpc", "Ready if its health service says so"),
    Field::yes("initialDelaySeconds", &SECONDS, "Seconds before the first check; 0 when left out"),
    Field::yes("periodSeconds", &SECONDS, "Seconds between checks; 10 when left out"),
    Field::yes("timeoutSeconds", &SECONDS, "Seconds that a check may take; 1 when left out"),
    Field::yes("successThreshold", &TIMES, "Successes in a row that make it ready; 1 when left out"),
    Field::yes("failureThreshold", &TIMES, "Failures in a row that end its readiness; 3 when left out"),
    Field::ignored("terminationGracePeriodSeconds", NO_PODS, "How long it may take to end"),
]]);
static EXEC: Shape = Shape::Object(&[&[Field::yes("command", &TEXTS, "The program and its arguments")]]);
static HTTP_GET: Shape = Shape::Object(&[&[
    Field::yes("path", &TEXT, "The path; `/` when left out"),
    Field::yes("port", &PORT, "The port"),
    Field::yes("scheme", &Shape::Word(&["HTTP"]), "How it is spoken to; only `HTTP`"),
    Field::yes("httpHeaders", &HEADERS, "Headers of the request"),
    Field::refused("host", "Ask another machine than the pod"),
]]);
static TCP_SOCKET: Shape = Shape::Object(&[&[
    Field::yes("port", &PORT, "The port"),
    Field::refused("host", "Ask another machine than the pod"),
]]);
static HEADERS: Shape = Shape::List(&HEADER);
static HEADER: Shape =
    Shape::Object(&[&[Field::yes("name", &TEXT, "The header"), Field::yes("value", &TEXT, "Its value")]]);
static PORT: Shape = Shape::Int { least: 1, most: 65_535 };
static SECONDS: Shape = Shape::Int { least: 0, most: 86_400 };
static TIMES: Shape = Shape::Int { least: 1, most: 1_000 };

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
