//! Wire and disk types of Kubernetes' own batch dialect: the Job of `batch/v1`, the phases of a job and of its pods, and its
//! facts. Plain data; the engine interprets it.

pub mod fact;
pub mod phase;
pub mod spec;

pub use fact::{Amendment, ContainerExit, Counted, KubeJobFact, PodEnd, PodOutcome, PodStop, Verdict};
pub use phase::{JobPhase, PodPhase};
pub use spec::{
    CompletionMode, ExitCodes, ExitOperator, FailureAction, FailureRule, Job, JobSpec, PodCondition, PodFailurePolicy,
    ReplacementPolicy, SuccessPolicy, SuccessRule,
};

pub const KIND: &str = "Job";
pub const CRON_KIND: &str = "CronJob";
pub const GROUP: &str = "batch";
pub const VERSION: &str = "v1";
pub const API_VERSION: &str = "batch/v1";

/// Names of the labels and annotations of jobs and their pods.
pub mod mark {
    pub const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";
    pub const JOB_NAME: &str = "batch.kubernetes.io/job-name";
    pub const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";
    pub const INDEX_FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
    pub const INDEX_IGNORED: &str = "batch.kubernetes.io/job-index-ignored-failure-count";
    /// Label without a prefix, which older tools select by.
    pub const OLD_CONTROLLER_UID: &str = "controller-uid";
    /// Label without a prefix, which older tools select by.
    pub const OLD_JOB_NAME: &str = "job-name";
    /// Annotation of a job with the time that its CronJob scheduled it for.
    pub const SCHEDULED_AT: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";
}
