//! Jobs at a server: gangs, evictions, dependencies, claims and expiry, as kubectl sees them.

use std::{fs, thread, time::Duration};

use serde_json::{Value, json};

use crate::{
    job::{job, phases, pod, task},
    place::Place,
    rig::{Rig, eventually, shows},
};

/// A task whose pods run until the file is there.
fn gated(name: &str, replicas: u32, gate: &str, more: Value) -> Value {
    task(name, replicas, &format!("until test -e {gate}; do sleep 0.05; done"), more)
}

impl Rig {
    fn submit(&self, name: &str, tasks: Value, more: Value) {
        let file = self.file(&format!("{name}.yaml"), &job(name, tasks, more).to_string());
        self.good(&["create", "-f", &file]);
    }

    fn phase(&self, name: &str) -> String {
        self.good(&["get", "vcjob", name, "-o", "jsonpath={.status.state.phase}"])
    }

    fn until(&self, name: &str, phase: &str) {
        eventually(&format!("{name} is {phase}"), || self.phase(name) == phase);
    }

    fn pods(&self, name: &str) -> Vec<String> {
        let selector = format!("volcano.sh/job-name={name}");
        let listed = self.good(&["get", "pods", "-l", &selector, "-o", "name"]);
        listed.lines().map(|line| line.trim_start_matches("pod/").to_owned()).collect()
    }

    fn gate(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }
}

#[test]
fn vj_03_nothing_starts_before_everything_that_belongs_together_can() {
    let place = Place::start_with(&["--node-capacity", "example.com/seat=3"]);
    let asks = |mut task: Value| {
        task["template"]["spec"]["containers"][0]["resources"] = json!({"requests": {"example.com/seat": 1}});
        task
    };
    let gate = place.path("go").display().to_string();
    let submit = |name: &str, task: Value, least: u32| {
        let job = job(name, json!([asks(task)]), json!({ "minAvailable": least }));
        place.good(&["submit", &place.file(&format!("{name}.yaml"), &job.to_string())]);
    };
    let status = |name: &str| place.json(&["get", name])["status"].clone();
    submit("holder", gated("held", 1, &gate, json!({})), 1);
    eventually("it runs", || status("holder")["running"] == 1);
    submit("three", gated("gang", 4, &gate, json!({})), 3);
    shows(&place.good(&["explain", "three"]), &["waits"]);
    let three = status("three");
    assert_eq!((&three["state"]["phase"], &three["running"]), (&json!("Pending"), &json!(0)), "{three:#}");
    assert_eq!((&three["pending"], &three["admitted"]), (&json!(0), &json!(false)), "no pod is there: {three:#}");
    let tries: Vec<&Value> = three["pods"].as_array().unwrap().iter().map(|pod| &pod["tries"]).collect();
    assert!(tries.iter().all(|tries| **tries == json!(0)), "nothing was started: {three:#}");
    place.good(&["terminate", "holder"]);
    eventually("the gang runs", || status("three")["running"] == 3);
    let three = status("three");
    assert_eq!(three["pending"], 1, "the pod beyond the least waits for room: {three:#}");
    fs::write(&gate, "").unwrap();
    eventually("all of it ran", || status("three")["succeeded"] == 4);
}

#[test]
fn vj_11_an_action_is_called_off_when_the_replacement_runs() {
    let Some(rig) = Rig::with_kubectl() else { return };
    let more = json!({"policies": [{"event": "PodEvicted", "action": "RestartJob", "timeout": "3s"}]});
    rig.submit("taken", json!([gated("a", 2, "/nowhere", json!({}))]), more);
    rig.until("taken", "Running");
    rig.good(&["delete", "pod", "taken-a-0", "--wait=false"]);
    eventually("another one runs", || {
        let object = rig.json(&["get", "vcjob", "taken"]);
        pod(&object, "taken-a-0")["tries"] == 2 && pod(&object, "taken-a-0")["phase"] == "Running"
    });
    thread::sleep(Duration::from_secs(4));
    let object = rig.json(&["get", "vcjob", "taken"]);
    assert_eq!(object["status"]["retryCount"], 0, "{object:#}");
    assert!(pod(&object, "taken-a-0")["delayedAction"].is_null(), "{object:#}");
    rig.good(&["delete", "vcjob", "taken"]);
}

#[test]
fn vj_15_a_late_end_of_a_deleted_jobs_pod_concerns_nobody() {
    let Some(rig) = Rig::with_kubectl() else { return };
    // It takes a while to go, and then fails.
    let slow = "trap 'sleep 1; exit 3' TERM; echo up; while :; do sleep 0.05; done";
    let more = json!({"policies": [{"event": "PodFailed", "action": "AbortJob"}]});
    rig.submit("same", json!([task("a", 1, slow, json!({}))]), more.clone());
    eventually("it is up", || rig.kubectl(&["logs", "same-a-0"]).out == "up\n");
    rig.good(&["delete", "vcjob", "same", "--wait=true"]);
    let gate = rig.gate("go");
    rig.submit("same", json!([gated("a", 1, &gate, json!({}))]), more);
    rig.until("same", "Running");
    thread::sleep(Duration::from_secs(2));
    assert_eq!(rig.phase("same"), "Running");
    fs::write(&gate, "").unwrap();
    rig.until("same", "Completed");
}

#[test]
fn vj_22_what_is_over_expires_and_what_is_aborted_stays() {
    let Some(rig) = Rig::with_kubectl() else { return };
    let ttl = json!({"ttlSecondsAfterFinished": 1});
    rig.submit("kept", json!([gated("a", 1, "/nowhere", json!({}))]), ttl.clone());
    rig.until("kept", "Running");
    rig.good(&["patch", "vcjob", "kept", "--type=merge", "-p", "{\"spec\":{\"suspend\":true}}"]);
    rig.until("kept", "Aborted");
    rig.submit("brief", json!([task("a", 1, "true", json!({}))]), ttl);
    eventually("it is deleted", || rig.kubectl(&["get", "vcjob", "brief"]).code != 0);
    assert_eq!(rig.phase("kept"), "Aborted");
    // Resumed by the same field, it is another attempt.
    rig.good(&["patch", "vcjob", "kept", "--type=merge", "-p", "{\"spec\":{\"suspend\":null}}"]);
    rig.until("kept", "Running");
    let object = rig.json(&["get", "vcjob", "kept"]);
    assert_eq!(object["status"]["retryCount"], 1);
    shows(&phases(&object).join(" "), &["Aborting Aborted Restarting Pending Running"]);
    rig.good(&["delete", "vcjob", "kept"]);
}

#[test]
fn a_job_is_seen_with_its_columns_pods_and_events() {
    let Some(rig) = Rig::with_kubectl() else { return };
    rig.submit("seen", json!([gated("a", 2, &rig.gate("go"), json!({}))]), json!({}));
    rig.until("seen", "Running");
    shows(&rig.good(&["get", "vj"]), &["NAME", "STATUS", "MINAVAILABLE", "RUNNINGS", "seen", "Running"]);
    assert_eq!(rig.pods("seen"), ["seen-a-0", "seen-a-1"]);
    shows(&rig.good(&["describe", "vcjob", "seen"]), &["Min Available:", "JobRunning"]);
    let one = rig.json(&["get", "pod", "seen-a-1"]);
    assert_eq!(one["metadata"]["ownerReferences"][0]["kind"], "Job");
    assert_eq!(one["metadata"]["labels"]["volcano.sh/task-index"], "1");
    fs::write(rig.path("go"), "").unwrap();
    rig.until("seen", "Completed");
}

#[test]
fn vj_16_pods_wait_for_those_they_depend_on_to_be_ready() {
    let Some(rig) = Rig::with_kubectl() else { return };
    let (ready, gate) = (rig.gate("ready"), rig.gate("go"));
    let mut a = gated("a", 1, &gate, json!({}));
    a["template"]["spec"]["containers"][0]["readinessProbe"] =
        json!({"exec": {"command": ["test", "-e", ready]}, "periodSeconds": 1});
    let b = gated("b", 1, &gate, json!({"dependsOn": {"name": ["a"]}}));
    rig.submit("probed", json!([a, b]), json!({"minAvailable": 1}));
    rig.until("probed", "Running");
    thread::sleep(Duration::from_secs(2));
    assert_eq!(rig.pods("probed"), ["probed-a-0"], "it runs and is not ready");
    assert_eq!(pod(&rig.json(&["get", "vcjob", "probed"]), "probed-a-0")["ready"], false);
    shows(&rig.good(&["get", "pod", "probed-a-0"]), &["0/1"]);
    fs::write(&ready, "").unwrap();
    eventually("the other one is created", || rig.pods("probed") == ["probed-a-0", "probed-b-0"]);
    rig.good(&["wait", "--for=condition=Ready", "pod/probed-a-0", "--timeout=30s"]);
    fs::write(&gate, "").unwrap();
    rig.until("probed", "Completed");
}

#[test]
fn vj_16_probes_by_tcp_and_http_and_any_of_several() {
    let Some(rig) = Rig::with_kubectl() else { return };
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        let told = "SKIPPED: there is no python3 to listen with";
        assert!(std::env::var_os("CI").is_none(), "{told}");
        return eprintln!("{told}");
    }
    let serve = |name: &str, probe: Value| {
        let mut task = task(name, 1, "exec python3 -m http.server --bind $POD_IP 8000", json!({}));
        let container = &mut task["template"]["spec"]["containers"][0];
        container["env"] = json!([{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]);
        container["readinessProbe"] = probe;
        container["readinessProbe"]["periodSeconds"] = json!(1);
        task
    };
    let tasks = json!([
        serve("http", json!({"httpGet": {"port": 8000, "path": "/"}})),
        serve("tcp", json!({"tcpSocket": {"port": 8000}})),
        serve("never", json!({"httpGet": {"port": 8000, "path": "/missing"}})),
        gated("all", 1, "/nowhere", json!({"dependsOn": {"name": ["http", "tcp"]}})),
        gated("any", 1, "/nowhere", json!({"dependsOn": {"name": ["never", "tcp"], "iteration": "any"}})),
        gated("none", 1, "/nowhere", json!({"dependsOn": {"name": ["never"]}})),
    ]);
    rig.submit("served", tasks, json!({"minAvailable": 3}));
    let created = |name: &str| rig.pods("served").contains(&format!("served-{name}-0"));
    eventually("those that can start do", || created("all") && created("any"));
    assert!(!created("none"), "a page that is missing is not ready");
    rig.good(&["delete", "vcjob", "served"]);
}

#[test]
fn vj_26_a_claim_is_made_owned_and_kept_over_restarts() {
    let Some(rig) = Rig::with_volumes() else { return };
    let claim = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}});
    let command = "echo x >> /data/tries; test $(wc -l < /data/tries) -gt 1 && sleep 600";
    let more = json!({"volumes": [{"mountPath": "/data", "volumeClaim": claim}],
                      "policies": [{"event": "PodFailed", "action": "RestartJob"}]});
    rig.submit("owner", json!([task("a", 1, command, json!({}))]), more);
    eventually("it runs again", || rig.json(&["get", "vcjob", "owner"])["status"]["retryCount"] == 1);
    rig.until("owner", "Running");
    let claims = rig.json(&["get", "pvc"])["items"].clone();
    assert_eq!(claims.as_array().map(Vec::len), Some(1), "{claims:#}");
    assert_eq!(claims[0]["metadata"]["ownerReferences"][0]["name"], "owner");
    rig.good(&["delete", "vcjob", "owner"]);
    eventually("it goes with its job", || rig.good(&["get", "pvc", "-o", "name"]).is_empty());
}

#[test]
fn vj_26_a_missing_claim_makes_it_wait_with_an_event() {
    let Some(rig) = Rig::with_volumes() else { return };
    let more = json!({"volumes": [{"mountPath": "/data", "volumeClaimName": "later"}]});
    rig.submit("waiting", json!([task("a", 1, "true", json!({}))]), more);
    eventually("it says why", || rig.good(&["describe", "vcjob", "waiting"]).contains("the claim later is not there"));
    assert_eq!((rig.phase("waiting").as_str(), rig.pods("waiting").len()), ("Pending", 0));
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "later"},
                       "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}});
    rig.good(&["create", "-f", &rig.file("later.yaml", &claim.to_string())]);
    rig.until("waiting", "Completed");
    rig.good(&["get", "pvc", "later"]);
}

#[test]
fn what_plugins_publish_is_seen_and_goes_with_the_job() {
    let Some(rig) = Rig::with_volumes() else { return };
    let command = "sha256sum < /root/.ssh/id_rsa; until test -e /nowhere; do sleep 0.05; done";
    rig.submit("mpi", json!([task("a", 2, command, json!({}))]), json!({"plugins": {"svc": [], "ssh": []}}));
    rig.until("mpi", "Running");
    let shown = rig.json(&["get", "pod", "mpi-a-1"]);
    assert_eq!(shown["spec"]["containers"][0]["volumeMounts"][0]["mountPath"], "/etc/volcano", "{shown:#}");
    let map = rig.json(&["get", "cm", "mpi-svc"]);
    assert_eq!(map["data"]["a.host"], "mpi-a-0.mpi\nmpi-a-1.mpi");
    assert_eq!(map["metadata"]["ownerReferences"][0]["name"], "mpi");
    let secret = rig.json(&["get", "secret", "mpi-ssh"]);
    assert!(secret["data"]["id_rsa"].is_string() && secret["data"]["authorized_keys"].is_string());
    shows(&rig.good(&["get", "svc"]), &["NAME", "mpi", "None"]);
    let sums = || [0, 1].map(|index| rig.kubectl(&["logs", &format!("mpi-a-{index}")]).out);
    eventually("both have a key", || sums().iter().all(|sum| sum.contains('-')));
    let first = sums();
    assert_eq!(first[0], first[1], "every pod has the same key");
    // One that is created again alone has it too, and nothing was touched.
    rig.good(&["delete", "pod", "mpi-a-1", "--wait=false"]);
    eventually("it is there again", || {
        pod(&rig.json(&["get", "vcjob", "mpi"]), "mpi-a-1")["tries"] == 2 && sums()[1] == first[0]
    });
    assert_eq!(rig.json(&["get", "secret", "mpi-ssh"])["metadata"]["uid"], secret["metadata"]["uid"]);
    // More pods are found in the lists.
    let patch = "[{\"op\": \"replace\", \"path\": \"/spec/tasks/0/replicas\", \"value\": 3}]";
    rig.good(&["patch", "vcjob", "mpi", "--type=json", "-p", patch]);
    eventually("there are three", || rig.pods("mpi").len() == 3);
    assert_eq!(rig.json(&["get", "cm", "mpi-svc"])["data"]["VC_A_NUM"], "3");
    rig.good(&["delete", "vcjob", "mpi"]);
    eventually("they go with their job", || {
        ["cm/mpi-svc", "secret/mpi-ssh", "svc/mpi"].iter().all(|one| rig.kubectl(&["get", one]).code != 0)
    });
}

#[test]
fn a_job_is_scaled_both_ways_and_nothing_else_of_it_changes() {
    let Some(rig) = Rig::with_kubectl() else { return };
    rig.submit("wide", json!([gated("a", 2, "/nowhere", json!({}))]), json!({"minAvailable": 1}));
    rig.until("wide", "Running");
    let patch = |text: &str| rig.kubectl(&["patch", "vcjob", "wide", "--type=merge", "-p", text]);
    let sized = |replicas: u32| {
        let object = rig.json(&["get", "vcjob", "wide"]);
        let mut tasks = object["spec"]["tasks"].clone();
        tasks[0]["replicas"] = json!(replicas);
        tasks[0]["minAvailable"] = json!(1);
        json!({"spec": {"tasks": tasks}}).to_string()
    };
    assert_eq!(patch(&sized(4)).code, 0);
    eventually("there are four", || rig.json(&["get", "vcjob", "wide"])["status"]["running"] == 4);
    assert_eq!(patch(&sized(1)).code, 0);
    eventually("there is one", || rig.pods("wide") == ["wide-a-0"]);
    let refused = patch("{\"spec\":{\"maxRetry\":9}}");
    assert_ne!(refused.code, 0);
    shows(&refused.err, &["spec.maxRetry"]);
    rig.good(&["delete", "vcjob", "wide"]);
}

#[test]
fn vj_13_commands_of_the_bus_suspend_and_resume() {
    let Some(rig) = Rig::with_kubectl() else { return };
    rig.submit("bus", json!([gated("a", 1, "/nowhere", json!({}))]), json!({}));
    rig.until("bus", "Running");
    let command = |action: &str, name: &str| {
        let command = json!({"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command",
            "metadata": {"generateName": "bus-"}, "action": action,
            "target": {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": name}});
        rig.kubectl(&["create", "-f", &rig.file("command.yaml", &command.to_string())])
    };
    let said = command("AbortJob", "bus");
    assert_eq!(said.code, 0, "{said}");
    rig.until("bus", "Aborted");
    assert_eq!(command("ResumeJob", "bus").code, 0);
    rig.until("bus", "Running");
    assert_eq!(rig.json(&["get", "vcjob", "bus"])["status"]["retryCount"], 1);
    shows(&command("AbortJob", "missing").err, &["missing"]);
    shows(&command("Dance", "bus").err, &["Dance"]);
    assert_eq!(rig.good(&["get", "commands.bus.volcano.sh", "-o", "name"]), "", "none is kept");
    rig.good(&["delete", "vcjob", "bus"]);
}
