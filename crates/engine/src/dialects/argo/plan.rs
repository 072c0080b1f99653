//! Previews what would run if a workflow were submitted: its templates expanded as far as values are known beforehand.
//! Decides nothing and needs no run; what depends on results of tasks stays open.

mod known;
mod walk;

use octoflow_model::submission::Stored;
use serde_json::Value;

use super::program::Program;

use crate::run::plan::{CallCondition, NotExpanded, PlanBounds, PlannedCall, Rounds, WorkflowPlan};

/// Expands an admitted manifest. Fails with one sentence if it cannot be read.
pub fn plan(manifest: &Value, stored: &Stored, bounds: PlanBounds) -> Result<WorkflowPlan, String> {
    let program = Program::compile(manifest, stored)?;
    if let Some(flaw) = &program.flaw {
        return Err(flaw.clone());
    }
    Ok(walk::Walk::new(&program, bounds).whole())
}

#[cfg(test)]
mod tests;
