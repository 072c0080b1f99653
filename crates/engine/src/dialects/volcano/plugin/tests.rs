//! What each plugin adds to the pods of a job.

use octoflow_model::task::EnvValue;
use serde_json::{Value, json};

use super::*;

fn program(plugins: Value, tasks: &[(&str, u32)]) -> Program {
    let task = |(name, replicas): &(&str, u32)| json!({"name": name, "replicas": replicas, "template": {"spec": {"containers": [{"name": name, "image": "i"}]}}});
    let tasks: Vec<Value> = tasks.iter().map(task).collect();
    Program::compile(&json!({"spec": {"plugins": plugins, "tasks": tasks}})).unwrap()
}

fn added(program: &Program, task: usize, index: u32) -> PodAdditions {
    program.plugins.additions(program, "job", task, index, None).unwrap()
}

fn env(added: &PodAdditions, name: &str) -> Option<String> {
    added.variables.iter().find(|(known, _)| known == name).map(|(_, value)| match value {
        EnvValue::Plain(text) | EnvValue::Secret(text) => text.clone(),
    })
}

fn file(added: &PodAdditions, path: &str) -> Option<String> {
    let found = added.files.iter().find(|file| file.path == path)?;
    Some(String::from_utf8(found.contents.clone()).unwrap())
}

#[test]
fn vj17_pods_know_their_index_and_find_each_other_by_name() {
    let program = program(json!({"env": [], "svc": []}), &[("ps", 1), ("big-worker", 2)]);
    let pod = added(&program, 1, 1);
    assert_eq!(env(&pod, "VC_TASK_INDEX").as_deref(), Some("1"));
    assert_eq!(env(&pod, "VK_TASK_INDEX").as_deref(), Some("1"));
    let both = "job-big-worker-0.job,job-big-worker-1.job";
    assert_eq!(env(&pod, "VC_BIG_WORKER_HOSTS").as_deref(), Some(both));
    assert_eq!(env(&pod, "VC_BIG_WORKER_NUM").as_deref(), Some("2"));
    assert_eq!(env(&pod, "VC_PS_NUM").as_deref(), Some("1"));
    assert_eq!(
        file(&pod, "/etc/volcano/big-worker.host").as_deref(),
        Some("job-big-worker-0.job\njob-big-worker-1.job")
    );
    assert_eq!(file(&pod, "/etc/volcano/VC_BIG_WORKER_HOSTS").as_deref(), Some(both));
    let hosts = program.plugins.hosts(RunId(3), "job", &program).unwrap();
    assert!(hosts.lines().any(|line| line.ends_with("\tjob-big-worker-1 job-big-worker-1.job")), "{hosts}");
    let quiet = self::program(json!({"svc": ["--inject-hosts-env=false"]}), &[("a", 1)]);
    assert_eq!(env(&added(&quiet, 0, 0), "VC_A_HOSTS"), None);
    assert!(self::program(json!({"env": []}), &[("a", 1)]).plugins.hosts(RunId(3), "job", &quiet).is_none());
}

#[test]
fn vj19_pytorch_workers_find_their_master() {
    let program = program(json!({"pytorch": []}), &[("master", 1), ("worker", 2), ("other", 1)]);
    let of = |task, index| {
        let pod = added(&program, task, index);
        ["MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"].map(|name| env(&pod, name).unwrap_or_default())
    };
    assert_eq!(of(0, 0), ["job-master-0.job", "23456", "3", "0"]);
    assert_eq!(of(1, 0), ["job-master-0.job", "23456", "3", "1"]);
    assert_eq!(of(1, 1)[3], "2");
    assert_eq!(of(2, 0), ["", "", "", ""]);
    assert!(program.plugins.hosts(RunId(1), "job", &program).is_some(), "svc comes with it");
}

#[test]
fn pytorch_workers_may_wait_for_their_master() {
    let plugins = json!({"pytorch": ["--master=m", "--worker=w", "--port", "99", "--wait-master-enabled"]});
    let program = program(plugins, &[("m", 1), ("w", 1)]);
    assert!(added(&program, 0, 0).before.is_empty());
    let pod = added(&program, 1, 0);
    assert!(pod.before[0].container.command[2].contains("nc -z -w 1 job-m-0.job 99"), "{pod:?}");
}

#[test]
fn vj20_tensorflow_pods_know_their_cluster() {
    let program = program(json!({"tensorflow": []}), &[("ps", 1), ("worker", 2)]);
    let config: Value = serde_json::from_str(&env(&added(&program, 1, 1), "TF_CONFIG").unwrap()).unwrap();
    let wanted = json!({
        "cluster": {"ps": ["job-ps-0.job:2222"], "worker": ["job-worker-0.job:2222", "job-worker-1.job:2222"]},
        "task": {"type": "worker", "index": 1},
    });
    assert_eq!(config, wanted);
    let alone = self::program(json!({"tensorflow": []}), &[("worker", 1)]);
    assert_eq!(env(&added(&alone, 0, 0), "TF_CONFIG"), None);
}

#[test]
fn vj21_the_mpi_master_knows_its_workers() {
    let program = program(json!({"mpi": ["--master=m"]}), &[("m", 1), ("worker", 2)]);
    let master = added(&program, 0, 0);
    assert_eq!(env(&master, "MPI_HOST").as_deref(), Some("job-worker-0.job,job-worker-1.job"));
    assert_eq!(env(&added(&program, 1, 0), "MPI_HOST"), None);
    let config = file(&master, "/root/.ssh/config").unwrap();
    assert!(config.contains("Host job-worker-1\n  HostName job-worker-1.job\n  Port 22\n"), "{config}");
}

#[test]
fn keys_that_are_given_are_those_of_every_pod() {
    let plugins = json!({"ssh": ["--ssh-private-key=secret", "--ssh-public-key=open", "--ssh-key-file-path=/keys"]});
    let program = program(plugins, &[("a", 1)]);
    let pod = added(&program, 0, 0);
    assert_eq!(file(&pod, "/keys/id_rsa").as_deref(), Some("secret\n"));
    assert_eq!(file(&pod, "/keys/authorized_keys").as_deref(), Some("open\n"));
    assert!(pod.files.iter().all(|file| file.mode == 0o644));
    let usual = self::program(json!({"ssh": []}), &[("a", 1)]);
    let pod = added(&usual, 0, 0);
    assert_eq!(pod.files.len(), 1, "no key is made up: {:?}", pod.files);
    assert_eq!(pod.files[0].mode, 0o600);
}

#[test]
fn ray_starts_its_head_and_its_workers() {
    let program = program(json!({"ray": []}), &[("head", 1), ("worker", 1)]);
    let (container, command) = added(&program, 0, 0).command.unwrap();
    assert_eq!(container, "head");
    assert!(command.starts_with("ray start --head --block") && command.contains("--port=6379"), "{command}");
    let (_, command) = added(&program, 1, 0).command.unwrap();
    assert_eq!(command, "ray start --block --address=job-head-0.job:6379");
    let headless = self::program(json!({"ray": []}), &[("worker", 1)]);
    assert!(headless.plugins.additions(&headless, "job", 0, 0, None).is_err());
}

#[test]
fn the_rank_of_a_pod_is_its_own_or_its_index() {
    let plain = program(json!({"hcclrank": []}), &[("a", 3)]);
    assert_eq!(added(&plain, 0, 2).annotations["hccl/rankIndex"], "2");
    let torch = program(json!({"hcclrank": [], "pytorch": []}), &[("master", 1), ("worker", 2)]);
    assert_eq!(added(&torch, 1, 1).annotations["hccl/rankIndex"], "2");
}

#[test]
fn arguments_are_read_in_every_spelling_and_wrong_ones_are_named() {
    let read = |arguments: &[&str]| {
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        PluginArguments::read("pytorch", &arguments)
    };
    assert_eq!(read(&["--port", "7"]).unwrap().get("port"), "7");
    assert_eq!(read(&["--port=7"]).unwrap().get("port"), "7");
    for (wrong, said) in [
        (&["--prot=7"][..], "did you mean --port?"),
        (&["port=7"], "begins with `--`"),
        (&["--port=x"], "a port from 1 to 65535"),
        (&["--port"], "needs a value"),
        (&["--wait-master-enabled=maybe"], "is true or false"),
        (&["--wait-master-timeout=soon"], "a number of seconds"),
    ] {
        let told = read(wrong).unwrap_err();
        assert!(told.contains(said), "{told}");
    }
}
