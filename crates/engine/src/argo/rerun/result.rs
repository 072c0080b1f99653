//! How an old node ended, read back from the way it is shown.

use octoflow_model::{
    AttemptId, Time,
    argo::{NodeKind, OutputArtifactValue, OutputValues, Phase},
    order::Fetched,
    previous::{CacheLookup, NodeResult},
    task::StoredArtifact,
};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::graph::Old;

/// Fields of a shown artifact that are not where it was sent to.
const OWN_FIELDS: [&str; 4] = ["name", "path", "local", "deleted"];

/// Nothing when it is not over, or is shown in a way this engine does not write.
pub(super) fn done(node: &Old<'_>, attempt: Option<AttemptId>) -> Option<NodeResult> {
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

/// What a task said of itself; one of one is what everybody has.
fn progress(node: &Value) -> Option<(u32, u32)> {
    let (done, total) = node["progress"].as_str()?.split_once('/')?;
    let told = (done.parse().ok()?, total.parse().ok()?);
    (told.1 != 1).then_some(told)
}

fn memo(status: &Value) -> Option<CacheLookup> {
    let text = |field: &str| status[field].as_str().map(str::to_owned);
    Some(CacheLookup { cache: text("cacheName")?, key: text("key")?, hit: status["hit"] == true })
}
