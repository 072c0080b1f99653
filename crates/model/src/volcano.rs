//! Wire and disk types of Volcano's batch dialect: the Job, the phases of a job and of its pods, and its facts. Plain
//! data; the engine interprets it.

pub mod fact;
pub mod phase;
pub mod spec;

pub use fact::{DelayedAction, JobFact, KillWork, LeftWork, PodEnd, PodOutcome, PodStop, Sizes, TaskSize};
pub use phase::{JobPhase, PodPhase};
pub use spec::{Action, DependsOn, Event, Iteration, Job, JobSpec, JobVolume, PartitionPolicy, Policy, TaskSpec};

pub const KIND: &str = "Job";
pub const GROUP: &str = "batch.volcano.sh";
pub const API_VERSION: &str = "batch.volcano.sh/v1alpha1";

/// Names of the labels and annotations of a job's pods.
pub mod mark {
    pub const TASK_INDEX: &str = "volcano.sh/task-index";
    pub const TASK_SPEC: &str = "volcano.sh/task-spec";
    pub const JOB_NAME: &str = "volcano.sh/job-name";
    pub const JOB_NAMESPACE: &str = "volcano.sh/job-namespace";
    pub const JOB_VERSION: &str = "volcano.sh/job-version";
    pub const JOB_RETRY_COUNT: &str = "volcano.sh/job-retry-count";
    pub const QUEUE_NAME: &str = "volcano.sh/queue-name";
    pub const TEMPLATE_UID: &str = "volcano.sh/template-uid";
    pub const GROUP_NAME: &str = "scheduling.k8s.io/group-name";
}
