//! Field tables of TaskSets: whether each field is supported, ignored, or refused. The single table
//! behind admission, the schemas and the documented support list; how fields combine is checked by admission.

#[cfg(test)]
mod tests;

use octoflow_model::taskset::{Action, Condition, Event};

use crate::{
    admit::shape::{BOOL, COUNT, Field, INT_OR_TEXT, INT32, POSITIVE, Shape, TEXT, TEXT_MAP},
    dialects::argo::fields::OBJECT,
    pod::fields::{
        NO_PODS,
        container::FIELDS as CONTAINER_FIELDS,
        placement::{AFFINITY, NODE_SELECTOR, TOLERATIONS},
        volume::VOLUMES,
    },
};

pub static TASK_SET: Shape = Shape::Object(&[
    OBJECT,
    &[
        Field::yes("spec", &SPEC, "What to run"),
        Field::ignored("status", "a new run gets a status of its own", "What became of an earlier run"),
    ],
]);

static SPEC: Shape = Shape::Object(&[&[
    Field::yes("roles", &ROLES, "The roles, in the order in which their events are asked"),
    Field::yes("retryPolicy", &RETRY, "How the whole is tried again when it has not succeeded"),
    Field::yes("priority", &INT32, "Higher ones are given room first; 0 when left out"),
    Field::yes("queue", &TEXT, "The queue it waits in, unless the pods or their PodGroup name one"),
    Field::yes("suspend", &BOOL, "Start nothing new until it is resumed; what runs goes on"),
    Field::yes("shutdown", &Shape::Word(&["Stop", "Terminate"]), "End it: politely, or at once"),
    Field::yes("activeDeadlineSeconds", &POSITIVE, "The most seconds all attempts together may take"),
    Field::yes("ttlSecondsAfterFinished", &COUNT, "How many seconds it stays after its end before it is deleted"),
]]);

static ROLES: Shape = Shape::List(&ROLE);
static ROLE: Shape = Shape::Object(&[&[
    Field::yes("name", &TEXT, "The role's name: 1 to 63 lower-case letters and digits"),
    Field::yes("replicas", &Shape::Int { least: 1, most: 10_000 }, "How many pods it has"),
    Field::yes("completionPolicy", &COMPLETION, "When it has succeeded, and when it has failed"),
    Field::yes("retryPolicy", &RETRY, "How each replica is tried again when it fails"),
    Field::yes("eventPolicy", &EVENTS, "What its end means for the whole"),
    Field::yes("dependsOn", &DEPENDENCIES, "The roles that must have come so far before it starts"),
    Field::yes("template", &POD_TEMPLATE, "The pod of each replica"),
]]);

/// From -1, which disables the criterion.
static CRITERION: Shape = Shape::Int { least: -1, most: i32::MAX as i64 };

static COMPLETION: Shape = Shape::Object(&[&[
    Field::yes("maxFailed", &CRITERION, "So many failed replicas make it fail; 0 means 1, -1 turns it off"),
    Field::yes("minSucceeded", &CRITERION, "So many succeeded replicas make it succeed; -1: all over and not failed"),
]]);

static RETRY: Shape = Shape::Object(&[&[
    Field::yes("retry", &BOOL, "Try again at all"),
    Field::yes("delay", &COUNT, "Seconds to wait before"),
    Field::yes("maxRetryCount", &COUNT, "The most attempts after the first"),
    Field::yes("retryableExitCodes", &CODES, "Of a role: only these are tried again, such as 137 or 1-127"),
    Field::yes("permanentExitCodes", &CODES, "Of a role: these are never tried again"),
]]);
static CODES: Shape = Shape::List(&INT_OR_TEXT);

static EVENTS: Shape = Shape::List(&EVENT);
static EVENT: Shape = Shape::Object(&[&[
    Field::yes("event", &Shape::Word(&Event::WORDS), "What happens"),
    Field::yes("action", &Shape::Word(&Action::WORDS), "What follows for the whole"),
]]);

static DEPENDENCIES: Shape = Shape::List(&DEPENDENCY);
static DEPENDENCY: Shape = Shape::Either(&TEXT, &UNTIL);
static UNTIL: Shape = Shape::Object(&[&[
    Field::yes("role", &TEXT, "The role"),
    Field::yes("condition", &Shape::Word(&Condition::WORDS), "How far it must be; `Running` when left out"),
]]);

static POD_TEMPLATE: Shape = Shape::Object(&[&[
    Field::yes("metadata", &POD_METADATA, "Labels and annotations of the pods"),
    Field::yes("spec", &POD, "The pods"),
]]);

static POD_METADATA: Shape = Shape::Object(&[&[
    Field::yes("labels", &TEXT_MAP, "Short texts to select pods by"),
    Field::yes("annotations", &TEXT_MAP, "Texts for tools and people; `scheduling.k8s.io/group-name` names a PodGroup"),
    Field::ignored("name", "pods have names of their own", "A name"),
    Field::ignored("generateName", "pods have names of their own", "The beginning of a name"),
    Field::ignored("namespace", "pods are where their TaskSet is", "A namespace"),
    Field::ignored("creationTimestamp", "pods have their own", "When it was created"),
    Field::ignored("finalizers", NO_PODS, "Who must agree before a pod is deleted"),
    Field::ignored("ownerReferences", NO_PODS, "Whom the pods belong to"),
]]);

static POD: Shape = Shape::Object(&[&[
    Field::yes("containers", &CONTAINERS, "The containers; the first one's end is the replica's"),
    Field::yes("initContainers", &CONTAINERS, "Containers that run before, one after the other"),
    Field::yes("volumes", &VOLUMES, "Directories and files the containers can mount"),
    Field::yes("restartPolicy", &Shape::Word(&["Never", "OnFailure", "Always"]), "Always read as `Never`"),
    Field::yes("schedulerName", &TEXT, "Recorded; gangs are formed by the annotation that names a PodGroup"),
    Field::yes("serviceAccountName", &TEXT, "Recorded"),
    Field::yes("priority", &INT32, "The priority of this role's pods, in place of the TaskSet's"),
    Field::yes("priorityClassName", &TEXT, "The priority class of this role's pods, in place of a number"),
    Field::yes("nodeSelector", &NODE_SELECTOR, "Labels a node must have"),
    Field::yes("affinity", &AFFINITY, "Which nodes may run it"),
    Field::yes("tolerations", &TOLERATIONS, "Which taints it tolerates"),
    Field::yes("activeDeadlineSeconds", &POSITIVE, "The most seconds a pod may run"),
    Field::yes("terminationGracePeriodSeconds", &COUNT, "Seconds between SIGTERM and SIGKILL"),
    Field::ignored("serviceAccount", NO_PODS, "An older name of the service account"),
    Field::ignored("automountServiceAccountToken", NO_PODS, "Whether a token is mounted"),
    Field::ignored("nodeName", NO_PODS, "The machine to run on"),
    Field::ignored("topologySpreadConstraints", NO_PODS, "How pods are spread"),
    Field::ignored("preemptionPolicy", NO_PODS, "Whether it preempts others"),
    Field::ignored("runtimeClassName", NO_PODS, "Which container runtime"),
    Field::ignored("imagePullSecrets", "no image is pulled here", "Secrets to pull images with"),
    Field::ignored("securityContext", NO_PODS, "Users and rights of all containers"),
    Field::ignored("hostNetwork", NO_PODS, "Whether it shares the machine's network"),
    Field::ignored("hostPID", NO_PODS, "Whether it sees the machine's processes"),
    Field::ignored("hostIPC", NO_PODS, "Whether it shares memory with the machine"),
    Field::ignored("hostUsers", NO_PODS, "Whether it shares the machine's users"),
    Field::ignored("shareProcessNamespace", NO_PODS, "Whether containers see each other's processes"),
    Field::ignored("hostname", NO_PODS, "The name it has for itself"),
    Field::ignored("subdomain", NO_PODS, "The domain of that name"),
    Field::ignored("setHostnameAsFQDN", NO_PODS, "Whether that name is the full one"),
    Field::ignored("hostAliases", NO_PODS, "More lines of its hosts file"),
    Field::ignored("dnsPolicy", NO_PODS, "How names are looked up"),
    Field::ignored("dnsConfig", NO_PODS, "How names are looked up"),
    Field::ignored("enableServiceLinks", NO_PODS, "Whether services become variables"),
    Field::ignored("readinessGates", NO_PODS, "What else makes it ready"),
    Field::ignored("schedulingGates", NO_PODS, "What keeps it from being placed"),
    Field::ignored("overhead", NO_PODS, "What its runtime needs for itself"),
    Field::ignored("os", NO_PODS, "Its operating system"),
    Field::ignored("resources", NO_PODS, "What all containers need together"),
    Field::refused("resourceClaims", "Claim devices"),
    Field::refused("ephemeralContainers", "Add containers while it runs"),
]]);

static CONTAINERS: Shape = Shape::List(&CONTAINER);
static CONTAINER: Shape = Shape::Object(&[
    CONTAINER_FIELDS,
    &[
        Field::yes(
            "terminationMessagePath",
            &TEXT,
            "The file with its termination message; `/dev/termination-log` when left out",
        ),
        Field::yes(
            "terminationMessagePolicy",
            &Shape::Word(&["File", "FallbackToLogsOnError"]),
            "Whether the end of its log is used instead; it is when left out",
        ),
    ],
]);
