//! The TaskSet dialect on the wire and on disk: what a manifest holds, the phases of its three machines, and what is
//! decided about one. Plain data; what it means is the engine's business.

pub mod fact;
pub mod phase;
pub mod spec;

pub use fact::{Closing, PodEnd, SetFact, Terminated};
pub use phase::{ReplicaPhase, RolePhase, SetPhase, Standing};
pub use spec::{
    Action, CompletionPolicy, Condition, Dependency, Event, EventPolicy, ExitCodes, RetryPolicy, RoleSpec, TaskSet,
    TaskSetSpec,
};

pub const KIND: &str = "TaskSet";
pub const GROUP: &str = "octopus.openi.pcl.cn";
pub const API_VERSION: &str = "octopus.openi.pcl.cn/v1alpha1";
/// The name of the definition, which some write where the group belongs.
pub const GROUP_ALIAS: &str = "tasksets.octopus.openi.pcl.cn";

/// The annotation that says which PodGroup a pod belongs to, as the seed's scheduler reads it.
pub const GANG_ANNOTATION: &str = "scheduling.k8s.io/group-name";
