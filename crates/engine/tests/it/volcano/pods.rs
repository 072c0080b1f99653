//! Pods of jobs: what plugins give them, how they and their job are shown, commands about them.

use octoflow_engine::{
    Command, Refusal,
    volcano::{DIALECT, status},
};
use octoflow_model::{Time, taskset::StopReason};
use serde_json::{Value, json};

use super::stage::Stage;
use crate::play::RUN;

fn variable(stage: &Stage, pod: &str, name: &str) -> Option<String> {
    let env = &stage.task(pod).main.env;
    env.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.reveal().to_owned())
}

#[test]
fn vj17_vj19_a_pytorch_job_has_what_its_workers_need() {
    let stage = Stage::new("{plugins: {pytorch: [], env: []}, tasks: [{name: master}, {name: worker, replicas: 2}]}");
    let of = |pod: &str, name: &str| variable(&stage, pod, name).unwrap();
    assert_eq!(of("j-worker-1", "MASTER_ADDR"), "j-master-0.j");
    assert_eq!((of("j-worker-1", "RANK"), of("j-master-0", "RANK")), ("2".to_owned(), "0".to_owned()));
    assert_eq!(of("j-worker-1", "WORLD_SIZE"), "3");
    assert_eq!(of("j-worker-1", "VC_TASK_INDEX"), "1");
    let task = stage.task("j-worker-0");
    assert!(task.hosts.as_deref().unwrap().contains("\tj-master-0 j-master-0.j\n"));
    assert!(task.files.iter().any(|file| file.path == "/etc/volcano/worker.host"));
}

#[test]
fn a_variable_of_the_manifest_wins_over_a_plugins() {
    let spec = "
plugins: {env: []}
tasks:
- name: a
  template: {spec: {containers: [{name: m, image: i, command: [c], env: [{name: VC_TASK_INDEX, value: mine}]}]}}";
    let stage = Stage::new(spec);
    assert_eq!(variable(&stage, "j-a-0", "VC_TASK_INDEX").as_deref(), Some("mine"));
}

#[test]
fn volumes_of_the_job_are_mounted_everywhere() {
    let mut stage = Stage::new(
        "{volumes: [{mountPath: /data, volumeClaimName: d}, {mountPath: /own, volumeClaim: {}}], tasks: [{name: a}]}",
    );
    assert_eq!(stage.live(), [] as [&str; 0], "it waits for the claim");
    assert_eq!(stage.status()["awaitedClaims"]["names"][0], "d");
    stage.restart();
    stage.claim("other");
    assert_eq!(stage.live(), [] as [&str; 0]);
    stage.claim("d");
    assert!(stage.status()["awaitedClaims"].is_null());
    let mounts = &stage.task("j-a-0").mounts;
    let told = serde_json::to_value(mounts).unwrap();
    assert_eq!((&told[0]["path"], &told[0]["source"]["Claim"]["name"]), (&"/data".into(), &"d".into()));
    assert!(told[1]["source"]["Claim"]["name"].as_str().unwrap().starts_with("j-pvc-"), "{told}");
    let brought: Vec<Value> = stage.engine.run(RUN).unwrap().objects();
    assert_eq!(brought.len(), 1, "{brought:?}");
    assert_eq!(brought[0]["metadata"]["name"], told[1]["source"]["Claim"]["name"]);
    assert_eq!(brought[0]["metadata"]["ownerReferences"][0]["name"], "j");
}

#[test]
fn pods_events_and_nodes_are_seen() {
    let mut stage = Stage::new("{minAvailable: 1, tasks: [{name: a, replicas: 2}]}");
    stage.up("j-a-0");
    stage.exit("j-a-1", 3);
    let object = status::object(stage.run(RUN));
    let pods = DIALECT.view.pods(&object, Time(0), Some("here")).items;
    let told: Vec<(&str, &str)> =
        pods.iter().map(|(name, pod)| (name.as_str(), pod["status"]["phase"].as_str().unwrap())).collect();
    assert_eq!(told, [("j-a-0", "Running"), ("j-a-1", "Failed")]);
    let pod = &pods[1].1;
    assert_eq!(pod["metadata"]["labels"]["volcano.sh/job-name"], "j");
    assert_eq!(pod["metadata"]["annotations"]["volcano.sh/task-index"], "1");
    assert_eq!(pod["metadata"]["ownerReferences"][0]["kind"], "Job");
    assert_eq!(pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"], 3);
    let events = DIALECT.view.events(&object);
    let reasons: Vec<&Value> = events.iter().map(|(_, event)| &event["reason"]).collect();
    assert!(reasons.contains(&&"PodFailed".into()) && reasons.contains(&&"JobRunning".into()), "{reasons:?}");
    let nodes = DIALECT.view.with_nodes(&object)["status"]["nodes"].as_object().unwrap().len();
    assert_eq!(nodes, 4);
    assert_eq!(DIALECT.phase_of(&object), "Running");
    assert!(!DIALECT.is_decided(&object));
}

#[test]
fn logs_of_all_tries_stay_apart() {
    let mut stage = Stage::new("{policies: [{event: PodFailed, action: RestartPod}], tasks: [{name: a}]}");
    stage.exit("j-a-0", 1);
    let run = stage.engine.run(RUN).unwrap();
    let (object, attempts) = (run.object(), run.attempts());
    let names: Vec<&str> = attempts.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["j-a-0.0", "j-a-0"]);
    let logs = DIALECT.view.pod_logs(&object, &attempts, &Default::default());
    assert_eq!(logs.iter().map(|log| log.over).collect::<Vec<_>>(), [true, false]);
    let one = |name: &str| DIALECT.view.log_parts(&object, &attempts, &[name.to_owned()]).len();
    assert_eq!((one("a"), one("a-0"), one("j-a-0"), one("j-a-0.0"), one("b")), (2, 2, 1, 1, 0));
}

#[test]
fn the_record_names_every_try() {
    let mut stage = Stage::new("{policies: [{event: PodFailed, action: RestartPod}], tasks: [{name: a}]}");
    stage.exit("j-a-0", 1);
    stage.exit("j-a-0", 0);
    stage.ends("Completed");
    let mut written = Vec::new();
    stage.engine.run(RUN).unwrap().write_record(&mut written).unwrap();
    let record: Value = serde_json::from_slice(&written).unwrap();
    assert_eq!((&record["elsewhere"]["j-a-0.0"], &record["elsewhere"]["j-a-0"]), (&"1-0-0".into(), &"1-0-1".into()));
    assert_eq!(record["object"]["status"]["state"]["phase"], "Completed");
}

#[test]
fn only_a_pod_that_is_there_can_be_evicted() {
    let mut stage = Stage::new("{minAvailable: 1, tasks: [{name: a, replicas: 2}]}");
    stage.exit("j-a-1", 0);
    for pod in ["j-b-0", "a-0"] {
        let command = Command::Evict { pod: pod.to_owned(), why: StopReason::Deleted };
        assert!(matches!(stage.command(command), Err(Refusal::NoSuchPod { .. })), "{pod}");
    }
    stage.evict("j-a-1", StopReason::Deleted);
    assert!(stage.live().contains(&"j-a-1".to_owned()), "one that has ended is there, and is created again");
    let set =
        Command::Set { selector: String::new(), phase: None, message: String::new(), outputs: Default::default() };
    assert!(matches!(stage.command(set), Err(Refusal::Invalid(_))));
}

#[test]
fn vj17_what_plugins_and_volumes_add_is_seen_in_pods() {
    let spec = "{plugins: {env: [], ssh: [], pytorch: ['--wait-master-enabled=true'], hcclrank: []}, \
                volumes: [{mountPath: /data, volumeClaimName: c}], \
                tasks: [{name: master}, {name: worker, replicas: 2}]}";
    let mut stage = Stage::empty(crate::play::ROOMY);
    stage.claim("c");
    stage.submit(1, spec);
    stage.up_all();
    let pods = DIALECT.view.pods(&status::object(stage.run(RUN)), Time(0), Some("here")).items;
    let pod = &pods.iter().find(|(name, _)| name == "j-worker-1").expect("it is there").1;
    let (spec, main) = (&pod["spec"], &pod["spec"]["containers"][0]);
    assert_eq!((&spec["hostname"], &spec["subdomain"]), (&json!("j-worker-1"), &json!("j")));
    assert_eq!(pod["metadata"]["annotations"]["hccl/rankIndex"], "2");
    assert_eq!(pod["metadata"]["annotations"]["volcano.sh/template-uid"], "u-1-worker");
    let env = |name: &str| {
        let all = main["env"].as_array().expect("there are variables").iter();
        let mut found = all.filter(|one| one["name"] == name);
        let first = found.next().cloned().unwrap_or_default();
        assert!(found.next().is_none(), "{name} is there once");
        first
    };
    assert_eq!(env("RANK")["value"], "2");
    assert_eq!(env("MASTER_ADDR")["value"], "j-master-0.j");
    assert_eq!(env("VC_TASK_INDEX")["value"], "1");
    assert_eq!(
        env("VC_WORKER_HOSTS")["valueFrom"]["configMapKeyRef"],
        json!({"name": "j-svc", "key": "VC_WORKER_HOSTS"})
    );
    assert_eq!(main["ports"][0]["containerPort"], 23456);
    assert_eq!(spec["initContainers"][0]["name"], "wait-for-master");
    assert_eq!(pod["status"]["initContainerStatuses"][0]["name"], "wait-for-master");
    let mounts: Vec<(&Value, &Value)> = main["volumeMounts"]
        .as_array()
        .expect("there are mounts")
        .iter()
        .map(|mount| (&mount["name"], &mount["mountPath"]))
        .collect();
    let expected = [("j-svc", "/etc/volcano"), ("j-ssh", "/root/.ssh"), ("job-volume-0", "/data")];
    let expected = expected.map(|(name, path)| (json!(name), json!(path)));
    assert_eq!(mounts, expected.iter().map(|(name, path)| (name, path)).collect::<Vec<_>>());
    assert_eq!(spec["volumes"][2]["persistentVolumeClaim"]["claimName"], "c");
    assert_eq!(spec["volumes"][1]["secret"]["secretName"], "j-ssh");
    // A pod of a job without any of that is as its template is.
    let mut plain = Stage::new("tasks: [{name: a}]");
    plain.up_all();
    let pods = DIALECT.view.pods(&status::object(plain.run(RUN)), Time(0), None).items;
    assert!(pods[0].1["spec"]["hostname"].is_null() && pods[0].1["spec"]["containers"][0]["env"].is_null());
}
