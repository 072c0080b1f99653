//! A TaskSet from its creation to its deletion, as kubectl does it.

use std::io::{BufRead, BufReader};

use crate::rig::{Rig, eventually, shows};

const PATH: &str = "/apis/octopus.openi.pcl.cn/v1alpha1/namespaces/default/tasksets";

/// A `ps` that never ends and workers that end once the file is there; the set succeeds with its workers.
pub(crate) fn demo(name: &str, gate: &str, workers: u32) -> String {
    format!(
        "apiVersion: octopus.openi.pcl.cn/v1alpha1
kind: TaskSet
metadata:
  name: {name}
  labels: {{app: tests}}
spec:
  roles:
  - name: ps
    replicas: 1
    completionPolicy: {{maxFailed: 1, minSucceeded: 1}}
    template:
      spec:
        restartPolicy: Never
        containers:
        - {{name: server, image: busybox, command: [sh, -c, 'echo serving; sleep 600']}}
  - name: worker
    replicas: {workers}
    eventPolicy: [{{event: RoleSucceeded, action: TaskSetSucceeded}}]
    completionPolicy: {{maxFailed: 1, minSucceeded: {workers}}}
    template:
      metadata:
        labels: {{tier: work}}
        annotations: {{note: mine}}
      spec:
        restartPolicy: Never
        containers:
        - name: worker
          image: busybox
          command: [sh, -c, 'echo waiting; until [ -e {gate} ]; do sleep 0.05; done; echo through']
          env: [{{name: TASKROLE_NAME, value: my-own}}]
"
    )
}

impl Rig {
    pub(crate) fn state(&self, name: &str) -> String {
        self.good(&["get", "ts", name, "-o", "jsonpath={.status.state}"])
    }

    pub(crate) fn runs(&self, name: &str) {
        let running = |pod: &serde_json::Value| pod["status"]["phase"] == "Running";
        eventually("all its pods run", || {
            let selector = format!("TaskSet={name}");
            let pods = self.json(&["get", "pods", "-l", &selector]);
            let pods = pods["items"].as_array().unwrap().clone();
            let roles = self.json(&["get", "ts", name])["status"]["roleStatus"].as_array().unwrap().clone();
            let replicas: usize = roles.iter().map(|role| role["replicaStatus"].as_array().unwrap().len()).sum();
            pods.len() == replicas && pods.iter().all(running)
        });
    }
}

#[test]
fn ts32_kubectl_follows_a_task_set_from_its_creation_to_its_deletion() {
    let Some(rig) = Rig::with_kubectl() else { return };
    let gate = rig.path("gate").display().to_string();
    let file = rig.file("demo.yaml", &demo("demo", &gate, 2));
    let mut watching = rig.command(&["get", "ts", "-w", "--output-watch-events"]).spawn().unwrap();
    shows(&rig.good(&["create", "-f", &file]), &["taskset.octopus.openi.pcl.cn/demo created"]);
    shows(
        &rig.bad(&["create", "-f", &file]),
        &["AlreadyExists", "tasksets.octopus.openi.pcl.cn \"demo\" already exists"],
    );
    rig.runs("demo");
    assert_eq!(rig.state("demo"), "Running");
    shows(
        &rig.good(&["get", "tasksets"]),
        &[
            "NAME",
            "STATE",
            "PHASE",
            "ROLES",
            "RETRIES",
            "AGE",
            "demo",
            "Running",
            "TaskSetAttemptRunning",
            "ps 0/1,worker 0/2",
        ],
    );
    let pods = rig.good(&["get", "pods", "-o", "name"]);
    assert_eq!(pods, "pod/demo-ps-0-0-0\npod/demo-worker-0-0-0\npod/demo-worker-0-0-1\n");
    assert_eq!(rig.good(&["get", "pods", "-l", "PodTaskRole=ps", "-o", "name"]), "pod/demo-ps-0-0-0\n");
    eventually("the worker speaks", || rig.good(&["logs", "demo-worker-0-0-1"]) == "waiting\n");
    shows(&rig.good(&["logs", "demo-ps-0-0-0", "-c", "server"]), &["serving"]);
    shows(&rig.good(&["get", "all"]), &["pod/demo-ps-0-0-0", "taskset.octopus.openi.pcl.cn/demo"]);

    shows(&rig.good(&["label", "ts", "demo", "team=blue"]), &["labeled"]);
    assert_eq!(rig.good(&["get", "ts", "-l", "team=blue", "-o", "name"]), "taskset.octopus.openi.pcl.cn/demo\n");
    shows(&rig.good(&["annotate", "ts/demo", "why=tests"]), &["annotated"]);
    shows(
        &rig.bad(&["patch", "ts", "demo", "--type=merge", "-p", "{\"spec\":{\"roles\":[]}}"]),
        &["spec.roles", "only spec.suspend and spec.shutdown can be changed"],
    );

    let mut following = rig.command(&["logs", "-f", "demo-worker-0-0-0"]).spawn().unwrap();
    let mut followed = BufReader::new(following.stdout.take().unwrap()).lines();
    // A pod that is over is gone, so whoever wants to follow it must have begun.
    assert_eq!(followed.next().unwrap().unwrap(), "waiting");
    let waiting =
        rig.command(&["wait", "--for=jsonpath={.status.state}=Succeeded", "ts/demo", "--timeout=60s"]).spawn().unwrap();
    std::fs::write(&gate, "").unwrap();
    assert_eq!(followed.next().unwrap().unwrap(), "through");
    assert!(followed.next().is_none() && following.wait().unwrap().success());
    let waited = waiting.wait_with_output().unwrap();
    assert!(waited.status.success() || rig.minor() < 23, "{waited:?}");
    eventually("it is over", || rig.state("demo") == "Succeeded");

    shows(
        &rig.good(&["get", "ts", "-o", "wide"]),
        &["MESSAGE", "START", "FINISH", "demo", "Succeeded", "ps 0/1,worker 2/2"],
    );
    assert_eq!(rig.good(&["get", "ts", "--field-selector=status.state=Failed", "-o", "name"]), "");
    let named = rig.good(&["get", "ts", "--field-selector=status.state=Succeeded,metadata.name=demo", "-o", "name"]);
    assert_eq!(named, "taskset.octopus.openi.pcl.cn/demo\n");
    shows(
        &rig.good(&["get", "ts", "demo", "-o", "yaml"]),
        &["kind: TaskSet", "spec:", "roleStatus:", "state: Succeeded"],
    );
    shows(
        &rig.good(&["describe", "ts", "demo"]),
        &["Name:", "demo", "Kind:", "TaskSet", "Role Status:", "Events:", "TaskSetRunning", "RoleSucceeded"],
    );
    shows(&rig.good(&["get", "events"]), &["LAST SEEN", "REASON", "taskset/demo"]);
    assert_eq!(rig.good(&["get", "pods", "-o", "name"]), "");
    let log = "/api/v1/namespaces/default/pods/demo-worker-0-0-1/log";
    assert_eq!(rig.get(log).text(), "waiting\nthrough\n");
    assert_eq!(rig.get(&format!("{log}?tailLines=1&container=worker")).text(), "through\n");
    rig.get(&format!("{log}?previous=true")).is_status(400, "BadRequest");

    shows(&rig.good(&["delete", "ts", "demo", "--wait=true"]), &["\"demo\" deleted"]);
    shows(&rig.bad(&["get", "ts", "demo"]), &["NotFound", "tasksets.octopus.openi.pcl.cn \"demo\" not found"]);
    rig.get(log).is_status(404, "NotFound");
    let mut seen = String::new();
    for line in BufReader::new(watching.stdout.take().unwrap()).lines().map_while(Result::ok) {
        seen.push_str(&line);
        if line.starts_with("DELETED") {
            break;
        }
    }
    // It would go on for as long as the server does.
    watching.kill().unwrap();
    watching.wait().unwrap();
    shows(&seen, &["EVENT", "STATE", "ADDED", "demo", "MODIFIED", "Running", "DELETED"]);
}

#[test]
fn ts32_task_sets_are_applied_suspended_and_stopped() {
    let Some(rig) = Rig::with_kubectl() else { return };
    let gate = rig.path("gate").display().to_string();
    let text = demo("demo", &gate, 1).replace("spec:\n  roles:", "spec:\n  suspend: true\n  roles:");
    let file = rig.file("demo.yaml", &text);
    shows(&rig.good(&["apply", "-f", &file]), &["created"]);
    shows(&rig.good(&["apply", "-f", &file]), &["unchanged"]);
    assert_eq!(rig.state("demo"), "Waiting");
    assert_eq!(rig.good(&["get", "pods", "-o", "name"]), "");
    let file =
        rig.file("demo.yaml", &text.replace("suspend: true", "suspend: false").replace("app: tests", "app: other"));
    shows(&rig.good(&["apply", "-f", &file]), &["configured"]);
    rig.runs("demo");
    assert_eq!(rig.good(&["get", "ts", "-l", "app=other", "-o", "name"]), "taskset.octopus.openi.pcl.cn/demo\n");
    shows(&rig.good(&["apply", "--server-side", "--force-conflicts", "-f", &file]), &["serverside-applied"]);
    let stop = "{\"spec\":{\"shutdown\":\"Stop\"}}";
    shows(&rig.good(&["patch", "ts", "demo", "--type=merge", "-p", stop]), &["patched"]);
    eventually("it is stopped", || rig.state("demo") == "Failed");
    shows(&rig.good(&["delete", "-f", &file]), &["deleted"]);
}

#[test]
fn ts32_kubectl_knows_what_a_task_set_is_made_of() {
    let Some(rig) = Rig::with_kubectl() else { return };
    shows(
        &rig.good(&["api-resources"]),
        &["tasksets", "ts", "octopus.openi.pcl.cn/v1alpha1", "TaskSet", "podgroups", "PodGroup"],
    );
    shows(
        &rig.good(&["explain", "taskset.spec.roles"]),
        &["TaskSet", "completionPolicy", "eventPolicy", "replicas", "template"],
    );
    shows(&rig.good(&["explain", "ts.spec.roles.retryPolicy"]), &["maxRetryCount"]);
    shows(&rig.good(&["explain", "podgroup.spec"]), &["minMember"]);
    let text = demo("demo", "/nowhere", 1).replace("replicas: 1", "replicaz: 1");
    let file = rig.file("demo.yaml", &text);
    shows(&rig.bad(&["create", "-f", &file]), &["replicaz"]);
    let alias = rig.get("/apis/tasksets.octopus.openi.pcl.cn/v1alpha1").json();
    assert_eq!(alias["resources"][0]["name"], "tasksets");
    let groups = rig.get("/apis").json();
    let names: Vec<&str> =
        groups["groups"].as_array().unwrap().iter().map(|group| group["name"].as_str().unwrap()).collect();
    for group in ["octopus.openi.pcl.cn", "scheduling.incubator.k8s.io", "scheduling.k8s.io", "scheduling.volcano.sh"] {
        assert_eq!(names.iter().filter(|name| **name == group).count(), 1, "{group} among {names:?}");
    }
    assert!(!names.contains(&"tasksets.octopus.openi.pcl.cn"), "an alias is answered, not listed: {names:?}");
    assert_eq!(rig.get(PATH).status, 200);
}
