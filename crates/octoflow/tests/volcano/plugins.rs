//! What plugins put into pods, seen from inside.

use serde_json::{Value, json};

use crate::{
    job::task,
    stage::{Stage, shows},
};

/// Runs a job to its end and returns what it wrote.
fn told(stage: &Stage, name: &str, tasks: Value, plugins: Value) -> String {
    stage.run(0, &stage.job(name, tasks, json!({"plugins": plugins})));
    stage.ends(0, &["logs", name]).out
}

#[test]
fn vj_17_pods_know_their_index_and_find_each_other_by_name() {
    let stage = Stage::new();
    let command = "echo called $(cat /proc/sys/kernel/hostname); echo $VC_TASK_INDEX $VK_TASK_INDEX $VC_WORK_HOSTS $VC_WORK_NUM; cat /etc/volcano/work.host; echo; \
                   grep -c found-work-1.found /etc/hosts";
    let out = told(&stage, "found", json!([task("work", 2, command, json!({}))]), json!({"env": [], "svc": []}));
    for line in [
        "found-work-0 | 0 0 found-work-0.found,found-work-1.found 2\n",
        "found-work-1 | 1 1 found-work-0.found,found-work-1.found 2\n",
        "found-work-0 | found-work-1.found\n",
        "found-work-1 | found-work-1.found\n",
        "found-work-0 | 1\n",
        "found-work-0 | called found-work-0\n",
        "found-work-1 | called found-work-1\n",
    ] {
        shows(&out, &[line]);
    }
}

#[test]
fn vj_19_pytorch_workers_find_their_master() {
    let stage = Stage::new();
    let command = "echo $MASTER_ADDR $MASTER_PORT $WORLD_SIZE $RANK; grep -q $MASTER_ADDR /etc/hosts";
    let tasks = json!([task("master", 1, command, json!({})), task("worker", 2, command, json!({}))]);
    let out = told(&stage, "torch", tasks, json!({"pytorch": []}));
    for (pod, rank) in [("master-0", 0), ("worker-0", 1), ("worker-1", 2)] {
        shows(&out, &[&format!("torch-{pod} | torch-master-0.torch 23456 3 {rank}\n")]);
    }
    assert!(stage.object("torch")["spec"]["plugins"]["svc"].is_array(), "svc comes with it");
}

#[test]
fn vj_20_tensorflow_pods_know_their_cluster() {
    let stage = Stage::new();
    let tasks = json!([task("ps", 1, "echo $TF_CONFIG", json!({})), task("worker", 2, "echo $TF_CONFIG", json!({}))]);
    let out = told(&stage, "flow", tasks, json!({"tensorflow": []}));
    let line = out.lines().find_map(|line| line.strip_prefix("flow-worker-1 | ")).unwrap();
    let config: Value = serde_json::from_str(line).unwrap();
    assert_eq!(config["task"], json!({"type": "worker", "index": 1}));
    assert_eq!(config["cluster"]["ps"], json!(["flow-ps-0.flow:2222"]));
    let alone = json!([task("worker", 1, "echo [$TF_CONFIG]", json!({}))]);
    assert_eq!(told(&stage, "alone", alone, json!({"tensorflow": []})), "alone-worker-0 | []\n");
}

#[test]
fn vj_21_the_mpi_master_knows_its_workers_and_can_reach_them() {
    let stage = Stage::new();
    let command = "echo hosts $MPI_HOST; grep -c '^Host ' /root/.ssh/config";
    let tasks = json!([task("master", 1, command, json!({})), task("worker", 2, "true", json!({}))]);
    let out = told(&stage, "mpi", tasks, json!({"mpi": []}));
    shows(&out, &["mpi-master-0 | hosts mpi-worker-0.mpi,mpi-worker-1.mpi\n", "mpi-master-0 | 3\n"]);
    let plugins = stage.object("mpi")["spec"]["plugins"].clone();
    assert!(plugins["ssh"].is_array() && plugins["svc"].is_array(), "{plugins}");
}
