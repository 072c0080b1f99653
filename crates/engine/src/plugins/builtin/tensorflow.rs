//! TFJob to TaskSet: every replica learns the cluster from `TF_CONFIG`.

use serde_json::{Map, Value, json};

use super::{
    Question,
    kubeflow::{self, JobShape, ReplicaGroup, TrainingJob, Weight},
};

const SHAPE: JobShape = JobShape {
    kind: "TFJob",
    replicas: "tfReplicaSpecs",
    groups: &["Chief", "Master", "PS", "Worker", "Evaluator"],
    fields: &["successPolicy", "enableDynamicWorker"],
    container: "tensorflow",
    port: "tfjob-port",
    default_port: 2222,
};

pub(super) fn translate(question: &Question<'_>) -> Result<Value, String> {
    let mut job = kubeflow::read(question, &SHAPE)?;
    if job.spec["enableDynamicWorker"] == true {
        return Err("spec.enableDynamicWorker cannot be translated: the number of replicas is fixed".to_owned());
    }
    match job.spec["successPolicy"].as_str().unwrap_or_default() {
        "" | "AllWorkers" => {}
        other => return Err(format!("spec.successPolicy `{other}` is not known")),
    }
    let chief = ["Chief", "Master"].into_iter().find(|group| job.has(group));
    let Some(decides) = chief.or_else(|| job.has("Worker").then_some("Worker")) else {
        return Err("a TFJob needs a Chief, a Master or a Worker, whose end is that of the job".to_owned());
    };
    // One replica alone has no cluster.
    if job.all() > 1 {
        let cluster = cluster(&job);
        job.add_env(|role| vec![("TF_CONFIG".to_owned(), config(&cluster, role))])?;
    }
    Ok(job.task_set(question, |role| if role.group == decides { Weight::Decides } else { Weight::Counts }))
}

/// Returns the addresses of all replicas but the evaluators. Each has a port of its own, as several of them may share a
/// machine.
fn cluster(job: &TrainingJob<'_>) -> Value {
    let (mut found, mut before) = (Map::new(), 0);
    for role in &job.roles {
        if role.group != "Evaluator" {
            let name = role.name();
            let address = |index: u64| {
                let own = role.port.saturating_add(before + index);
                json!(format!("{name}-{index}:{}", if own <= 65_535 { own } else { role.port }))
            };
            found.insert(name.clone(), (0..role.count).map(address).collect());
        }
        before += role.count;
    }
    Value::Object(found)
}

/// The index is filled in when a replica starts.
fn config(cluster: &Value, role: &ReplicaGroup) -> String {
    let task = format!(r#"{{"type":"{}","index":$(TASKROLE_REPLICA_INDEX)}}"#, role.name());
    format!(r#"{{"cluster":{cluster},"task":{task},"environment":"cloud"}}"#)
}
