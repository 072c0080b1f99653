//! PyTorchJob to TaskSet: every replica learns where the master is, and which one it is itself.

use serde_json::Value;

use super::{
    Question,
    kubeflow::{self, JobShape, Weight},
};

const SHAPE: JobShape = JobShape {
    kind: "PyTorchJob",
    replicas: "pytorchReplicaSpecs",
    // The master is first, so that its rank is 0.
    groups: &["Master", "Worker"],
    fields: &["nprocPerNode"],
    container: "pytorch",
    port: "pytorchjob-port",
    default_port: 23456,
};

pub(super) fn translate(question: &Question<'_>) -> Result<Value, String> {
    let mut job = kubeflow::read(question, &SHAPE)?;
    let decides = if job.has("Master") { "Master" } else { "Worker" };
    if job.roles.iter().any(|role| role.group == "Master" && role.count > 1) {
        return Err("spec.pytorchReplicaSpecs.Master may have one replica".to_owned());
    }
    let first = &job.roles[0];
    let (address, port) = (format!("{}-0", first.name()), first.port.to_string());
    let processes = match &job.spec["nprocPerNode"] {
        Value::Null => None,
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            return Err("spec.nprocPerNode is neither a number nor a word".to_owned());
        }
    };
    let nodes = job.all();
    let each = processes.as_deref().and_then(|text| text.parse::<u64>().ok()).unwrap_or(1);
    let rank = "$(TASKSET_REPLICA_RANK)".to_owned();
    let mut variables = vec![
        ("MASTER_ADDR", address.clone()),
        ("MASTER_PORT", port.clone()),
        ("WORLD_SIZE", nodes.saturating_mul(each).to_string()),
        ("RANK", rank.clone()),
        ("PYTHONUNBUFFERED", "1".to_owned()),
        ("PET_MASTER_ADDR", address),
        ("PET_MASTER_PORT", port),
        ("PET_NNODES", nodes.to_string()),
        ("PET_NODE_RANK", rank),
    ];
    variables.extend(processes.map(|processes| ("PET_NPROC_PER_NODE", processes)));
    job.add_env(|_| variables.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())?;
    Ok(job.task_set(question, |role| if role.group == decides { Weight::Decides } else { Weight::Counts }))
}
