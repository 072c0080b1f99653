//! Steps of several containers through the real command: their order, their log, their failures, and progress.

use serde_json::Value;

use crate::stage::{Stage, eventually, signal};

fn workflow(name: &str, template: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {{name: {name}}}
spec:
  entrypoint: main
  volumes: [{{name: work, emptyDir: {{}}}}]
  templates:
  - name: main
{template}"
    )
}

fn node<'o>(object: &'o Value, name: &str) -> &'o Value {
    let nodes = object["status"]["nodes"].as_object().unwrap();
    nodes.values().find(|node| node["name"] == name).unwrap_or_else(|| panic!("no node {name}: {object:#}"))
}

const TRIO: &str = "
    initContainers:
    - {name: before, image: i, command: [sh, -c], args: ['echo first; echo shared > /shared/f'], mirrorVolumeMounts: true}
    container:
      image: i
      command: [sh, -c]
      args: ['cat /shared/f; echo aside >&2']
      volumeMounts: [{name: work, mountPath: /shared}]
    sidecars:
    - {name: helper, image: i, command: [sh, -c], args: ['echo helping; exec sleep 1000']}
";

#[test]
fn j24_init_containers_and_sidecars_stand_beside_main_and_are_told_apart_in_the_log() {
    let stage = Stage::new();
    stage.good(&["run", &stage.file("w.yaml", workflow("w", TRIO))]);
    let logs = |more: &[&str]| stage.good(&[&["logs", "w"], more].concat()).out;
    let all = logs(&[]);
    assert!(all.contains("w.before: first\n") && all.contains("w: shared\n"), "{all}");
    assert_eq!(logs(&["-c", "before"]), "w.before: first\n");
    assert_eq!(logs(&["-c", "main", "--no-prefix", "--grep", "shared"]), "shared\n");
    let raw = stage.good(&["logs", "w", "-o", "raw"]);
    assert_eq!((raw.out.as_str(), raw.err.as_str()), ("shared\n", "aside\n"), "raw bytes are main's");
    assert_eq!(stage.good(&["logs", "w", "-o", "raw", "-c", "before"]).out, "first\n");
    let said = stage.octoflow(&["logs", "w", "-c", "befor"]);
    assert_eq!(said.code, 3);
    assert!(said.err.contains("did you mean `before`?"), "{said}");
}

const SET: &str = "
    containerSet:
      volumeMounts: [{name: work, mountPath: /shared}]
      containers:
      - {name: a, image: i, command: [sh, -c], args: ['echo a; CODE']}
      - {name: main, image: i, command: [sh, -c], args: ['echo result'], dependencies: [a]}
";

#[test]
fn a13_a_set_shows_its_containers_in_the_object_the_tree_and_the_log() {
    let stage = Stage::new();
    let object = stage.json(&["run", "-o", "json", &stage.file("w.yaml", workflow("w", &SET.replace("CODE", "true")))]);
    assert_eq!(object["status"]["progress"], "3/3");
    assert_eq!(node(&object, "w.a")["type"], "Container");
    assert_eq!(node(&object, "w.main")["boundaryID"], "w");
    assert_eq!(node(&object, "w.a")["children"][0], node(&object, "w.main")["id"]);
    let tree = stage.good(&["get", "w"]).out;
    assert!(tree.contains("├─✔ a") && tree.contains("└─✔ main"), "{tree}");
    assert_eq!(stage.good(&["logs", "w", "w.a"]).out, "w.a: a\n", "a container is a node like any other");
    assert_eq!(stage.good(&["logs", "w", "main"]).out, "w: result\n");
}

#[test]
fn g13_the_failure_of_a_container_names_it_and_what_depends_on_it_never_runs() {
    let stage = Stage::new();
    let file = stage.file("w.yaml", workflow("w", &SET.replace("CODE", "kill -9 $$$$")));
    let said = stage.octoflow(&["run", "-o", "json", &file]);
    assert_eq!(said.code, 1, "{said}");
    let object: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(object["status"]["message"], "a: Error (exit code 137)");
    assert_eq!(node(&object, "w.main")["phase"], "Error");
    assert!(!stage.good(&["logs", "w"]).out.contains("result"));
}

#[test]
fn j25_a_container_of_a_set_is_tried_again_inside_its_step() {
    let flaky = "if [ -e /shared/tried ]; then true; else touch /shared/tried; exit 1; fi";
    let stage = Stage::new();
    let retried = SET
        .replace("CODE", flaky)
        .replace("      containers:", "      retryStrategy: {retries: 2, duration: 10ms}\n      containers:");
    stage.good(&["run", &stage.file("w.yaml", workflow("w", &retried))]);
    let once = workflow("once", &SET.replace("CODE", flaky));
    assert_eq!(stage.octoflow(&["run", &stage.file("once.yaml", once)]).code, 1);
}

#[test]
fn without_isolation_containers_share_the_working_directory_and_volumes_are_refused() {
    let stage = Stage::new();
    let plain = "
    initContainers: [{name: before, image: i, command: [sh, -c], args: ['echo hi > note']}]
    container: {image: i, command: [cat, note]}
";
    stage.good(&["run", "--isolation", "none", &stage.file("w.yaml", workflow("w", plain))]);
    assert_eq!(stage.good(&["logs", "w", "--no-prefix"]).out, "hi\n");
    let said = stage.octoflow(&["run", "--isolation", "none", &stage.file("v.yaml", workflow("v", TRIO))]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("cannot be mounted without isolation"), "{said}");
}

#[test]
fn a_pod_survives_a_killed_engine() {
    let stage = Stage::new();
    let gate = stage.path("open");
    let template = format!(
        "
    volumes: [{{name: gate, hostPath: {{path: {}}}}}]
    container:
      image: i
      command: [sh, -c]
      args: ['echo up; until [ -e /gate/open ]; do sleep 0.05; done; echo down']
      volumeMounts: [{{name: gate, mountPath: /gate}}]
    sidecars: [{{name: side, image: i, command: [sleep, '1000']}}]
",
        gate.parent().unwrap().display()
    );
    let mut engine = stage.start(&["run", &stage.file("w.yaml", workflow("w", &template))]);
    eventually("the step says it is up", || stage.octoflow(&["logs", "w"]).out.contains("w: up"));
    signal(&engine, "KILL");
    engine.wait().unwrap();
    std::fs::write(gate, "").unwrap();
    stage.good(&["run", "--resume", "w"]);
    assert_eq!(stage.good(&["logs", "w", "--no-prefix"]).out, "up\ndown\n", "it went on and was not begun again");
}

#[test]
fn j22_a_step_tells_its_progress() {
    let stage = Stage::new();
    let template = "
    container:
      image: i
      command: [sh, -c]
      args: ['echo 3/10 > $ARGO_PROGRESS_FILE; exit 1']
";
    let said = stage.octoflow(&["run", "-o", "json", &stage.file("w.yaml", workflow("w", template))]);
    let object: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{said}"));
    assert_eq!(object["status"]["progress"], "3/10");
    assert_eq!(node(&object, "w")["progress"], "3/10");
    let good = template.replace("exit 1", "exit 0");
    let object = stage.json(&["run", "-o", "json", &stage.file("v.yaml", workflow("v", &good))]);
    assert_eq!(object["status"]["progress"], "10/10");
}
