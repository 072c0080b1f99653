//! Tasks and replicas of the run that came out of a job, as the detail document tells them.

use octoflow_control::registry::{Fault as RegistryFault, Registry, kinds};
use serde_json::{Value, json};

/// Returns the run that came out of a job, unless it was deleted.
pub(super) fn child(registry: &Registry, named: &Value) -> Result<Option<Value>, RegistryFault> {
    let text = |field: &str| named[field].as_str().unwrap_or_default();
    let Some(kind) = kinds::find(kinds::group_of(text("apiVersion")), text("kind")) else { return Ok(None) };
    match registry.get(kind, text("namespace"), text("name")) {
        // Another run may have the name by now.
        Ok(object) if named["uid"].is_null() || object["metadata"]["uid"] == named["uid"] => Ok(Some(object)),
        Ok(_) | Err(RegistryFault::NotFound { .. }) => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// The tasks of a TaskSet: as it is written, and as it stands if it runs.
pub(super) fn tasks(set: &Value, stopped: bool) -> Vec<Value> {
    roles(set).map(|role| task(&role, stopped)).collect()
}

/// What is known of a TaskSet's pods.
pub(super) fn runtime_info(set: &Value) -> Vec<Value> {
    roles(set)
        .map(|role| {
            let pod = &role.spec["template"]["spec"];
            json!({
                "name": role.spec["name"], "nodeSelector": or(&pod["nodeSelector"], json!({})),
                "replicas": role.replicas().map(|replica| pod_of(&replica)).collect::<Vec<_>>(),
                "volumeMounts": or(&pod["volumes"], json!([])),
            })
        })
        .collect()
}

/// Returns the exit code of the last replica that failed, and whether there is one.
pub(super) fn exit_code(set: &Value) -> Option<i64> {
    let codes = roles(set).flat_map(|role| role.replicas().filter_map(|replica| code_of(&replica)).collect::<Vec<_>>());
    codes.filter(|code| *code != 0).last()
}

/// Returns everything that was recorded in words, line by line.
pub(super) fn transcript(set: &Value) -> Vec<String> {
    let line = |what: String, message: &Value| {
        let text = message.as_str().unwrap_or_default().trim();
        (!text.is_empty()).then(|| format!("{what}: {text}"))
    };
    let status = &set["status"];
    let mut lines: Vec<String> = Vec::new();
    for message in [&status["phaseMessage"], &status["stateMessage"]] {
        lines.extend(line("TaskSet".to_owned(), message));
    }
    for role in roles(set) {
        let name = role.spec["name"].as_str().unwrap_or_default().to_owned();
        for message in [&role.status["phaseMessage"], &role.status["stateMessage"]] {
            lines.extend(line(format!("role {name}"), message));
        }
        for replica in role.replicas() {
            let what = format!("replica {name}-{}", replica["index"]);
            for message in [&replica["phaseMessage"], &replica["terminatedInfo"]["exitMessage"]] {
                lines.extend(line(what.clone(), message));
            }
        }
    }
    lines.dedup();
    lines
}

struct Role<'a> {
    spec: &'a Value,
    status: &'a Value,
}

fn roles(set: &Value) -> impl Iterator<Item = Role<'_>> {
    let specs = set["spec"]["roles"].as_array().map_or(&[][..], Vec::as_slice);
    specs.iter().enumerate().map(|(at, spec)| Role { spec, status: &set["status"]["roleStatus"][at] })
}

impl Role<'_> {
    /// Its replicas as they stand; before there is anything of them, by their numbers alone.
    fn replicas(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        match self.status["replicaStatus"].as_array() {
            Some(replicas) => Box::new(replicas.iter().cloned()),
            None => Box::new((0..self.amount()).map(|index| json!({"index": index}))),
        }
    }

    fn amount(&self) -> u64 {
        // What a user wrote may be anything, and nothing of it runs yet.
        self.spec["replicas"].as_u64().unwrap_or_default().min(10_000)
    }
}

fn task(role: &Role<'_>, stopped: bool) -> Value {
    let container = &role.spec["template"]["spec"]["containers"][0];
    let limits = &container["resources"]["limits"];
    let policy = &role.spec["completionPolicy"];
    let state = match role.status["state"].as_str().unwrap_or("Waiting") {
        "Waiting" | "Running" if stopped => "stopped".to_owned(),
        "Waiting" => "pending".to_owned(),
        word => word.to_ascii_lowercase(),
    };
    json!({
        "name": role.spec["name"], "image": or(&container["image"], json!("")), "state": state,
        "command": or(&container["command"], json!([])), "replicaAmount": role.amount(),
        "maxFailedTaskCount": or(&policy["maxFailed"], json!(0)),
        "minSucceededTaskCount": or(&policy["minSucceeded"], json!(0)),
        "resource": if limits.is_null() { "{}".to_owned() } else { limits.to_string() },
        "replicas": role.replicas().map(|replica| told(&replica, stopped)).collect::<Vec<_>>(),
    })
}

fn told(replica: &Value, stopped: bool) -> Value {
    json!({
        "index": replica["index"], "state": state_of(replica, stopped),
        "retriedCount": or(&replica["totalRetriedCount"], json!(0)), "startAt": or(&replica["startAt"], json!("")),
        "finishedAt": or(&replica["finishAt"], json!("")), "containerID": or(&replica["containerID"], json!("")),
        "containerHostIP": or(&replica["podHostIP"], json!("")), "exitCode": code_of(replica),
        "exitDiagnostics": or(&replica["terminatedInfo"]["exitMessage"], json!("")),
    })
}

fn pod_of(replica: &Value) -> Value {
    let text = |field: &str| or(&replica[field], json!(""));
    json!({
        "index": replica["index"], "podIP": text("podIP"), "podUID": text("podUID"), "podName": text("podName"),
        "podHostIP": text("podHostIP"), "podReason": text("podReason"),
    })
}

fn state_of(replica: &Value, stopped: bool) -> &'static str {
    let phase = replica["phase"].as_str().unwrap_or_default();
    match phase.strip_prefix("TaskRoleReplica").unwrap_or(phase) {
        "Completed" => match code_of(replica) {
            Some(0) => "succeeded",
            None if stopped || replica["stopped"] == true => "stopped",
            Some(_) | None => "failed",
        },
        _ if stopped => "stopped",
        "AttemptRunning" | "AttemptDeletionRequested" => "running",
        _ => "pending",
    }
}

fn code_of(replica: &Value) -> Option<i64> {
    replica["terminatedInfo"]["exitCode"].as_i64()
}

fn or(value: &Value, otherwise: Value) -> Value {
    if value.is_null() { otherwise } else { value.clone() }
}
