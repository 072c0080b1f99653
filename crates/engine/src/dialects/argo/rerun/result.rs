//! Reads the result of an old node back from the run's object.

use octoflow_model::{
    AttemptId, Time,
    argo::{NodeKind, OutputArtifactValue, OutputValues, Phase},
    order::Fetched,
    previous::{CacheLookup, NodeResult},
    task::StoredArtifact,
};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::graph::OldNode;

/// Fields of an artifact in the object that are not part of its remote location.
const OWN_FIELDS: [&str; 4] = ["name", "path", "local", "deleted"];

/// Reads a node's result; `None` if it is not over, or if the object was not written by this engine.
pub(super) fn done(node: &OldNode<'_>, attempt: Option<AttemptId>) -> Option<NodeResult> {
    let value = node.value;
    let time = |field: &str| value[field].as_str().and_then(Time::parse);
    let (kind, phase) = match node.carried {
        true => (NodeKind::Pod, Phase::Succeeded),
        false => (NodeKind::deserialize(&value["type"]).ok()?, Phase::deserialize(&value["phase"]).ok()?),
    };
    Some(NodeResult {
        kind,
        phase,
        message: node.message().to_owned(),
        started: time("startedAt")?,
        finished: time("finishedAt")?,
        ran: value["hostNodeName"].is_string() || value["resourcesDuration"].is_object() && kind.executable(),
        skipped: node.carried,
        host: value["hostNodeName"].as_str().map(str::to_owned),
        attempt,
        outputs: outputs(value),
        progress: progress(value),
        memo: memo(&value["memoizationStatus"]),
    })
}

pub(super) fn outputs(node: &Value) -> OutputValues {
    let shown = &node["outputs"];
    let text = |field: &str| shown[field].as_str().map(str::to_owned);
    let list = |from: &Value, field: &str| from[field].as_array().cloned().unwrap_or_default();
    let parameter = |one: Value| Some((one["name"].as_str()?.to_owned(), one["value"].as_str()?.to_owned()));
    let fetched = |one: Value| Some((one["name"].as_str()?.to_owned(), Fetched::deserialize(&one["fetched"]).ok()?));
    OutputValues {
        parameters: list(shown, "parameters").into_iter().filter_map(parameter).collect(),
        artifacts: list(shown, "artifacts").into_iter().filter_map(artifact).collect(),
        result: text("result"),
        exit_code: text("exitCode"),
        fetched: list(&node["inputs"], "artifacts").into_iter().filter_map(fetched).collect(),
    }
}

fn artifact(shown: Value) -> Option<OutputArtifactValue> {
    let mut artifact = StoredArtifact::deserialize(&shown["local"]).ok()?;
    artifact.deleted = shown["deleted"] == true;
    let text = |field: &str| shown[field].as_str().map(str::to_owned);
    let place = shown.as_object()?.iter().filter(|(field, _)| !OWN_FIELDS.contains(&field.as_str()));
    let place: Map<String, Value> = place.map(|(field, value)| (field.clone(), value.clone())).collect();
    artifact.noted = (!place.is_empty()).then_some(Value::Object(place));
    Some(OutputArtifactValue { name: text("name")?, path: text("path"), artifact })
}

/// Reads the progress that a task reported; 1 of 1 is the default.
fn progress(node: &Value) -> Option<(u32, u32)> {
    let (done, total) = node["progress"].as_str()?.split_once('/')?;
    let reported = (done.parse().ok()?, total.parse().ok()?);
    (reported.1 != 1).then_some(reported)
}

fn memo(status: &Value) -> Option<CacheLookup> {
    let text = |field: &str| status[field].as_str().map(str::to_owned);
    Some(CacheLookup { cache: text("cacheName")?, key: text("key")?, hit: status["hit"] == true })
}
