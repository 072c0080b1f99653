//! Reruns: what a retry or a resubmit of a finished run means in its dialect. Plans and builds manifests; never submits
//! them.

use std::fmt;

use octoflow_model::{Time, submission::Stored};
use serde_json::Value;

use crate::admit::Catalog;

pub use crate::dialects::argo::rerun::{Refusal, Rerun, RerunOptions, RerunPlan, ResubmitOptions, RunContext, Why};

/// A rerun that is ready to be submitted.
#[derive(Debug)]
pub struct RerunManifest {
    pub manifest: Value,
    pub stored: Stored,
    /// Prefix of the generated name, where a new name is drawn.
    pub generate_name: String,
    /// Which results are reused and which nodes run again.
    pub plan: RerunPlan,
}

/// Implements retry and resubmit for a dialect. `object` is the old run's.
pub trait Reruns: fmt::Debug + Sync {
    /// Plans a retry: what would run again, and why.
    fn plan(&self, object: &Value, context: &RunContext, options: &RerunOptions) -> Result<RerunPlan, Refusal>;

    /// Builds the run that replaces the old one.
    fn retry(
        &self,
        object: &Value,
        context: &RunContext,
        options: &RerunOptions,
        others: &dyn Catalog,
    ) -> Result<RerunManifest, Refusal>;

    /// Builds a new, independent run.
    fn resubmit(
        &self,
        object: &Value,
        context: &RunContext,
        options: &ResubmitOptions,
        now: Time,
    ) -> Result<RerunManifest, Refusal>;

    /// Describes a retry in one sentence, if it always repeats the whole run and there is no plan to show.
    fn whole(&self) -> Option<&'static str> {
        None
    }
}
