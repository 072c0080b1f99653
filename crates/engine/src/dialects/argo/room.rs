//! Limits the memory that a run's names, items, inputs and outputs may take. Values that grow, by doubling from step to
//! step or by being copied into every item of a loop, fail the node that would exceed the limit, never the machine.

use octoflow_model::argo::{ArtifactValue, InputValues, Items, OutputValues, Phase};
use serde_json::Value;

/// Maximum size of a text with its variables filled in. A task's output parameter may have as much.
pub(crate) const LARGEST: usize = 64 * 1024 * 1024;

/// Maximum bytes of names, items, inputs and outputs of one run. A loop of a million small items takes a third of it;
/// larger data belongs into artifacts, which are files.
pub(crate) const MAX_BYTES: u64 = 512 * 1024 * 1024;

/// Maximum number of nodes of one run: a loop of a million items, each retried once, fits. Whatever makes more is a
/// recursion or a retry that runs nothing and would never end.
pub(crate) const MAX_NODES: usize = 2_500_000;

/// Returns the message if the run has no room for another node.
pub(super) fn full(nodes: usize, most: usize) -> Option<String> {
    (nodes >= most)
        .then(|| format!("the run has {most} nodes, its limit; a loop, a recursion or a retry makes too many"))
}

pub(super) fn of_inputs(inputs: &InputValues) -> u64 {
    let parameters: usize = inputs.parameters.iter().map(|(name, value)| name.len() + value.len()).sum();
    let artifacts: usize = inputs
        .artifacts
        .iter()
        .map(|artifact| {
            let raw = if let ArtifactValue::Raw(text) = &artifact.source { text.len() } else { 0 };
            artifact.name.len() + raw
        })
        .sum();
    (parameters + artifacts) as u64
}

pub(super) fn of_outputs(outputs: &OutputValues) -> u64 {
    let parameters: usize = outputs.parameters.iter().map(|(name, value)| name.len() + value.len()).sum();
    (parameters + outputs.result.as_ref().map_or(0, String::len)) as u64
}

pub(super) fn of_items(items: &Items) -> u64 {
    match items {
        Items::List(items) => of_list(items),
        Items::Range(range) => range.format.as_ref().map_or(0, String::len) as u64,
    }
}

/// Items are kept as values, which take more than their text.
fn of_list(items: &[Value]) -> u64 {
    items.iter().map(of_item).sum()
}

fn of_item(item: &Value) -> u64 {
    let own = size_of::<Value>() as u64;
    own + match item {
        Value::String(text) => text.len() as u64,
        Value::Array(items) => of_list(items),
        Value::Object(fields) => fields.iter().map(|(key, value)| key.len() as u64 + of_item(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Returns the message if so many more bytes exceed the limit.
pub(super) fn refuse(held: u64, more: u64, most: u64) -> Option<String> {
    (held.saturating_add(more) > most).then(|| {
        format!(
            "the names, inputs and outputs of the run would take more than {} MiB, its limit; pass large data as artifacts",
            most / 1024 / 1024
        )
    })
}

/// Replaces the end of a node whose outputs exceed the limit by an error.
pub(super) fn ending(
    (held, most): (u64, u64),
    phase: Phase,
    message: String,
    outputs: OutputValues,
) -> (Phase, String, OutputValues) {
    match refuse(held, of_outputs(&outputs), most) {
        Some(why) if of_outputs(&outputs) > 0 => {
            let exit_code = outputs.exit_code;
            let phase = if phase == Phase::Succeeded { Phase::Error } else { phase };
            (phase, why, OutputValues { exit_code, ..OutputValues::default() })
        }
        _ => (phase, message, outputs),
    }
}
