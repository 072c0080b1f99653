//! Lists the fields of a template, except those of its containers and calls.

use super::{
    LABELLED, NO_PODS,
    call::{STEP_GROUPS, TASKS},
    container::{CONTAINER, CONTAINER_SET, SCRIPT, USER_CONTAINERS},
    data::{INPUTS, OUTPUTS},
    location::ARCHIVE_LOCATION,
    lock::SYNCHRONIZATION,
    memo::MEMOIZE,
    metric::METRICS,
    request::{DATA, HTTP, RESOURCE},
    volume::VOLUMES,
};
use crate::{
    admit::shape::{BOOL, COUNT, Field, INT_OR_TEXT, INT32, Shape, TEXT, TEXT_MAP},
    pod::fields::placement::{AFFINITY, NODE_SELECTOR, TOLERATIONS},
};

/// Shape of a template, listed under `spec.templates` or inline at a call.
pub static TEMPLATE: Shape = Shape::Object(&[OWN, &TYPES, CONTROL, KUBERNETES, LATER]);

/// Fields of which every template has exactly one.
pub(crate) const TYPE_NAMES: &[&str] =
    &["container", "script", "steps", "dag", "suspend", "resource", "http", "data", "containerSet", "plugin"];

const OWN: &[Field] = &[
    Field::yes("name", &TEXT, "The name calls use"),
    Field::yes("inputs", &INPUTS, "What a call must or may hand in"),
    Field::yes("outputs", &OUTPUTS, "What it hands out when it has succeeded"),
    Field::yes("metadata", &LABELLED, "Labels and annotations of its tasks"),
    Field::yes("annotations", &TEXT_MAP, "Annotations of its nodes, such as a display name"),
    Field::yes("volumes", &VOLUMES, "Volumes only this template mounts"),
    Field::yes("archiveLocation", &ARCHIVE_LOCATION, "Where its logs and artifacts are kept"),
];

// Not a constant, because templates hold calls and calls hold templates: only statics may refer to each other.
static TYPES: [Field; 10] = [
    Field::yes("container", &CONTAINER, "Runs a command"),
    Field::yes("script", &SCRIPT, "Runs a script"),
    Field::yes("steps", &STEP_GROUPS, "Groups of calls, one group after another"),
    Field::yes("dag", &DAG, "Calls ordered by what they depend on"),
    Field::yes("suspend", &SUSPEND, "Waits for a person or for some time"),
    Field::yes("resource", &RESOURCE, "Does something to an object that is kept here, or runs another workflow"),
    Field::yes("http", &HTTP, "Sends an HTTP request"),
    Field::yes("data", &DATA, "Lists stored artifacts and transforms the list"),
    Field::yes("containerSet", &CONTAINER_SET, "Runs several containers that share one task"),
    Field::refused_for(
        "plugin",
        "Run a plugin",
        "plugins are programs of somebody else's cluster; call the service with an `http` template, or run its client in a `container`",
    ),
];

const CONTROL: &[Field] = &[
    Field::yes("initContainers", &USER_CONTAINERS, "Containers that run one after another before the main one"),
    Field::yes("sidecars", &USER_CONTAINERS, "Containers that run beside the main one and are ended after it"),
    Field::yes("retryStrategy", &RETRY, "How it is tried again when it fails"),
    Field::yes("activeDeadlineSeconds", &INT_OR_TEXT, "How long one attempt may run, in seconds"),
    Field::yes("timeout", &TEXT, "How long it may take including its wait, as a duration"),
    Field::yes("parallelism", &INT_OR_TEXT, "The most calls of this template at one time"),
    Field::yes("failFast", &BOOL, "With parallelism: start no more calls once one has failed"),
    Field::yes("metrics", &METRICS, "Metrics its nodes publish when they are over"),
    Field::yes("synchronization", &SYNCHRONIZATION, "Locks to hold while it runs, all its attempts included"),
    Field::yes("memoize", &MEMOIZE, "Take the outputs of an earlier call with the same key instead of running it"),
    Field::yes("daemon", &BOOL, "Keep it running beside the calls that follow, until the steps or DAG around it end"),
    Field::yes("priority", &INT32, "Its tasks with a higher number go first"),
    Field::yes("priorityClassName", &TEXT, "The priority class of its tasks, in place of a number"),
    Field::yes("nodeSelector", &NODE_SELECTOR, "Labels a node must have; of steps and DAGs, for their calls"),
    Field::yes("affinity", &AFFINITY, "Which nodes may run its tasks; of steps and DAGs, those of their calls"),
    Field::yes("tolerations", &TOLERATIONS, "Taints that its tasks tolerate; of steps and DAGs, those of their calls"),
    Field::yes("terminationGracePeriodSeconds", &COUNT, "How long its processes may take to end when asked to"),
    Field::yes("serviceAccountName", &TEXT, "The account of its pods"),
];

const KUBERNETES: &[Field] = &[
    Field::ignored("automountServiceAccountToken", NO_PODS, "Whether its pods see the account's token"),
    Field::ignored("executor", NO_PODS, "The account of the helper container"),
    Field::ignored("hostAliases", NO_PODS, "Additions to the pods' /etc/hosts"),
    Field::ignored("pendingTimeout", NO_PODS, "How long a pod may wait for its node"),
    Field::ignored("podResources", NO_PODS, "Requests and limits of whole pods"),
    Field::ignored("podSpecPatch", NO_PODS, "Changes to its pods as they are created"),
    Field::ignored("resourceClaims", NO_PODS, "Devices its pods ask for"),
    Field::ignored("schedulerName", NO_PODS, "Who places its pods"),
    Field::ignored("securityContext", NO_PODS, "Users and rights of its pods"),
    Field::ignored("resubmitPendingPods", NO_PODS, "Create pods again that could not be placed"),
    Field::ignored("arguments", "a call hands in arguments", "Arguments of the template itself, in an older spelling"),
];

const LATER: &[Field] = &[
    Field::refused("template", "Run another template in its place, in an older spelling"),
    Field::refused("templateRef", "Run the template of a WorkflowTemplate in its place, in an older spelling"),
];

static DAG: Shape = Shape::Object(&[&[
    Field::yes("tasks", &TASKS, "The calls"),
    Field::yes("target", &TEXT, "The tasks to reach, separated by spaces; all when left out"),
    Field::yes("failFast", &BOOL, "Whether one failed target decides the graph (true when left out)"),
]]);

static SUSPEND: Shape =
    Shape::Object(&[&[Field::yes("duration", &INT_OR_TEXT, "How long to wait, a duration or a number of seconds")]]);

/// Shape of a retry strategy.
pub(super) static RETRY: Shape = Shape::Object(&[&[
    Field::yes("limit", &INT_OR_TEXT, "The most attempts after the first"),
    Field::yes("retryPolicy", &TEXT, "Which ends are tried again: Always, OnFailure, OnError or OnTransientError"),
    Field::yes("backoff", &BACKOFF, "How long to wait between attempts"),
    Field::yes("expression", &TEXT, "Try again only while this is true"),
    Field::ignored("affinity", NO_PODS, "Keep later attempts off the node of the earlier ones"),
]]);

static BACKOFF: Shape = Shape::Object(&[&[
    Field::yes("duration", &INT_OR_TEXT, "The first wait"),
    Field::yes("factor", &INT_OR_TEXT, "What each further wait is multiplied with"),
    Field::yes("maxDuration", &INT_OR_TEXT, "How long all attempts together may take"),
    Field::yes("cap", &INT_OR_TEXT, "The longest single wait"),
]]);
