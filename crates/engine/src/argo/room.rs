//! How much of what users hand around a run may hold in memory. Values that grow, by doubling from step to step or by
//! being copied into every item of a loop, end in an error of the node that would go too far, never of the machine.

use octoflow_model::argo::{ArtifactValue, InputValues, Items, OutputValues, Phase};
use serde_json::Value;

/// The largest text variables may be put into. It is what a task may leave in one output parameter.
pub(crate) const LARGEST: usize = 64 * 1024 * 1024;

/// The most bytes of names, items, inputs and outputs of one run. A loop of a million small items takes a third of it;
/// what is larger belongs into artifacts, which are files.
pub(crate) const MOST_BYTES: u64 = 512 * 1024 * 1024;

/// The most nodes of one run: a loop of a million items, each tried again once, fits. What makes more is a recursion or a
/// retry that runs nothing and would never end.
pub(crate) const MOST_NODES: usize = 2_500_000;

/// Why another node is too many, if it is.
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

/// Items are kept as values; each takes more than its text.
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

/// Why so many bytes more are too many, if they are.
pub(super) fn refuse(held: u64, more: u64, most: u64) -> Option<String> {
    (held.saturating_add(more) > most).then(|| {
        format!(
            "the names, inputs and outputs of the run would take more than {} MiB, its limit; pass large data as artifacts",
            most / 1024 / 1024
        )
    })
}

/// What a node ends with whose outputs find no room.
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
