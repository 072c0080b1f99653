//! Wire and disk types of Volcano's flow dialect: the JobFlow, its phases and its facts. Plain data; the engine interprets
//! it. A JobTemplate holds the specification of a Volcano Job.

pub mod fact;
pub mod phase;
pub mod spec;

pub use fact::{CompletedJob, EntryResult, FlowFact, FormerJob, JobEnd, TaskCounts};
pub use phase::FlowPhase;
pub use spec::{DependsOn, EntryProbe, FlowEntry, JobFlow, JobFlowSpec, Patch, RetainPolicy, Retry, Strategy};

pub const KIND: &str = "JobFlow";
pub const TEMPLATE_KIND: &str = "JobTemplate";
pub const GROUP: &str = "flow.volcano.sh";
/// The group that the first versions had; the same objects.
pub const FIRST_GROUP: &str = "batch.volcano.sh";
pub const API_VERSION: &str = "flow.volcano.sh/v1alpha1";
pub const FIRST_API_VERSION: &str = "batch.volcano.sh/v1alpha1";

/// Names of the labels and annotations of a flow's jobs.
pub mod mark {
    pub const BY_TEMPLATE: &str = "volcano.sh/createdByJobTemplate";
    pub const BY_FLOW: &str = "volcano.sh/createdByJobFlow";
}
