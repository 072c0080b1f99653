//! JobFlows as kubectl manages them, in both of their groups, on the real binary.

use crate::rig::{Rig, eventually, shows};

const FLOW: &str = "apiVersion: batch.volcano.sh/v1alpha1
kind: JobTemplate
metadata: {name: a}
spec:
  tasks:
  - name: main
    template:
      spec:
        containers:
        - {name: main, image: busybox, command: [sh, -c, 'until [ -e GATE ]; do sleep 0.05; done']}
---
apiVersion: flow.volcano.sh/v1alpha1
kind: JobTemplate
metadata: {name: b}
spec:
  tasks:
  - name: main
    template:
      spec:
        containers:
        - {name: main, image: busybox, command: ['true']}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: JobFlow
metadata: {name: test}
spec:
  JobRetainPolicy: retain
  flows:
  - name: a
  - name: b
    dependsOn: {targets: [a]}
";

#[test]
fn a_flow_is_applied_watched_and_deleted_with_its_jobs() {
    let Some(mut rig) = Rig::with_kubectl() else { return };
    let gate = rig.path("go");
    let file = rig.file("flow.yaml", &FLOW.replace("GATE", gate.to_str().unwrap()));
    shows(
        &rig.good(&["apply", "-f", &file]),
        &[
            "jobtemplate.batch.volcano.sh/a created",
            "jobtemplate.flow.volcano.sh/b created",
            "jobflow.batch.volcano.sh/test created",
        ],
    );
    shows(
        &rig.good(&["apply", "-f", &file]),
        &["jobtemplate.batch.volcano.sh/a unchanged", "jobflow.batch.volcano.sh/test unchanged"],
    );
    eventually("the first job runs", || rig.good(&["get", "jf"]).contains("Running"));
    shows(
        &rig.good(&["get", "jf,vcjob,jt,pods"]),
        &["jobflow.flow.volcano.sh/test", "0/2", "test-a", "jobtemplate", "test-a-main-0"],
    );
    shows(&rig.good(&["get", "jobflows.batch.volcano.sh", "test", "-o", "wide"]), &["RUNNING", "FAILED", "MESSAGE"]);
    shows(&rig.good(&["explain", "jf.spec.flows.dependsOn"]), &["probe", "strategy", "targets"]);
    // The server is restarted in the middle.
    rig.restart();
    let kinds = ["jf", "vcjob", "pods"];
    let watching = kinds.map(|kind| {
        let mut watch = rig.command(&["get", kind, "-w"]);
        watch.stdout(std::fs::File::create(rig.path(kind)).unwrap()).stderr(std::process::Stdio::null());
        watch.spawn().unwrap()
    });
    let told = |kind: &str| std::fs::read_to_string(rig.path(kind)).unwrap();
    eventually("all of them watch", || kinds.iter().all(|kind| told(kind).contains("test")));
    std::fs::write(&gate, "").unwrap();
    rig.good(&["wait", "jf/test", "--for", "jsonpath={.status.state.phase}=Succeed", "--timeout", "60s"]);
    eventually("everything is told", || {
        told("jf").contains("Succeed") && told("vcjob").contains("test-b") && told("pods").contains("test-b-main-0")
    });
    for mut watch in watching {
        watch.kill().unwrap();
        watch.wait().unwrap();
    }
    shows(&told("jf"), &["Running", "Succeed"]);
    shows(&told("vcjob"), &["test-a", "Completed"]);
    shows(&rig.good(&["describe", "jf", "test"]), &["Completed Jobs", "test-a", "test-b", "JobFlowSucceed"]);
    let from = rig.json(&["get", "jt", "a"]);
    assert_eq!(from["status"]["jobDependsOnList"], serde_json::json!(["test-a"]));
    rig.good(&["delete", "jf", "test", "--timeout", "60s"]);
    eventually("its jobs go with it", || !rig.good(&["get", "vcjob", "-o", "name"]).contains("test-"));
    shows(&rig.good(&["get", "jt", "-o", "name"]), &["jobtemplate.flow.volcano.sh/a", "jobtemplate.flow.volcano.sh/b"]);
}
