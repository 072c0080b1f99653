//! The fields of pods and of their templates, as Kubernetes names them.

use super::{
    NO_PODS,
    container::{FIELDS as CONTAINER_FIELDS, PROBED, UNPROBED},
    placement::{AFFINITY, NODE_SELECTOR, TOLERATIONS},
    volume::VOLUMES,
};
use crate::admit::shape::{COUNT, Field, INT32, POSITIVE, Shape, TEXT, TEXT_MAP};

pub(crate) static POD_METADATA: Shape = Shape::Object(&[&[
    Field::yes("labels", &TEXT_MAP, "Short texts to select pods by"),
    Field::yes("annotations", &TEXT_MAP, "Texts for tools and people; `scheduling.k8s.io/group-name` names a PodGroup"),
    Field::ignored("name", "pods have names of their own", "A name"),
    Field::ignored("generateName", "pods have names of their own", "The beginning of a name"),
    Field::ignored("namespace", "pods are where their run is", "A namespace"),
    Field::ignored("creationTimestamp", "pods have their own", "When it was created"),
    Field::ignored("finalizers", NO_PODS, "Who must agree before a pod is deleted"),
    Field::ignored("ownerReferences", NO_PODS, "Whom the pods belong to"),
]]);

/// The containers of a pod where nobody waits for their readiness.
pub(crate) const CONTAINER_LISTS: &[Field] = &[
    Field::yes("containers", &CONTAINERS, "The containers; the first one's end is the pod's"),
    Field::yes("initContainers", &CONTAINERS, "Containers that run before, one after the other"),
];

/// The containers of a pod whose readiness probes are run.
pub(crate) const PROBED_CONTAINER_LISTS: &[Field] = &[
    Field::yes("containers", &PROBED_CONTAINERS, "The containers; the first one's end is the pod's"),
    Field::yes("initContainers", &CONTAINERS, "Containers that run before, one after the other"),
];

/// Everything but the containers and the restart policy, whose meaning differs between dialects.
pub(crate) const POD_FIELDS: &[Field] = &[
    Field::yes("volumes", &VOLUMES, "Directories and files the containers can mount"),
    Field::yes("schedulerName", &TEXT, "Recorded; gangs are formed by the annotation that names a PodGroup"),
    Field::yes("serviceAccountName", &TEXT, "Recorded"),
    Field::yes("priority", &INT32, "The priority of these pods, in place of the run's"),
    Field::yes("priorityClassName", &TEXT, "The priority class of these pods, in place of a number"),
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
];

static CONTAINERS: Shape = Shape::List(&CONTAINER);
static CONTAINER: Shape = Shape::Object(&[CONTAINER_FIELDS, LAST_WORDS, UNPROBED]);

static PROBED_CONTAINERS: Shape = Shape::List(&PROBED_CONTAINER);
static PROBED_CONTAINER: Shape = Shape::Object(&[CONTAINER_FIELDS, LAST_WORDS, PROBED]);

const LAST_WORDS: &[Field] = &[
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
];
