//! What `kubectl drain` makes of the pods of every dialect, on the real binary.

use crate::rig::{Rig, eventually, shows};

const ENDED_AND_RUNNING: &str = "apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: steps}
spec:
  entrypoint: main
  templates:
  - name: main
    steps: [[{name: first, template: short}], [{name: second, template: short}], [{name: third, template: long}]]
  - name: short
    container: {image: busybox, command: ['true']}
  - name: long
    container: {image: busybox, command: [sh, -c, 'trap \"exit 0\" TERM; sleep 300 & wait']}
---
apiVersion: octopus.openi.pcl.cn/v1alpha1
kind: TaskSet
metadata: {name: set}
spec:
  roles:
  - {name: short, replicas: 1, completionPolicy: {minSucceeded: 1, maxFailed: 1}, template: {spec: {containers: [{name: main, image: busybox, command: ['true']}]}}}
  - {name: long, replicas: 1, completionPolicy: {minSucceeded: 1, maxFailed: 1}, template: {spec: {containers: [{name: main, image: busybox, command: [sh, -c, 'trap \"exit 0\" TERM; sleep 300 & wait']}]}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: short}
spec:
  backoffLimit: 0
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox, command: ['false']}]}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: long}
spec:
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox, command: [sh, -c, 'trap \"exit 0\" TERM; sleep 300 & wait']}]}}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: volcano}
spec:
  minAvailable: 1
  tasks:
  - {name: short, replicas: 1, template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox, command: ['true']}]}}}
  - {name: long, replicas: 1, template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox, command: [sh, -c, 'trap \"exit 0\" TERM; sleep 300 & wait']}]}}}
";

/// Pods that are over stay as part of the record of their run; kubectl asks for their eviction too, and must not wait for it.
#[test]
fn a_drain_ends_although_pods_that_are_over_stay() {
    let Some(rig) = Rig::with_kubectl() else { return };
    let node = rig.good(&["get", "nodes", "-o", "jsonpath={.items[0].metadata.name}"]);
    rig.good(&["create", "-f", &rig.file("all.yaml", ENDED_AND_RUNNING)]);
    let phases = || {
        let all = rig.json(&["get", "pods"]);
        let phase = |pod: &serde_json::Value| pod["status"]["phase"].as_str().unwrap_or_default().to_owned();
        let mut all: Vec<String> = all["items"].as_array().unwrap().iter().map(phase).collect();
        all.sort();
        all
    };
    eventually("four run", || phases().iter().filter(|phase| *phase == "Running").count() == 4);
    eventually("four are over", || {
        phases().iter().filter(|phase| *phase == "Succeeded" || *phase == "Failed").count() == 4
    });
    let over = phases().into_iter().filter(|phase| phase != "Running").collect::<Vec<_>>();
    shows(&rig.good(&["drain", &node, "--timeout=60s"]), &["cordoned", "drained"]);
    let left = phases();
    assert!(!left.iter().any(|phase| phase == "Running"), "{left:?}");
    assert_eq!(left.into_iter().filter(|phase| phase != "Pending").collect::<Vec<_>>(), over, "the record is kept");
}
