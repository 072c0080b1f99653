//! Lists the fields of `spec` of a Workflow, except those of its templates.

use super::{
    LABELLED, NO_PODS,
    call::{ARGUMENTS, HOOKS},
    loaded::CLAIM_TEMPLATE,
    location::WORKFLOW_GC,
    lock::SYNCHRONIZATION,
    metric::METRICS,
    template::{RETRY, TEMPLATE},
    volume::VOLUMES,
};
use crate::{
    admit::shape::{BOOL, COUNT, Field, INT32, POSITIVE, Shape, TEXT, TEXT_MAP, TEXTS},
    pod::fields::placement::{AFFINITY, NODE_SELECTOR, TOLERATIONS},
};

pub(super) static SPEC: Shape = Shape::Object(&[WORK, REUSE, CONTROL, KUBERNETES]);

const WORK: &[Field] = &[
    Field::yes("entrypoint", &TEXT, "The template the run begins with"),
    Field::yes("arguments", &ARGUMENTS, "Parameters and artifacts of the whole run"),
    Field::yes("templates", &TEMPLATES, "The templates, each with a name of its own"),
    Field::yes("onExit", &TEXT, "The template to run when everything else has ended"),
    Field::yes("hooks", &HOOKS, "Templates to run at certain moments; the one named `exit` is an exit handler"),
    Field::yes("volumes", &VOLUMES, "Volumes that any template may mount"),
    Field::yes("volumeClaimTemplates", &CLAIM_TEMPLATES, "Claims made for this run, named after it"),
    Field::yes("volumeClaimGC", &CLAIM_GC, "When the run's own claims are deleted"),
];

const CONTROL: &[Field] = &[
    Field::yes("parallelism", &POSITIVE, "The most tasks of this run at one time"),
    Field::yes("activeDeadlineSeconds", &COUNT, "How long the run may take, in seconds"),
    Field::yes("synchronization", &SYNCHRONIZATION, "Locks to hold while the run lasts"),
    Field::yes("suspend", &BOOL, "Start nothing new until the run is resumed"),
    Field::yes("shutdown", &SHUTDOWN, "End the run: `Stop` lets exit handlers run, `Terminate` does not"),
    Field::yes("priority", &INT32, "Runs with a higher number go first"),
    Field::yes("podPriority", &INT32, "Tasks of templates without a priority have this one, in place of the run's"),
    Field::yes("podPriorityClassName", &TEXT, "The priority class of templates without one"),
    Field::yes("nodeSelector", &NODE_SELECTOR, "Labels a node must have, for templates that do not say it"),
    Field::yes("affinity", &AFFINITY, "Which nodes may run tasks, for templates that do not say it"),
    Field::yes("tolerations", &TOLERATIONS, "Taints that tasks tolerate, for templates that do not say it"),
    Field::yes("metrics", &METRICS, "Metrics the run publishes when it ends"),
    Field::yes("retryStrategy", &RETRY, "How templates without a strategy of their own are tried again"),
    Field::yes("serviceAccountName", &TEXT, "The account of the run's pods, also a variable"),
    Field::yes("podMetadata", &LABELLED, "Labels and annotations for every task"),
    Field::yes("archiveLogs", &BOOL, "Keep every main container's log as the artifact `main-logs`"),
    Field::yes("artifactGC", &WORKFLOW_GC, "When artifacts are deleted"),
    Field::yes("ttlStrategy", &TTL, "How long the finished run is kept"),
    Field::yes("podGC", &POD_GC, "When the pods of the run are no longer shown; their logs stay"),
    Field::yes(
        "artifactRepositoryRef",
        &REPOSITORY_REF,
        "The default repository; without one artifacts are kept in the local store",
    ),
];

const KUBERNETES: &[Field] = &[
    Field::ignored("automountServiceAccountToken", NO_PODS, "Whether pods see the account's token"),
    Field::ignored("dnsConfig", NO_PODS, "The pods' name servers"),
    Field::ignored("dnsPolicy", NO_PODS, "Where the pods' name servers come from"),
    Field::ignored("executor", NO_PODS, "The account of the helper container"),
    Field::ignored("hostAliases", NO_PODS, "Additions to the pods' /etc/hosts"),
    Field::ignored("hostNetwork", NO_PODS, "Whether pods share the node's network"),
    Field::ignored("imagePullSecrets", "no image is pulled here", "Credentials for image registries"),
    Field::ignored("pendingTimeout", NO_PODS, "How long a pod may wait for its node"),
    Field::ignored("podDisruptionBudget", NO_PODS, "How many pods may be evicted"),
    Field::ignored("podResources", NO_PODS, "Requests and limits of whole pods"),
    Field::ignored("podSpecPatch", NO_PODS, "Changes to the pods as they are created"),
    Field::ignored("resourceClaims", NO_PODS, "Devices that pods ask for"),
    Field::ignored("schedulerName", NO_PODS, "Who places the pods"),
    Field::ignored("securityContext", NO_PODS, "Users and rights of the pods"),
    Field::ignored(
        "ttlSecondsAfterFinished",
        "`ttlStrategy` took its place",
        "How long the finished run is kept, in an older spelling",
    ),
];

const REUSE: &[Field] = &[
    Field::yes("workflowTemplateRef", &WORKFLOW_TEMPLATE_REF, "The WorkflowTemplate that says the rest"),
    Field::yes("templateDefaults", &TEMPLATE, "What templates get that do not say it themselves"),
    Field::yes("workflowMetadata", &WORKFLOW_METADATA, "Labels and annotations the run gets when it begins"),
];

pub(super) static WORKFLOW_TEMPLATE_REF: Shape = Shape::Object(&[&[
    Field::yes("name", &TEXT, "The WorkflowTemplate"),
    Field::yes("clusterScope", &BOOL, "It is a ClusterWorkflowTemplate"),
]]);

static WORKFLOW_METADATA: Shape = Shape::Object(&[&[
    Field::yes("labels", &TEXT_MAP, "Short texts to select by"),
    Field::yes("annotations", &TEXT_MAP, "Texts for tools and people"),
    Field::yes("labelsFrom", &LABELS_FROM, "Labels with computed values"),
]]);
static LABELS_FROM: Shape = Shape::Map(&LABEL_FROM);
static LABEL_FROM: Shape = Shape::Object(&[&[Field::yes("expression", &TEXT, "What gives the value")]]);

static TEMPLATES: Shape = Shape::List(&TEMPLATE);
static CLAIM_TEMPLATES: Shape = Shape::List(&CLAIM_TEMPLATE);
static SHUTDOWN: Shape = Shape::Word(&["Stop", "Terminate"]);

static CLAIM_GC: Shape = Shape::Object(&[&[Field::yes("strategy", &CLAIM_GC_WORD, "When claims are deleted")]]);
static CLAIM_GC_WORD: Shape = Shape::Word(&["OnWorkflowCompletion", "OnWorkflowSuccess"]);

static TTL: Shape = Shape::Object(&[&[
    Field::yes("secondsAfterCompletion", &COUNT, "Delete it so long after its end"),
    Field::yes("secondsAfterSuccess", &COUNT, "Delete it so long after it succeeded"),
    Field::yes("secondsAfterFailure", &COUNT, "Delete it so long after it failed"),
]]);

static POD_GC: Shape = Shape::Object(&[&[
    Field::yes("strategy", &POD_GC_WORD, "When pods go; never when left out"),
    Field::yes("labelSelector", &LABEL_SELECTOR, "Only pods with these labels go"),
    Field::yes("deleteDelayDuration", &TEXT, "How much longer pods are shown"),
]]);
static POD_GC_WORD: Shape =
    Shape::Word(&["", "OnPodCompletion", "OnPodSuccess", "OnWorkflowCompletion", "OnWorkflowSuccess"]);

static LABEL_SELECTOR: Shape = Shape::Object(&[&[
    Field::yes("matchLabels", &TEXT_MAP, "Labels and the values they must have"),
    Field::yes("matchExpressions", &REQUIREMENTS, "Further conditions, all of which must hold"),
]]);
static REQUIREMENTS: Shape = Shape::List(&REQUIREMENT);
static REQUIREMENT: Shape = Shape::Object(&[&[
    Field::yes("key", &TEXT, "The label"),
    Field::yes("operator", &OPERATOR, "How it is compared"),
    Field::yes("values", &TEXTS, "With what"),
]]);
static OPERATOR: Shape = Shape::Word(&["In", "NotIn", "Exists", "DoesNotExist"]);

static REPOSITORY_REF: Shape = Shape::Object(&[&[
    Field::yes("configMap", &TEXT, "The ConfigMap that describes repositories"),
    Field::yes("key", &TEXT, "The key of the repository in it"),
]]);
