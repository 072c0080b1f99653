//! Wire and disk types of submitted jobs: the object, its states and its facts. Plain data; the engine interprets it.
//! Plugins and features are in `plugin`, and what any run is submitted with in `run::submission`.

pub mod fact;
pub mod spec;
pub mod state;

pub use fact::{BoundPlugin, Edit, ErredCall, GateVerdict, WalkEnd, WalkFact};
pub use spec::{SubmittedJob, SubmittedSpec};
pub use state::WalkState;

/// Names of the labels of a submitted job, and of the label and the annotation of the run that came out.
pub mod mark {
    pub const USER: &str = "octoflow.io/user";
    pub const JOB_KIND: &str = "octoflow.io/job-kind";
    /// Of the run that came out: the submitted job that it is.
    pub const JOB: &str = "octoflow.io/submitted-job";
    /// The header as JSON text.
    pub const HEADER: &str = "header";
}
