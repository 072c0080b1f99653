//! A compiled flow: entries by number, with what each waits for. Immutable; it decides nothing.

use std::{collections::HashMap, time::Duration};

use octoflow_model::{
    NodeIx,
    jobflow::{EntryProbe, JobFlow, RetainPolicy, Strategy},
};
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
    /// Conditions that are tested over the network, as entry and condition, in the order of their nodes.
    pub tests: Vec<(u32, u32)>,
    /// The entries that wait for each entry.
    pub after: Vec<Vec<u32>>,
}

/// What a node of a flow does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeRole {
    /// Makes the jobs of an entry.
    Entry(usize),
    /// Tests a condition of an entry.
    Test(usize, u32),
    /// Deletes the jobs.
    Removal,
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
    /// Numbers of tries whose names belong to other entries, in ascending order: `a-1` is the second job of `a`, or an entry.
    pub taken: Vec<u32>,
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
                plan.conditions = needs.probe.as_ref().map_or(0, EntryProbe::len);
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
        for entry in &flow.spec.flows {
            if let Some((of, number)) =
                retry_name(&entry.name).and_then(|(of, number)| Some((numbers.get(of)?, number)))
            {
                entries[*of].taken.push(number);
            }
        }
        entries.iter_mut().for_each(|plan| plan.taken.sort_unstable());
        let needs = |at: usize| entries[at].needs.iter().copied();
        let order = graph::sort(entries.len(), TieBreak::Index, needs).complete();
        let order = order.ok_or_else(|| "the entries wait for each other in a circle".to_owned())?;
        let retain = flow.spec.retain_policy();
        let mut after = vec![Vec::new(); entries.len()];
        for (at, plan) in entries.iter().enumerate() {
            plan.needs.iter().for_each(|up| after[*up].push(at as u32));
        }
        let probes = flow.spec.flows.iter().enumerate().filter_map(|(at, entry)| Some((at, entry.probe()?)));
        let tests = probes.flat_map(|(at, probe)| (0..probe.tested()).map(move |number| (at as u32, number as u32)));
        let tests = tests.collect();
        Ok(Self { flow, entries, order, retain, tests, after })
    }

    /// Returns the probe of an entry.
    pub fn probe(&self, entry: usize) -> Option<&EntryProbe> {
        self.flow.spec.flows[entry].probe()
    }

    /// Returns the node of a condition that is tested over the network.
    pub fn test_node(&self, entry: u32, condition: u32) -> Option<NodeIx> {
        let at = self.tests.binary_search(&(entry, condition)).ok()?;
        Some(NodeIx((self.entries.len() + at) as u32))
    }

    /// Returns the node that deletes the jobs.
    pub fn removal_node(&self) -> NodeIx {
        NodeIx((self.entries.len() + self.tests.len()) as u32)
    }

    /// Returns what a node of the flow is.
    pub fn role(&self, node: NodeIx) -> Option<NodeRole> {
        let at = node.at();
        if at < self.entries.len() {
            return Some(NodeRole::Entry(at));
        }
        match self.tests.get(at - self.entries.len()) {
            Some((entry, condition)) => Some(NodeRole::Test(*entry as usize, *condition)),
            None => (node == self.removal_node()).then_some(NodeRole::Removal),
        }
    }

    /// Returns the name of the job of a try, counted from 0. Names of other entries' jobs are left out.
    pub fn job_name(&self, flow: &str, entry: usize, number: u32) -> String {
        let mut shown = number;
        for taken in self.entries[entry].taken.iter().filter(|_| number > 0) {
            shown += u32::from(*taken <= shown);
        }
        job_name(flow, self.name(entry), shown)
    }

    /// Returns the name of an entry and its template.
    pub fn name(&self, entry: usize) -> &str {
        &self.flow.spec.flows[entry].name
    }
}

/// Splits a name that looks like that of a later try into the entry and the number of the try.
pub(super) fn retry_name(name: &str) -> Option<(&str, u32)> {
    let (of, text) = name.rsplit_once('-')?;
    let number: u32 = text.parse().ok()?;
    (number > 0 && number.to_string() == text).then_some((of, number))
}

/// Returns the name of the job of a try: `{flow}-{template}`, and the number of the try after the first.
pub fn job_name(flow: &str, template: &str, number: u32) -> String {
    if number == 0 { format!("{flow}-{template}") } else { format!("{flow}-{template}-{number}") }
}
