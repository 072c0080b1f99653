//! What is left of a finished run when everything that depends on time is taken away, so that two can be compared.

use octoflow_engine::{DialectRun, Run, argo, jobflow, kubejob, submission, taskset, volcano};
use octoflow_model::{Fact, argo::WorkflowFact};
use serde_json::{Map, Value, json};

/// The final tree of a run of any dialect.
pub(super) fn tree(run: &Run) -> Result<Value, String> {
    if let Some(run) = run.of::<taskset::Run>() {
        let status = taskset::status::status(run);
        return Ok(json!({"phase": run.state.summary.word(), "nodes": {}, "status": status}));
    }
    if let Some(run) = run.of::<volcano::Run>() {
        let status = volcano::status::status(run);
        return Ok(json!({"phase": run.state.phase.word(), "nodes": {}, "status": status}));
    }
    if let Some(run) = run.of::<kubejob::Run>() {
        let status = kubejob::status::status(run);
        return Ok(json!({"phase": run.state.phase().word(), "nodes": {}, "status": status}));
    }
    if let Some(run) = run.of::<jobflow::Run>() {
        let object = jobflow::status::object(run);
        return Ok(json!({"phase": run.flow_phase().word(), "nodes": {}, "status": object["status"]}));
    }
    if let Some(run) = run.of::<submission::Run>() {
        let object = submission::status::object(run);
        return Ok(json!({"phase": run.walk_state().word(), "nodes": {}, "status": object["status"]}));
    }
    workflow(run.of().expect("the simulator knows every dialect"))
}

/// The final tree, from the record the controller would archive.
fn workflow(run: &argo::Run) -> Result<Value, String> {
    let mut bytes = Vec::new();
    run.write_record(&mut bytes).map_err(|error| error.to_string())?;
    let record: Value = serde_json::from_slice(&bytes)
        .map_err(|error| format!("the archive of run {} is not JSON: {error}", run.id))?;
    let status = &record["object"]["status"];
    let nodes = status["nodes"].as_object().cloned().unwrap_or_default();
    if nodes.len() != run.state.nodes.len() {
        return Err(format!("run {} has {} nodes with {} different names", run.id, run.state.nodes.len(), nodes.len()));
    }
    let nodes: Map<String, Value> = nodes.values().map(|node| (text(node, "name"), timeless(node))).collect();
    Ok(json!({
        "phase": status["phase"],
        "message": status["message"],
        "outputs": status["outputs"],
        "progress": status["progress"],
        "nodes": nodes,
    }))
}

fn timeless(node: &Value) -> Value {
    let mut node = node.clone();
    if let Some(fields) = node.as_object_mut() {
        for field in ["startedAt", "finishedAt", "resourcesDuration", "estimatedDuration"] {
            fields.remove(field);
        }
        for field in ["children", "outboundNodes"] {
            if let Some(list) = fields.get_mut(field).and_then(Value::as_array_mut) {
                list.sort_by_key(Value::to_string);
            }
        }
    }
    node
}

fn text(node: &Value, field: &str) -> String {
    node[field].as_str().unwrap_or_default().to_owned()
}

/// What the final tree of a workflow tells otherwise than the facts: each node ends as it was decided.
pub(super) fn untold(tree: &Value, facts: &[Fact]) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    for fact in facts {
        match fact {
            Fact::Workflow(WorkflowFact::Added(added)) => names.push(&added.name),
            Fact::Workflow(WorkflowFact::Finished(finished)) => {
                let name = names[finished.node.at()];
                let node = &tree["nodes"][name];
                let outputs = &finished.outputs;
                let given = node["outputs"]["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
                let given = |(name, value): &(String, String)| given.contains(&json!({"name": name, "value": value}));
                let told = node["phase"] == finished.phase.word()
                    && text(node, "message") == finished.message
                    && outputs.parameters.iter().all(given)
                    && outputs.result.as_ref().is_none_or(|result| node["outputs"]["result"] == **result)
                    && outputs.exit_code.as_ref().is_none_or(|code| node["outputs"]["exitCode"] == **code);
                if !told {
                    return Some(format!("{name} ended with {finished:?}, and its record tells {node}"));
                }
            }
            _ => {}
        }
    }
    None
}

/// The first places where two trees differ.
pub(super) fn difference(one: &Value, other: &Value) -> Option<String> {
    let mut found = Vec::new();
    compare("", one, other, &mut found);
    found.truncate(6);
    (!found.is_empty()).then(|| found.join("; "))
}

fn compare(path: &str, one: &Value, other: &Value, found: &mut Vec<String>) {
    match (one, other) {
        (Value::Object(left), Value::Object(right)) => {
            for key in left.keys().chain(right.keys().filter(|key| !left.contains_key(*key))) {
                let null = Value::Null;
                let (left, right) = (left.get(key).unwrap_or(&null), right.get(key).unwrap_or(&null));
                if left.is_null() != right.is_null() && (left.is_object() || right.is_object()) {
                    found.push(format!("{path}/{key} is {}", if left.is_null() { "new" } else { "missing" }));
                } else {
                    compare(&format!("{path}/{key}"), left, right, found);
                }
            }
        }
        (one, other) if one != other => found.push(format!("{path}: {one} became {other}")),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_its_place() {
        let one = json!({"nodes": {"a": {"phase": "Failed"}, "b": {}}});
        let other = json!({"nodes": {"a": {"phase": "Error"}}});
        assert_eq!(
            difference(&one, &other).unwrap(),
            "/nodes/a/phase: \"Failed\" became \"Error\"; /nodes/b is missing"
        );
        assert_eq!(difference(&one, &one), None);
    }
}
