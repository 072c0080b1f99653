//! Jobs that built-in plugins translated run as the TaskSets they became.

use octoflow_engine::{
    plugins::builtin::{self, Context},
    taskset::admit::examine,
};
use octoflow_model::task::EnvValue;
use serde_json::{Value, json};

use super::stage::{Groups, Stage};
use crate::play::ROOMY;

fn stage(plugin: &str, job: &Value) -> Stage {
    let input = json!({"factors": {}, "header": {"jobID": "t", "userID": "u"}, "job": job});
    let made = builtin::answer(plugin, &input, &Value::Null, &Context::default()).unwrap_or_else(|why| panic!("{why}"));
    let admitted = examine(&made, &Groups::default()).unwrap_or_else(|problems| panic!("{problems:?}"));
    let mut stage = Stage::empty(ROOMY);
    stage.submit_as(1, "t".to_owned(), admitted.manifest, admitted.stored);
    stage
}

fn group(count: u32, container: &str) -> Value {
    json!({"replicas": count, "template": {"spec": {"containers": [
        {"name": container, "image": "i", "command": ["python", "train.py"]},
    ]}}})
}

fn variable(stage: &Stage, pod: &str, name: &str) -> String {
    let found = stage.tasks[pod].main.env.iter().rfind(|(known, _)| known == name);
    match found {
        Some((_, EnvValue::Plain(text))) => text.clone(),
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn a_tf_job_runs_until_its_chief_ends() {
    let job = json!({"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "x"}, "spec": {
        "tfReplicaSpecs": {"Chief": group(1, "tensorflow"), "PS": group(1, "tensorflow"), "Worker": group(2, "tensorflow")},
    }});
    let mut stage = stage("tfjob", &job);
    assert_eq!(stage.live(), ["t-chief-0-0-0", "t-ps-0-0-0", "t-worker-0-0-0", "t-worker-0-0-1"]);
    let config: Value = serde_json::from_str(&variable(&stage, "t-worker-0-0-1", "TF_CONFIG")).unwrap();
    assert_eq!(config["task"], json!({"type": "worker", "index": 1}));
    stage.exit("t-worker-0-0-0", 0);
    stage.exit("t-chief-0-0-0", 0);
    for pod in stage.live() {
        stage.exit(&pod, 143);
    }
    assert_eq!(stage.status()["state"], "Succeeded");
}

#[test]
fn a_py_torch_job_has_ranks_across_roles_and_fails_with_a_worker() {
    let job = json!({"kind": "PyTorchJob", "spec": {
        "pytorchReplicaSpecs": {"Master": group(1, "pytorch"), "Worker": group(2, "pytorch")},
    }});
    let mut stage = stage("pytorchjob", &job);
    let ranks = ["t-master-0-0-0", "t-worker-0-0-0", "t-worker-0-0-1"].map(|pod| variable(&stage, pod, "RANK"));
    assert_eq!(ranks, ["0", "1", "2"]);
    stage.exit("t-worker-0-0-1", 1);
    for pod in stage.live() {
        stage.exit(&pod, 143);
    }
    assert_eq!(stage.status()["state"], "Failed");
}

#[test]
fn an_mpi_job_starts_its_launcher_when_the_workers_are_up() {
    let job = json!({"kind": "MPIJob", "spec": {
        "mpiReplicaSpecs": {"Launcher": group(1, "mpi"), "Worker": group(2, "mpi")},
    }});
    let mut stage = stage("mpijob", &job);
    assert_eq!(stage.live(), ["t-worker-0-0-0", "t-worker-0-0-1"]);
    stage.up("t-worker-0-0-0");
    stage.up("t-worker-0-0-1");
    assert_eq!(stage.live().len(), 3);
    stage.exit("t-launcher-0-0-0", 0);
    for pod in stage.live() {
        stage.exit(&pod, 143);
    }
    assert_eq!(stage.status()["state"], "Succeeded");
}
