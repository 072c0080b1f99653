//! A compiled flow: entries by number, with what each waits for. Immutable; it decides nothing.

use std::{collections::HashMap, time::Duration};

use octoflow_model::jobflow::{JobFlow, RetainPolicy, Strategy};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    dialects::argo::duration,
    graph::{self, TieBreak},
};

/// Maximum number of entries of a flow.
pub const MAX_ENTRIES: usize = 100_000;
/// The time before the first retry of an entry that says none.
pub const DEFAULT_BACKOFF: Duration = Duration::from_secs(10);
/// The longest time between two tries.
pub const LONGEST_BACKOFF: Duration = Duration::from_secs(3600);

#[derive(Clone, Debug)]
pub struct Program {
    pub flow: JobFlow,
    pub entries: Vec<Plan>,
    /// The entries, each after those it waits for.
    pub order: Vec<usize>,
    pub retain: RetainPolicy,
}

/// An entry, as the flow runs it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The entries it waits for, each once.
    pub needs: Vec<usize>,
    pub strategy: Strategy,
    /// Number of conditions of its probe. Without any, those it waits for must be completed.
    pub conditions: usize,
    /// How often a failed job is followed by another.
    pub retries: u32,
    pub backoff: Duration,
}

impl Program {
    /// Compiles an admitted manifest; on error returns the reason in one sentence.
    pub fn compile(manifest: &Value) -> Result<Self, String> {
        let flow = JobFlow::deserialize(manifest).map_err(|error| format!("the JobFlow cannot be read: {error}"))?;
        let numbers: HashMap<&str, usize> =
            flow.spec.flows.iter().enumerate().map(|(at, entry)| (entry.name.as_str(), at)).collect();
        let mut entries = Vec::with_capacity(flow.spec.flows.len());
        for entry in &flow.spec.flows {
            let mut plan = Plan { backoff: DEFAULT_BACKOFF, ..Plan::default() };
            if let Some(needs) = &entry.depends_on {
                for target in &needs.targets {
                    let number = numbers.get(target.as_str()).copied();
                    plan.needs.push(number.ok_or_else(|| format!("no entry is called '{target}'"))?);
                }
                plan.needs.sort_unstable();
                plan.needs.dedup();
                plan.strategy = needs.strategy;
                plan.conditions = needs.probe.as_ref().map_or(0, octoflow_model::jobflow::Probe::len);
            }
            if let Some(retry) = &entry.retry {
                plan.retries = retry.max_retries;
                if let Some(text) = &retry.backoff {
                    plan.backoff =
                        duration::units(text).ok_or_else(|| format!("retry.backoff '{text}' is not a duration"))?;
                }
            }
            entries.push(plan);
        }
        let needs = |at: usize| entries[at].needs.iter().copied();
        let order = graph::sort(entries.len(), TieBreak::Index, needs).complete();
        let order = order.ok_or_else(|| "the entries wait for each other in a circle".to_owned())?;
        let retain = flow.spec.retain_policy();
        Ok(Self { flow, entries, order, retain })
    }

    /// Returns the name of an entry and its template.
    pub fn name(&self, entry: usize) -> &str {
        &self.flow.spec.flows[entry].name
    }
}

/// Returns the name of the job of a try: `{flow}-{template}`, and the number of the try after the first.
pub fn job_name(flow: &str, template: &str, number: u32) -> String {
    if number == 0 { format!("{flow}-{template}") } else { format!("{flow}-{template}-{number}") }
}
