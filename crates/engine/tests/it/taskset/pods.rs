//! Pods of TaskSets: names, variables, termination messages, and the status users read.

use octoflow_engine::{
    Command, Input,
    taskset::{explain::explain, status},
};
use octoflow_model::{Fact, Report, order::Exit, pod::Part, task::EnvValue};
use serde_json::Value;

use super::stage::{Stage, Told};
use crate::play::{ROOMY, RUN};

fn env<'t>(env: &'t [(String, EnvValue)], name: &str) -> Vec<&'t str> {
    let plain = |value: &'t EnvValue| match value {
        EnvValue::Plain(text) => text.as_str(),
        EnvValue::Secret(_) => "secret",
    };
    env.iter().filter(|(key, _)| key == name).map(|(_, value)| plain(value)).collect()
}

#[test]
fn ts26_every_container_knows_who_it_is() {
    let mut stage = Stage::new(
        "
roles:
- name: ps
- name: worker
  replicas: 2
  retryPolicy: {retry: true, delay: 0, maxRetryCount: 1}
  template:
    metadata: {labels: {team: red}}
    spec:
      initContainers: [{name: fetch, image: i, command: [c]}]
      containers:
      - {name: main, image: i, command: [c], env: [{name: TASKROLE_NAME, value: mine}]}
      - {name: side, image: i, command: [c]}",
    );
    stage.exit("t-worker-0-0-1", 1);
    let task = &stage.tasks["t-worker-0-1-1"];
    let members = &task.pod.as_ref().unwrap().members;
    let parts: Vec<(Part, &str)> = members.iter().map(|one| (one.part, one.container.name.as_str())).collect();
    assert_eq!(parts, [(Part::Init, "fetch"), (Part::Main, "main"), (Part::Main, "side")]);
    assert_eq!(task.main.name, "main");
    for member in members {
        let own = |name: &str| env(&member.container.env, name);
        assert_eq!(own("TASKSET_NAME"), ["t"]);
        assert_eq!(own("TASKSET_NAMESPACE"), ["default"]);
        assert_eq!(own("TASKROLE_REPLICA_INDEX"), ["1"]);
        assert_eq!(own("TASKSET_ATTEMPT"), ["0"]);
        assert_eq!(own("TASKROLE_REPLICA_ATTEMPT"), ["1"]);
        assert_eq!(own("TASKSET_REPLICA_RANK"), ["2"]);
        assert_eq!(own("TASKROLE_WORKER_REPLICAS"), ["2"]);
        let addresses: Vec<&str> = own("TASKROLE_WORKER_ADDRESSES")[0].split(',').collect();
        assert_eq!(addresses[1], own("TASKROLE_REPLICA_ADDRESS")[0]);
        assert_eq!(stage.replica("worker", 1)["podIP"], addresses[1]);
        // The user's own comes last and wins.
        let role = own("TASKROLE_NAME");
        assert_eq!(role.last(), Some(if member.container.name == "main" { &"mine" } else { &"worker" }));
    }
    let hosts = task.hosts.as_deref().unwrap();
    assert!(hosts.contains("\tps-0 ps-0.t\n") && hosts.contains("\tworker-1 worker-1.t\n"), "{hosts}");
}

#[test]
fn ts27_last_words_are_kept() {
    let mut stage = Stage::new("roles: [{name: a, replicas: 2, completionPolicy: {maxFailed: 2, minSucceeded: 2}}]");
    let wanted = stage.tasks["t-a-0-0-0"].wanted.message.as_ref().unwrap();
    assert!(wanted.tail, "the end of the log stands in when the manifest does not say otherwise");
    assert_eq!(wanted.path.as_deref(), Some("/dev/termination-log"));
    stage.up_all();
    stage.end("t-a-0-0-0", Exit::Code(3), Some("no such file"));
    let info = stage.replica("a", 0)["terminatedInfo"].clone();
    assert_eq!(info["exitCode"], 3);
    assert_eq!(info["exitMessage"], "no such file");
    assert_eq!(info["reason"], "Error");
    stage.end("t-a-0-0-1", Exit::Signal(9), None);
    let info = stage.replica("a", 1)["terminatedInfo"].clone();
    assert_eq!((&info["exitCode"], &info["signal"]), (&137.into(), &9.into()));
    stage.ends("Failed");
}

#[test]
fn ts25_what_is_terminated_ends_at_once_and_nothing_is_made_again() {
    let mut stage = Stage::new(
        "retryPolicy: {retry: true, delay: 0, maxRetryCount: 5}\n\
         roles: [{name: a, replicas: 2, retryPolicy: {retry: true, delay: 0, maxRetryCount: 5}}]",
    );
    stage.up_all();
    stage.command(Command::Terminate).unwrap();
    assert!(stage.pods.values().all(|pod| pod.told == Some(Told::Kill)));
    for pod in stage.live() {
        stage.end(&pod, Exit::Signal(9), None);
    }
    stage.ends("Failed");
    assert_eq!(stage.starts.len(), 2);
    assert!(
        stage.facts[&RUN]
            .iter()
            .any(|fact| matches!(fact, Fact::TaskSet(octoflow_model::taskset::SetFact::Over { .. })))
    );
}

#[test]
fn what_is_stopped_politely_can_be_ended_harder_and_not_softer() {
    let mut stage = Stage::new("roles: [{name: a, replicas: 2}]");
    stage.command(Command::Stop).unwrap();
    assert!(stage.pods.values().all(|pod| pod.told == Some(Told::Stop)));
    stage.command(Command::Terminate).unwrap();
    assert!(stage.pods.values().all(|pod| pod.told == Some(Told::Kill)));
    stage.command(Command::Stop).unwrap();
    assert!(stage.pods.values().all(|pod| pod.told == Some(Told::Kill)));
    stage.leave();
    stage.ends("Failed");
    assert_eq!(stage.status()["stateMessage"], "TaskSet shutdown with strategy: Stop");
}

#[test]
fn ts29_the_whole_stays_running_when_no_role_is() {
    let mut stage = Stage::with_slots(1, "roles: [{name: a}, {name: b}]");
    stage.up("t-a-0-0-0");
    let started = stage.status()["startAt"].clone();
    stage.tick(5);
    stage.exit("t-a-0-0-0", 0);
    assert_eq!(stage.live(), ["t-b-0-0-0"]);
    assert_eq!(stage.role("b")["state"], "Waiting");
    assert_eq!((stage.word(), &stage.status()["startAt"]), ("Running".to_owned(), &started));
    stage.up("t-b-0-0-0");
    stage.exit("t-b-0-0-0", 0);
    stage.ends("Succeeded");
    assert_eq!(stage.status()["startAt"], started);
}

#[test]
fn ts34_a_thousand_replicas_take_a_bounded_number_of_facts() {
    let spec = "roles: [{name: a, replicas: 1000, completionPolicy: {maxFailed: 1, minSucceeded: 1000}}]";
    let mut stage = Stage::empty(octoflow_engine::Capacity { slots: 8, ..ROOMY });
    stage.checked = false;
    stage.submit(1, spec, &super::stage::Groups::default());
    while let Some((attempt, _)) = stage.pods.first_key_value() {
        let (attempt, at) = (*attempt, stage.now);
        let name = stage.pods[&attempt].name.clone();
        stage.input(Input::Report(Report::Started { attempt, at }));
        stage.exit(&name, 0);
    }
    stage.ends("Succeeded");
    let facts = &stage.facts[&RUN];
    // One each for being launched, started and over, one for two hundred that are queued, and few for the whole.
    assert!(facts.len() <= 3 * 1000 + 5 + 9, "{} facts", facts.len());
    let bytes: usize = facts.iter().skip(1).map(|fact| serde_json::to_string(fact).unwrap().len()).sum();
    assert!(bytes < 400 * 1000, "{bytes} bytes of facts");
    assert!(stage.turns <= 2 * 1000 + 1, "{} turns", stage.turns);
    stage.checked = true;
    stage.tick(1);
}

#[test]
fn the_object_is_the_manifest_with_what_became_of_it() {
    let mut stage = Stage::new("roles: [{name: a}]");
    stage.up_all();
    let object = status::object(stage.run(RUN));
    assert_eq!(object["metadata"]["uid"], "u-1");
    assert_eq!(object["spec"]["roles"][0]["name"], "a");
    let replica = stage.replica("a", 0);
    assert_eq!(replica["podName"], "t-a-0-0-0");
    assert_eq!(replica["containerName"], "main");
    assert!(replica["containerID"].as_str().unwrap().starts_with("octoflow://"));
    assert!(replica["podUID"].as_str().is_some_and(|uid| uid.len() == 36));
    stage.exit("t-a-0-0-0", 0);
    let fields = ["index", "name", "phase", "phaseMessage", "stopped", "transitionTime", "startAt", "finishAt"];
    let more = ["totalRetriedCount", "podName", "podUID", "podIP", "podHostIP", "containerName", "containerID"];
    let replica = stage.replica("a", 0);
    for field in fields.iter().chain(&more).chain(&["terminatedInfo"]) {
        assert!(replica.get(field).is_some_and(|value: &Value| !value.is_null()), "{field} in {replica:#}");
    }
    assert_eq!(stage.status()["progress"], "1/1");
}

#[test]
fn everything_that_waits_has_a_reason() {
    let mut stage = Stage::with_slots(
        1,
        "
roles:
- {name: a, replicas: 3, retryPolicy: {retry: true, delay: 60, maxRetryCount: 1}}
- {name: b, dependsOn: [{role: a, condition: Succeeded}]}",
    );
    let reasons = |stage: &Stage| -> Vec<String> {
        let found = explain(stage.run(RUN), Some(stage.engine.scheduler()));
        found.iter().map(|one| format!("{}: {}", one.node, one.reason)).collect()
    };
    stage.up_all();
    stage.exit("t-a-0-0-0", 7);
    let told = reasons(&stage).join("\n");
    assert!(told.contains("a-0: waits until") && told.contains("(exit code 7)"), "{told}");
    assert!(told.contains("a-1: being started since"), "{told}");
    assert!(told.contains("a-2: waits in queue 'default', 1 of 1: 1 node without enough free pods"), "{told}");
    assert!(told.contains("b: waits for role 'a' to be Succeeded"), "{told}");
    stage.suspend();
    assert!(reasons(&stage)[0].contains("suspended"));
    stage.command(Command::Terminate).unwrap();
    stage.leave();
    stage.ends("Failed");
    assert!(!reasons(&stage).is_empty());
}
