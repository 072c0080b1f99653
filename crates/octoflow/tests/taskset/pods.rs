//! The pods and the control unit of a TaskSet: their form, and what follows from deleting them.

use serde_json::{Value, json};

use crate::{
    kubectl::demo,
    rig::{Rig, eventually, shows},
};

/// One worker whose replica is tried again up to three times.
fn retried(name: &str) -> String {
    demo(name, "/nowhere", 1).replace(
        "    eventPolicy: [{event: RoleSucceeded",
        "    retryPolicy: {retry: true, delay: 0, maxRetryCount: 3}\n    eventPolicy: [{event: RoleSucceeded",
    )
}

fn replica(rig: &Rig, name: &str) -> Value {
    let role = rig.json(&["get", "ts", name])["status"]["roleStatus"][1].take();
    role["replicaStatus"][0].clone()
}

#[test]
fn ts26_a_pod_is_what_its_template_says_and_tells_whose_it_is() {
    let Some(rig) = Rig::with_kubectl() else { return };
    let file = rig.file("demo.yaml", &demo("demo", "/nowhere", 1));
    rig.good(&["create", "-f", &file]);
    rig.runs("demo");
    let set = rig.json(&["get", "ts", "demo"]);
    let pod = rig.json(&["get", "pod", "demo-worker-0-0-0"]);
    let unit = rig.json(&["get", "cm", "c-demo-0"]);
    assert_eq!(pod["metadata"]["labels"], json!({"tier": "work", "TaskSet": "demo", "PodTaskRole": "worker"}));
    let annotations = &pod["metadata"]["annotations"];
    let wanted = json!({
        "note": "mine", "RoleReplicaIndex": "0", "TaskSet": "demo", "Namespace": "default",
        "TSUID": set["metadata"]["uid"], "CID": set["status"]["controlUnitUID"],
    });
    assert_eq!(*annotations, wanted);
    let owner = &pod["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&owner["kind"], &owner["name"], &owner["controller"]),
        (&json!("ConfigMap"), &json!("c-demo-0"), &json!(true))
    );
    assert_eq!(owner["uid"], unit["metadata"]["uid"]);
    assert_eq!(unit["metadata"]["ownerReferences"][0]["uid"], set["metadata"]["uid"]);
    let status = replica(&rig, "demo");
    assert_eq!(pod["metadata"]["uid"], status["podUID"]);
    assert_eq!((&pod["status"]["podIP"], &pod["status"]["hostIP"]), (&status["podIP"], &status["podHostIP"]));
    let container = &pod["spec"]["containers"][0];
    assert_eq!((&container["name"], &container["image"]), (&json!("worker"), &json!("busybox")));
    let variables: Vec<(&str, &str)> = container["env"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["name"].as_str().unwrap(), one["value"].as_str().unwrap()))
        .collect();
    for wanted in [("TASKSET_NAME", "demo"), ("TASKSET_NAMESPACE", "default"), ("TASKROLE_REPLICA_INDEX", "0")] {
        assert!(variables.contains(&wanted), "{variables:?}");
    }
    assert_eq!(variables.last(), Some(&("TASKROLE_NAME", "my-own")));
    shows(&rig.good(&["describe", "pod", "demo-worker-0-0-0"]), &["Controlled By:", "ConfigMap/c-demo-0", "Running"]);
    shows(&rig.good(&["get", "pods", "-o", "wide"]), &["demo-ps-0-0-0", "1/1", "Running", "127."]);
    // It would wait for ever, also when its server is gone.
    rig.good(&["delete", "ts", "demo", "--cascade=foreground"]);
}

#[test]
fn ts23_a_pod_that_is_deleted_or_evicted_counts_as_failed_and_is_tried_again() {
    let Some(rig) = Rig::with_kubectl() else { return };
    let file = rig.file("demo.yaml", &retried("demo"));
    rig.good(&["create", "-f", &file]);
    rig.runs("demo");
    shows(&rig.good(&["delete", "pod", "demo-worker-0-0-0"]), &["\"demo-worker-0-0-0\" deleted"]);
    eventually("another one runs", || rig.kubectl(&["get", "pod", "demo-worker-0-1-0"]).code == 0);
    rig.runs("demo");
    shows(&rig.bad(&["get", "pod", "demo-worker-0-0-0"]), &["NotFound"]);
    let evict = |pod: &str| {
        let body =
            json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": "default"}});
        let path = format!("/api/v1/namespaces/default/pods/{pod}/eviction");
        rig.ask("POST", &path, &[], body.to_string().as_bytes())
    };
    evict("demo-worker-0-0-0").is_status(404, "NotFound");
    let evicted = evict("demo-worker-0-1-0");
    assert_eq!((evicted.status, &evicted.json()["status"]), (201, &json!("Success")));
    eventually("another one runs", || rig.kubectl(&["get", "pod", "demo-worker-0-2-0"]).code == 0);
    rig.runs("demo");
    assert_eq!(replica(&rig, "demo")["totalRetriedCount"], 2);
    shows(&rig.good(&["describe", "ts", "demo"]), &["Events:", "ReplicaRetried"]);
    // The log of a pod that is gone is still there.
    assert_eq!(rig.get("/api/v1/namespaces/default/pods/demo-worker-0-1-0/log").text(), "waiting\n");
    rig.good(&["delete", "pod", "demo-worker-0-2-0"]);
    eventually("the last try runs", || rig.kubectl(&["get", "pod", "demo-worker-0-3-0"]).code == 0);
    rig.runs("demo");
    rig.good(&["delete", "pod", "demo-worker-0-3-0"]);
    eventually("it has failed", || rig.state("demo") == "Failed");
    let last = replica(&rig, "demo");
    assert_eq!((&last["podReason"], &last["totalRetriedCount"]), (&json!("Deleted"), &json!(3)));
}

#[test]
fn ts23_a_task_set_whose_control_unit_is_deleted_is_tried_again() {
    let Some(rig) = Rig::with_kubectl() else { return };
    let text = demo("demo", "/nowhere", 1)
        .replace("spec:\n  roles:", "spec:\n  retryPolicy: {retry: true, delay: 0, maxRetryCount: 1}\n  roles:");
    let file = rig.file("demo.yaml", &text);
    rig.good(&["create", "-f", &file]);
    rig.runs("demo");
    shows(&rig.good(&["delete", "cm", "c-demo-0"]), &["deleted"]);
    eventually("the next attempt runs", || rig.kubectl(&["get", "cm", "c-demo-1"]).code == 0);
    rig.runs("demo");
    assert_eq!(rig.good(&["get", "pods", "-o", "name"]), "pod/demo-ps-1-0-0\npod/demo-worker-1-0-0\n");
    assert_eq!(rig.good(&["get", "ts", "demo", "-o", "jsonpath={.status.totalRetriedCount}"]), "1");
    shows(&rig.good(&["delete", "cm", "c-demo-1"]), &["deleted"]);
    eventually("it has failed", || rig.state("demo") == "Failed");
    assert_eq!(rig.good(&["get", "cm,pods", "-o", "name"]), "");
}

#[test]
fn ts25_a_task_set_that_is_deleted_in_the_foreground_goes_after_its_pods_and_its_control_unit() {
    let Some(rig) = Rig::with_kubectl() else { return };
    let file = rig.file("demo.yaml", &demo("demo", "/nowhere", 2));
    rig.good(&["create", "-f", &file]);
    rig.runs("demo");
    let path = "/apis/octopus.openi.pcl.cn/v1alpha1/namespaces/default/tasksets/demo";
    let watch = rig.lines(&format!("{path}?watch=true"));
    let deleting = rig.ask("DELETE", path, &[], br#"{"propagationPolicy": "Foreground"}"#).json();
    assert_eq!(deleting["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    for line in watch {
        if line["type"] == "DELETED" {
            break;
        }
    }
    assert_eq!(rig.good(&["get", "ts,cm,pods", "-o", "name"]), "");
    shows(&rig.bad(&["get", "ts", "demo"]), &["NotFound"]);
    rig.good(&["create", "-f", &file]);
    rig.runs("demo");
    shows(&rig.good(&["delete", "ts", "demo", "--cascade=foreground"]), &["deleted"]);
    assert_eq!(rig.good(&["get", "ts,cm,pods", "-o", "name"]), "");
}
