//! Protobuf tables of Jobs and CronJobs of `batch/v1`, which `kubectl create job` and `create cronjob` send so, down to the
//! fields of pods. Only data; a field that is not in a table is refused.

use super::{Field, META, Shape};

/// Returns the table of a kind of this group.
pub(super) fn fields(kind: &str) -> Option<&'static [Field]> {
    match kind {
        "Job" => Some(JOB),
        "CronJob" => Some(CRON_JOB),
        _ => None,
    }
}

const JOB: &[Field] =
    &[(1, "metadata", Shape::Object(META)), (2, "spec", Shape::Object(JOB_SPEC)), (3, "status", Shape::Skip)];

const CRON_JOB: &[Field] =
    &[(1, "metadata", Shape::Object(META)), (2, "spec", Shape::Object(CRON_SPEC)), (3, "status", Shape::Skip)];

const CRON_SPEC: &[Field] = &[
    (1, "schedule", Shape::Text),
    (2, "startingDeadlineSeconds", Shape::Given),
    (3, "concurrencyPolicy", Shape::Text),
    (4, "suspend", Shape::Bool),
    (5, "jobTemplate", Shape::Object(&[(1, "metadata", Shape::Object(META)), (2, "spec", Shape::Object(JOB_SPEC))])),
    (6, "successfulJobsHistoryLimit", Shape::Given),
    (7, "failedJobsHistoryLimit", Shape::Given),
    (8, "timeZone", Shape::Text),
];

const JOB_SPEC: &[Field] = &[
    (1, "parallelism", Shape::Given),
    (2, "completions", Shape::Given),
    (3, "activeDeadlineSeconds", Shape::Given),
    (4, "selector", Shape::Object(SELECTOR)),
    (5, "manualSelector", Shape::Bool),
    (6, "template", Shape::Object(&[(1, "metadata", Shape::Object(META)), (2, "spec", Shape::Object(POD))])),
    (7, "backoffLimit", Shape::Given),
    (8, "ttlSecondsAfterFinished", Shape::Given),
    (9, "completionMode", Shape::Text),
    (10, "suspend", Shape::Bool),
    (11, "podFailurePolicy", Shape::Object(&[(1, "rules", Shape::Objects(FAILURE_RULE))])),
    (12, "backoffLimitPerIndex", Shape::Given),
    (13, "maxFailedIndexes", Shape::Given),
    (14, "podReplacementPolicy", Shape::Text),
    (15, "managedBy", Shape::Text),
    (16, "successPolicy", Shape::Object(&[(1, "rules", Shape::Objects(SUCCESS_RULE))])),
];

const SELECTOR: &[Field] = &[(1, "matchLabels", Shape::TextMap)];

const FAILURE_RULE: &[Field] = &[
    (1, "action", Shape::Text),
    (
        2,
        "onExitCodes",
        Shape::Object(&[
            (1, "containerName", Shape::Text),
            (2, "operator", Shape::Text),
            (3, "values", Shape::Numbers),
        ]),
    ),
    (3, "onPodConditions", Shape::Objects(&[(1, "type", Shape::Text), (2, "status", Shape::Text)])),
];

const SUCCESS_RULE: &[Field] = &[(1, "succeededIndexes", Shape::Text), (2, "succeededCount", Shape::Given)];

const POD: &[Field] = &[
    (1, "volumes", Shape::Objects(VOLUME)),
    (2, "containers", Shape::Objects(CONTAINER)),
    (3, "restartPolicy", Shape::Text),
    (4, "terminationGracePeriodSeconds", Shape::Given),
    (5, "activeDeadlineSeconds", Shape::Given),
    (6, "dnsPolicy", Shape::Text),
    (7, "nodeSelector", Shape::TextMap),
    (8, "serviceAccountName", Shape::Text),
    (9, "serviceAccount", Shape::Text),
    (10, "nodeName", Shape::Text),
    (11, "hostNetwork", Shape::Flag),
    (12, "hostPID", Shape::Flag),
    (13, "hostIPC", Shape::Flag),
    (15, "imagePullSecrets", Shape::Objects(REFERENCE)),
    (16, "hostname", Shape::Text),
    (17, "subdomain", Shape::Text),
    (19, "schedulerName", Shape::Text),
    (20, "initContainers", Shape::Objects(CONTAINER)),
    (21, "automountServiceAccountToken", Shape::Bool),
    (22, "tolerations", Shape::Objects(TOLERATION)),
    (24, "priorityClassName", Shape::Text),
    (25, "priority", Shape::Given),
    (30, "enableServiceLinks", Shape::Bool),
    (31, "preemptionPolicy", Shape::Text),
];

const CONTAINER: &[Field] = &[
    (1, "name", Shape::Text),
    (2, "image", Shape::Text),
    (3, "command", Shape::Texts),
    (4, "args", Shape::Texts),
    (5, "workingDir", Shape::Text),
    (7, "env", Shape::Objects(VARIABLE)),
    (8, "resources", Shape::Object(&[(1, "limits", Shape::WrappedMap), (2, "requests", Shape::WrappedMap)])),
    (9, "volumeMounts", Shape::Objects(MOUNT)),
    (13, "terminationMessagePath", Shape::Text),
    (14, "imagePullPolicy", Shape::Text),
    (16, "stdin", Shape::Flag),
    (17, "stdinOnce", Shape::Flag),
    (18, "tty", Shape::Flag),
    (19, "envFrom", Shape::Objects(VARIABLES_FROM)),
    (20, "terminationMessagePolicy", Shape::Text),
];

const VARIABLE: &[Field] = &[
    (1, "name", Shape::Text),
    (2, "value", Shape::Text),
    (
        3,
        "valueFrom",
        Shape::Object(&[
            (1, "fieldRef", Shape::Object(&[(1, "apiVersion", Shape::Text), (2, "fieldPath", Shape::Text)])),
            (3, "configMapKeyRef", Shape::Object(KEY)),
            (4, "secretKeyRef", Shape::Object(KEY)),
        ]),
    ),
];

const VARIABLES_FROM: &[Field] = &[
    (1, "prefix", Shape::Text),
    (2, "configMapRef", Shape::Object(&[(1, "", Shape::Inline(REFERENCE)), (2, "optional", Shape::Bool)])),
    (3, "secretRef", Shape::Object(&[(1, "", Shape::Inline(REFERENCE)), (2, "optional", Shape::Bool)])),
];

const REFERENCE: &[Field] = &[(1, "name", Shape::Text)];

const KEY: &[Field] = &[(1, "", Shape::Inline(REFERENCE)), (2, "key", Shape::Text), (3, "optional", Shape::Bool)];

const MOUNT: &[Field] = &[
    (1, "name", Shape::Text),
    (2, "readOnly", Shape::Flag),
    (3, "mountPath", Shape::Text),
    (4, "subPath", Shape::Text),
    (5, "mountPropagation", Shape::Text),
    (6, "subPathExpr", Shape::Text),
    (7, "recursiveReadOnly", Shape::Text),
];

const TOLERATION: &[Field] = &[
    (1, "key", Shape::Text),
    (2, "operator", Shape::Text),
    (3, "value", Shape::Text),
    (4, "effect", Shape::Text),
    (5, "tolerationSeconds", Shape::Given),
];

const ITEM: &[Field] = &[(1, "key", Shape::Text), (2, "path", Shape::Text), (3, "mode", Shape::Given)];

const VOLUME: &[Field] = &[(1, "name", Shape::Text), (2, "", Shape::Inline(VOLUME_SOURCE))];

const VOLUME_SOURCE: &[Field] = &[
    (1, "hostPath", Shape::Object(&[(1, "path", Shape::Text), (2, "type", Shape::Text)])),
    (2, "emptyDir", Shape::Object(&[(1, "medium", Shape::Text), (2, "sizeLimit", Shape::Wrapped)])),
    (
        6,
        "secret",
        Shape::Object(&[
            (1, "secretName", Shape::Text),
            (2, "items", Shape::Objects(ITEM)),
            (3, "defaultMode", Shape::Given),
            (4, "optional", Shape::Bool),
        ]),
    ),
    (10, "persistentVolumeClaim", Shape::Object(&[(1, "claimName", Shape::Text), (2, "readOnly", Shape::Flag)])),
    (
        19,
        "configMap",
        Shape::Object(&[
            (1, "", Shape::Inline(REFERENCE)),
            (2, "items", Shape::Objects(ITEM)),
            (3, "defaultMode", Shape::Given),
            (4, "optional", Shape::Bool),
        ]),
    ),
];
