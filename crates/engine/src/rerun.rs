//! Doing a finished run again: what a retry or a resubmit of it means in its dialect. It plans and makes manifests; whoever
//! submits them is elsewhere.

use std::fmt;

use octoflow_model::{Time, submission::Stored};
use serde_json::Value;

use crate::admit::Catalog;

pub use crate::argo::rerun::{Refusal, Rerun, RerunOptions, RerunPlan, ResubmitOptions, RunContext, Why};

/// What is submitted once more.
#[derive(Debug)]
pub struct Fresh {
    pub manifest: Value,
    pub stored: Stored,
    /// What the name begins with where a new one is drawn.
    pub generate_name: String,
    /// What stays done, and what does not.
    pub plan: RerunPlan,
}

/// What retry and resubmit mean for the runs of a dialect. `object` is the old run's.
pub trait Reruns: fmt::Debug + Sync {
    /// What a retry would run again, and why.
    fn plan(&self, object: &Value, context: &RunContext, options: &RerunOptions) -> Result<RerunPlan, Refusal>;

    /// The run that takes the place of the old one.
    fn retry(
        &self,
        object: &Value,
        context: &RunContext,
        options: &RerunOptions,
        others: &dyn Catalog,
    ) -> Result<Fresh, Refusal>;

    /// A new run beside the old one.
    fn resubmit(
        &self,
        object: &Value,
        context: &RunContext,
        options: &ResubmitOptions,
        now: Time,
    ) -> Result<Fresh, Refusal>;

    /// What a retry does in one sentence, where it does the whole again and there is no plan to tell.
    fn whole(&self) -> Option<&'static str> {
        None
    }
}
