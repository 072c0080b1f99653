//! Wire and disk types of the TaskSet dialect: the manifest, the phases of its three state machines, and its facts.
//! Plain data; the engine interprets it.

pub mod fact;
pub mod phase;
pub mod spec;

pub use crate::run::stop::StopReason;
pub use fact::{PodEnd, SetFact, Terminated};
pub use phase::{ReplicaPhase, RolePhase, SetPhase, SummaryState};
pub use spec::{
    Action, CompletionPolicy, Condition, Dependency, Event, EventPolicy, ExitCodes, RetryPolicy, RoleSpec, TaskSet,
    TaskSetSpec,
};

pub const KIND: &str = "TaskSet";
pub const GROUP: &str = "octopus.openi.pcl.cn";
pub const API_VERSION: &str = "octopus.openi.pcl.cn/v1alpha1";
/// The name of the CRD, which some manifests write in place of the group.
pub const GROUP_ALIAS: &str = "tasksets.octopus.openi.pcl.cn";

/// The annotation that names a pod's PodGroup, as the seed's scheduler reads it.
pub const GANG_ANNOTATION: &str = "scheduling.k8s.io/group-name";
